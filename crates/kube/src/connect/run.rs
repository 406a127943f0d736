//! One request that leads out: checked, located, passed on.

use super::location::{Asked, Location, authority, container, read};
use super::metrics::Translator;
use super::options::{LogOptions, Parameters, object, ports, streams};
use super::{ConnectKind, Parts};
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, LOCATION};
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt;
use kubelith_handlers::api::{Action, ActionCall};
use kubelith_http::{Body, Request, RequestBody, Response};
use kubelith_meta::status::ForeignResponse;
use kubelith_meta::{GroupResource, GroupVersionKind, Status};
use kubelith_outbound::proxy::{
    Forward, HostHeader, Origin, ProxyError, Redirects, Target, asks_for_upgrade, clean_path, encode_path,
    encode_query, forward,
};
use kubelith_outbound::streams::{Streams, asks_for, command, tunnel};
use kubelith_registry::admission::{Operation, Request as AdmissionRequest};
use kubelith_registry::{Call, Mode};
use kubelith_server::filters::authorization;
use std::sync::Arc;

/// Of an error's text that a kubelet sends.
const MAX_ERROR_BYTES: usize = 2048;

pub struct Connect {
    pub(super) kind: ConnectKind,
    pub(super) parts: Arc<Parts>,
}

impl Action for Connect {
    fn run(&self, call: ActionCall) -> BoxFuture<'static, Result<Response, Status>> {
        let (kind, parts) = (self.kind, self.parts.clone());
        Box::pin(async move {
            let parameters = Parameters::parse(call.request.uri().query());
            if kind == ConnectKind::Log {
                return parts.log(&call, &parameters).await;
            }
            if parameters.first("dryRun").is_some() {
                return Err(Status::bad_request("dryRun is not supported"));
            }
            parts.admit(kind, &call, &parameters).await?;
            match kind {
                ConnectKind::ServiceProxy | ConnectKind::PodProxy | ConnectKind::NodeProxy => {
                    parts.proxy(kind, call).await
                }
                _ => parts.stream(kind, call, &parameters).await,
            }
        })
    }
}

fn asked(call: &ActionCall) -> Asked<'_> {
    Asked {
        resource: GroupResource::new(call.info.group.clone(), call.info.resource.clone()),
        namespace: &call.info.namespace,
        id: &call.info.name,
    }
}

impl ConnectKind {
    /// The kind of its options.
    fn options(self) -> &'static str {
        match self {
            ConnectKind::ServiceProxy => "ServiceProxyOptions",
            ConnectKind::PodProxy => "PodProxyOptions",
            ConnectKind::NodeProxy => "NodeProxyOptions",
            ConnectKind::Log => "PodLogOptions",
            ConnectKind::Exec => "PodExecOptions",
            ConnectKind::Attach => "PodAttachOptions",
            ConnectKind::PortForward => "PodPortForwardOptions",
        }
    }
}

impl Parts {
    async fn admit(&self, kind: ConnectKind, call: &ActionCall, parameters: &Parameters) -> Result<(), Status> {
        let admission = match kind {
            ConnectKind::ServiceProxy => &self.services.admission,
            _ => &self.pods.admission,
        };
        let info = &call.info;
        let about = Call {
            verb: info.verb.clone(),
            user: call.user.clone(),
            resource: GroupResource::new(info.group.clone(), info.resource.clone()),
            version: info.version.clone(),
            kind: GroupVersionKind::new("", "v1", kind.options()),
            namespace: info.namespace.clone(),
            name: info.name.clone(),
            subresource: info.subresource.clone(),
            mode: Mode::Real,
            deadline: call.request.deadline().map(Into::into),
            warnings: call.warnings.clone(),
        };
        let request = AdmissionRequest::new(&about, Operation::Connect);
        let path = match kind {
            ConnectKind::ServiceProxy | ConnectKind::PodProxy | ConnectKind::NodeProxy => below(call),
            _ => String::new(),
        };
        let mut options = object(kind.options(), parameters, &path);
        admission.admit(request, &mut options).await?;
        admission.validate(request, &options).await
    }

