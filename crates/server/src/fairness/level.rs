//! A priority level at work: its queues under a lock, the permits it gave, and those who wait.

use super::config::Schema;
use super::in_flight::{InFlight, InFlightKind, Phase};
use kubelith_auth::User;
use kubelith_fairness::borrowing::Demand;
use kubelith_fairness::dropped::Dropped;
use kubelith_fairness::queue_set::{Cancelled, Reason};
use kubelith_fairness::spec::Discipline;
use kubelith_fairness::work::Work;
use kubelith_fairness::{Admission, Nanos, QueueSet, SECOND, Ticket};
use kubelith_http::RequestInfo;
use kubelith_http::turns::Turns;
use kubelith_meta::Str;
use kubelith_meta::time::wall_time;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// Nanoseconds since the server's flow control began.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started: Instant,
    started_at: SystemTime,
}

impl Clock {
    pub fn start() -> Clock {
        Clock { started: Instant::now(), started_at: wall_time() }
    }

    pub fn now(&self) -> Nanos {
        self.started.elapsed().as_nanos() as Nanos
    }

    pub fn instant(&self, at: Nanos) -> Instant {
        self.started + Duration::from_nanos(at)
    }

    /// For people.
    pub fn wall(&self, at: Nanos) -> SystemTime {
        self.started_at + Duration::from_nanos(at)
    }
}

/// What the dumps show of a request.
pub struct About {
    pub schema: Arc<Schema>,
    pub user: Arc<User>,
    pub info: Arc<RequestInfo>,
}

pub type Queues = QueueSet<About, oneshot::Sender<()>>;

pub struct Level {
    pub name: Str,
    clock: Clock,
    state: Mutex<LevelState>,
    /// Seats that one request may take; 0: no bound of the level's own.
    pub max_request_seats: AtomicU32,
    /// No object wants it any more; it stays until nobody uses it.
    pub quiescing: AtomicBool,
    idle: Arc<Notify>,
    dropped: Mutex<Dropped>,
    /// Of those who have seats.
    pub turns: Arc<Turns>,
}

pub struct LevelState {
    pub queues: Queues,
    pub demand: Demand,
    pub target: f64,
    /// When somebody will look for seats that are due; a second one is not needed.
    alarm: Option<Nanos>,
}

impl Level {
    pub fn new(name: Str, clock: Clock, discipline: Discipline, limit: u32, idle: Arc<Notify>) -> Level {
        let queues = QueueSet::new(clock.now(), discipline, limit);
        Level {
            name,
            clock,
            state: Mutex::new(LevelState { queues, demand: Demand::default(), target: 0.0, alarm: None }),
            max_request_seats: AtomicU32::new(0),
            quiescing: AtomicBool::new(false),
            idle,
            dropped: Mutex::default(),
            turns: Arc::default(),
        }
    }

    /// Runs `change` under the lock and wakes, after it, those whose turn has come.
    pub fn with<R>(self: &Arc<Self>, change: impl FnOnce(&mut LevelState, Nanos) -> R) -> R {
        let now = self.clock.now();
        let mut state = self.lock();
        let result = change(&mut state, now);
        let woken = state.queues.take_woken();
        let alarm = state.queues.next_release().filter(|due| state.alarm.is_none_or(|set| *due < set));
        if alarm.is_some() {
            state.alarm = alarm;
        }
        let is_idle = state.queues.is_idle();
        drop(state);
        for turn in woken {
            // Who is gone has said so, or is about to.
            let _ = turn.send(());
        }
        if let Some(due) = alarm {
            self.set_alarm(due);
        }
        if is_idle && self.quiescing.load(Ordering::Relaxed) {
            self.idle.notify_one();
        }
        result
    }

    pub fn lock(&self) -> MutexGuard<'_, LevelState> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }

    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Seconds that a refused client is told to wait.
    pub fn dropped(&self) -> u64 {
        self.dropped.lock().unwrap_or_else(|e| e.into_inner()).add(self.clock.now() / SECOND)
    }

    /// Seats are due then for which somebody waits.
    fn set_alarm(self: &Arc<Self>, due: Nanos) {
        let level = Arc::downgrade(self);
        let at = self.clock.instant(due);
        // Requests that end with the runtime need no alarm: nobody is left to be woken.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            tokio::time::sleep_until(at).await;
            let Some(level) = level.upgrade() else { return };
            level.with(|state, now| {
                state.alarm = None;
                state.queues.tick(now);
            });
        });
    }
}

/// What a request got.
pub enum Started {
    Running(Permit),
    Waiting(Turn),
    Rejected(Arc<Schema>),
}

/// A request's place in its level. It ends, in whichever state it is, when this is dropped.
struct Place {
    schema: Arc<Schema>,
    in_flight: Arc<InFlight>,
    ticket: Ticket,
    kind: InFlightKind,
    is_watch: bool,
    seats: u32,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.schema.level.with(|state, now| state.queues.finish(now, self.ticket));
    }
}

/// Seats, until it is dropped.
pub struct Permit {
    place: Place,
    started: Nanos,
}

