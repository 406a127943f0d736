//! The way to webhooks that objects name: by URL or by service, trusted by the bundle in the object, with the credentials
//! that a kubeconfig file has for them. Whoever names the same place gets the same client, and so its kept connections.

use super::answer::{Broken, Head};
use super::exchange::Answer;
use super::kept::{KeptTransport, TransportCounts};
use super::line::BodyError;
use super::question::{Draft, Question};
use super::redirect::{self, Step};
use super::{ClientCertificate, TlsClient, Transport};
use crate::client::{Credential, Kubeconfig, identity_of, read_file};
use crate::egress::Route;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::uri::Scheme;
use http::{HeaderValue, Method, StatusCode, Uri};
use kubelith_auth::hook::{Hook, Hooks};
use kubelith_auth::remote::{FetchError, FetchResponse};
use kubelith_meta::text::quote;
use kubelith_meta::{Str, Value};
use kubelith_tls::{Flaws, Trust};
use std::collections::HashMap;
use std::future::poll_fn;
use std::io::Read;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Answers beyond this are refused. The largest that makes sense patches an object to what the store takes, in base64.
pub const MAX_ANSWER: usize = 32 << 20;
/// Clients that are kept; the reference keeps as many.
const MAX_KEPT: usize = 200;
/// A webhook may ask for patience this often, and send on this often.
const MAX_RETRIES: usize = 10;
const MAX_REDIRECTS: usize = 10;
const DEFAULT_PORT: u16 = 443;
const PACKED: HeaderValue = HeaderValue::from_static("gzip");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const ACCEPTED: HeaderValue = HeaderValue::from_static("application/json, */*");
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const GZIP_HEADER: usize = 10;
const AGENT: HeaderValue = HeaderValue::from_static("kube-apiserver-admission");

/// From the namespace, name and port of a service to `host:port`, or to why there is none.
pub type Resolve = Arc<dyn Fn(&str, &str, u16) -> Result<String, String> + Send + Sync>;

/// Posts to a path of this very server, as itself.
pub type OwnServer = Arc<dyn Fn(String, Bytes) -> BoxFuture<'static, Result<FetchResponse, FetchError>> + Send + Sync>;

pub struct HookConfig {
    pub resolve: Resolve,
    /// Whoever names the service of this server, or its name in the cluster, reaches it without a detour, and as this server:
    /// webhooks behind extension servers are named so.
    pub own: Option<OwnServer>,
    pub users: Users,
    /// To services.
    pub cluster: Route,
    /// To URLs.
    pub control_plane: Route,
    /// Counts old-fashioned certificates of webhooks.
    pub flaws: Option<Arc<Flaws>>,
    /// Counts how clients are shared.
    pub transports: Arc<TransportCounts>,
}

impl HookConfig {
    /// Straight, and as nobody.
    pub fn direct(resolve: Resolve) -> HookConfig {
        let (cluster, control_plane) = (Route::Direct, Route::Direct);
        let (users, transports) = Default::default();
        HookConfig { resolve, own: None, users, cluster, control_plane, flaws: None, transports }
    }
}

/// Who we are to which webhook: the users of a kubeconfig file, named by host, `host:port`, `*.suffix` or `*`.
#[derive(Debug, Default)]
pub struct Users {
    by_name: HashMap<Str, Identity>,
    current: Option<Identity>,
}

type Identity = (Credential, Option<(Vec<u8>, Vec<u8>)>);

impl Users {
    pub fn load(file: &Path) -> Result<Users, String> {
        let shown = file.display();
        let text = read_file(file)?;
        let config = kubelith_codec::yaml::read(&text).map_err(|e| format!("{shown}: {e}"))?.value;
        let dir = file.parent().unwrap_or(Path::new("."));
        let list = |key: &str| config.get(key).and_then(Value::as_array).unwrap_or(&[]);
        let mut by_name = HashMap::new();
        for entry in list("users") {
            let nobody = Value::object();
            let identity = identity_of(entry.get("user").unwrap_or(&nobody), dir)?;
            by_name.insert(Str::from(entry.str_at(&["name"])), identity);
        }
        let name = config.str_at(&["current-context"]);
        let context = list("contexts").iter().find(|c| !name.is_empty() && c.str_at(&["name"]) == name);
        let current = context.and_then(|c| by_name.get(c.str_at(&["context", "user"]))).cloned();
        Ok(Users { by_name, current })
    }

