//! Why requests fail, for programs.

use crate::Str;

/// Why a request failed, for programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Reason {
    #[default]
    Unknown,
    Unauthorized,
    Forbidden,
    NotFound,
    AlreadyExists,
    Conflict,
    Gone,
    Invalid,
    ServerTimeout,
    StoreReadError,
    Timeout,
    TooManyRequests,
    BadRequest,
    MethodNotAllowed,
    NotAcceptable,
    RequestEntityTooLarge,
    UnsupportedMediaType,
    InternalError,
    Expired,
    ServiceUnavailable,
    /// A reason of another server's.
    Other(Str),
}

impl Reason {
    pub fn as_str(&self) -> &str {
        match self {
            Reason::Unknown => "",
            Reason::Unauthorized => "Unauthorized",
            Reason::Forbidden => "Forbidden",
            Reason::NotFound => "NotFound",
            Reason::AlreadyExists => "AlreadyExists",
            Reason::Conflict => "Conflict",
            Reason::Gone => "Gone",
            Reason::Invalid => "Invalid",
            Reason::ServerTimeout => "ServerTimeout",
            Reason::StoreReadError => "StorageReadError",
            Reason::Timeout => "Timeout",
            Reason::TooManyRequests => "TooManyRequests",
            Reason::BadRequest => "BadRequest",
            Reason::MethodNotAllowed => "MethodNotAllowed",
            Reason::NotAcceptable => "NotAcceptable",
            Reason::RequestEntityTooLarge => "RequestEntityTooLarge",
            Reason::UnsupportedMediaType => "UnsupportedMediaType",
            Reason::InternalError => "InternalError",
            Reason::Expired => "Expired",
            Reason::ServiceUnavailable => "ServiceUnavailable",
            Reason::Other(reason) => reason,
        }
    }

    pub(super) fn is_known(&self) -> bool {
        !matches!(self, Reason::Unknown | Reason::Other(_))
    }
}

impl From<&str> for Reason {
    fn from(reason: &str) -> Reason {
        use Reason::*;
        const KNOWN: [Reason; 20] = [
            Unknown,
            Unauthorized,
            Forbidden,
            NotFound,
            AlreadyExists,
            Conflict,
            Gone,
            Invalid,
            ServerTimeout,
            StoreReadError,
            Timeout,
            TooManyRequests,
            BadRequest,
            MethodNotAllowed,
            NotAcceptable,
            RequestEntityTooLarge,
            UnsupportedMediaType,
            InternalError,
            Expired,
            ServiceUnavailable,
        ];
        KNOWN.into_iter().find(|r| r.as_str() == reason).unwrap_or_else(|| Other(reason.into()))
    }
}