/// A request that waits for its turn. Dropping it takes the request out of the queue.
pub struct Turn {
    turn: oneshot::Receiver<()>,
    arrived: Instant,
    _counted: CountedWaiting,
    place: Place,
}

/// Counts as waiting, until it is dropped.
struct CountedWaiting {
    schema: Arc<Schema>,
    in_flight: Arc<InFlight>,
    kind: InFlightKind,
    seats: u32,
}

impl CountedWaiting {
    fn new(place: &Place) -> CountedWaiting {
        let Place { schema, in_flight, kind, seats, .. } = place;
        schema.metrics().waiting_requests.inc();
        schema.metrics().waiting_seats.add((*seats).into());
        in_flight.add(*kind, Phase::Waiting, 1, schema.level.clock.now());
        CountedWaiting { schema: schema.clone(), in_flight: in_flight.clone(), kind: *kind, seats: *seats }
    }
}

impl Drop for CountedWaiting {
    fn drop(&mut self) {
        self.schema.metrics().waiting_requests.dec();
        self.schema.metrics().waiting_seats.sub(self.seats.into());
        self.in_flight.add(self.kind, Phase::Waiting, -1, self.schema.level.clock.now());
    }
}

pub(super) fn start(
    schema: &Arc<Schema>,
    in_flight: &Arc<InFlight>,
    work: Work,
    hash: u64,
    user: Arc<User>,
    info: Arc<RequestInfo>,
) -> Started {
    let (kind, is_watch) = (InFlightKind::of(&info), info.verb == "watch");
    let about = About { schema: schema.clone(), user, info };
    let (admission, turn, length, now) = schema.level.with(|state, now| {
        let admission = state.queues.arrive(now, work, hash, about);
        let turn = match admission {
            Admission::Wait(ticket) => {
                let (wake, turn) = oneshot::channel();
                state.queues.wake_with(ticket, wake);
                Some(turn)
            }
            _ => None,
        };
        (admission, turn, state.queues.length_seen(), now)
    });
    let metrics = schema.metrics();
    let is_queued = schema.has_queues();
    if is_queued && !matches!(admission, Admission::Reject(_)) {
        metrics.queue_length.observe(length as f64);
    }
    let place = |ticket| Place {
        schema: schema.clone(),
        in_flight: in_flight.clone(),
        ticket,
        kind,
        is_watch,
        seats: work.max_seats(),
    };
    match (admission, turn) {
        (Admission::Wait(ticket), Some(turn)) => {
            let place = place(ticket);
            Started::Waiting(Turn { turn, arrived: Instant::now(), _counted: CountedWaiting::new(&place), place })
        }
        (Admission::Execute(ticket) | Admission::Wait(ticket), _) => {
            if !schema.is_exempt() {
                metrics.waited.observe(0.0);
            }
            Started::Running(Permit::new(place(ticket), now))
        }
        (Admission::Reject(reason), _) => {
            metrics.refused(reason);
            metrics.waited_in_vain.observe(0.0);
            Started::Rejected(schema.clone())
        }
    }
}

impl Permit {
    fn new(place: Place, now: Nanos) -> Permit {
        let metrics = place.schema.metrics();
        metrics.dispatched.inc();
        metrics.executing_requests.inc();
        metrics.executing_seats.add(place.seats.into());
        place.in_flight.add(place.kind, Phase::Executing, 1, now);
        Permit { place, started: now }
    }

    pub fn schema(&self) -> &Arc<Schema> {
        &self.place.schema
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let metrics = self.place.schema.metrics();
        metrics.executing_requests.dec();
        metrics.executing_seats.sub(self.place.seats.into());
        let took = if self.place.is_watch { &metrics.watch_executed } else { &metrics.executed };
        let now = self.place.schema.level.clock.now();
        took.observe(Duration::from_nanos(now.saturating_sub(self.started)).as_secs_f64());
        self.place.in_flight.add(self.place.kind, Phase::Executing, -1, now);
    }
}

impl Turn {
    pub fn schema(&self) -> &Arc<Schema> {
        &self.place.schema
    }

    /// Waits for seats until then. `None`: they did not come.
    pub async fn wait_until(self, deadline: Instant) -> Option<(Permit, Duration)> {
        let Turn { mut turn, arrived, _counted: counted, place } = self;
        let came = tokio::time::timeout_at(deadline, &mut turn).await.is_ok();
        let ticket = place.ticket;
        // It may have come in the last moment.
        let came = came || place.schema.level.with(|s, now| s.queues.cancel(now, ticket)) == Cancelled::Executing;
        let waited = arrived.elapsed();
        drop(counted);
        let metrics = place.schema.metrics();
        if !came {
            metrics.refused(Reason::TimeOut);
            metrics.waited_in_vain.observe(waited.as_secs_f64());
            return None;
        }
        metrics.waited.observe(waited.as_secs_f64());
        let now = place.schema.level.clock.now();
        Some((Permit::new(place, now), waited))
    }
}