    /// For `host:port`: by its full name, then by ever shorter suffixes, then both without the usual port.
    fn of(&self, target: &str) -> Option<&Identity> {
        let named = |target: &str| {
            let suffixes = target.match_indices('.').map(|(at, _)| format!("*{}", &target[at..]));
            self.by_name.get(target).or_else(|| suffixes.into_iter().find_map(|s| self.by_name.get(s.as_str())))
        };
        named(target)
            .or_else(|| target.strip_suffix(":443").and_then(named))
            .or_else(|| self.by_name.get("*"))
            .or(self.current.as_ref())
    }
}

/// Clients for webhooks.
pub struct HookClients {
    config: HookConfig,
    kept: Mutex<HashMap<Place, Kept>>,
}

/// A client, with its transport if it is not this server's own.
type Kept = (Arc<dyn Hook>, Option<KeptTransport>);

impl HookClients {
    pub fn new(config: HookConfig) -> Arc<HookClients> {
        Arc::new(HookClients { config, kept: Mutex::default() })
    }
}

/// What a `clientConfig` says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    service: Option<Service>,
    /// `https://host:port/path`, as errors call it.
    url: String,
    bundle: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Service {
    namespace: Str,
    name: Str,
    port: u16,
}

impl Place {
    fn of(client: &Value) -> Result<Place, String> {
        let bundle = kubelith_codec::base64::decode(client.str_at(&["caBundle"])).unwrap_or_default();
        let Some(service) = client.get("service").filter(|s| !s.is_null()) else {
            let url = client.str_at(&["url"]);
            if url.is_empty() {
                return Err("webhook configuration must have either service or URL".to_owned());
            }
            let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            return Ok(Place { service: None, url: format!("{scheme}://{authority}{}", joined(path)), bundle });
        };
        let port = service.get("port").and_then(Value::as_i64).and_then(|p| p.try_into().ok());
        let service_place = Service {
            namespace: service.str_at(&["namespace"]).into(),
            name: service.str_at(&["name"]).into(),
            port: port.filter(|p| *p != 0).unwrap_or(DEFAULT_PORT),
        };
        let Service { namespace, name, port } = &service_place;
        let url = format!("https://{name}.{namespace}.svc:{port}{}", joined(service.str_at(&["path"])));
        Ok(Place { service: Some(service_place), url, bundle })
    }
}

/// The service of this server.
const OWN_SERVICE: (&str, &str, u16) = ("default", "kubernetes", DEFAULT_PORT);
const OWN_HOSTS: [&str; 2] = ["https://kubernetes.default.svc", "https://kubernetes.default.svc:443"];

impl Place {
    /// The path, if it is one of this server.
    fn own_path(&self) -> Option<&str> {
        if let Some(Service { namespace, name, port }) = &self.service
            && (namespace.as_str(), name.as_str(), *port) != OWN_SERVICE
        {
            return None;
        }
        OWN_HOSTS.iter().filter_map(|host| self.url.strip_prefix(host)).find(|path| path.starts_with('/'))
    }
}

/// A path of this server.
struct OwnPath {
    server: OwnServer,
    path: String,
}

impl Hook for OwnPath {
    fn post(&self, review: Bytes, timeout: Duration) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        Box::pin(async move {
            let shown = with_timeout(&self.path, timeout);
            match tokio::time::timeout(timeout, (self.server)(shown.clone(), review)).await {
                Ok(answer) => answer,
                Err(_) => {
                    let url = quote(&format!("{}{}", OWN_HOSTS[1], shown));
                    Err(FetchError::Timeout(format!("Post {url}: context deadline exceeded")))
                }
            }
        })
    }
}

/// Webhooks are told how long they are waited for.
fn with_timeout(url: &str, timeout: Duration) -> String {
    let seconds = timeout.as_secs() + u64::from(timeout.subsec_nanos() > 0);
    format!("{url}?timeout={seconds}s")
}

