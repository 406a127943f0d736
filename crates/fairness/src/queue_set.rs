//! The seats and queues of one priority level: fair queueing by virtual time.
//!
//! Virtual time R is the work, in seat-seconds, that each busy queue has been given since the start. While n
//! queues are busy and the level works at s seats, R moves by s/n per second. Every queue knows the R at which
//! its next request would start; a free seat goes to the queue whose next request would *finish* first. So a
//! queue that asks for little is served soon, and one that asks for much gets its even share.
//!
//! ```text
//! 2 seats, requests of 1 s; queue a has four from the start, queue b gets one at t=0.5
//! t=0    R=0    a1 and a2 start
//! t=0.5  R=1    b1 comes and may start at R=1; from here on two queues share
//! t=1    R=1.5  a1 and a2 end, a has had 2 seat-seconds: a3 may start at R=2. So b1 is first, then a3
//! ```
//!
//! A request keeps its final seats for a while after it was answered. Those times are in `lingering`; whatever
//! happens next first lets the due ones go, each at its own moment. Only if somebody waits for such a seat must
//! the owner come back by itself: [`QueueSet::next_release`] says when.

use crate::integrator::{Integrator, Moments};
use crate::queue::{ESTIMATED_TIME, Queue, Waiting, total_work};
use crate::spec::{Discipline, Queuing};
use crate::timing::{Observed, TimedRatio};
use crate::work::Work;
use crate::{Nanos, SeatSeconds};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const SEAT_BOUNDS: &[f64] = &[0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];
const REQUEST_BOUNDS: &[f64] = &[0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1.0];
const DEMAND_BOUNDS: &[f64] = &[0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.8, 4.0, 6.0];

/// `T` is what the owner wants to know about a request, `W` how it wakes the one who waits.
#[derive(Debug)]
pub struct QueueSet<T, W> {
    discipline: Discipline,
    limit: u32,
    queues: Vec<Queue>,
    requests: Slots<Request<T, W>>,
    lingering: BinaryHeap<Reverse<Lingering>>,
    /// Those whose turn has come since the owner last looked.
    woken: Vec<W>,
    meter: SeatSeconds,
    last: Nanos,
    active_queues: u32,
    /// The queue that was served last; ties go to those after it.
    robin: usize,
    enqueued: usize,
    /// Of its queue, as the last request that came saw it.
    length_seen: usize,
    totals: Totals,
    gauges: Gauges,
}

/// Names a request that was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    slot: usize,
    generation: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    Execute(Ticket),
    /// Leave a `W` with [`QueueSet::wake_with`], under the same lock.
    Wait(Ticket),
    Reject(Reason),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    ConcurrencyLimit,
    QueueFull,
    TimeOut,
}

impl Reason {
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::ConcurrencyLimit => "concurrency-limit",
            Reason::QueueFull => "queue-full",
            Reason::TimeOut => "time-out",
        }
    }
}

/// What became of a request that its owner gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It is gone.
    WhileWaiting,
    /// Too late: it has its seats, and must be finished.
    Executing,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    pub waiting: u32,
    pub executing: u32,
    pub seats_in_use: u32,
    pub seats_waiting: u32,
    pub dispatched: u64,
    pub rejected: u64,
    pub timed_out: u64,
    pub cancelled: u64,
}

#[derive(Debug)]
struct Gauges {
    waiting: TimedRatio,
    executing: TimedRatio,
    seats: TimedRatio,
    demand_ratio: TimedRatio,
    demand: Integrator,
}

/// What a scrape shows.
#[derive(Debug, Clone)]
pub struct Utilization {
    pub waiting: Observed,
    pub executing: Observed,
    pub seats: Observed,
    pub demand: Observed,
}

