//! Asking one webhook: the review goes out, what comes back is verified, and every way to fail has its Status.

use super::hook::{Hook, SideEffects};
use super::review::{self, Response, Texts};
use crate::attributes::Seen;
use crate::observe::{HookCall, HookFailure, Observer, Power};
use kubelith_auth::hook::{self, Failed, Hooks};
use kubelith_meta::call::Wait;
use kubelith_meta::random::MadeUp;
use kubelith_meta::text::quote;
use kubelith_meta::{Status, names};
use kubelith_registry::admission::Request;
use std::time::{Duration, Instant};

/// How a webhook failed, or what it refused.
#[derive(Debug)]
pub enum Failure {
    /// It could not be asked, or did not answer as it should: the failure policy decides. With the code that is counted.
    Calling { why: String, code: u16 },
    /// It said no.
    Denied(Status),
    /// Something else is wrong, whatever the failure policy says.
    Other(Status),
}

impl Failure {
    fn calling(why: impl Into<String>, code: u16) -> Failure {
        Failure::Calling { why: why.into(), code }
    }

    pub fn undecodable_patch(why: &str) -> Failure {
        Failure::calling(format!("received undecodable patch in webhook response: {why}"), 503)
    }

    pub fn unsupported_patch(kind: &str) -> Failure {
        Failure::calling(format!("unsupported patch type {}", quote(kind)), 400)
    }
}

/// A webhook with the version in which it is asked.
pub struct Invocation<'a> {
    pub hook: &'a Hook,
    pub seen: &'a Seen,
    /// Its place among all webhooks, or among those that are asked, for the audit log.
    pub place: usize,
}

/// What calls need beside the webhook.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    pub hooks: &'a dyn Hooks,
    pub observer: &'a dyn Observer,
    pub power: Power,
    pub made_up: &'a MadeUp,
}

impl Caller<'_> {
    /// Asks a webhook. What it has to say to the client and the audit log is said.
    pub async fn ask(
        &self,
        request: Request<'_>,
        invocation: &Invocation<'_>,
        texts: &Texts<'_>,
    ) -> Result<Response, Failure> {
        let hook = invocation.hook;
        if request.call.dry_run() {
            match hook.side_effects {
                SideEffects::NoneOnDryRun => {}
                SideEffects::Unsaid => return Err(Failure::calling("Webhook SideEffects is nil", 400)),
                SideEffects::Some => {
                    let why = format!("admission webhook {} does not support dry run", quote(&hook.name));
                    return Err(Failure::Other(Status::bad_request(why)));
                }
            }
        }
        let Some(version) = hook.review else {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview versions \
                       (v1, v1beta1)";
            return Err(Failure::calling(why, 400));
        };
        let client = hook.client(self.hooks);
        let client = client.map_err(|why| Failure::calling(format!("could not get REST client: {why}"), 500))?;
        let uid = self.made_up.uid(&["review", &hook.name, &request.call.namespace, &request.call.name]);
        let review = review::write(request, invocation.seen, version, &uid, texts);
        let failed =
            |why: &dyn std::fmt::Display, code| Failure::calling(format!("failed to call webhook: {why}"), code);
        let timeout = within(hook.timeout, request.call.deadline);
        let began = Instant::now();
        let response = client.post(review, timeout).await;
        let wait = match self.power {
            Power::Mutating => Wait::MutatingWebhooks,
            Power::Validating => Wait::ValidatingWebhooks,
        };
        request.call.waited(wait, began.elapsed());
        let response = response.map_err(|e| failed(&e, 503))?;
        let answer = hook::answer(&response).map_err(|e| match e {
            Failed::Refused(status) => failed(&status.message, status.code),
            Failed::Unreadable(why) => failed(&why, 503),
        })?;
        review::decode(&answer, version).map_err(|why| failed(&why, 503))?;
        let response = review::verify(&answer, version, &uid, self.power)
            .map_err(|why| Failure::calling(format!("received invalid webhook response: {why}"), 503))?;
        self.pass_on(request, hook, &response);
        match response.allowed {
            true => Ok(response),
            false => Err(Failure::Denied(review::denial(&hook.name, response.status))),
        }
    }

    fn pass_on(&self, request: Request<'_>, hook: &Hook, response: &Response) {
        for (key, value) in &response.annotations {
            let key = format!("{}/{key}", hook.name);
            if names::is_qualified_name(&key).is_empty() {
                request.call.annotate(key, value.as_str());
            } else {
                tracing::warn!(webhook = %hook.name, key, "an audit annotation has no valid name");
            }
        }
        for warning in &response.warnings {
            request.call.warn(warning.as_str());
        }
    }

    /// Counts a call.
    pub fn observe(&self, request: Request<'_>, hook: &Hook, failure: Option<&Failure>, ignored: bool, began: Instant) {
        let (failed, code) = match failure {
            None => (None, 200),
            Some(Failure::Calling { code, .. }) => ((!ignored).then_some(HookFailure::Calling), *code),
            Some(Failure::Denied(status)) => (Some(HookFailure::Denied), status.code),
            Some(Failure::Other(_)) => (Some(HookFailure::Internal), 0),
        };
        self.observer.webhook_called(HookCall {
            name: &hook.name,
            power: self.power,
            operation: request.operation,
            failure: failed,
            code,
            time: began.elapsed(),
            why: match failure {
                None => "",
                Some(Failure::Calling { why, .. }) => why,
                Some(Failure::Denied(status) | Failure::Other(status)) => &status.message,
            },
        });
    }
}

const AFTER_DEADLINE: Duration = Duration::from_secs(1);

/// No webhook is waited for longer than the client waits.
fn within(timeout: Duration, deadline: Option<Instant>) -> Duration {
    match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
        Some(left) if left < timeout => left,
        _ => timeout,
    }
}

/// The refusal if a webhook that must be asked could not be.
pub fn unreachable(hook: &Hook, why: &str) -> Status {
    Status::internal_error(format!("failed calling webhook {}: {why}", quote(&hook.name)))
}

/// The refusal if the client's time is up. Whoever watches over the time of all requests ends this one now, in its own words; only where nobody
/// does is the refusal an answer.
pub async fn out_of_time(request: Request<'_>) -> Option<Status> {
    if request.call.deadline.is_none_or(|deadline| deadline > Instant::now()) {
        return None;
    }
    tokio::time::sleep(AFTER_DEADLINE).await;
    Some(Status::timeout("request did not complete within requested timeout", 0))
}