/// A path as Go joins it: one slash between its parts, none at its end.
fn joined(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

impl Hooks for HookClients {
    fn hook(&self, client: &Value) -> Result<Arc<dyn Hook>, String> {
        let place = Place::of(client)?;
        let mut kept = self.kept.lock().expect("no panic under this lock");
        let transports = &self.config.transports;
        if let Some((known, transport)) = kept.get(&place) {
            transport.iter().for_each(|_| transports.found());
            return Ok(known.clone());
        }
        let (hook, transport): Kept = match (&self.config.own, place.own_path()) {
            (Some(own), Some(path)) => (Arc::new(OwnPath { server: own.clone(), path: path.to_owned() }), None),
            _ => (Arc::new(Client::new(&self.config, place.clone())?), Some(transports.made())),
        };
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(place, (hook.clone(), transport));
        Ok(hook)
    }
}

/// The server of a kubeconfig file.
pub fn of_kubeconfig(file: &Kubeconfig, route: &Route) -> Result<Arc<dyn Hook>, String> {
    let uri: Uri = file.server.parse().map_err(|e| format!("host must be a URL or a host:port pair: {e}"))?;
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    let tls = TlsClient {
        trust: file.tls.trust.clone(),
        server_name: file.tls.server_name.clone(),
        certificate: match &file.tls.identity {
            Some((certificate, key)) => ClientCertificate::fixed(certificate, key)?,
            None => ClientCertificate::none(),
        },
        flaws: file.tls.flaws.clone(),
    };
    let is_plain = uri.scheme_str() == Some("http");
    Ok(Arc::new(Client {
        resolve: None,
        transport: Transport::by(route, (!is_plain).then_some(&tls)).map_err(|e| e.to_string())?,
        plain: OnceLock::new(),
        route: route.clone(),
        credential: file.credential.clone(),
        url: format!("{}://{authority}{}", if is_plain { "http" } else { "https" }, joined(uri.path())),
        host: HeaderValue::try_from(authority).map_err(|e| e.to_string())?,
    }))
}

struct Client {
    /// A service, and whoever knows where it is.
    resolve: Option<(Resolve, Service)>,
    transport: Transport,
    /// To where a webhook may send on without TLS, made when one does.
    plain: OnceLock<Transport>,
    route: Route,
    credential: Credential,
    /// Without the query.
    url: String,
    host: HeaderValue,
}

impl Client {
    fn new(config: &HookConfig, place: Place) -> Result<Client, String> {
        let Place { service, url, bundle } = place;
        let uri: Uri = url.parse().map_err(|e| format!("Unparsable URL: {e}"))?;
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        let target = if uri.port().is_some() { authority.clone() } else { format!("{authority}:{DEFAULT_PORT}") };
        let (credential, identity) = config.users.of(&target).cloned().unwrap_or_default();
        let tls = TlsClient {
            trust: if bundle.trim_ascii().is_empty() { Trust::System } else { Trust::Authorities(bundle) },
            server_name: service.as_ref().map(|s| format!("{}.{}.svc", s.name, s.namespace)),
            certificate: match identity {
                Some((certificate, key)) => ClientCertificate::fixed(&certificate, &key)?,
                None => ClientCertificate::none(),
            },
            flaws: config.flaws.clone(),
        };
        let route = if service.is_some() { &config.cluster } else { &config.control_plane };
        let transport = Transport::by(route, Some(&tls)).map_err(|e| e.to_string())?;
        let host = HeaderValue::try_from(authority).map_err(|e| e.to_string())?;
        let resolve = service.map(|service| (config.resolve.clone(), service));
        Ok(Client { transport, plain: OnceLock::new(), route: route.clone(), credential, resolve, url, host })
    }

    /// Where to send to, and how that is called in errors.
    fn target(&self, timeout: Duration) -> Result<(Uri, String), FetchError> {
        let shown = with_timeout(&self.url, timeout);
        let failed = |why: &dyn std::fmt::Display| FetchError::Other(format!("Post {}: {why}", quote(&shown)));
        let uri: Uri = shown.parse().map_err(|e| failed(&e))?;
        let Some((resolve, service)) = &self.resolve else { return Ok((uri, shown)) };
        let authority = resolve(&service.namespace, &service.name, service.port);
        let authority = authority.map_err(|e| failed(&e))?;
        let mut parts = uri.into_parts();
        parts.authority = Some(authority.parse().map_err(|e| failed(&e))?);
        Ok((Uri::from_parts(parts).map_err(|e| failed(&e))?, shown))
    }

    async fn question(&self, step: &Step, review: &Bytes) -> Result<Question, String> {
        let host = step.is_own.then_some(&self.host);
        let draft = Draft::new(&step.method, step.uri.clone(), host).map_err(|e| step.named(&e.text))?;
        let mut draft = draft.with("user-agent", &AGENT).with("accept", &ACCEPTED).with("accept-encoding", &PACKED);
        // Who we are is for nobody but whom the configuration names.
        if step.is_own
            && let Some(authorization) = self.credential.header().await?
        {
            draft = draft.with("authorization", &authorization);
        }
        if step.method != Method::POST {
            return Ok(draft.done(None));
        }
        Ok(draft.with("content-type", &JSON).done(Some(review.clone())))
    }

    /// Sends a request, and follows where that leads.
    async fn send(&self, mut step: Step, review: &Bytes, end: &mut End<'_>) -> Result<Answer<'_>, FetchError> {
        for followed in 0..=MAX_REDIRECTS {
            let question = self.question(&step, review).await.map_err(FetchError::Other)?;
            let transport = self.way_to(&step).map_err(FetchError::Other)?;
            let sent = within(end, transport.ask(&question)).await;
            let sent = sent.ok_or_else(|| FetchError::Timeout(step.named("context deadline exceeded")))?;
            let answer = sent.map_err(|e| FetchError::ConnectionLost(step.named(&e.text)))?;
            match step.redirected(&answer.head)? {
                None => return Ok(answer),
                Some(_) if followed == MAX_REDIRECTS => {
                    let to = quote(redirect::location(&answer.head).unwrap_or_default());
                    return Err(FetchError::Other(format!("Post {to}: stopped after {MAX_REDIRECTS} redirects")));
                }
                Some(next) => step = next,
            }
        }
        Err(FetchError::Other(step.named("stopped")))
    }

    fn way_to(&self, step: &Step) -> Result<&Transport, String> {
        if step.uri.scheme() == Some(&self.transport.scheme()) || step.uri.scheme() == Some(&Scheme::HTTPS) {
            return Ok(&self.transport);
        }
        if step.uri.scheme() != Some(&Scheme::HTTP) {
            let scheme = step.uri.scheme_str().unwrap_or_default();
            return Err(step.named(&format!("unsupported protocol scheme {}", quote(scheme))));
        }
        if let Some(known) = self.plain.get() {
            return Ok(known);
        }
        let made = Transport::by(&self.route, None).map_err(|e| step.named(&e.to_string()))?;
        Ok(self.plain.get_or_init(|| made))
    }

    async fn exchange(&self, review: Bytes, timeout: Duration) -> Result<FetchResponse, FetchError> {
        let deadline = Instant::now() + timeout;
        let mut end = pin!(tokio::time::sleep_until(deadline));
        let (uri, shown) = self.target(timeout)?;
        let step = Step { method: Method::POST, uri, shown, is_own: true };
        let mut tried = 0;
        loop {
            let answer = self.send(step.clone(), &review, &mut end).await?;
            // A body that never ends is no other matter than a server that never answers.
            let whole = within(&mut end, answer.read(MAX_ANSWER)).await;
            let whole = whole.map_or_else(|| Err("context deadline exceeded".to_owned()), |read| read.map_err(no_body));
            let whole = whole.and_then(|(head, body)| Ok((unpacked(&head, body)?, head)));
            let (body, head) = whole.map_err(|why| {
                FetchError::Other(format!(
                    "unexpected error when reading response body. Please retry. Original error: {why}"
                ))
            })?;
            let response = answered(&head, body);
            let asks_for_patience = head.status.is_server_error() || head.status == StatusCode::TOO_MANY_REQUESTS;
            match response.retry_after_seconds {
                Some(pause) if asks_for_patience && tried < MAX_RETRIES => {
                    let again = Instant::now() + Duration::from_secs(pause.max(0).unsigned_abs().into());
                    tokio::time::sleep_until(again.min(deadline)).await;
                    if again >= deadline {
                        return Err(FetchError::Timeout(step.named("context deadline exceeded")));
                    }
                    tried += 1;
                }
                _ => return Ok(response),
            }
        }
    }
}

/// When the time of a call is up: one timer for all that is waited for.
type End<'a> = Pin<&'a mut Sleep>;

/// `None` if the time is up before.
async fn within<T>(end: &mut End<'_>, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => end.as_mut().poll(cx).map(|()| None),
    })
    .await
}

