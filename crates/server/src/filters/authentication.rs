//! Finds out who asks, or answers 401. Credentials do not go further than this.

use super::Layer;
use crate::loopback::LoopbackUser;
use http::header::{AUTHORIZATION, CONNECTION, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderValue, Version};
use kubelith_auth::authn::bearer::extra_space_warning;
use kubelith_auth::authn::request_header::RequestHeaderNames;
use kubelith_auth::authn::websocket;
use kubelith_auth::traits::Notes;
use kubelith_auth::user::{ANONYMOUS, GROUP_UNAUTHENTICATED};
use kubelith_auth::{Answer, AuthRequest, Authentication as Outcome, Authenticator, User};
use kubelith_http::latency::{Part, track};
use kubelith_http::{BoxHandler, Handler, Reply, Request, Response, respond};
use kubelith_meta::{Status, Str};
use kubelith_observe::metrics::auth::AuthMetrics;
use std::sync::Arc;
use std::time::Instant;

pub struct AuthenticationOptions {
    pub authenticator: Arc<dyn Authenticator>,
    /// Audiences of which a credential must be meant for one (`--api-audiences`).
    pub audiences: Vec<Str>,
    /// Front proxy headers beside the standard ones that are removed once the user is known.
    pub proxy_headers: Option<RequestHeaderNames>,
    /// Takes out of the headers what else the authenticator goes by, such as the cookie of a session.
    pub remove_also: Option<fn(&mut HeaderMap)>,
}

struct Authentication {
    options: AuthenticationOptions,
    standard_headers: RequestHeaderNames,
    metrics: Arc<AuthMetrics>,
    next: BoxHandler,
    /// Answers 401, and audits it.
    failed: BoxHandler,
}

/// `failed` sees requests that could not be authenticated; [`unauthorized`] is its end.
pub fn layer(options: AuthenticationOptions, metrics: Arc<AuthMetrics>, failed: BoxHandler) -> Layer {
    Layer::new("authentication", |next| Link {
        inner: Arc::new(Authentication {
            options,
            standard_headers: RequestHeaderNames::standard(),
            metrics,
            next,
            failed,
        }),
    })
}

struct Link {
    inner: Arc<Authentication>,
}

impl Handler for Link {
    fn handle(&self, mut request: Request) -> Reply {
        // In-process callers are who they say.
        if let Some(LoopbackUser(user)) = request.extensions_mut().remove() {
            request.context_mut().user = Some(user);
            return self.inner.next.handle(request);
        }
        let started = Instant::now();
        let known = self.inner.authenticate(&request).ready();
        if let Some(outcome) = known {
            return self.inner.act(request, outcome, started);
        }
        let inner = self.inner.clone();
        Reply::begin(async move {
            let outcome = inner.authenticate(&request).await;
            inner.act(request, outcome, started).await
        })
    }
}

impl Authentication {
    fn act(&self, mut request: Request, outcome: Outcome, started: Instant) -> Reply {
        let took = started.elapsed();
        track(&request, Part::Authentication, took);
        self.metrics.authenticated(&outcome, took);
        if let Some(warning) = extra_space_warning(request.headers()) {
            request.warnings().add(warning);
        }
        let user = match outcome {
            Ok(Some(response)) if self.is_meant_for_us(&response.audiences) => {
                take_notes(&mut request, response.notes);
                response.user
            }
            Ok(Some(response)) => {
                let (sent, accepted) = (&response.audiences, &self.options.audiences);
                tracing::error!("unable to match the audience: {sent:?} , accepted: {accepted:?}");
                return self.failed.handle(request);
            }
            Ok(None) => return self.failed.handle(request),
            Err(why) => {
                tracing::error!(err = %why, "Unable to authenticate the request");
                return self.failed.handle(request);
            }
        };
        self.remove_credentials(&mut request);
        let close = request.version() == Version::HTTP_2 && is_anonymous(&user);
        request.context_mut().user = Some(user);
        let reply = self.next.handle(request);
        if !close {
            return reply;
        }
        reply.map(|mut response| {
            close_connection(&mut response);
            response
        })
    }

