//! Events, and their two forms: audit.k8s.io/v1 as JSON, and the legacy line of text.

use kubelith_auth::User;
use kubelith_codec::json::{write_int, write_string};
use kubelith_http::audit::{Gathered, Level};
use kubelith_meta::text::{Quoted, quote};
use kubelith_meta::time::Time;
use kubelith_meta::{Str, Value};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    RequestReceived,
    ResponseStarted,
    ResponseComplete,
    Panic,
}

impl Stage {
    pub const ALL: [Stage; 4] = [Stage::RequestReceived, Stage::ResponseStarted, Stage::ResponseComplete, Stage::Panic];

    pub fn name(self) -> &'static str {
        match self {
            Stage::RequestReceived => "RequestReceived",
            Stage::ResponseStarted => "ResponseStarted",
            Stage::ResponseComplete => "ResponseComplete",
            Stage::Panic => "Panic",
        }
    }
}

/// What does not change from stage to stage.
#[derive(Debug, Clone)]
pub struct Facts {
    pub level: Level,
    pub audit_id: Str,
    pub request_uri: Str,
    pub verb: Str,
    pub user: Arc<User>,
    pub source_ips: Vec<IpAddr>,
    pub user_agent: Str,
    /// `None` for paths that are no resource.
    pub object: Option<ObjectRef>,
    pub received: Time,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectRef {
    pub resource: Str,
    pub namespace: Str,
    pub name: Str,
    pub group: Str,
    pub version: Str,
    pub subresource: Str,
}

/// How the request ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResponseStatus {
    pub code: u16,
    /// Success or Failure, if the answer is a Status.
    pub status: Str,
    pub message: Str,
    pub reason: Str,
    pub details: Option<Value>,
}

/// A request at a stage.
#[derive(Debug, Clone)]
pub struct Event {
    pub facts: Arc<Facts>,
    pub stage: Stage,
    pub at: Time,
    pub status: Option<ResponseStatus>,
    pub gathered: Gathered,
}

impl ResponseStatus {
    pub fn of_code(code: u16) -> ResponseStatus {
        ResponseStatus { code, ..ResponseStatus::default() }
    }

    /// The parts of a Status that are bounded.
    pub fn of_status(status: &Value, code: u16) -> ResponseStatus {
        let text = |key: &str| Str::from(status.str_at(&[key]));
        let details = status.get("details").filter(|d| !d.is_null()).cloned();
        ResponseStatus { code, status: text("status"), message: text("message"), reason: text("reason"), details }
    }
}