fn answered(head: &Head, body: Bytes) -> FetchResponse {
    FetchResponse {
        status: head.status.as_u16(),
        body,
        content_type: head.text(&CONTENT_TYPE).unwrap_or_default().to_owned(),
        retry_after_seconds: head.text(&RETRY_AFTER).and_then(|v| v.parse().ok()),
        max_age_seconds: None,
    }
}

/// What was packed, within the same bound.
fn unpacked(head: &Head, body: Bytes) -> Result<Bytes, String> {
    let is_packed = head.get(&CONTENT_ENCODING).is_some_and(|coding| coding.eq_ignore_ascii_case(PACKED.as_bytes()));
    if !is_packed || body.is_empty() {
        return Ok(body);
    }
    let mut unpacked = Vec::new();
    let decoder = flate2::read::MultiGzDecoder::new(&body[..]);
    let read = decoder.take(MAX_ANSWER as u64 + 1).read_to_end(&mut unpacked);
    match read {
        Ok(_) if unpacked.len() > MAX_ANSWER => Err(too_long()),
        Ok(_) => Ok(unpacked.into()),
        Err(_) if body.len() >= GZIP_HEADER && !body.starts_with(&GZIP_MAGIC) => Err("gzip: invalid header".to_owned()),
        Err(why) if why.kind() == std::io::ErrorKind::InvalidData => Err("gzip: invalid checksum".to_owned()),
        Err(_) => Err("unexpected EOF".to_owned()),
    }
}