    fn authenticate<'a>(&'a self, request: &'a Request) -> Answer<'a, Outcome> {
        let view = AuthRequest {
            headers: request.headers(),
            peer_certificates: request.connection().and_then(|c| c.peer_certificates.as_ref()),
            path: &request.info().path,
            audiences: &self.options.audiences,
        };
        self.options.authenticator.authenticate(view)
    }

    fn is_meant_for_us(&self, sent: &[Str]) -> bool {
        let ours = &self.options.audiences;
        ours.is_empty() || sent.is_empty() || ours.iter().any(|a| sent.contains(a))
    }

    fn remove_credentials(&self, request: &mut Request) {
        let headers = request.headers_mut();
        headers.remove(AUTHORIZATION);
        if headers.contains_key(SEC_WEBSOCKET_PROTOCOL) {
            websocket::strip_token(headers);
        }
        self.standard_headers.remove_from(headers);
        if let Some(names) = &self.options.proxy_headers {
            names.remove_from(headers);
        }
        if let Some(remove) = self.options.remove_also {
            remove(headers);
        }
    }
}

/// Annotations for the audit log, which is asked only once the user is known.
#[derive(Debug, Clone)]
pub struct AuthenticationNotes(pub Vec<(&'static str, String)>);

fn take_notes(request: &mut Request, notes: Notes) {
    for warning in notes.warnings {
        request.warnings().add(warning);
    }
    if !notes.annotations.is_empty() {
        request.extensions_mut().insert(AuthenticationNotes(notes.annotations));
    }
}

/// The end of requests that nobody vouches for.
pub fn unauthorized() -> BoxHandler {
    Arc::new(|request: Request| -> Reply {
        let mut response = respond::status(&request, &Status::unauthorized("Unauthorized"));
        if request.version() == Version::HTTP_2 {
            close_connection(&mut response);
        }
        Reply::Ready(response)
    })
}

/// HTTP/2 lets one client ask for a lot at once; strangers get one request per connection, as in the reference
/// (UnauthenticatedHTTP2DOSMitigation).
fn close_connection(response: &mut Response) {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
}

fn is_anonymous(user: &User) -> bool {
    user.name == ANONYMOUS || user.in_group(GROUP_UNAUTHENTICATED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;
    use kubelith_auth::authn::anonymous::Anonymous;
    use kubelith_http::{RequestBody, RequestInfo};
    use kubelith_observe::metrics::Metrics;

    #[tokio::test]
    async fn nothing_secret_goes_further() {
        let names = RequestHeaderNames { username: vec!["X-Proxy-User".into()], ..RequestHeaderNames::default() };
        let options = AuthenticationOptions {
            authenticator: Arc::new(Anonymous::new([])),
            audiences: Vec::new(),
            proxy_headers: Some(names),
            remove_also: None,
        };
        let behind: BoxHandler = Arc::new(|request: Request| -> Reply {
            let mut left: Vec<String> =
                request.headers().iter().map(|(k, v)| format!("{k}: {}", v.to_str().unwrap())).collect();
            left.sort();
            Reply::Ready(respond::text(StatusCode::OK, left.join("\n")))
        });
        let chain = layer(options, Metrics::new().auth, unauthorized()).wrap(behind);
        let mut request = http::Request::get("/api/v1/nodes");
        for (name, value) in [
            ("authorization", "Bearer x"),
            ("x-remote-user", "root"),
            ("x-remote-group", "system:masters"),
            ("x-remote-extra-scopes", "all"),
            ("x-proxy-user", "root"),
            ("sec-websocket-protocol", "base64url.bearer.authorization.k8s.io.eA, v4.channel.k8s.io"),
            ("accept", "*/*"),
        ] {
            request = request.header(name, value);
        }
        let mut request = Request::from(request.body(RequestBody::Full(None)).unwrap());
        let info = RequestInfo::parse(request.method(), "/api/v1/nodes", request.uri()).unwrap();
        request.context_mut().info = Some(Arc::new(info));
        let answer = chain.handle(request).await;
        assert_eq!(answer.body().complete_bytes().unwrap(), "accept: */*\nsec-websocket-protocol: v4.channel.k8s.io");
    }
}
