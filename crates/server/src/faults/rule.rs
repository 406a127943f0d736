//! One fault: which requests it is meant for, and what becomes of them. On the wire it is one flat object:
//!
//! ```json
//! {"verbs": ["update", "patch"], "resource": "pods", "subresource": "status", "name": "x", "times": 3, "answer": {"code": 409}}
//! ```

use http::Method;
use kubelith_http::RequestInfo;
use kubelith_meta::status::{ForeignResponse, Reason};
use kubelith_meta::text::Quoted;
use kubelith_meta::time::Duration as Span;
use kubelith_meta::{GroupResource, Status, Value};
use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    pub target: Target,
    /// As many requests are let pass first.
    pub skip: u64,
    /// `None`: until it is removed.
    pub times: Option<u64>,
    pub effect: Effect,
}

/// Who sends a request.
#[derive(Debug, Clone, Copy)]
pub struct Asker<'a> {
    pub user: &'a str,
    /// The server itself: a controller, or what it does at a start.
    pub is_server: bool,
}

/// Requests; what is `None` or empty is any. Without a user, requests of the server itself (its controllers) are not meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    pub user: Option<String>,
    pub verbs: Vec<String>,
    /// The API group; empty for the core group.
    pub group: Option<String>,
    pub resource: Option<String>,
    /// Empty for requests about the resource itself.
    pub subresource: Option<String>,
    pub namespace: Option<String>,
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Nothing is done, and this is answered.
    Answer(FaultAnswer),
    /// It is done all the same, and this is answered.
    AnswerAfter(FaultAnswer),
    /// It is done later.
    Delay(Duration),
    /// Events of a watch come later, each by this.
    DelayEvents(Duration),
    /// A watch hears that what it wants to see is gone: 410.
    ExpireWatch,
    /// A watch ends.
    EndWatch,
    /// A list is as old as this many revisions.
    StaleBy(u64),
    /// A write fails in admission, with 500.
    FailAdmission(String),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultAnswer {
    pub code: u16,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub retry_after_seconds: Option<i32>,
}

impl Fault {
    pub fn new(target: Target, effect: Effect) -> Fault {
        Fault { target, skip: 0, times: None, effect }
    }

    /// Whether its effect makes sense for a request.
    pub(super) fn suits(&self, info: &RequestInfo) -> bool {
        match self.effect {
            Effect::Answer(_) | Effect::AnswerAfter(_) | Effect::Delay(_) => true,
            Effect::DelayEvents(_) | Effect::ExpireWatch | Effect::EndWatch => info.verb == "watch",
            Effect::StaleBy(_) => info.verb == "list",
            Effect::FailAdmission(_) => !info.is_read_only(),
        }
    }

    pub fn from_value(value: &Value) -> Result<Fault, String> {
        let map = value.as_object().ok_or("a fault is an object")?;
        let mut fault = Fault::new(Target::default(), Effect::ExpireWatch);
        let mut effects = Vec::new();
        for (key, value) in map.iter() {
            let target = &mut fault.target;
            match key {
                "user" => target.user = Some(text(key, value)?),
                "verbs" => target.verbs = texts(key, value)?,
                "group" => target.group = Some(text(key, value)?),
                "resource" => target.resource = Some(text(key, value)?),
                "subresource" => target.subresource = Some(text(key, value)?),
                "namespace" => target.namespace = Some(text(key, value)?),
                "name" => target.name = Some(text(key, value)?),
                "skip" => fault.skip = number(key, value)?,
                "times" => fault.times = Some(number(key, value)?),
                "answer" => effects.push(Effect::Answer(FaultAnswer::from_value(key, value)?)),
                "answerAfter" => effects.push(Effect::AnswerAfter(FaultAnswer::from_value(key, value)?)),
                "delay" => effects.push(Effect::Delay(duration(key, value)?)),
                "delayEvents" => effects.push(Effect::DelayEvents(duration(key, value)?)),
                "expireWatch" if value.as_bool() == Some(true) => effects.push(Effect::ExpireWatch),
                "endWatch" if value.as_bool() == Some(true) => effects.push(Effect::EndWatch),
                "staleBy" => effects.push(Effect::StaleBy(number(key, value)?)),
                "failAdmission" => effects.push(Effect::FailAdmission(text(key, value)?)),
                // What a list of faults has besides.
                "id" | "seen" | "hits" | "expireWatch" | "endWatch" => {}
                _ => return Err(format!("unknown field {}", Quoted(key))),
            }
        }
        let [effect] = <[Effect; 1]>::try_from(effects).map_err(|_| {
            "one of answer, answerAfter, delay, delayEvents, expireWatch, endWatch, staleBy and failAdmission is needed"
        })?;
        Ok(Fault { effect, ..fault })
    }

