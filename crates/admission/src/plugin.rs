//! What a plugin is. The chain of them is the `Admission` that the registry sees.

use crate::manifests::Manifests;
use futures::future::BoxFuture;
use kubelith_meta::{Status, Value};
use kubelith_registry::admission::Request;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// What a plugin says. Most know it at once, from the request or from the caches, and cost no future.
pub enum Verdict<'a> {
    /// The request is none of its business. Nothing was done that would take time.
    Idle,
    Ready(Result<(), Status>),
    Pending(BoxFuture<'a, Result<(), Status>>),
}

impl<'a> Verdict<'a> {
    pub const PASSED: Verdict<'a> = Verdict::Ready(Ok(()));

    pub fn pending(future: impl Future<Output = Result<(), Status>> + Send + 'a) -> Verdict<'a> {
        Verdict::Pending(Box::pin(future))
    }
}

pub trait Plugin: Send + Sync + 'static {
    /// The files that it takes part of its configuration from, if it does.
    fn manifests(&self) -> Option<Arc<Manifests>> {
        None
    }

    /// May change `object` or refuse it. `object` is null for deletes.
    fn admit<'a>(&'a self, _request: Request<'a>, _object: &'a mut Value) -> Verdict<'a> {
        Verdict::Idle
    }

    /// As `admit`, for those that tell others to look again, or look again themselves only where it is needed.
    fn admit_in<'a>(&'a self, request: Request<'a>, object: &'a mut Value, _round: &'a Round) -> Verdict<'a> {
        self.admit(request, object)
    }

    /// May refuse what is about to be stored.
    fn validate<'a>(&'a self, _request: Request<'a>, _object: &'a Value) -> Verdict<'a> {
        Verdict::Idle
    }
}

/// What the first round leaves for the second, of webhooks or of policies.
#[derive(Debug, Default)]
pub struct Memory {
    /// The object as they left it.
    pub left: Option<Value>,
    /// Those that were asked and want to be asked again if anything changes after them.
    pub waiting: HashSet<String>,
    /// Those that are.
    pub again: HashSet<String>,
}

impl Memory {
    /// Takes note that the object was changed.
    pub fn changed(&mut self) {
        self.again.extend(self.waiting.drain());
    }
}

/// Mutating plugins are asked once, and once more if something outside of this server changed the object.
#[derive(Default)]
pub struct Round {
    second: AtomicBool,
    repeat: AtomicBool,
    webhooks: Mutex<Option<Box<Memory>>>,
    policies: Mutex<Option<Box<Memory>>>,
}

impl Round {
    pub fn is_second(&self) -> bool {
        self.second.load(Ordering::Relaxed)
    }

    /// Asks for a second round.
    pub fn repeat(&self) {
        self.repeat.store(true, Ordering::Relaxed);
    }

    pub fn is_repeated(&self) -> bool {
        self.repeat.load(Ordering::Relaxed)
    }

    pub fn begin_second(&self) {
        self.second.store(true, Ordering::Relaxed);
    }

    /// What webhooks remember from one round to the next.
    pub fn webhooks(&self) -> MutexGuard<'_, Option<Box<Memory>>> {
        self.webhooks.lock().expect("no panic under this lock")
    }

    /// The same for policies.
    pub fn policies(&self) -> MutexGuard<'_, Option<Box<Memory>>> {
        self.policies.lock().expect("no panic under this lock")
    }
}
