//! Hands requests to the audit log at their stages, as the policy says.

use super::Layer;
use super::authentication::AuthenticationNotes;
use crate::lifecycle::tasks::panic_message;
use futures::FutureExt;
use http::HeaderMap;
use http::header::USER_AGENT;
use kubelith_auth::User;
use kubelith_http::body::BodyEnd;
use kubelith_http::latency::{Latency, PARTS, Part};
use kubelith_http::{BoxHandler, Handler, Reply, Request, Response, respond};
use kubelith_meta::Str;
use kubelith_meta::time::{Clock, SystemClock, Time};
use kubelith_observe::audit::{
    AuditContext, Backends, Captured, Event, Facts, Level, ObjectRef, Policy, RequestAudit, ResponseStatus, Stage,
    objects,
};
use kubelith_observe::metrics::audit::AuditMetrics;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// User agents are cut at this many bytes.
const MAX_USER_AGENT: usize = 1024;
/// Requests that take longer tell where the time went.
const SLOW: Duration = Duration::from_millis(500);

/// What both audit filters share.
pub struct Audit {
    pub policy: Policy,
    pub backends: Arc<Backends>,
    pub metrics: Arc<AuditMetrics>,
}

/// For requests whose user is known.
pub fn layer(audit: &Arc<Audit>) -> Layer {
    let audit = audit.clone();
    Layer::new("audit", |next| Link { audit, next })
}

/// For requests that nobody vouches for: one event, when they are refused.
pub fn failed_authentication_layer(audit: &Arc<Audit>) -> Layer {
    let audit = audit.clone();
    Layer::new("failed-authentication-audit", |next| FailedLink { audit, next })
}

struct Link {
    audit: Arc<Audit>,
    next: BoxHandler,
}

impl Handler for Link {
    fn handle(&self, mut request: Request) -> Reply {
        let Some(record) = self.audit.begin(&mut request) else { return self.next.handle(request) };
        let next = self.next.clone();
        Reply::begin(async move { record.follow(request, next).await })
    }
}

struct FailedLink {
    audit: Arc<Audit>,
    next: BoxHandler,
}

impl Handler for FailedLink {
    fn handle(&self, mut request: Request) -> Reply {
        let Some(record) = self.audit.begin(&mut request) else { return self.next.handle(request) };
        let next = self.next.clone();
        Reply::begin(async move {
            let response = next.handle(request).await;
            let mut record = record;
            record.done = true;
            record.stage(Stage::ResponseStarted, Some(objects::status_of(&response))).await;
            response
        })
    }
}

impl Audit {
    /// The record of a request, if the policy wants one.
    fn begin(self: &Arc<Audit>, request: &mut Request) -> Option<Record> {
        let nobody = Arc::<User>::default();
        let user = request.user().unwrap_or(&nobody);
        let audit = self.policy.evaluate(user, request.info());
        self.metrics.levels.with_label_values(&[audit.level.name()]).inc();
        if audit.level == Level::None {
            return None;
        }
        let facts = Arc::new(facts(request, user.clone(), audit.level));
        let context = Arc::new(AuditContext::new(audit.level, audit.omit_managed_fields));
        if let Some(notes) = request.extensions_mut().remove::<AuthenticationNotes>() {
            notes.0.into_iter().for_each(|(key, value)| context.annotate(key, value));
        }
        let latency = request.latency().cloned();
        request.context_mut().audit = Some(context.clone());
        let long_running = request.info().is_long_running();
        Some(Record { audit: self.clone(), kept: audit, facts, context, latency, long_running, done: false })
    }
}

/// One request on its way through the stages. Dropped before its end, it says that the request was given up.
struct Record {
    audit: Arc<Audit>,
    kept: RequestAudit,
    facts: Arc<Facts>,
    context: Arc<AuditContext>,
    latency: Option<Latency>,
    long_running: bool,
    done: bool,
}

impl Record {
    async fn follow(mut self, request: Request, next: BoxHandler) -> Response {
        if !self.stage(Stage::RequestReceived, None).await {
            self.done = true;
            self.audit.metrics.rejected.inc();
            return respond::internal_error(&request.uri().to_string(), "failed to store audit event");
        }
        let answer = AssertUnwindSafe(async move { next.handle(request).await });
        match answer.catch_unwind().await {
            Ok(response) => self.answered(response).await,
            Err(panic) => {
                let status = ResponseStatus {
                    code: 500,
                    status: "Failure".into(),
                    reason: "InternalError".into(),
                    message: format!("APIServer panic'd: {}", panic_message(&*panic)).into(),
                    details: None,
                };
                self.done = true;
                self.stage(Stage::Panic, Some(status)).await;
                std::panic::resume_unwind(panic)
            }
        }
    }

    async fn answered(mut self, response: Response) -> Response {
        let status = objects::status_of(&response);
        if self.long_running {
            self.stage(Stage::ResponseStarted, Some(status.clone())).await;
        }
        let keeps_object = self.kept.level >= Level::RequestResponse && self.facts.verb != "watch";
        let (parts, body) = response.into_parts();
        if body.is_complete() && !self.long_running {
            if let (true, Some(bytes)) = (keeps_object, body.complete_bytes()) {
                objects::keep(&bytes, &parts.headers, &self.context);
            }
            self.done = true;
            self.note_latency();
            self.stage(Stage::ResponseComplete, Some(status)).await;
            return Response::from_parts(parts, body);
        }
        let headers = parts.headers.clone();
        let sent = Sent { record: self, status, captured: keeps_object.then(Captured::default), headers };
        Response::from_parts(parts, body.watched_by(sent))
    }

