//! Plugins one after another: the first refusal ends the request.

use crate::manifests::Manifests;
use crate::observe::{Outcome, Phase, Span, Timer};
use crate::plugin::{Plugin, Round, Verdict};
use futures::future::BoxFuture;
use kubelith_meta::{Status, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::{Admission, Operation, Request};
use std::sync::Arc;
use std::time::Instant;

/// Runs its plugins in order, each seeing what those before it made of the object.
pub struct Chain {
    pub objects: Arc<Objects>,
    pub members: Vec<Member>,
    pub steps: Option<Arc<dyn Timer>>,
}

/// A plugin, and when it is asked.
pub struct Member {
    pub plugin: Box<dyn Plugin>,
    pub admits: &'static [Operation],
    pub validates: &'static [Operation],
    pub timer: Option<Arc<dyn Timer>>,
}

impl Admission for Chain {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            // Plugins judge by what the caches hold.
            self.objects.caught_up(&request.call.resource).await;
            let mut watch = Watch::start(self, Phase::Admit, request.operation);
            let round = Round::default();
            self.admit_all(request, object, &round, &mut watch).await?;
            if round.is_repeated() {
                round.begin_second();
                self.admit_all(request, object, &round, &mut watch).await?;
            }
            watch.end(Outcome::Passed);
            Ok(())
        })
    }

    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let mut watch = Watch::start(self, Phase::Validate, request.operation);
            for member in self.members.iter().filter(|m| m.validates.contains(&request.operation)) {
                match member.plugin.validate(request, object) {
                    Verdict::Idle => watch.idle(member),
                    Verdict::Ready(answer) => watch.lap(member, answer)?,
                    Verdict::Pending(answer) => watch.lap(member, answer.await)?,
                }
            }
            watch.end(Outcome::Passed);
            Ok(())
        })
    }
}

impl Chain {
    /// Files that plugins take part of their configuration from: to be loaded before the first request, and again while
    /// the server runs.
    pub fn manifests(&self) -> Vec<Arc<Manifests>> {
        self.members.iter().filter_map(|member| member.plugin.manifests()).collect()
    }

    async fn admit_all(
        &self,
        request: Request<'_>,
        object: &mut Value,
        round: &Round,
        watch: &mut Watch<'_>,
    ) -> Result<(), Status> {
        for member in self.members.iter().filter(|m| m.admits.contains(&request.operation)) {
            match member.plugin.admit_in(request, object, round) {
                Verdict::Idle => watch.idle(member),
                Verdict::Ready(answer) => watch.lap(member, answer)?,
                Verdict::Pending(answer) => watch.lap(member, answer.await)?,
            }
        }
        Ok(())
    }
}

/// Takes the time of a phase and of each plugin in it: the clock is read once after each plugin that had something to do.
struct Watch<'a> {
    chain: &'a Chain,
    phase: Phase,
    operation: Operation,
    start: Instant,
    lap: Instant,
}

impl<'a> Watch<'a> {
    fn start(chain: &'a Chain, phase: Phase, operation: Operation) -> Watch<'a> {
        let now = Instant::now();
        Watch { chain, phase, operation, start: now, lap: now }
    }

    /// A plugin that had nothing to do is counted, but the clock is not read for it.
    fn idle(&self, member: &Member) {
        if let Some(timer) = &member.timer {
            timer.took(self.phase, self.operation, Outcome::Passed, Span { from: self.lap, to: self.lap });
        }
    }

    /// The answer is given back.
    fn lap(&mut self, member: &Member, answer: Result<(), Status>) -> Result<(), Status> {
        let outcome = if answer.is_ok() { Outcome::Passed } else { Outcome::Refused };
        if let Some(timer) = &member.timer {
            let span = Span { from: self.lap, to: Instant::now() };
            timer.took(self.phase, self.operation, outcome, span);
            self.lap = span.to;
        }
        if answer.is_err() {
            self.end(Outcome::Refused);
        }
        answer
    }

    /// The phase ends with the last plugin that had something to do.
    fn end(&self, outcome: Outcome) {
        if let Some(timer) = &self.chain.steps {
            timer.took(self.phase, self.operation, outcome, Span { from: self.start, to: self.lap });
        }
    }
}
