//! What the API answers when it has no object to answer with: metav1 `Status`. Every error that a client sees
//! is made by one of the constructors here, which fix code, reason, wording and details.

mod constructors;
mod foreign;
mod reason;
mod wire;

use crate::Str;
use std::fmt;

pub use foreign::ForeignResponse;
pub use reason::Reason;

/// The outcome of a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Status {
    pub outcome: Outcome,
    /// The HTTP status code; 0 leaves the field out, as the answer to a delete does.
    pub code: u16,
    pub reason: Reason,
    pub message: String,
    pub details: Option<Box<Details>>,
    /// Where to go on with a list whose continue token is too old.
    pub continue_token: Option<Box<str>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Outcome {
    Success,
    #[default]
    Failure,
    /// What another server said that should have said one of these.
    Other(Str),
}

/// What the status is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    pub name: Str,
    pub group: Str,
    /// The plural resource in most errors, the kind in validation errors.
    pub kind: Str,
    pub uid: Str,
    pub causes: Vec<Cause>,
    pub retry_after_seconds: i32,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cause {
    pub reason: Str,
    pub message: String,
    pub field: Str,
}

pub const CAUSE_UNEXPECTED_SERVER_RESPONSE: &str = "UnexpectedServerResponse";
pub const CAUSE_FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";
pub const CAUSE_RESOURCE_VERSION_TOO_LARGE: &str = "ResourceVersionTooLarge";
pub const CAUSE_NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

impl Cause {
    pub fn new(reason: impl Into<Str>, message: impl Into<String>, field: impl Into<Str>) -> Cause {
        Cause { reason: reason.into(), message: message.into(), field: field.into() }
    }
}

impl Status {
    /// The details, made empty first if there are none.
    pub fn details_mut(&mut self) -> &mut Details {
        self.details.get_or_insert_default()
    }

    pub fn causes(&self) -> &[Cause] {
        self.details.as_ref().map_or(&[], |d| &d.causes)
    }

    pub fn has_cause(&self, reason: &str) -> bool {
        self.causes().iter().any(|c| c.reason == reason)
    }

    /// What the `Retry-After` header says.
    pub fn retry_after_seconds(&self) -> Option<i32> {
        let seconds = self.details.as_ref()?.retry_after_seconds;
        (seconds > 0 || self.reason == Reason::ServerTimeout).then_some(seconds)
    }
}

/// Predicates look at the code, too, where the reason is unknown: other servers leave reasons out.
macro_rules! predicates {
    ($($name:ident, $reason:ident, $code:expr;)*) => {
        impl Status {
            $(pub fn $name(&self) -> bool {
                self.reason == Reason::$reason || (!self.reason.is_known() && self.code == $code)
            })*
        }
    };
}

predicates! {
    is_not_found, NotFound, 404;
    is_conflict, Conflict, 409;
    is_invalid, Invalid, 422;
    is_gone, Gone, 410;
    is_not_acceptable, NotAcceptable, 406;
    is_unsupported_media_type, UnsupportedMediaType, 415;
    is_method_not_supported, MethodNotAllowed, 405;
    is_service_unavailable, ServiceUnavailable, 503;
    is_bad_request, BadRequest, 400;
    is_unauthorized, Unauthorized, 401;
    is_forbidden, Forbidden, 403;
    is_timeout, Timeout, 504;
    is_internal_error, InternalError, 500;
}

impl Status {
    pub fn is_success(&self) -> bool {
        self.outcome == Outcome::Success
    }

    pub fn is_already_exists(&self) -> bool {
        self.reason == Reason::AlreadyExists
    }

    pub fn is_expired(&self) -> bool {
        self.reason == Reason::Expired
    }

    pub fn is_too_many_requests(&self) -> bool {
        self.reason == Reason::TooManyRequests || self.code == 429
    }

    pub fn is_too_large_resource_version(&self) -> bool {
        self.is_timeout() && self.has_cause(CAUSE_RESOURCE_VERSION_TOO_LARGE)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests;