    pub fn to_value(&self) -> Value {
        let mut value = Value::object();
        let map = value.make_object();
        let Target { user, verbs, group, resource, subresource, namespace, name } = &self.target;
        let texts = [("user", user), ("group", group), ("resource", resource), ("subresource", subresource)];
        for (key, text) in texts.into_iter().chain([("namespace", namespace), ("name", name)]) {
            if let Some(text) = text {
                map.insert(key, text.as_str());
            }
        }
        if !verbs.is_empty() {
            map.insert("verbs", Value::from(verbs.iter().map(|verb| Value::from(verb.as_str())).collect::<Vec<_>>()));
        }
        if self.skip > 0 {
            map.insert("skip", self.skip as i64);
        }
        if let Some(times) = self.times {
            map.insert("times", times as i64);
        }
        let (key, effect) = match &self.effect {
            Effect::Answer(answer) => ("answer", answer.to_value()),
            Effect::AnswerAfter(answer) => ("answerAfter", answer.to_value()),
            Effect::Delay(by) => ("delay", shown(*by)),
            Effect::DelayEvents(by) => ("delayEvents", shown(*by)),
            Effect::ExpireWatch => ("expireWatch", true.into()),
            Effect::EndWatch => ("endWatch", true.into()),
            Effect::StaleBy(revisions) => ("staleBy", (*revisions as i64).into()),
            Effect::FailAdmission(message) => ("failAdmission", message.as_str().into()),
        };
        map.insert(key, effect);
        value
    }
}

impl Target {
    pub(super) fn matches(&self, asker: Asker<'_>, info: &RequestInfo) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        info.is_resource_request
            && is(&self.user, asker.user)
            && (self.user.is_some() || !asker.is_server)
            && (self.verbs.is_empty() || self.verbs.iter().any(|verb| *verb == info.verb))
            && is(&self.group, &info.group)
            && is(&self.resource, &info.resource)
            && is(&self.subresource, &info.subresource)
            && is(&self.namespace, &info.namespace)
            && is(&self.name, &info.name)
    }
}

impl FaultAnswer {
    fn from_value(at: &str, value: &Value) -> Result<FaultAnswer, String> {
        let map = value.as_object().ok_or_else(|| format!("{at}: must be an object with a code"))?;
        let mut answer = FaultAnswer::default();
        for (key, value) in map.iter() {
            match key {
                "code" => answer.code = u16::try_from(number(key, value)?).unwrap_or(0),
                "reason" => answer.reason = Some(text(key, value)?),
                "message" => answer.message = Some(text(key, value)?),
                "retryAfterSeconds" => {
                    answer.retry_after_seconds = Some(i32::try_from(number(key, value)?).unwrap_or(i32::MAX));
                }
                _ => return Err(format!("unknown field {}", Quoted(&format!("{at}.{key}")))),
            }
        }
        match (400..600).contains(&answer.code) {
            true => Ok(answer),
            false => Err(format!("{at}.code: must be an error, from 400 to 599")),
        }
    }

    fn to_value(&self) -> Value {
        let mut value = Value::object();
        let map = value.make_object();
        map.insert("code", i64::from(self.code));
        for (key, text) in [("reason", &self.reason), ("message", &self.message)] {
            if let Some(text) = text {
                map.insert(key, text.as_str());
            }
        }
        if let Some(seconds) = self.retry_after_seconds {
            map.insert("retryAfterSeconds", i64::from(seconds));
        }
        value
    }

    /// As the server itself would put it, where it has a way to.
    pub(crate) fn status(&self, method: &Method, info: &RequestInfo) -> Status {
        let resource = GroupResource::new(info.group.clone(), info.resource.clone());
        let wait = self.retry_after_seconds.unwrap_or(0);
        let mut status = match self.code {
            409 if method == Method::POST => Status::already_exists(&resource, &info.name),
            409 => {
                let why = "the object has been modified; please apply your changes to the latest version and try again";
                Status::conflict(&resource, &info.name, why)
            }
            404 => Status::not_found(&resource, &info.name),
            410 => Status::expired("The provided resource version is too old."),
            429 => Status::too_many_requests("the server has received too many requests", wait.max(1)),
            500 => Status::internal_error("fault injected by a test"),
            503 => Status::service_unavailable("the server is currently unable to handle the request"),
            504 => Status::timeout("request did not complete within the allotted timeout", wait),
            code => Status::from(ForeignResponse {
                code,
                method: method.as_str(),
                resource,
                name: &info.name,
                body: "fault injected by a test",
                retry_after_seconds: wait,
                unexpected: false,
            }),
        };
        if let Some(message) = &self.message {
            status.message.clone_from(message);
        }
        if let Some(reason) = &self.reason {
            status.reason = Reason::from(reason.as_str());
        }
        if let Some(seconds) = self.retry_after_seconds {
            status.details_mut().retry_after_seconds = seconds;
        }
        status
    }
}

fn text(key: &str, value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("{key}: must be a string"))
}

fn texts(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let list = value.as_array().ok_or_else(|| format!("{key}: must be a list of strings"))?;
    list.iter().map(|one| text(key, one)).collect()
}

fn number(key: &str, value: &Value) -> Result<u64, String> {
    value.as_i64().and_then(|n| u64::try_from(n).ok()).ok_or_else(|| format!("{key}: must be a number, 0 or more"))
}

fn duration(key: &str, value: &Value) -> Result<Duration, String> {
    let text = text(key, value)?;
    let span = Span::parse(&text).ok().filter(|span| *span >= Span::ZERO);
    span.map(Duration::from).ok_or_else(|| format!("{key}: {} is no duration", Quoted(&text)))
}

fn shown(duration: Duration) -> Value {
    let span = Span::from_nanos(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX));
    Value::from(span.to_string().as_str())
}
