//! One constructor for every error that the API has, and for its successes.

use super::{CAUSE_RESOURCE_VERSION_TOO_LARGE, Cause, Details, Outcome, Reason, Status};
use crate::field::ErrorList;
use crate::text::Quoted;
use crate::{GroupKind, GroupResource};
use std::fmt;

/// Details that name a resource, or an object of it.
fn about(resource: &GroupResource, name: &str) -> Details {
    Details { name: name.into(), group: resource.group.clone(), kind: resource.resource.clone(), ..Details::default() }
}

fn retry_after(seconds: i32) -> Details {
    Details { retry_after_seconds: seconds, ..Details::default() }
}

impl Status {
    fn failure(code: u16, reason: Reason, message: impl Into<String>) -> Status {
        Status { code, reason, message: message.into(), ..Status::default() }
    }

    pub(super) fn with(mut self, details: Details) -> Status {
        self.details = Some(Box::new(details));
        self
    }

    /// An error that the server did not foresee: 500 without a reason, which clients do not retry.
    pub fn unknown(message: impl Into<String>) -> Status {
        Status::failure(500, Reason::Unknown, message)
    }

    pub fn not_found(resource: &GroupResource, name: &str) -> Status {
        Status::failure(404, Reason::NotFound, format!("{resource} {} not found", Quoted(name)))
            .with(about(resource, name))
    }

    pub fn already_exists(resource: &GroupResource, name: &str) -> Status {
        Status::failure(409, Reason::AlreadyExists, format!("{resource} {} already exists", Quoted(name)))
            .with(about(resource, name))
    }

    /// No free name was found for a `generateName`.
    pub fn generate_name_conflict(resource: &GroupResource, name: &str, retry_after_seconds: i32) -> Status {
        let message = format!(
            "{resource} {} already exists, the server was not able to generate a unique name for the object",
            Quoted(name)
        );
        Status::failure(409, Reason::AlreadyExists, message)
            .with(Details { retry_after_seconds, ..about(resource, name) })
    }

    /// An empty `message` becomes "not authorized".
    pub fn unauthorized(message: &str) -> Status {
        Status::failure(401, Reason::Unauthorized, if message.is_empty() { "not authorized" } else { message })
    }

