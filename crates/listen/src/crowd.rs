//! When a connection waits a moment before it writes. An event wakes all watches of a connection, and a commit of the store many
//! writes; each is a task, and the first that has something to send wakes the connection, which would write that by itself, and
//! then the next one. So where answers came together lately, the connection lets the tasks that are ready run before it
//! writes, once for each time it is woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Answers that come one after the other within this time would have been written together.
const TOGETHER: Duration = Duration::from_micros(100);

/// Counts what the tasks of a connection have for it: answers, and frames of answers that go on.
#[derive(Debug, Clone, Default)]
pub(super) struct Ready(Arc<AtomicUsize>);

impl Ready {
    pub fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many there were since the last call.
    pub fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub(super) struct Crowd {
    /// Answers came together the last time.
    is_expected: bool,
    /// Waits for others, with so many answers.
    waits_with: Option<usize>,
    /// When an answer last came alone.
    alone: Option<Instant>,
}

impl Crowd {
    /// Whether to let others go first, with the answers that came since the last call.
    pub fn waits(&mut self, ready: usize, now: impl FnOnce() -> Instant) -> bool {
        if let Some(before) = self.waits_with.take() {
            self.is_expected = before + ready > 1;
            return false;
        }
        match ready {
            0 => return false,
            _ if self.is_expected => self.waits_with = Some(ready),
            1 => {
                let now = now();
                let before = self.alone.replace(now);
                self.is_expected = before.is_some_and(|before| now.duration_since(before) < TOGETHER);
            }
            _ => self.is_expected = true,
        }
        self.waits_with.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a connection does that finds so many answers at these times, in microseconds.
    fn waits(looks: &[(u64, usize)]) -> Vec<bool> {
        let epoch = Instant::now();
        let mut crowd = Crowd::default();
        looks.iter().map(|(at, ready)| crowd.waits(*ready, || epoch + Duration::from_micros(*at))).collect()
    }

    #[test]
    fn waits_where_answers_came_together() {
        // Two came one after the other, so the third waits for its like, and so does the first of the next event.
        assert_eq!(
            waits(&[(0, 1), (5, 1), (10, 1), (20, 47), (9000, 1), (9010, 49)]),
            [false, false, true, false, true, false]
        );
    }

    #[test]
    fn waits_for_nobody_where_answers_come_alone() {
        assert_eq!(waits(&[(0, 1), (1000, 1), (2000, 0), (3000, 1)]), [false; 4]);
        // One that waited in vain is the last that did.
        assert_eq!(waits(&[(0, 2), (1000, 1), (1010, 0), (2000, 1), (3000, 1)]), [false, true, false, false, false]);
        // Requests that come are not waited with.
        assert_eq!(waits(&[(0, 2), (5, 0), (10, 0)]), [false; 3]);
    }
}
