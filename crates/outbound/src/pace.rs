//! A limit to the bytes per second.

use std::num::NonZeroU32;
use std::time::Duration;
use tokio::time::Instant;

pub struct Pace {
    limit: Option<NonZeroU32>,
    free_at: Instant,
}

impl Pace {
    pub fn new(limit: Option<NonZeroU32>) -> Pace {
        Pace { limit, free_at: Instant::now() }
    }

    /// Waits until more may be sent, then counts `bytes`.
    pub async fn spend(&mut self, bytes: usize) {
        let Some(limit) = self.limit else { return };
        tokio::time::sleep_until(self.free_at).await;
        let takes = Duration::from_secs_f64(bytes as f64 / f64::from(limit.get()));
        self.free_at = Instant::now().max(self.free_at) + takes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bytes_take_their_time() {
        let begun = Instant::now();
        let mut pace = Pace::new(NonZeroU32::new(100));
        for _ in 0..3 {
            pace.spend(100).await;
        }
        assert_eq!(begun.elapsed().as_secs(), 2);
        Pace::new(None).spend(usize::MAX).await;
    }
}