    /// Both the resource and the name may be empty.
    pub fn forbidden(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Status {
        let message = if resource.group.is_empty() && resource.resource.is_empty() {
            format!("forbidden: {why}")
        } else if name.is_empty() {
            format!("{resource} is forbidden: {why}")
        } else {
            format!("{resource} {} is forbidden: {why}", Quoted(name))
        };
        Status::failure(403, Reason::Forbidden, message).with(about(resource, name))
    }

    pub fn conflict(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Status {
        let message = format!("Operation cannot be fulfilled on {resource} {}: {why}", Quoted(name));
        Status::failure(409, Reason::Conflict, message).with(about(resource, name))
    }

    /// Fields that an apply would take from other managers.
    pub fn apply_conflict(causes: Vec<Cause>, message: impl Into<String>) -> Status {
        Status::failure(409, Reason::Conflict, message).with(Details { causes, ..Details::default() })
    }

    pub fn gone(message: impl Into<String>) -> Status {
        Status::failure(410, Reason::Gone, message)
    }

    /// A resourceVersion or continue token that is too old.
    pub fn expired(message: impl Into<String>) -> Status {
        Status::failure(410, Reason::Expired, message)
    }

    pub fn invalid(kind: &GroupKind, name: &str, errors: &ErrorList) -> Status {
        let mut message = format!("{kind} {} is invalid", Quoted(name));
        if !errors.is_empty() {
            message = format!("{message}: {errors}");
        }
        let causes = errors.iter().map(|e| Cause::new(e.kind.reason(), e.body(), e.field.clone())).collect();
        Status::failure(422, Reason::Invalid, message).with(Details {
            name: name.into(),
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            causes,
            ..Details::default()
        })
    }

    pub fn bad_request(message: impl Into<String>) -> Status {
        Status::failure(400, Reason::BadRequest, message)
    }

    /// Try again in some seconds.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: i32) -> Status {
        Status::failure(429, Reason::TooManyRequests, message).with(retry_after(retry_after_seconds))
    }

    /// Too many requests, without a hint when to try again.
    pub fn too_many_requests_now(message: impl fmt::Display) -> Status {
        Status::failure(429, Reason::TooManyRequests, format!("Too many requests: {message}"))
    }

    pub fn service_unavailable(message: impl Into<String>) -> Status {
        Status::failure(503, Reason::ServiceUnavailable, message)
    }

    /// Unavailable for some seconds.
    pub fn service_unavailable_for(message: impl Into<String>, retry_after_seconds: i32) -> Status {
        Status::service_unavailable(message).with(retry_after(retry_after_seconds))
    }

    pub fn method_not_supported(resource: &GroupResource, action: &str) -> Status {
        let message = format!("{action} is not supported on resources of kind \"{resource}\"");
        Status::failure(405, Reason::MethodNotAllowed, message).with(about(resource, ""))
    }

    /// The operation could not be completed for a passing reason.
    pub fn server_timeout(resource: &GroupResource, operation: &str, retry_after_seconds: i32) -> Status {
        let message = format!(
            "The {operation} operation against {resource} could not be completed at this time, please try again."
        );
        Status::failure(500, Reason::ServerTimeout, message)
            .with(Details { retry_after_seconds, ..about(resource, operation) })
    }

    pub fn internal_error(error: impl fmt::Display) -> Status {
        let error = error.to_string();
        Status::failure(500, Reason::InternalError, format!("Internal error occurred: {error}"))
            .with(Details { causes: vec![Cause::new("", error, "")], ..Details::default() })
    }

    /// The time given to the request is over; it may complete all the same.
    pub fn timeout(message: impl fmt::Display, retry_after_seconds: i32) -> Status {
        Status::failure(504, Reason::Timeout, format!("Timeout: {message}")).with(retry_after(retry_after_seconds))
    }

    /// A resourceVersion that the server has not reached yet.
    pub fn too_large_resource_version(wanted: u64, current: u64, retry_after_seconds: i32) -> Status {
        let message = format!("Too large resource version: {wanted}, current: {current}");
        let mut status = Status::timeout(message, retry_after_seconds);
        let cause = Cause::new(CAUSE_RESOURCE_VERSION_TOO_LARGE, "Too large resource version", "");
        status.details_mut().causes.push(cause);
        status
    }

    pub fn request_entity_too_large(message: impl fmt::Display) -> Status {
        Status::failure(413, Reason::RequestEntityTooLarge, format!("Request entity too large: {message}"))
    }

    /// None of the media types in `Accept` can be served.
    pub fn not_acceptable(accepted: &[&str]) -> Status {
        let message = format!("only the following media types are accepted: {}", accepted.join(", "));
        Status::failure(406, Reason::NotAcceptable, message)
    }

    /// The `Accept` header asks for a conversion that its media type does not support.
    pub fn not_acceptable_conversion(target: &str, accepted: &[&str]) -> Status {
        let accepted = accepted.join(", ");
        let message = format!("only the following media types are accepted when converting to {target}: {accepted}");
        Status::failure(406, Reason::NotAcceptable, message)
    }

    pub fn unsupported_media_type(accepted: &[&str]) -> Status {
        let accepted = accepted.join(", ");
        let message =
            format!("the body of the request was in an unknown format - accepted media types include: {accepted}");
        Status::failure(415, Reason::UnsupportedMediaType, message)
    }

    /// Objects in the store that cannot be decrypted or decoded.
    pub fn store_read_error(resource: &GroupResource, prefix: &str, causes: Vec<Cause>) -> Status {
        let message = format!("failed to read one or more {resource} from the storage");
        Status::failure(500, Reason::StoreReadError, message).with(Details { causes, ..about(resource, prefix) })
    }

    /// A success with an HTTP code: 200 or 201.
    pub fn success(code: u16) -> Status {
        Status { outcome: Outcome::Success, code, ..Status::default() }
    }

    /// The answer to a delete of what nobody could read: it tells the kind and nothing else.
    pub fn deleted_unseen(kind: &str, name: &str) -> Status {
        Status::success(200).with(Details { kind: kind.into(), name: name.into(), ..Details::default() })
    }

    /// The answer to a delete that leaves nothing to show. It carries no code.
    pub fn deleted(resource: &GroupResource, name: &str, uid: &str) -> Status {
        Status::success(0).with(Details { uid: uid.into(), ..about(resource, name) })
    }
}
