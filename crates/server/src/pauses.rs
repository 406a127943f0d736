//! Pauses between two looks at what depends on the time.

use kubelith_meta::time::{Clock, turned};
use std::sync::Arc;
use std::time::Duration;

/// For loops that renew something before it expires, or look for what has expired. By a clock that goes by itself a pause is a
/// pause; by one that is turned by hand it ends when that happens, since nobody knows how much time has passed then.
pub struct Pauses {
    clock: Arc<dyn Clock>,
    /// Turns of the clock.
    seen: u64,
}

impl Pauses {
    pub fn by(clock: &Arc<dyn Clock>) -> Pauses {
        Pauses { clock: clock.clone(), seen: 0 }
    }

    /// Waits for this long, or for a turn of the clock.
    pub async fn pause(&mut self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.turned()).await;
    }

    /// Waits for a turn of the clock: for ever if it goes by itself.
    pub async fn turned(&mut self) {
        turned(&*self.clock, &mut self.seen).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_meta::time::{Duration as Span, SystemClock, TestClock, Time};

    #[tokio::test(start_paused = true)]
    async fn a_turn_of_the_clock_ends_a_pause() {
        const LONG: Duration = Duration::from_secs(1000);
        let begun = tokio::time::Instant::now();
        let turned = Arc::new(TestClock::new(Time::from_unix(0)));
        let clock: Arc<dyn Clock> = turned.clone();
        let mut pauses = Pauses::by(&clock);
        tokio::join!(pauses.pause(LONG), async { turned.advance(Span::from_secs(1)) });
        assert!(begun.elapsed() < LONG);
        pauses.pause(LONG).await;
        assert!(begun.elapsed() >= LONG);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        Pauses::by(&clock).pause(LONG).await;
        assert!(begun.elapsed() >= 2 * LONG);
    }
}
