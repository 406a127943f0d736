//! One of a level's queues: the requests that wait in it, and the point of virtual time at which its next one
//! would start.

use crate::SeatSeconds;
use crate::work::Work;
use std::collections::VecDeque;

/// How long a request is taken to run, until it is known. Virtual time is corrected when it ends.
pub const ESTIMATED_TIME: crate::Nanos = 3_000_000;

#[derive(Debug, Default)]
pub struct Queue {
    waiting: VecDeque<Waiting>,
    /// Sums over `waiting`.
    pub initial_seats: u32,
    pub max_seats: u32,
    pub work: SeatSeconds,
    /// Where the meter stands, in virtual time, when the next request of this queue starts.
    pub next_start: SeatSeconds,
    pub executing: u32,
    /// Also of requests that are answered and keep seats for a while.
    pub seats_in_use: u32,
}

#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// Which request it is, to its queue set.
    pub slot: usize,
    pub arrival: SeatSeconds,
    pub work: Work,
    pub total: SeatSeconds,
}

/// What the request costs from its start to the release of its last seat.
pub fn total_work(work: &Work) -> SeatSeconds {
    SeatSeconds::of(work.initial_seats, ESTIMATED_TIME) + SeatSeconds::of(work.final_seats, work.extra)
}

impl Queue {
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes part in the sharing of the level's seats.
    pub fn is_active(&self) -> bool {
        !self.waiting.is_empty() || self.executing > 0
    }

    pub fn head(&self) -> Option<&Waiting> {
        self.waiting.front()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting.iter()
    }

    pub fn push(&mut self, waiting: Waiting) {
        self.initial_seats += waiting.work.initial_seats;
        self.max_seats += waiting.work.max_seats();
        self.work += waiting.total;
        self.waiting.push_back(waiting);
    }

    pub fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.subtract(&waiting);
        Some(waiting)
    }

    /// Takes out a request that gave up.
    pub fn remove(&mut self, slot: usize) -> Option<Waiting> {
        let place = self.waiting.iter().position(|w| w.slot == slot)?;
        let waiting = self.waiting.remove(place)?;
        self.subtract(&waiting);
        Some(waiting)
    }

    /// No request starts, in virtual time, before it came. Without this a queue that cannot use its share would
    /// save it up and starve the others later.
    pub fn bound_start(&mut self) {
        if let Some(head) = self.waiting.front() {
            self.next_start = self.next_start.max(head.arrival);
        }
    }

    fn subtract(&mut self, waiting: &Waiting) {
        self.initial_seats -= waiting.work.initial_seats;
        self.max_seats -= waiting.work.max_seats();
        self.work -= waiting.total;
    }
}
