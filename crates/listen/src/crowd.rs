//! When a connection waits a moment before it writes. An event wakes all watches of a connection, each of which is a task, and
//! the first that has a frame wakes the connection: it would write that frame by itself, and then the next one. So where frames
//! came together lately, the connection lets the tasks that are ready run before it writes, once for each time it is woken.

use std::time::{Duration, Instant};

/// Frames that come one after the other within this time would have been written together.
const TOGETHER: Duration = Duration::from_micros(100);

#[derive(Debug, Default)]
pub(super) struct Crowd {
    /// Frames came together the last time.
    is_expected: bool,
    /// Waits for others, with so many frames.
    waits_with: Option<usize>,
    /// When a frame last came alone.
    alone: Option<Instant>,
}

impl Crowd {
    /// Whether to let others go first, with the frames that came since the last call.
    pub fn waits(&mut self, frames: usize, now: impl FnOnce() -> Instant) -> bool {
        if let Some(before) = self.waits_with.take() {
            self.is_expected = before + frames > 1;
            return false;
        }
        match frames {
            0 => return false,
            _ if self.is_expected => self.waits_with = Some(frames),
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

    /// What a connection does that finds these frames at these times, in microseconds.
    fn waits(looks: &[(u64, usize)]) -> Vec<bool> {
        let epoch = Instant::now();
        let mut crowd = Crowd::default();
        looks.iter().map(|(at, frames)| crowd.waits(*frames, || epoch + Duration::from_micros(*at))).collect()
    }

    #[test]
    fn waits_where_frames_came_together() {
        // Two came one after the other, so the third waits for its like, and so does the first of the next event.
        assert_eq!(waits(&[(0, 1), (5, 1), (10, 1), (20, 47), (9000, 1), (9010, 49)]), [
            false, false, true, false, true, false
        ]);
    }

    #[test]
    fn waits_for_nobody_where_frames_come_alone() {
        assert_eq!(waits(&[(0, 1), (1000, 1), (2000, 0), (3000, 1)]), [false; 4]);
        // One that waited in vain is the last that did.
        assert_eq!(waits(&[(0, 2), (1000, 1), (1010, 0), (2000, 1), (3000, 1)]), [false, true, false, false, false]);
        // What is not a frame of a watch waits for nothing.
        assert_eq!(waits(&[(0, 2), (5, 0), (10, 0)]), [false; 3]);
    }
}
