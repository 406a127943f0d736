//! What further control planes can be grown from: the state of one, and all that it was put together from.

use super::Plane;
use super::build::{Forked, Parts, PlaneClock, Settled};
use crate::blueprint::Blueprint;
use crate::certificates::Certificates;
use crate::flags::Flags;
use crate::options::{Options, StorageBackend};
use crate::storage::Kept;
use kubelith_auth::service_account::{KeyRing, KeySet};
use kubelith_meta::random::MadeUp;
use kubelith_meta::time::Duration;
use kubelith_server::identity::ServerIdentity;
use kubelith_store::MemorySnapshot;
use kubelith_store::cache::{Hub, Inheritance};
use std::sync::{Arc, Weak};
use tokio_util::sync::CancellationToken;

const NO_COPIES: &str =
    "the state of an etcd is not this server's alone: only stores in memory and embedded ones are copied";
const NO_TURNS: &str = "the clock goes by itself: start the server with --clock=manual to turn it";

/// Cheap to clone; holds the store and nothing that serves.
#[derive(Clone)]
pub struct Seed {
    pub(crate) options: Arc<Options>,
    pub(crate) flags: Arc<Flags>,
    pub(crate) certificates: Certificates,
    /// `None` if it cannot be copied.
    pub(crate) kept: Option<Kept>,
    pub(crate) hub: Weak<Hub>,
    /// What tokens of service accounts are signed with and checked against.
    pub(crate) keys: KeyRing,
    pub(crate) clock: PlaneClock,
    pub(crate) made_up: MadeUp,
    pub(crate) identity: ServerIdentity,
    pub(crate) blueprint: Arc<Blueprint>,
    /// Raised once it is ready.
    pub(crate) has_been_ready: CancellationToken,
}

/// All objects as they were, with their revisions. Shares memory with the server that it was taken of.
#[derive(Clone)]
pub struct Snapshot {
    state: MemorySnapshot,
    caches: Inheritance,
    keys: Arc<KeySet>,
    settled: Settled,
    /// Of the server that it was taken of.
    options: Arc<Options>,
}

impl Snapshot {
    /// The newest resourceVersion in it.
    pub fn revision(&self) -> i64 {
        self.state.revision().0
    }
}

impl Seed {
    fn kept(&self) -> Result<&Kept, String> {
        self.kept.as_ref().ok_or_else(|| NO_COPIES.to_owned())
    }

    pub async fn snapshot(&self) -> Result<Snapshot, String> {
        // Asked before the objects are looked at: what was made by then is among them.
        let settled = if self.has_been_ready.is_cancelled() { Settled::Yes } else { Settled::NotYet };
        let state = self.kept()?.snapshot().await.map_err(|e| e.to_string())?;
        let caches = match self.hub.upgrade() {
            Some(hub) => hub.bequeath(state.revision().0).await,
            None => Inheritance::default(),
        };
        Ok(Snapshot { state, caches, keys: self.keys.copy(), settled, options: self.options.clone() })
    }

    /// Makes all objects as they were, under new revisions: whoever watches sees what changes by it. Returns when reads show it.
    pub async fn reset(&self, snapshot: &Snapshot) -> Result<(), String> {
        self.kept()?.reset(&snapshot.state).await.map_err(|e| e.to_string())?;
        match self.hub.upgrade() {
            Some(hub) => hub.fresh().await.map(drop).map_err(|e| e.to_string()),
            None => Ok(()),
        }
    }

    /// Another plane with the same objects, revisions, users and time, in memory. Neither sees anything of the other from here on.
    /// It answers from the beginning; what it does for itself at a start may take a little longer.
    pub async fn fork(&self, snapshot: Snapshot) -> Result<Plane, String> {
        let (options, blueprint) = match self.options.storage.backend {
            StorageBackend::Memory => (self.options.clone(), self.blueprint.clone()),
            _ => {
                let mut options = (*self.options).clone();
                options.storage.backend = StorageBackend::Memory;
                options.storage.companion = None;
                (Arc::new(options), Arc::default())
            }
        };
        let clock = self.clock.fork();
        let forked = Forked {
            store: snapshot.state.open(clock.clock()),
            inheritance: snapshot.caches,
            keys: snapshot.keys,
            identity: self.identity.clone(),
            // Another server may make other things at its start.
            settled: if Arc::ptr_eq(&snapshot.options, &self.options) { snapshot.settled } else { Settled::NotYet },
        };
        let parts = Parts {
            options,
            flags: self.flags.clone(),
            certificates: self.certificates.clone(),
            clock,
            made_up: self.made_up.fork(),
            blueprint,
            forked: Some(forked),
        };
        Plane::of(parts).await
    }

    /// Turns the clock, and sees to what is due then. Answers the new time.
    pub fn advance(&self, by: Duration) -> Result<kubelith_meta::Time, String> {
        let PlaneClock::Manual(clock) = &self.clock else { return Err(NO_TURNS.to_owned()) };
        clock.advance(by);
        self.after_turn()
    }

    pub fn set_time(&self, now: kubelith_meta::Time) -> Result<kubelith_meta::Time, String> {
        let PlaneClock::Manual(clock) = &self.clock else { return Err(NO_TURNS.to_owned()) };
        clock.set(now);
        self.after_turn()
    }

    pub fn now(&self) -> kubelith_meta::Time {
        self.clock.clock().now()
    }

    fn after_turn(&self) -> Result<kubelith_meta::Time, String> {
        if let Some(kept) = &self.kept {
            kept.tick();
        }
        Ok(self.now())
    }
}
