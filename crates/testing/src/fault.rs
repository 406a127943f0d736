//! Answers scripted by a test.

use crate::{Error, Result};
use kubelith_server::faults::{Effect, Fault as Rule, FaultAnswer, Faults, Target};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// What becomes of which requests. Without a user, requests of the server's own controllers are not meant.
///
/// ```
/// # use kubelith_testing::Fault;
/// // The next three updates of the status of x conflict.
/// let conflict = Fault::answer(409).verbs(["update", "patch"]).resource("widgets").subresource("status").name("x").times(3);
/// ```
#[derive(Debug, Clone)]
pub struct Fault(Rule);

impl Fault {
    fn new(effect: Effect) -> Fault {
        Fault(Rule::new(Target::default(), effect))
    }

    /// Nothing is done, and this code is answered, as the server itself would put it.
    pub fn answer(code: u16) -> Fault {
        Fault::new(Effect::Answer(FaultAnswer { code, ..FaultAnswer::default() }))
    }

    /// It is done all the same, and this code is answered: the client cannot know.
    pub fn answer_after(code: u16) -> Fault {
        Fault::new(Effect::AnswerAfter(FaultAnswer { code, ..FaultAnswer::default() }))
    }

    /// It takes longer.
    pub fn delay(by: Duration) -> Fault {
        Fault::new(Effect::Delay(by))
    }

    /// Events of a watch come later.
    pub fn delay_events(by: Duration) -> Fault {
        Fault::new(Effect::DelayEvents(by))
    }

    /// A watch hears that what it wants to see is gone (410), and must list anew.
    pub fn expire_watch() -> Fault {
        Fault::new(Effect::ExpireWatch)
    }

    /// Watches end: those that are open now, and those that are begun.
    pub fn end_watch() -> Fault {
        Fault::new(Effect::EndWatch)
    }

    /// A list shows what was there this many revisions ago.
    pub fn stale_list(revisions: u64) -> Fault {
        Fault::new(Effect::StaleBy(revisions))
    }

    /// A write fails in admission, with 500.
    pub fn fail_admission(message: impl Into<String>) -> Fault {
        Fault::new(Effect::FailAdmission(message.into()))
    }

    /// What is said in an answer instead of the usual.
    pub fn message(mut self, message: impl Into<String>) -> Fault {
        if let Effect::Answer(answer) | Effect::AnswerAfter(answer) = &mut self.0.effect {
            answer.message = Some(message.into());
        }
        self
    }

    /// How long the client is asked to wait.
    pub fn retry_after(mut self, seconds: i32) -> Fault {
        if let Effect::Answer(answer) | Effect::AnswerAfter(answer) = &mut self.0.effect {
            answer.retry_after_seconds = Some(seconds);
        }
        self
    }

    pub fn user(mut self, user: impl Into<String>) -> Fault {
        self.0.target.user = Some(user.into());
        self
    }

    /// get, list, watch, create, update, patch, delete, deletecollection.
    pub fn verbs<V: Into<String>>(mut self, verbs: impl IntoIterator<Item = V>) -> Fault {
        self.0.target.verbs = verbs.into_iter().map(Into::into).collect();
        self
    }

    /// The API group; empty for the core group.
    pub fn group(mut self, group: impl Into<String>) -> Fault {
        self.0.target.group = Some(group.into());
        self
    }

    /// Its plural name.
    pub fn resource(mut self, resource: impl Into<String>) -> Fault {
        self.0.target.resource = Some(resource.into());
        self
    }

    /// Empty for requests about the resource itself.
    pub fn subresource(mut self, subresource: impl Into<String>) -> Fault {
        self.0.target.subresource = Some(subresource.into());
        self
    }

    pub fn namespace(mut self, namespace: impl Into<String>) -> Fault {
        self.0.target.namespace = Some(namespace.into());
        self
    }

    pub fn name(mut self, name: impl Into<String>) -> Fault {
        self.0.target.name = Some(name.into());
        self
    }

    /// As many requests are let pass first.
    pub fn skip(mut self, requests: u64) -> Fault {
        self.0.skip = requests;
        self
    }

    /// Acts so often, then no more.
    pub fn times(mut self, times: u64) -> Fault {
        self.0.times = Some(times);
        self
    }
}

/// A fault that was added. Dropping this leaves it where it is.
#[derive(Clone)]
pub struct FaultHandle {
    faults: Weak<Faults>,
    id: u64,
}

impl FaultHandle {
    pub(crate) fn add(faults: &Arc<Faults>, fault: Fault) -> Result<FaultHandle> {
        let id = faults.add(fault.0).map_err(|status| Error(status.message))?;
        Ok(FaultHandle { faults: Arc::downgrade(faults), id })
    }

    /// How often it has acted.
    pub fn hits(&self) -> u64 {
        self.faults.upgrade().and_then(|faults| faults.hits(self.id)).unwrap_or(0)
    }

    pub fn clear(self) {
        if let Some(faults) = self.faults.upgrade() {
            faults.remove(self.id);
        }
    }
}