fn too_long() -> String {
    format!("the answer has more than {MAX_ANSWER} bytes")
}

fn no_body(why: BodyError) -> String {
    match why {
        BodyError::TooLong => too_long(),
        BodyError::Broken(Broken::ChunkSize) => "invalid byte in chunk length".to_owned(),
        BodyError::Broken(Broken::Cut) => "unexpected EOF".to_owned(),
    }
}

impl Hook for Client {
    fn post(&self, review: Bytes, timeout: Duration) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        Box::pin(self.exchange(review, timeout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_host() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kubeconfig");
        let users = ["a.b.svc", "*.b.svc", "*.svc:8443", "x:1", "me"];
        let user = |name: &&str| format!("- name: \"{name}\"\n  user: {{token: \"{name}\"}}\n");
        let list: String = users.iter().map(user).collect();
        let context = "contexts: [{name: c, context: {user: me}}]\ncurrent-context: c\n";
        std::fs::write(&file, format!("users:\n{list}{context}")).unwrap();
        let users = Users::load(&file).unwrap();
        let found = |target: &str| match users.of(target) {
            Some((Credential::Token(token), _)) => token.clone(),
            _ => String::new(),
        };
        for (target, want) in [
            ("a.b.svc:443", "a.b.svc"),
            ("c.b.svc:443", "*.b.svc"),
            ("a.b.svc:8443", "*.svc:8443"),
            ("x:1", "x:1"),
            ("elsewhere:443", "me"),
        ] {
            assert_eq!(found(target), want, "{target}");
        }
    }

    #[test]
    fn who_names_the_same_place_shares_a_transport() {
        let clients = HookClients::new(HookConfig::direct(Arc::new(|_, _, _| Err("none".to_owned()))));
        for url in ["https://a/x", "https://b/", "https://a/x", "https://a:443/x", "https://a/x"] {
            let client = format!("{{\"url\":\"{url}\"}}");
            clients.hook(&kubelith_codec::json::parse(client.as_bytes()).unwrap()).unwrap();
        }
        let counts = clients.config.transports.clone();
        assert_eq!((counts.hits(), counts.misses(), counts.kept()), (2, 3, 3));
        drop(clients);
        assert_eq!((counts.misses(), counts.kept()), (3, 0));
    }

    #[test]
    fn the_service_of_this_server_is_itself() {
        let own = |client: &str| {
            let place = Place::of(&kubelith_codec::json::parse(client.as_bytes()).unwrap()).unwrap();
            place.own_path().map(str::to_owned)
        };
        for (client, want) in [
            (r#"{"service":{"namespace":"default","name":"kubernetes","path":"/apis/x/v1/y"}}"#, Some("/apis/x/v1/y")),
            (r#"{"service":{"namespace":"default","name":"kubernetes","port":6443}}"#, None),
            (r#"{"service":{"namespace":"other","name":"kubernetes"}}"#, None),
            (r#"{"url":"https://kubernetes.default.svc/apis/x"}"#, Some("/apis/x")),
            (r#"{"url":"https://kubernetes.default.svc:443"}"#, Some("/")),
            (r#"{"url":"https://kubernetes.default.svc.evil/apis/x"}"#, None),
        ] {
            assert_eq!(own(client).as_deref(), want, "{client}");
        }
    }

    #[test]
    fn places_are_named_as_clients_know_them() {
        let url = |client: &str| Place::of(&kubelith_codec::json::parse(client.as_bytes()).unwrap()).map(|p| p.url);
        for (client, want) in [
            (r#"{"url":"https://h/p//q/"}"#, Ok("https://h/p/q")),
            (r#"{"service":{"namespace":"n","name":"s"}}"#, Ok("https://s.n.svc:443/")),
            (r#"{"service":{"namespace":"n","name":"s","port":8443,"path":"p/q"}}"#, Ok("https://s.n.svc:8443/p/q")),
            ("{}", Err("webhook configuration must have either service or URL")),
        ] {
            assert_eq!(url(client), want.map(str::to_owned).map_err(str::to_owned), "{client}");
        }
    }
}
