//! How many seats a level is entitled to: its share of the server, less what it lends, plus what it may borrow.

use crate::spec::{Discipline, PriorityLevel};

/// One request may take at most this part of a level.
const REQUEST_PART: f64 = 0.15;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub nominal: u32,
    /// What is left when all that may be lent is lent.
    pub min: u32,
    /// With all that may be borrowed.
    pub max: u32,
}

impl Limits {
    /// Of a server with so many seats, among levels with so many shares in all. Rounded up, so the sum may
    /// exceed the server's seats by a few.
    pub fn of(level: &PriorityLevel, server: u32, shares: f64) -> Limits {
        let part = if shares > 0.0 { f64::from(level.shares) / shares } else { 0.0 };
        let nominal = (f64::from(server) * part).ceil() as u32;
        let percent = |percent: u32| (f64::from(nominal) * f64::from(percent) / 100.0).round() as u32;
        let borrowed = level.borrowing_percent.map_or(server, percent);
        Limits { nominal, min: nominal - percent(level.lendable_percent), max: nominal.saturating_add(borrowed) }
    }

    /// Where a new level begins, before anything is known about its load: half of what it lends is lent.
    pub fn initial(&self) -> u32 {
        self.nominal - (self.nominal - self.min) / 2
    }

    /// Seats that one request may take, so that the hand of one flow cannot hold the whole level; 0 if the level
    /// has no queues.
    pub fn max_request_seats(&self, discipline: Discipline) -> u32 {
        let Discipline::Queue(queuing) = discipline else { return 0 };
        let part = (f64::from(self.nominal) * REQUEST_PART).ceil() as u32;
        part.min(self.nominal / queuing.hand_size.max(1)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dealer::Dealer;
    use crate::spec::Queuing;

    #[test]
    fn shares_of_the_default_levels() {
        // The defaults: 245 shares of 600 seats.
        for (shares, lendable, borrowing, expected) in [
            (30, 33, None, (74, 50, 674)),
            (40, 25, None, (98, 73, 698)),
            (100, 90, None, (245, 24, 845)),
            (5, 0, Some(0), (13, 13, 13)),
            (0, 0, None, (0, 0, 600)),
        ] {
            let level = PriorityLevel {
                shares,
                lendable_percent: lendable,
                borrowing_percent: borrowing,
                ..PriorityLevel::mandatory_catch_all()
            };
            let Limits { nominal, min, max } = Limits::of(&level, 600, 245.0);
            assert_eq!((nominal, min, max), expected, "{shares}");
        }
        assert_eq!(Limits::of(&PriorityLevel::mandatory_exempt(), 600, 0.0).nominal, 0);
    }

    #[test]
    fn one_request_never_takes_it_all() {
        let queue = |hand| {
            Discipline::Queue(Queuing {
                queues: 64,
                hand_size: hand,
                length_limit: 50,
                dealer: Dealer::new(64, hand).unwrap(),
            })
        };
        let limits = |nominal| Limits { nominal, min: nominal, max: nominal };
        for (nominal, discipline, expected) in
            [(74, queue(6), 12), (40, queue(6), 6), (10, queue(6), 1), (2, queue(6), 1), (40, Discipline::Reject, 0)]
        {
            assert_eq!(limits(nominal).max_request_seats(discipline), expected, "{nominal}");
        }
    }
}