#[derive(Debug)]
pub struct Request<T, W> {
    pub about: T,
    pub work: Work,
    pub arrived: Nanos,
    /// `None` while it waits.
    pub started: Option<Nanos>,
    /// `None` if the level has no queues.
    queue: Option<usize>,
    wake: Option<W>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Lingering {
    due: Nanos,
    queue: Option<usize>,
    seats: u32,
}

impl<T, W> QueueSet<T, W> {
    pub fn new(now: Nanos, discipline: Discipline, limit: u32) -> QueueSet<T, W> {
        let mut set = QueueSet {
            discipline,
            limit,
            queues: Vec::new(),
            requests: Slots::default(),
            lingering: BinaryHeap::new(),
            woken: Vec::new(),
            meter: SeatSeconds::ZERO,
            last: now,
            active_queues: 0,
            robin: 0,
            enqueued: 0,
            length_seen: 0,
            totals: Totals::default(),
            gauges: Gauges {
                waiting: TimedRatio::new(now, REQUEST_BOUNDS),
                executing: TimedRatio::new(now, REQUEST_BOUNDS),
                seats: TimedRatio::new(now, SEAT_BOUNDS),
                demand_ratio: TimedRatio::new(now, DEMAND_BOUNDS),
                demand: Integrator::new(now),
            },
        };
        set.configure(now, discipline, limit, limit);
        set
    }

    /// More queues are there at once; fewer when the last ones are empty. `denominator` is what utilization is
    /// measured against.
    pub fn configure(&mut self, now: Nanos, discipline: Discipline, limit: u32, denominator: u32) {
        self.sync(now);
        self.discipline = discipline;
        self.limit = limit;
        let mut capacity = 1;
        if let Discipline::Queue(queuing) = discipline {
            capacity = queuing.queues.saturating_mul(queuing.length_limit).max(1);
            while self.queues.len() < queuing.queues as usize {
                self.queues.push(Queue::default());
            }
        }
        let denominator = f64::from(denominator.max(1));
        self.gauges.waiting.set_denominator(now, capacity.into());
        for gauge in [&mut self.gauges.executing, &mut self.gauges.seats, &mut self.gauges.demand_ratio] {
            gauge.set_denominator(now, denominator);
        }
        self.drop_unused_queues();
        self.dispatch(now);
    }

    /// A request comes. `hash` tells flows apart.
    pub fn arrive(&mut self, now: Nanos, work: Work, hash: u64, about: T) -> Admission {
        self.sync(now);
        let request = Request { about, work, arrived: now, started: Some(now), queue: None, wake: None };
        let Discipline::Queue(queuing) = self.discipline else {
            if !self.has_room(work.max_seats()) {
                self.totals.rejected += 1;
                return Admission::Reject(Reason::ConcurrencyLimit);
            }
            self.totals.executing += 1;
            self.totals.seats_in_use += work.max_seats();
            self.totals.dispatched += 1;
            self.note(now);
            return Admission::Execute(self.requests.insert(request));
        };
        let index = self.shortest_of_hand(&queuing, hash);
        let full = self.queues[index].len() >= queuing.length_limit as usize;
        if full && self.totals.seats_in_use >= self.limit {
            self.totals.rejected += 1;
            return Admission::Reject(Reason::QueueFull);
        }
        let ticket = self.requests.insert(Request { started: None, queue: Some(index), ..request });
        self.enqueue(index, ticket.slot, work);
        // The usual case: nobody else waits, so it is this one's turn.
        if self.totals.waiting == 1 && self.totals.seats_in_use < self.limit && self.has_room(work.max_seats()) {
            self.robin = index;
            self.start_head(now, index);
        } else {
            self.dispatch(now);
        }
        self.note(now);
        match self.requests.get(ticket) {
            Some(request) if request.started.is_some() => Admission::Execute(ticket),
            _ => Admission::Wait(ticket),
        }
    }

    /// How to tell the owner of a waiting request that its turn has come.
    pub fn wake_with(&mut self, ticket: Ticket, wake: W) {
        if let Some(request) = self.requests.get_mut(ticket) {
            request.wake = Some(wake);
        }
    }