    async fn proxy(&self, kind: ConnectKind, call: ActionCall) -> Result<Response, Status> {
        let asked = asked(&call);
        let location = match kind {
            ConnectKind::ServiceProxy => self.service_location(&asked).await?,
            ConnectKind::PodProxy => self.pod_location(&asked).await?,
            _ => self.node_location(&asked).await?,
        };
        let below = below(&call);
        let path = clean_path(&below);
        let upgrade = asks_for_upgrade(call.request.headers());
        let reads = matches!(*call.request.method(), Method::GET | Method::HEAD);
        if path.is_empty() && reads && !upgrade {
            return moved(&call.request);
        }
        let prefix = call.info.path.strip_suffix(&below).unwrap_or(&call.info.path);
        let how = Forward {
            user: None,
            redirects: Redirects::Pass,
            host: HostHeader::Client,
            origin: Origin::Below(encode_path(prefix)),
        };
        let path = if path.is_empty() { "/".to_owned() } else { encode_path(&path) };
        let query = call.request.uri().query().map(str::to_owned);
        let target = target(&location, &path, query.as_deref())?;
        forward(&location.transport, target, call.request, &how).await.map_err(|e| match e {
            ProxyError::Unreachable(_) => Status::service_unavailable(e.to_string()),
            other => Status::unknown(other.to_string()),
        })
    }

    /// exec, attach and portforward: connections that the client takes over.
    async fn stream(&self, kind: ConnectKind, call: ActionCall, parameters: &Parameters) -> Result<Response, Status> {
        let ports = if kind == ConnectKind::PortForward { ports(parameters)? } else { Vec::new() };
        self.may_create(&call).await?;
        let asked = asked(&call);
        let pod = read(&self.pods, &asked, asked.id).await?;
        let chosen = match kind {
            ConnectKind::PortForward => "",
            _ => container(&pod, parameters.first("container").unwrap_or_default())?,
        };
        let node = pod.str_at(&["spec", "nodeName"]);
        if node.is_empty() {
            return Err(Status::bad_request(format!("pod {} does not have a host assigned", asked.id)));
        }
        let kubelet = self.kubelets.of_node(node, &asked.resource).await?;
        let translator = self.translator(kind, kubelet.speaks_websocket);
        translator.inspect(|translator| self.metrics.routed(kind, *translator));
        let location = Location {
            transport: self.kubelets.transport(),
            authority: authority(&kubelet.host, &kubelet.port.to_string()),
        };
        let (namespace, name) = (asked.namespace, asked.id);
        let (path, pairs) = match kind {
            ConnectKind::PortForward => {
                let ports = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",");
                let pairs = if ports.is_empty() { Vec::new() } else { vec![("port", ports)] };
                (format!("/portForward/{namespace}/{name}"), pairs)
            }
            ConnectKind::Exec => (format!("/exec/{namespace}/{name}/{chosen}"), streams(parameters, true)),
            _ => (format!("/attach/{namespace}/{name}/{chosen}"), streams(parameters, false)),
        };
        if !asks_for_upgrade(call.request.headers()) {
            return Err(Status::bad_request("Upgrade request required"));
        }
        let query = encode_query(pairs.iter().map(|(k, v)| (*k, v.as_str())));
        let target = target(&location, &encode_path(&path), Some(query.as_str()).filter(|q| !q.is_empty()))?;
        let failed = |e: ProxyError| Status::unknown(e.to_string());
        let headers = call.request.headers();
        if translator == Some(Translator::Server) {
            let metrics = self.metrics.clone();
            if kind == ConnectKind::PortForward {
                if asks_for(headers, tunnel::is_tunnel) {
                    let count = |code| metrics.tunneled(code);
                    return tunnel::serve(call.request, &location.transport, target, count).await.map_err(failed);
                }
            } else if asks_for(headers, |p| p == command::PROTOCOL) {
                let wanted = |name: &str| parameters.flag(name);
                let streams = Streams {
                    stdin: wanted("stdin"),
                    stdout: wanted("stdout"),
                    stderr: wanted("stderr"),
                    tty: wanted("tty"),
                };
                let count = move |code| metrics.translated(code);
                return Ok(command::serve(call.request, location.transport, target, streams, count));
            }
        }
        let how =
            Forward { user: None, redirects: Redirects::Refuse, host: HostHeader::Client, origin: Origin::Server };
        forward(&location.transport, target, call.request, &how).await.map_err(failed)
    }

    /// Who translates WebSockets, if anybody does.
    fn translator(&self, kind: ConnectKind, kubelet_speaks_websocket: bool) -> Option<Translator> {
        let translates = match kind {
            ConnectKind::PortForward => self.features.tunnels_ports,
            _ => self.features.translates_commands,
        };
        let left_to_kubelet = self.features.trusts_kubelets_with_websockets && kubelet_speaks_websocket;
        translates.then_some(if left_to_kubelet { Translator::Kubelet } else { Translator::Server })
    }

    /// A GET was let in as a read, but what follows is more than that.
    async fn may_create(&self, call: &ActionCall) -> Result<(), Status> {
        if !self.features.upgrades_need_create || call.info.verb == "create" {
            return Ok(());
        }
        let mut attributes = authorization::attributes(&call.request);
        attributes.verb = "create".into();
        let decision = self.authorizer.authorize(&attributes).await;
        if decision.allowed() {
            return Ok(());
        }
        match &decision.error {
            Some(why) => Err(Status::unknown(why.to_string())),
            None => Err(Status::forbidden(&asked(call).resource, &call.info.name, &decision.reason)),
        }
    }

    async fn log(&self, call: &ActionCall, parameters: &Parameters) -> Result<Response, Status> {
        let asked = asked(call);
        let options = LogOptions::parse(parameters, self.features.log_streams.into())?;
        self.metrics.log(options.insecure);
        options.validate(asked.id)?;
        let pod = read(&self.pods, &asked, asked.id).await?;
        let chosen = container(&pod, &options.container)?;
        let node = pod.str_at(&["spec", "nodeName"]);
        if node.is_empty() {
            // Nothing runs yet, so nothing was said.
            let mut nothing = Response::new(Body::empty());
            *nothing.status_mut() = StatusCode::NO_CONTENT;
            return Ok(nothing);
        }
        let kubelet = self.kubelets.of_node(node, &asked.resource).await?;
        let transport = if options.insecure { self.kubelets.insecure() } else { self.kubelets.transport() };
        let authority = authority(&kubelet.host, &kubelet.port.to_string());
        let location = Location { transport: transport.clone(), authority };
        let path = encode_path(&format!("/containerLogs/{}/{}/{chosen}", asked.namespace, asked.id));
        let query = options.query();
        let query = encode_query(query.iter().map(|(k, v)| (*k, v.as_str())));
        let target = target(&location, &path, Some(query.as_str()).filter(|q| !q.is_empty()))?;
        let url = format!("https://{}{}", target.authority, target.path_and_query);
        let how = Forward { user: None, redirects: Redirects::Pass, host: HostHeader::Server, origin: Origin::Server };
        let request = http::Request::new(RequestBody::Full(None)).into();
        let answer = forward(&transport, target, request, &how).await.map_err(|e| {
            let why = match e {
                ProxyError::Unreachable(why) => why,
                other => other.to_string(),
            };
            self.metrics.log_failed(&why);
            Status::unknown(format!("Get {url:?}: {why}"))
        })?;
        check(answer, asked.id).await
    }
}