    /// Hands an event to the backends; false if one that must not lose any could not take it.
    async fn stage(&self, stage: Stage, status: Option<ResponseStatus>) -> bool {
        match self.event(stage, status) {
            Some(event) => self.audit.backends.process(event).done().await,
            None => true,
        }
    }

    /// As `stage`, where nothing can be waited for.
    fn stage_detached(&self, stage: Stage, status: Option<ResponseStatus>) {
        let Some(event) = self.event(stage, status) else { return };
        let backends = self.audit.backends.clone();
        match tokio::runtime::Handle::try_current() {
            // Most backends answer at once; the others go on in the background.
            Ok(runtime) => drop(runtime.spawn(async move { backends.process(event).done().await })),
            Err(_) => drop(backends.process(event)),
        }
    }

    fn event(&self, stage: Stage, status: Option<ResponseStatus>) -> Option<Event> {
        if self.kept.omit_stages.contains(stage) {
            return None;
        }
        self.audit.metrics.events.inc();
        let at = if stage == Stage::RequestReceived { self.facts.received } else { SystemClock.now() };
        let gathered = self.context.gathered().clone();
        Some(Event { facts: self.facts.clone(), stage, at, status, gathered })
    }

    /// Where the time of a slow request went.
    fn note_latency(&self) {
        let total = std::time::Duration::from(SystemClock.now().since(self.facts.received));
        // Watches are meant to take long.
        let Some(latency) = self.latency.as_ref().filter(|_| total > SLOW && !self.long_running) else { return };
        let text = |d: Duration| kubelith_meta::time::Duration::from(d).to_string();
        // kube-apiserver does not tell how long policies took.
        for (part, name) in PARTS.into_iter().filter(|(part, _)| *part != Part::Policies) {
            let spent = latency.of(part);
            if !spent.is_zero() {
                let name = name.replace('_', "-");
                self.context.annotate(format!("apiserver.latency.k8s.io/{name}"), text(spent));
            }
        }
        self.context.annotate("apiserver.latency.k8s.io/total", text(total));
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        let status = ResponseStatus {
            code: 200,
            status: "Success".into(),
            message: "Connection closed early".into(),
            ..ResponseStatus::default()
        };
        self.note_latency();
        self.stage_detached(Stage::ResponseComplete, Some(status));
    }
}

/// An answer under way: its end is the request's.
struct Sent {
    record: Record,
    status: ResponseStatus,
    captured: Option<Captured>,
    headers: HeaderMap,
}

impl BodyEnd for Sent {
    fn piece(&mut self, data: &[u8]) {
        if let Some(captured) = &mut self.captured {
            captured.push(data);
        }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if let Some(captured) = self.captured.take() {
            captured.finish(&self.headers, &self.record.context);
        }
        self.record.done = true;
        self.record.note_latency();
        self.record.stage_detached(Stage::ResponseComplete, Some(std::mem::take(&mut self.status)));
    }
}

fn facts(request: &Request, user: Arc<User>, level: Level) -> Facts {
    let info = request.info();
    let object = info.is_resource_request.then(|| ObjectRef {
        resource: info.resource.clone(),
        namespace: info.namespace.clone(),
        name: info.name.clone(),
        group: info.group.clone(),
        version: info.version.clone(),
        subresource: info.subresource.clone(),
    });
    let uri = request.uri().path_and_query().map_or(request.uri().path(), |p| p.as_str());
    Facts {
        level,
        audit_id: request.context().audit_id.as_ref().map(|id| id.0.clone()).unwrap_or_default(),
        request_uri: uri.into(),
        verb: info.verb.clone(),
        user,
        source_ips: source_ips(request.headers(), request.connection().map(|c| c.remote.ip())),
        user_agent: user_agent(request.headers()),
        object,
        received: Time::from(request.received().at),
    }
}

fn user_agent(headers: &HeaderMap) -> Str {
    let Some(agent) = headers.get(USER_AGENT).map(|v| String::from_utf8_lossy(v.as_bytes())) else {
        return Str::default();
    };
    if agent.len() <= MAX_USER_AGENT {
        return agent.as_ref().into();
    }
    let mut end = MAX_USER_AGENT;
    while !agent.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...TRUNCATED", &agent[..end]).into()
}

/// Whom proxies say they speak for, then who speaks: only the last one cannot be made up.
fn source_ips(headers: &HeaderMap, remote: Option<IpAddr>) -> Vec<IpAddr> {
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("");
    let parse = |s: &str| s.trim().parse::<IpAddr>().ok().map(|ip| ip.to_canonical());
    let mut ips: Vec<IpAddr> = text("x-forwarded-for").split(',').filter_map(parse).collect();
    if let Some(real) = parse(text("x-real-ip")).filter(|ip| !ips.contains(ip)) {
        ips.push(real);
    }
    if let Some(remote) = remote.map(|ip| ip.to_canonical()).filter(|ip| ips.last() != Some(ip)) {
        ips.push(remote);
    }
    ips
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
