//! Gives every request an id, or keeps the client's, and says it in the answer: the thread that ties a
//! client's log, ours and the audit log together.

use super::Layer;
use http::{HeaderName, HeaderValue};
use kubelith_http::context::AuditId;
use kubelith_meta::{Str, random};

pub const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

pub fn layer() -> Layer {
    Layer::from_fn("audit-id", |mut request, next| {
        let sent = request.headers().get(AUDIT_ID).filter(|v| !v.is_empty()).cloned();
        let (id, header) = match sent {
            Some(header) => (Str::from_utf8_lossy(header.as_bytes()), header),
            None => {
                let id = random::uid(random::differing_bits);
                let mut header = HeaderValue::from_str(&id).expect("a UUID is a header value");
                // Each is sent once: to HTTP/2's compression this says not to keep it for later.
                header.set_sensitive(true);
                (id, header)
            }
        };
        request.context_mut().audit_id = Some(AuditId(id));
        next.handle(request).map(|mut response| {
            // A proxied server's own id stays: the same id twice would look like one request.
            response.headers_mut().entry(AUDIT_ID).or_insert(header);
            response
        })
    })
}