/// A kubelet's answer as ours, or as an error.
async fn check(answer: Response, pod: &str) -> Result<Response, Status> {
    let code = answer.status();
    if !(200..=206).contains(&code.as_u16()) {
        let mut body = answer.into_body();
        let mut text = Vec::new();
        while text.len() < MAX_ERROR_BYTES
            && let Some(Ok(frame)) = body.frame().await
        {
            text.extend_from_slice(frame.data_ref().map_or(&[][..], |d| d));
        }
        text.truncate(MAX_ERROR_BYTES);
        let text = String::from_utf8_lossy(&text);
        return Err(match code {
            StatusCode::INTERNAL_SERVER_ERROR => Status::internal_error(text),
            StatusCode::BAD_REQUEST => Status::bad_request(text),
            code => ForeignResponse {
                code: code.as_u16(),
                resource: GroupResource::new("", "pods/log"),
                name: pod,
                body: &text,
                ..ForeignResponse::default()
            }
            .into(),
        });
    }
    let mut out = Response::new(answer.into_body());
    out.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(out)
}

/// What of the path belongs to the other side: everything behind `/proxy`.
fn below(call: &ActionCall) -> String {
    let rest = call.info.parts.get(3..).unwrap_or(&[]).join("/");
    let mut path = if rest.is_empty() { rest } else { format!("/{rest}") };
    if call.info.path.ends_with('/') && !path.ends_with('/') {
        path.push('/');
    }
    path
}

/// Browsers resolve relative links against the last slash, so there must be one.
fn moved(request: &Request) -> Result<Response, Status> {
    let query = request.uri().query().map(|q| format!("?{q}")).unwrap_or_default();
    let location = format!("{}/{query}", request.uri().path());
    let mut headers = HeaderMap::new();
    headers.insert(LOCATION, HeaderValue::from_str(&location).map_err(Status::internal_error)?);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    *response.headers_mut() = headers;
    Ok(response)
}

fn target(location: &Location, path: &str, query: Option<&str>) -> Result<Target, Status> {
    let text = query.map_or_else(|| path.to_owned(), |q| format!("{path}?{q}"));
    Ok(Target {
        authority: Authority::try_from(location.authority.as_str()).map_err(Status::internal_error)?,
        path_and_query: PathAndQuery::try_from(text).map_err(Status::internal_error)?,
    })
}
