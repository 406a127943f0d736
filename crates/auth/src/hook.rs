//! Webhooks that objects name by a `clientConfig`: admission webhooks, and those that convert custom resources. How they are
//! reached is injected; what their answers mean, before anybody looks at the review inside, is here.

use crate::remote::{FetchError, FetchResponse};
use bytes::Bytes;
use futures::future::BoxFuture;
use kubelith_codec::negotiate::read_media_type;
use kubelith_codec::{json, yaml};
use kubelith_meta::status::ForeignResponse;
use kubelith_meta::text::json_kind;
use kubelith_meta::{Status, Value};
use std::sync::Arc;
use std::time::Duration;

/// Of a body that is no Status, this much is shown.
const MAX_SHOWN: usize = 2048;
const SWITCHING_PROTOCOLS: u16 = 101;

/// One webhook.
pub trait Hook: Send + Sync {
    /// Sends a review and takes the whole answer, both within `timeout`. Dropping the future gives the request up.
    fn post(&self, review: Bytes, timeout: Duration) -> BoxFuture<'_, Result<FetchResponse, FetchError>>;
}

/// Whoever knows the way to webhooks: services, certificates, credentials, kept connections.
pub trait Hooks: Send + Sync {
    /// `client` is a `clientConfig`. The error says why nobody can be reached by it.
    fn hook(&self, client: &Value) -> Result<Arc<dyn Hook>, String>;
}

/// Knows no way at all.
#[derive(Debug, Clone, Copy)]
pub struct NoHooks;

impl Hooks for NoHooks {
    fn hook(&self, _: &Value) -> Result<Arc<dyn Hook>, String> {
        Err("webhooks cannot be reached from here".to_owned())
    }
}

/// The document that was answered, or the Status that stands for its absence. An answer that cannot be read has no Status.
pub fn answer(response: &FetchResponse) -> Result<Value, Failed> {
    if !matches!(&*response.content_type, "" | "application/json")
        && let Err(why) = read_media_type(&response.content_type)
    {
        return Err(Failed::Refused(Box::new(Status::internal_error(why))));
    }
    // Go's client takes what was upgraded for an answer as well.
    if !(200..=206).contains(&response.status) && response.status != SWITCHING_PROTOCOLS {
        return Err(Failed::Refused(Box::new(refusal(response))));
    }
    let FetchResponse { status, body, content_type, .. } = response;
    if body.is_empty() {
        let content_type = if content_type.is_empty() { "application/json" } else { content_type };
        let why = format!("0-length response with status code: {status} and content type: {content_type}");
        return Err(Failed::Unreadable(why));
    }
    // What does not begin like JSON is taken for YAML.
    let value = match body.trim_ascii_start().first() {
        Some(b'{') => json::parse(body).map_err(|e| Failed::Unreadable(untyped(&e)))?,
        _ => yaml::read(body).map_err(|e| Failed::Unreadable(e.to_string()))?.value,
    };
    match value {
        Value::Object(_) | Value::Null => Ok(value),
        other => Err(Failed::Unreadable(untyped(&no_type(&other)))),
    }
}

/// Why an answer is none.
#[derive(Debug, Clone, PartialEq)]
pub enum Failed {
    Refused(Box<Status>),
    Unreadable(String),
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failed::Refused(status) => f.write_str(&status.message),
            Failed::Unreadable(why) => f.write_str(why),
        }
    }
}

/// In the other server's own words if it answers a Status.
fn refusal(response: &FetchResponse) -> Status {
    if let Ok(status) = json::parse(&response.body)
        && (status.str_at(&["kind"]), status.str_at(&["apiVersion"])) == ("Status", "v1")
        && status.str_at(&["status"]) != "Success"
    {
        return Status::from_value(&status);
    }
    let is_text = response.content_type.is_empty() || response.content_type.starts_with("text/");
    let shown = &response.body[..response.body.len().min(MAX_SHOWN)];
    let body = if is_text { String::from_utf8_lossy(shown) } else { "unknown".into() };
    Status::from(ForeignResponse {
        code: response.status,
        method: "POST",
        body: body.trim(),
        retry_after_seconds: response.retry_after_seconds.unwrap_or_default(),
        unexpected: true,
        ..ForeignResponse::default()
    })
}

/// What Go says of a document whose type cannot be read.
fn untyped(why: &dyn std::fmt::Display) -> String {
    format!("couldn't get version/kind; json parse error: {why}")
}

/// Why a document that is no object has no type.
fn no_type(document: &Value) -> String {
    format!(
        "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \
         \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
        json_kind(document)
    )
}
