//! How long to wait before a server is asked again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(4);
const LONGEST: Duration = Duration::from_millis(50);

/// Short at first, for what is nearly so; then longer: a question in a debug build takes milliseconds of the processor, which
/// whoever is waited for needs as well.
pub struct Pauses(Duration);

impl Default for Pauses {
    fn default() -> Pauses {
        Pauses(FIRST)
    }
}

impl Pauses {
    pub fn next_pause(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 4 / 3).min(LONGEST);
        pause
    }

    pub fn pause(&mut self) {
        std::thread::sleep(self.next_pause());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_grow_up_to_the_longest() {
        let mut pauses = Pauses::default();
        let first: Vec<Duration> = (0..20).map(|_| pauses.next_pause()).collect();
        assert!(first.is_sorted() && first[0] == FIRST && first[19] == LONGEST, "{first:?}");
    }
}
