//! A connection from its first byte to its end.
//!
//! ```text
//! Waiting ──first bytes──► Serving ──done──► Closing ──► end
//!    ▲                        │
//!    └──idle for a while──────┘
//! ```
//!
//! Most connections of an API server are silent most of the time. A waiting one costs its TLS state and
//! little else: hyper's buffers come with the first byte and go when it falls silent.

use super::activity::{Activity, HEAD_TIMEOUT, Verdict};
use super::connection::Shared;
use super::control::{Entry, Order};
use super::protocol::Protocol;
use super::service::ConnectionService;
use super::stream::ClientStream;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::AsyncWrite;
use tokio::time::{Instant, Sleep};

/// When a connection is parked.
struct Pace {
    /// How often it is looked at.
    check: Duration,
    /// For how long nothing must have gone on.
    quiet: Duration,
}

/// Of a connection's first life.
const FIRST: Pace = Pace { check: Duration::from_secs(3), quiet: Duration::from_secs(2) };
/// As above where many are served: when thousands come at a time, as after a restart, few of them need their state at
/// the same time.
const CROWDED: Pace = Pace { check: Duration::from_secs(1), quiet: Duration::from_millis(500) };
/// Of one that was parked before: one that is used now and then is not parked after each request.
const AGAIN: Pace = Pace { check: Duration::from_secs(6), quiet: Duration::from_secs(2) };
/// Connections that are served at a time; states of so many take some 10 MB.
const CROWD: usize = 256;

enum DriverState<P: Protocol> {
    /// With what is to be known of it, if it was served before.
    Waiting(ClientStream, Option<P::Parked>),
    Serving(Pin<Box<P::Connection>>),
    /// Saying goodbye in TLS.
    Closing(ClientStream),
    Ended,
}

pub(super) struct Driver<P: Protocol> {
    state: DriverState<P>,
    service: ConnectionService,
    shared: Arc<Shared>,
    entry: Entry,
    activity: Arc<Activity>,
    leaving_since: Option<Instant>,
    /// The client was asked to prepare for parking (to empty its HPACK table).
    asked: bool,
    /// How much was sent when the client's windows were seen to be closed, and since when they are.
    stopped: Option<(u64, Instant)>,
    look: Pin<Box<Sleep>>,
    served: Option<Served>,
    was_parked: bool,
}

/// Counts a connection that is served.
struct Served(Arc<Shared>);

