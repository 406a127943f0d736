//! A Status for an answer of another server (a kubelet, an aggregated API, a webhook) that is none itself.

use super::{CAUSE_UNEXPECTED_SERVER_RESPONSE, Cause, Details, Reason, Status};
use crate::GroupResource;
use crate::text::Quoted;

/// What is known of the answer.
#[derive(Debug, Clone, Default)]
pub struct ForeignResponse<'a> {
    pub code: u16,
    /// The HTTP method of the request.
    pub method: &'a str,
    /// What was asked for; empty if that has no meaning.
    pub resource: GroupResource,
    pub name: &'a str,
    /// The body, or a text that stands for it.
    pub body: &'a str,
    pub retry_after_seconds: i32,
    /// Whether the body goes into the causes, for people to look at.
    pub unexpected: bool,
}

impl From<ForeignResponse<'_>> for Status {
    fn from(response: ForeignResponse<'_>) -> Status {
        let ForeignResponse { code, method, resource, name, body, retry_after_seconds, unexpected } = response;
        let (reason, mut message) = reason_and_message(code, method, body);
        if !(resource.group.is_empty() && resource.resource.is_empty()) {
            let target = if name.is_empty() { resource.to_string() } else { format!("{resource} {name}") };
            message = format!("{message} ({} {target})", method.to_lowercase());
        }
        let causes = if unexpected { vec![Cause::new(CAUSE_UNEXPECTED_SERVER_RESPONSE, body, "")] } else { Vec::new() };
        Status { code, reason, message, ..Status::default() }.with(Details {
            name: name.into(),
            group: resource.group,
            kind: resource.resource,
            causes,
            retry_after_seconds,
            ..Details::default()
        })
    }
}

fn reason_and_message(code: u16, method: &str, body: &str) -> (Reason, String) {
    let (reason, message) = match code {
        409 if method == "POST" => (Reason::AlreadyExists, "the server reported a conflict"),
        409 => (Reason::Conflict, "the server reported a conflict"),
        404 => (Reason::NotFound, "the server could not find the requested resource"),
        400 => (Reason::BadRequest, "the server rejected our request for an unknown reason"),
        401 => (Reason::Unauthorized, "the server has asked for the client to provide credentials"),
        403 => (Reason::Forbidden, body),
        406 if body.is_empty() || body == "unknown" => {
            (Reason::NotAcceptable, "the server was unable to respond with a content type that the client supports")
        }
        406 => (Reason::NotAcceptable, body),
        415 => (Reason::UnsupportedMediaType, body),
        405 => (Reason::MethodNotAllowed, "the server does not allow this method on the requested resource"),
        422 => (Reason::Invalid, "the server rejected our request due to an error in our request"),
        503 => (Reason::ServiceUnavailable, "the server is currently unable to handle the request"),
        504 => (
            Reason::Timeout,
            "the server was unable to return a response in the time allotted, but may still be processing the request",
        ),
        429 => {
            (Reason::TooManyRequests, "the server has received too many requests and has asked us to try again later")
        }
        500.. => {
            let message =
                format!("an error on the server ({}) has prevented the request from succeeding", Quoted(body));
            return (Reason::InternalError, message);
        }
        _ => {
            let message =
                format!("the server responded with the status code {code} but did not return more information");
            return (Reason::Unknown, message);
        }
    };
    (reason, message.to_owned())
}
