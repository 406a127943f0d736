//! Logs every request at `-v=3`, and below that those that took long, with where the time went.

use super::Layer;
use kubelith_http::latency::{Latency, PARTS};
use kubelith_http::{Request, Response};
use kubelith_observe::logging::verbosity;
use std::fmt::Write;
use std::time::Duration;

/// Level of the line per request.
const EVERY_REQUEST: u8 = 3;
/// A short request that takes this long is worth a line of its own.
const SLOW: Duration = Duration::from_secs(1);

pub fn layer() -> Layer {
    Layer::from_fn("http-logging", |request, next| {
        let line = (verbosity() >= EVERY_REQUEST).then(|| Line::of(&request));
        let slow = (!request.info().is_long_running()).then(|| Slow::of(&request));
        let received = request.received().instant;
        let response = next.handle(request);
        if line.is_none() && slow.is_none() {
            return response;
        }
        response.map(move |response| {
            let latency = received.elapsed();
            match (line, slow) {
                (Some(line), _) => line.log(latency, &response),
                (None, Some(slow)) if latency >= SLOW => slow.log(latency, &response),
                _ => {}
            }
            response
        })
    })
}

struct Line {
    verb: String,
    uri: String,
    user_agent: String,
    audit_id: String,
    source: String,
}

impl Line {
    fn of(request: &Request) -> Line {
        Line {
            verb: kubelith_http::labels::reported_verb(request).to_owned(),
            uri: request.uri().path_and_query().map_or("", |p| p.as_str()).to_owned(),
            user_agent: request.header("user-agent").to_owned(),
            audit_id: request.audit_id().to_owned(),
            source: request.connection().map_or_else(|| "loopback".into(), |c| c.remote.to_string()),
        }
    }

    fn log(self, latency: Duration, response: &Response) {
        tracing::info!(
            verb = self.verb,
            URI = self.uri,
            latency = ?latency,
            userAgent = self.user_agent,
            "audit-ID" = self.audit_id,
            srcIP = self.source,
            resp = response.status().as_u16(),
            "HTTP"
        );
    }
}

/// Cheap to make: most requests are not slow.
struct Slow {
    method: http::Method,
    uri: http::Uri,
    parts: Latency,
}

impl Slow {
    fn of(request: &Request) -> Slow {
        let parts = request.latency().cloned().unwrap_or_default();
        Slow { method: request.method().clone(), uri: request.uri().clone(), parts }
    }

    fn log(self, latency: Duration, response: &Response) {
        let mut spent = String::new();
        for (part, name) in PARTS {
            let of = self.parts.of(part);
            if !of.is_zero() {
                let _ = write!(spent, "{}{name}={of:?}", if spent.is_empty() { "" } else { " " });
            }
        }
        let uri = self.uri.path_and_query().map_or("", |p| p.as_str());
        tracing::info!(method = %self.method, URI = uri, latency = ?latency, spent, resp = response.status().as_u16(), "Slow request");
    }
}
