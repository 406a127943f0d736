//! How long refused clients are told to stay away: doubled while many are refused, one second less whenever few
//! are, between 1 and 32 seconds, as TCP treats its window.

use std::collections::VecDeque;

/// Seconds.
const MAX_RETRY_AFTER: u64 = 32;

/// The refused requests of one priority level.
#[derive(Debug)]
pub struct Dropped {
    retry_after: u64,
    raised_at: u64,
    second: u64,
    count: u64,
    /// Seconds before the current one, and how many were refused in them.
    history: VecDeque<(u64, u64)>,
}

impl Default for Dropped {
    fn default() -> Dropped {
        Dropped { retry_after: 1, raised_at: 0, second: 0, count: 0, history: VecDeque::new() }
    }
}

impl Dropped {
    /// Counts one more, in this second of whatever clock, and says what its client is told.
    pub fn add(&mut self, second: u64) -> u64 {
        if second != self.second {
            self.history.push_back((self.second, self.count));
            let needed = (2 * self.retry_after).min(MAX_RETRY_AFTER);
            while self.history.front().is_some_and(|(then, _)| self.second.saturating_sub(*then) > needed) {
                self.history.pop_front();
            }
            self.second = second;
            self.count = 0;
            self.adjust();
        }
        self.count += 1;
        self.retry_after
    }

    /// Looks at as many seconds as clients were told to wait.
    fn adjust(&mut self) {
        let recent = self.history.iter().filter(|(then, _)| {
            let ago = self.second.saturating_sub(*then);
            ago > 0 && ago <= self.retry_after
        });
        let refused: u64 = recent.map(|(_, count)| count).sum();
        // Not twice for one spike.
        if self.second.saturating_sub(self.raised_at) >= self.retry_after && refused >= 3 * self.retry_after {
            self.retry_after = (2 * self.retry_after).min(MAX_RETRY_AFTER);
            self.raised_at = self.second;
        } else if refused < self.retry_after && self.retry_after > 1 {
            self.retry_after -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rises_with_refusals_and_falls_without() {
        let mut dropped = Dropped::default();
        let mut told = Vec::new();
        for second in 1000..1070 {
            for _ in 0..100 {
                dropped.add(second);
            }
            told.push(dropped.add(second));
        }
        assert_eq!(told[0], 1);
        assert_eq!(told[1], 2);
        assert!(told.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(*told.last().unwrap(), 32);
        // One in a long while: slowly down.
        let quiet: Vec<_> = (0..40).map(|i| dropped.add(2000 + 100 * i)).collect();
        assert_eq!(quiet[0], 31);
        assert_eq!(*quiet.last().unwrap(), 1);
    }
}