    /// The owner no longer wants to wait.
    pub fn cancel(&mut self, now: Nanos, ticket: Ticket) -> Cancelled {
        self.sync(now);
        let Some((None, Some(index))) = self.requests.get(ticket).map(|r| (r.started, r.queue)) else {
            return Cancelled::Executing;
        };
        if let Some(waiting) = self.queues[index].remove(ticket.slot) {
            self.totals.waiting -= 1;
            self.totals.seats_waiting -= waiting.work.max_seats();
            self.totals.rejected += 1;
            self.totals.cancelled += 1;
            if !self.queues[index].is_active() {
                self.active_queues -= 1;
            }
            self.queues[index].bound_start();
        }
        self.requests.remove(ticket);
        // A wide request at the head may have held others up.
        self.dispatch(now);
        self.note(now);
        Cancelled::WhileWaiting
    }

    /// The request was answered, or its owner is gone.
    pub fn finish(&mut self, now: Nanos, ticket: Ticket) {
        if self.cancel(now, ticket) == Cancelled::WhileWaiting {
            return;
        }
        let Some(request) = self.requests.remove(ticket) else { return };
        let Some(started) = request.started else { return };
        self.totals.executing -= 1;
        if let Some(index) = request.queue {
            let queue = &mut self.queues[index];
            queue.executing -= 1;
            if !queue.is_active() {
                self.active_queues -= 1;
            }
            // It was charged for the estimated time; now the time is known.
            let width = request.work.initial_seats;
            queue.next_start -= SeatSeconds::of(width, ESTIMATED_TIME);
            queue.next_start += SeatSeconds::of(width, now.saturating_sub(started));
            queue.bound_start();
        }
        let seats = request.work.max_seats();
        if request.work.extra == 0 {
            self.release(request.queue, seats);
        } else {
            self.lingering.push(Reverse(Lingering { due: now + request.work.extra, queue: request.queue, seats }));
        }
        self.dispatch(now);
        self.note(now);
    }

    /// Lets seats go that are due.
    pub fn tick(&mut self, now: Nanos) {
        self.sync(now);
    }

    /// When to call [`QueueSet::tick`], if nothing else happens before: somebody waits for seats that are kept.
    pub fn next_release(&self) -> Option<Nanos> {
        if self.totals.waiting == 0 {
            return None;
        }
        self.lingering.peek().map(|Reverse(next)| next.due)
    }

    /// Those to be woken. Take them in the same breath, wake them after the lock is gone.
    pub fn take_woken(&mut self) -> Vec<W> {
        std::mem::take(&mut self.woken)
    }

    /// The demand of the period that ends now.
    pub fn end_period(&mut self, now: Nanos) -> Moments {
        self.sync(now);
        self.gauges.demand.reset(now)
    }

    pub fn is_idle(&self) -> bool {
        self.totals.waiting == 0 && self.totals.executing == 0
    }

    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// How long the queue was with the request that came last; for a metric.
    pub fn length_seen(&self) -> usize {
        self.length_seen
    }

    pub fn limit(&self) -> u32 {
        self.limit
    }

    pub fn meter(&self) -> SeatSeconds {
        self.meter
    }

    pub fn queues(&self) -> &[Queue] {
        &self.queues
    }

    pub fn utilization(&mut self, now: Nanos) -> Utilization {
        self.sync(now);
        let gauges = &mut self.gauges;
        Utilization {
            waiting: gauges.waiting.observe(now),
            executing: gauges.executing.observe(now),
            seats: gauges.seats.observe(now),
            demand: gauges.demand_ratio.observe(now),
        }
    }