impl Event {
    /// Appends the event as JSON, without a line feed.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let facts = &self.facts;
        out.extend_from_slice(br#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":""#);
        out.extend_from_slice(facts.level.name().as_bytes());
        out.extend_from_slice(br#"","auditID":"#);
        write_string(out, &facts.audit_id);
        out.extend_from_slice(br#","stage":""#);
        out.extend_from_slice(self.stage.name().as_bytes());
        out.extend_from_slice(br#"","requestURI":"#);
        write_string(out, &facts.request_uri);
        out.extend_from_slice(br#","verb":"#);
        write_string(out, &facts.verb);
        out.extend_from_slice(br#","user":"#);
        write_user(out, &facts.user);
        if let Some((user, constraint)) = &self.gathered.impersonated {
            out.extend_from_slice(br#","impersonatedUser":"#);
            write_user(out, user);
            if !constraint.is_empty() {
                out.extend_from_slice(br#","authenticationMetadata":{"impersonationConstraint":"#);
                write_string(out, constraint);
                out.push(b'}');
            }
        }
        self.write_origin(out);
        self.write_object_ref(out);
        if let Some(status) = &self.status {
            out.extend_from_slice(br#","responseStatus":"#);
            write_status(out, status);
        }
        for (key, object) in [
            (&br#","requestObject":"#[..], &self.gathered.request_object),
            (br#","responseObject":"#, &self.gathered.response_object),
        ] {
            if let Some(object) = object {
                out.extend_from_slice(key);
                out.extend_from_slice(object.trim_ascii());
            }
        }
        out.extend_from_slice(br#","requestReceivedTimestamp":""#);
        out.extend_from_slice(facts.received.rfc3339_micro().as_bytes());
        out.extend_from_slice(br#"","stageTimestamp":""#);
        out.extend_from_slice(self.at.rfc3339_micro().as_bytes());
        out.push(b'"');
        self.write_annotations(out);
        out.push(b'}');
    }

    fn write_origin(&self, out: &mut Vec<u8>) {
        let facts = &self.facts;
        if !facts.source_ips.is_empty() {
            out.extend_from_slice(br#","sourceIPs":["#);
            for (i, ip) in facts.source_ips.iter().enumerate() {
                out.extend_from_slice(if i == 0 { b"\"" } else { b",\"" });
                let _ = std::io::Write::write_fmt(out, format_args!("{ip}"));
                out.push(b'"');
            }
            out.push(b']');
        }
        if !facts.user_agent.is_empty() {
            out.extend_from_slice(br#","userAgent":"#);
            write_string(out, &facts.user_agent);
        }
    }

    fn write_object_ref(&self, out: &mut Vec<u8>) {
        let Some(object) = &self.facts.object else { return };
        let sent = &self.gathered.names;
        let or = |own: &'_ Str, sent: &'_ Str| if own.is_empty() { sent.clone() } else { own.clone() };
        out.extend_from_slice(br#","objectRef":{"#);
        let mut members = Members { out, first: true };
        members.add("resource", &object.resource);
        members.add("namespace", &or(&object.namespace, &sent.namespace));
        members.add("name", &or(&object.name, &sent.name));
        members.add("uid", &sent.uid);
        members.add("apiGroup", &object.group);
        members.add("apiVersion", &object.version);
        members.add("resourceVersion", &sent.resource_version);
        members.add("subresource", &object.subresource);
        out.push(b'}');
    }

    /// Sorted by key, as Go prints maps.
    fn write_annotations(&self, out: &mut Vec<u8>) {
        if self.gathered.annotations.is_empty() {
            return;
        }
        let mut sorted: Vec<_> = self.gathered.annotations.iter().collect();
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        out.extend_from_slice(br#","annotations":{"#);
        for (i, (key, value)) in sorted.into_iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            write_string(out, key);
            out.push(b':');
            write_string(out, value);
        }
        out.push(b'}');
    }

    /// The legacy form: one line of text, without the line feed.
    pub fn legacy_line(&self) -> String {
        let facts = &self.facts;
        let list = |groups: &[Str]| groups.iter().map(|g| quote(g)).collect::<Vec<_>>().join(",");
        let user = &facts.user;
        let (name, groups) = match user.name.as_str() {
            "" => ("<none>", "<none>".to_owned()),
            name if user.groups.is_empty() => (name, "<none>".to_owned()),
            name => (name, list(&user.groups)),
        };
        let (as_user, as_groups) = match &self.gathered.impersonated {
            None => ("<self>", "<lookup>".to_owned()),
            Some((user, _)) => (user.name.as_str(), list(&user.groups)),
        };
        let namespace = facts.object.as_ref().map_or("", |o| o.namespace.as_str());
        let namespace = if namespace.is_empty() { "<none>" } else { namespace };
        let ip = facts.source_ips.first().map_or_else(|| "<unknown>".to_owned(), IpAddr::to_string);
        let response = self.status.as_ref().map_or_else(|| "<deferred>".to_owned(), |s| s.code.to_string());
        let mut line = String::with_capacity(512);
        let _ = write!(
            line,
            "{} AUDIT: id={} stage=\"{}\" ip={} method={} user={} groups={} as={} asgroups={} user-agent={} \
             namespace={} uri={} response=\"{response}\"",
            facts.received.rfc3339_micro(),
            Quoted(&facts.audit_id),
            self.stage.name(),
            Quoted(&ip),
            Quoted(&facts.verb),
            Quoted(name),
            Quoted(&groups),
            Quoted(as_user),
            Quoted(&as_groups),
            Quoted(&facts.user_agent),
            Quoted(namespace),
            Quoted(&facts.request_uri),
        );
        line
    }
}

/// Members of a JSON object; empty values are left out.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl Members<'_> {
    fn key(&mut self, key: &str) {
        if !std::mem::replace(&mut self.first, false) {
            self.out.push(b',');
        }
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn add(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.key(key);
            write_string(self.out, value);
        }
    }

    fn list(&mut self, values: &[Str]) {
        self.out.push(b'[');
        for (i, value) in values.iter().enumerate() {
            if i > 0 {
                self.out.push(b',');
            }
            write_string(self.out, value);
        }
        self.out.push(b']');
    }
}

fn write_user(out: &mut Vec<u8>, user: &User) {
    out.push(b'{');
    let mut members = Members { out, first: true };
    members.add("username", &user.name);
    members.add("uid", &user.uid);
    if !user.groups.is_empty() {
        members.key("groups");
        members.list(&user.groups);
    }
    if !user.extra.is_empty() {
        members.key("extra");
        members.out.push(b'{');
        for (i, (key, values)) in user.extra.iter().enumerate() {
            if i > 0 {
                members.out.push(b',');
            }
            write_string(members.out, key);
            members.out.push(b':');
            members.list(values);
        }
        members.out.push(b'}');
    }
    out.push(b'}');
}

fn write_status(out: &mut Vec<u8>, status: &ResponseStatus) {
    out.extend_from_slice(br#"{"metadata":{}"#);
    let mut members = Members { out, first: false };
    members.add("status", &status.status);
    members.add("message", &status.message);
    members.add("reason", &status.reason);
    if let Some(details) = &status.details {
        members.key("details");
        kubelith_codec::json::write(members.out, details);
    }
    if status.code != 0 {
        members.key("code");
        write_int(members.out, i64::from(status.code));
    }
    out.push(b'}');
}