impl Served {
    fn new(shared: &Arc<Shared>) -> Served {
        shared.serving.fetch_add(1, Ordering::Relaxed);
        Served(shared.clone())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.serving.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<P: Protocol> Driver<P> {
    pub fn new(stream: ClientStream, service: ConnectionService, shared: Arc<Shared>, entry: Entry) -> Driver<P> {
        let activity = service.activity.clone();
        let look = Box::pin(tokio::time::sleep_until(Instant::now() + HEAD_TIMEOUT));
        Driver {
            state: DriverState::Waiting(stream, None),
            service,
            shared,
            entry,
            activity,
            leaving_since: None,
            asked: false,
            stopped: None,
            look,
            served: None,
            was_parked: false,
        }
    }

    /// Does what the state allows. Ready when the state has changed, or the connection has ended.
    fn poll_state(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.state {
            DriverState::Waiting(stream, parked) => {
                let _ = stream.poll_flushed(cx); // a failure shows at the next read
                let spoke = match parked {
                    Some(parked) => ready!(P::poll_aside(parked, stream, cx)),
                    None => ready!(stream.poll_first_bytes(cx)),
                };
                if let DriverState::Waiting(stream, parked) = std::mem::replace(&mut self.state, DriverState::Ended)
                    && matches!(spoke, Ok(true))
                {
                    self.serve(stream, parked);
                }
            }
            DriverState::Serving(conn) => {
                let result = ready!(P::poll(conn, cx));
                if let Err(e) = &result {
                    tracing::trace!(error = %e, "connection ended");
                }
                self.end_serving(result.is_ok());
            }
            DriverState::Closing(stream) => {
                let _ = ready!(Pin::new(stream).poll_shutdown(cx));
                self.state = DriverState::Ended;
            }
            DriverState::Ended => {}
        }
        Poll::Ready(())
    }

    fn end_serving(&mut self, regularly: bool) {
        self.served = None;
        let DriverState::Serving(conn) = std::mem::replace(&mut self.state, DriverState::Ended) else { return };
        let Some(stream) = P::into_stream(conn).filter(|_| regularly) else { return };
        // An upgraded connection belongs to whoever asked for it.
        let left = match self.service.take_upgrade() {
            Some(slot) => slot.fulfil(stream.without_turns()),
            None => Err(stream),
        };
        if let Err(stream) = left {
            self.state = DriverState::Closing(stream);
        }
    }

    fn serve(&mut self, stream: ClientStream, parked: Option<P::Parked>) {
        self.shared.stats.resumed.fetch_add(u64::from(parked.is_some()), Ordering::Relaxed);
        self.was_parked |= parked.is_some();
        self.served = Some(Served::new(&self.shared));
        self.state =
            DriverState::Serving(Box::pin(P::serve(stream, self.service.clone(), &self.shared.options, parked)));
        let first_look = Instant::now() + self.pace().check;
        self.look.as_mut().reset(first_look);
    }

    fn pace(&self) -> Pace {
        match self.was_parked {
            true => AGAIN,
            false if self.shared.serving.load(Ordering::Relaxed) > CROWD => CROWDED,
            false => FIRST,
        }
    }

    /// Looks at the clock. True if the connection should leave; `Err` if it must end now.
    fn judge(&mut self, cx: &mut Context<'_>) -> Result<bool, ()> {
        while self.look.as_mut().poll(cx).is_ready() {
            if self.is_starved() {
                return Err(());
            }
            match self.activity.judge(self.leaving_since) {
                Verdict::TooSlow => return Err(()),
                Verdict::Idle => return Ok(true),
                Verdict::LookAgainAt(when) => {
                    let when = if self.park(cx) { when } else { self.next_look(when) };
                    self.look.as_mut().reset(when);
                }
            }
        }
        Ok(false)
    }

    /// Whether the client has let us send nothing for too long.
    fn is_starved(&mut self) -> bool {
        let now = Instant::now();
        let sent = if let DriverState::Serving(conn) = &self.state { P::sent_before_stop(conn) } else { None };
        self.stopped = sent.map(|sent| match self.stopped {
            Some((before, since)) if before == sent => (sent, since),
            _ => (sent, now),
        });
        self.activity.is_busy() && self.stopped.is_some_and(|(_, since)| since + self.activity.patience() <= now)
    }

    fn next_look(&self, when: Instant) -> Instant {
        let may_park = self.shared.options.park_idle
            && matches!(self.state, DriverState::Serving(_))
            && self.leaving_since.is_none();
        if may_park && (P::PARKS_BUSY || !self.activity.is_busy()) {
            when.min(Instant::now() + self.pace().check)
        } else {
            when
        }
    }

    /// Frees the protocol's memory if nothing is going on. True if the connection now waits.
    fn park(&mut self, cx: &mut Context<'_>) -> bool {
        let quiet = self.pace().quiet;
        let DriverState::Serving(conn) = &mut self.state else { return matches!(self.state, DriverState::Waiting(..)) };
        self.asked = false;
        let may_park = self.shared.options.park_idle && self.leaving_since.is_none();
        if !may_park || !P::is_quiet(&self.activity, quiet) {
            return false;
        }
        let parked = P::poll_park(conn, cx);
        self.asked = parked.is_none();
        parked.is_some_and(|parked| self.park_stream(parked, cx))
    }

    /// As `park`, when the client was asked for what that takes: it need not wait for the next look at the clock.
    fn park_as_agreed(&mut self, cx: &mut Context<'_>) -> bool {
        let DriverState::Serving(conn) = &self.state else { return false };
        if !self.asked || self.leaving_since.is_some() || self.activity.has_unflushed() {
            return false;
        }
        let Some(parked) = P::park_as_agreed(conn) else { return false };
        self.asked = false;
        self.park_stream(parked, cx)
    }

    fn park_stream(&mut self, parked: P::Parked, cx: &mut Context<'_>) -> bool {
        let DriverState::Serving(conn) = std::mem::replace(&mut self.state, DriverState::Ended) else { return false };
        self.served = None;
        match P::park_stream(conn, &self.shared.disposal) {
            Some(stream) if !stream.has_unread() => {
                self.shared.stats.parked.fetch_add(1, Ordering::Relaxed);
                self.state = DriverState::Waiting(stream, Some(parked));
            }
            Some(stream) => {
                self.serve(stream, Some(parked));
                // Nobody has asked the new state yet whether it has something to do.
                cx.waker().wake_by_ref();
                return false;
            }
            None => {}
        }
        true
    }

    fn leave(&mut self) {
        self.leaving_since = Some(Instant::now());
        if matches!(self.state, DriverState::Waiting(..))
            && let DriverState::Waiting(stream, parked) = std::mem::replace(&mut self.state, DriverState::Ended)
        {
            match parked.filter(|_| P::SENDS_GOAWAY) {
                Some(parked) => self.serve(stream, Some(parked)),
                None => self.state = DriverState::Closing(stream),
            }
        }
        if let DriverState::Serving(conn) = &mut self.state {
            P::leave(conn.as_mut());
        }
        if let Verdict::LookAgainAt(when) = self.activity.judge(self.leaving_since) {
            self.look.as_mut().reset(when);
        }
    }
}

impl<P: Protocol> Future for Driver<P> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        loop {
            if matches!(this.state, DriverState::Ended) {
                return Poll::Ready(());
            }
            if this.poll_state(cx).is_ready() {
                continue;
            }
            if this.park_as_agreed(cx) {
                continue;
            }
            let order = this.entry.control.poll(cx);
            if order == Order::Drop {
                return Poll::Ready(());
            }
            let parked = matches!(this.state, DriverState::Waiting(..));
            let Ok(idle) = this.judge(cx) else { return Poll::Ready(()) };
            let leave = (idle || order == Order::Leave) && this.leaving_since.is_none();
            if leave {
                this.leave();
            } else if parked == matches!(this.state, DriverState::Waiting(..)) {
                return Poll::Pending;
            }
        }
    }
}