    /// The requests in the order in which they wait, then those that run; with their queue and their place in it.
    pub fn requests(&self) -> impl Iterator<Item = (Option<usize>, Option<usize>, &Request<T, W>)> {
        let waiting = self.queues.iter().enumerate().flat_map(move |(index, queue)| {
            queue
                .iter()
                .enumerate()
                .filter_map(move |(place, waiting)| Some((Some(index), Some(place), self.requests.at(waiting.slot)?)))
        });
        let executing = self.requests.iter().filter(|r| r.started.is_some()).map(|r| (r.queue, None, r));
        waiting.chain(executing)
    }

    /// Brings virtual time up to `now`, letting kept seats go at their moments on the way.
    fn sync(&mut self, now: Nanos) {
        while self.lingering.peek().is_some_and(|Reverse(next)| next.due <= now) {
            let Some(Reverse(gone)) = self.lingering.pop() else { break };
            self.advance(gone.due);
            self.release(gone.queue, gone.seats);
            self.dispatch(gone.due.max(self.last));
            self.note(gone.due.max(self.last));
        }
        self.advance(now);
    }

    fn advance(&mut self, now: Nanos) {
        if now <= self.last {
            return;
        }
        if self.active_queues > 0 {
            let usable = (self.totals.seats_in_use + self.totals.seats_waiting).min(self.limit);
            let rate = f64::from(usable) / f64::from(self.active_queues);
            self.meter += SeatSeconds::at_rate(rate, now - self.last);
        }
        self.last = now;
    }

    /// A request that wants more than there is runs alone.
    fn has_room(&self, seats: u32) -> bool {
        match self.discipline {
            Discipline::Exempt => true,
            _ if seats > self.limit => self.totals.executing == 0,
            _ => self.totals.seats_in_use + seats <= self.limit,
        }
    }

    /// The queue with the least waiting work among the flow's. Where the search begins changes from one request to
    /// the next, or the first card of each hand would be preferred.
    fn shortest_of_hand(&mut self, queuing: &Queuing, hash: u64) -> usize {
        let hand = queuing.dealer.deal(hash);
        let cards = hand.cards();
        let offset = self.enqueued % cards.len();
        self.enqueued = self.enqueued.wrapping_add(1);
        let (before, after) = cards.split_at(offset);
        let in_order = after.iter().chain(before).map(|card| *card as usize);
        in_order.min_by_key(|index| self.queues[*index].work).unwrap_or(0)
    }

    fn enqueue(&mut self, index: usize, slot: usize, work: Work) {
        let queue = &mut self.queues[index];
        if !queue.is_active() {
            queue.next_start = self.meter;
            self.active_queues += 1;
        }
        queue.push(Waiting { slot, arrival: self.meter, work, total: total_work(&work) });
        queue.bound_start();
        self.length_seen = queue.len();
        self.totals.waiting += 1;
        self.totals.seats_waiting += work.max_seats();
    }

    /// Starts all that can start now.
    fn dispatch(&mut self, now: Nanos) {
        while self.totals.waiting > 0 && self.totals.seats_in_use < self.limit {
            let Some(index) = self.first_to_finish() else { return };
            let Some(head) = self.queues[index].head() else { return };
            // Nobody may overtake it, or a wide request would never start.
            if !self.has_room(head.work.max_seats()) {
                return;
            }
            self.robin = index;
            self.start_head(now, index);
        }
    }

    /// The queue whose head would finish first; the next one in turn if there are several.
    fn first_to_finish(&self) -> Option<usize> {
        let count = self.queues.len();
        let in_turn = (1..=count).map(|step| (self.robin + step) % count);
        let finishes = in_turn.filter_map(|index| {
            let queue = &self.queues[index];
            Some((queue.next_start + queue.head()?.total, index))
        });
        finishes.min_by_key(|(finish, _)| *finish).map(|(_, index)| index)
    }

