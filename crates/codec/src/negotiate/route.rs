//! What the reference's router refuses before any handler runs.

use std::fmt;

/// Displays as the message of the Status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteError {
    /// 406: none of these is wanted.
    NotAcceptable(String),
    /// 415
    UnsupportedMediaType,
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteError::NotAcceptable(available) => {
                write!(f, "406: Not Acceptable\n\nAvailable representations: {available}")
            }
            RouteError::UnsupportedMediaType => f.write_str("415: Unsupported Media Type"),
        }
    }
}

impl std::error::Error for RouteError {}

/// Does a route that produces these media types suit the Accept header? Qualities and parameters do not count
/// here, and of the wildcards only `*/*` does.
pub fn route_accepts(accept: &str, produces: &[&str]) -> Result<(), RouteError> {
    let wanted = |media: &str| media == "*/*" || produces.iter().any(|&p| p == "*/*" || p == media);
    if accept.is_empty() || names(accept).any(wanted) {
        return Ok(());
    }
    Err(RouteError::NotAcceptable(produces.join(", ")))
}

/// Does a route that consumes these media types (empty: any) take the Content-Type of a request? A request
/// without one passes if its method seldom has a body; otherwise it counts as a stream of octets.
pub fn route_consumes(content_type: &str, method: &str, consumes: &[&str]) -> Result<(), RouteError> {
    if consumes.is_empty() {
        return Ok(());
    }
    if content_type.is_empty() && matches!(method, "GET" | "HEAD" | "OPTIONS" | "DELETE" | "TRACE") {
        return Ok(());
    }
    let content_type = if content_type.is_empty() { "application/octet-stream" } else { content_type };
    if names(content_type).any(|media| consumes.iter().any(|&c| c == "*/*" || c == media)) {
        return Ok(());
    }
    Err(RouteError::UnsupportedMediaType)
}

/// The media types of a header without their parameters.
fn names(header: &str) -> impl Iterator<Item = &str> {
    header.split(',').map(|part| part.split(';').next().unwrap_or(part).trim_matches(' '))
}