    fn start_head(&mut self, now: Nanos, index: usize) {
        let limit = self.limit;
        let queue = &mut self.queues[index];
        let Some(waiting) = queue.pop() else { return };
        let seats = waiting.work.max_seats();
        queue.next_start += waiting.total;
        queue.executing += 1;
        self.totals.waiting -= 1;
        self.totals.seats_waiting -= seats;
        self.totals.executing += 1;
        self.totals.dispatched += 1;
        let mut work = waiting.work;
        if work.final_seats > limit {
            // The same work on fewer seats takes longer.
            let total = SeatSeconds::of(work.final_seats, work.extra);
            work = Work { final_seats: limit, extra: total.time_with(limit), ..work };
        }
        self.queues[index].seats_in_use += work.max_seats();
        self.queues[index].bound_start();
        self.totals.seats_in_use += work.max_seats();
        if let Some(request) = self.requests.at_mut(waiting.slot) {
            request.started = Some(now);
            request.work = work;
            self.woken.extend(request.wake.take());
        }
    }

    fn release(&mut self, queue: Option<usize>, seats: u32) {
        self.totals.seats_in_use -= seats;
        if let Some(queue) = queue.and_then(|index| self.queues.get_mut(index)) {
            queue.seats_in_use -= seats;
        }
        self.drop_unused_queues();
    }

    fn drop_unused_queues(&mut self) {
        let wanted = match self.discipline {
            Discipline::Queue(queuing) => queuing.queues as usize,
            _ => 0,
        };
        while self.queues.len() > wanted && self.queues.last().is_some_and(|q| !q.is_active() && q.seats_in_use == 0) {
            self.queues.pop();
        }
    }

    fn note(&mut self, now: Nanos) {
        let Totals { waiting, executing, seats_in_use, seats_waiting, .. } = self.totals;
        let demand = f64::from(seats_in_use + seats_waiting);
        self.gauges.waiting.set(now, waiting.into());
        self.gauges.executing.set(now, executing.into());
        self.gauges.seats.set(now, seats_in_use.into());
        self.gauges.demand_ratio.set(now, demand);
        self.gauges.demand.set(now, demand);
    }
}

/// Requests at places that are used again; a generation tells an old ticket from a new one.
#[derive(Debug)]
struct Slots<R> {
    places: Vec<(u64, Option<R>)>,
    free: Vec<usize>,
}

impl<R> Default for Slots<R> {
    fn default() -> Slots<R> {
        Slots { places: Vec::new(), free: Vec::new() }
    }
}

impl<R> Slots<R> {
    fn insert(&mut self, request: R) -> Ticket {
        if let Some(slot) = self.free.pop() {
            self.places[slot].1 = Some(request);
            return Ticket { slot, generation: self.places[slot].0 };
        }
        self.places.push((0, Some(request)));
        Ticket { slot: self.places.len() - 1, generation: 0 }
    }

    fn remove(&mut self, ticket: Ticket) -> Option<R> {
        let (generation, place) = self.places.get_mut(ticket.slot)?;
        if *generation != ticket.generation {
            return None;
        }
        let request = place.take()?;
        *generation += 1;
        self.free.push(ticket.slot);
        Some(request)
    }

    fn get(&self, ticket: Ticket) -> Option<&R> {
        self.places.get(ticket.slot).filter(|(generation, _)| *generation == ticket.generation)?.1.as_ref()
    }

    fn get_mut(&mut self, ticket: Ticket) -> Option<&mut R> {
        self.places.get_mut(ticket.slot).filter(|(generation, _)| *generation == ticket.generation)?.1.as_mut()
    }

    fn at(&self, slot: usize) -> Option<&R> {
        self.places.get(slot)?.1.as_ref()
    }

    fn at_mut(&mut self, slot: usize) -> Option<&mut R> {
        self.places.get_mut(slot)?.1.as_mut()
    }

    fn iter(&self) -> impl Iterator<Item = &R> {
        self.places.iter().filter_map(|(_, request)| request.as_ref())
    }
}

#[cfg(test)]
#[path = "queue_set_tests.rs"]
mod tests;
