//! A set of APIs as one link of the server chain: it finds the resource a request is about and the verb to run,
//! and passes on what it does not serve.

use crate::fields::KindFields;
use crate::options::{FieldValidation, Write, WriteOptions};
use crate::{Answering, By, Context, Endpoint, Limits, Query};
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, WARNING};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use kubelith_auth::{Answer, Authorizer};
use kubelith_codec::json::Strictness;
use kubelith_codec::negotiate::{self, Output};
use kubelith_http::audit::AuditContext;
use kubelith_http::negotiated::{
    self, accept_of, negotiation_error, no_such_method, no_such_resource, not_routed, route_error,
};
use kubelith_http::warnings::header_values;
use kubelith_http::{BoxHandler, Handler, Reply, Request, RequestBody, RequestInfo, Response};
use kubelith_meta::quick_hash::QuickHash;
use kubelith_meta::time::Time;
use kubelith_meta::user::User;
use kubelith_meta::{GroupVersion, GroupVersionKind, Status, Str, Value};
use kubelith_observe::metrics::requests::DeprecatedApi;
use kubelith_registry::Warnings;
use kubelith_schema::canonical::{Empties, canonicalize};
use kubelith_schema::{Descriptor, Scope, Version};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Work that is not a verb on a stored object: reviews, bindings, evictions, tokens, proxies.
pub trait Action: Send + Sync + 'static {
    fn run(&self, call: ActionCall) -> BoxFuture<'static, Result<Response, Status>>;
}

/// A request for an action.
pub struct ActionCall {
    pub info: Arc<RequestInfo>,
    pub user: Arc<User>,
    pub query: Query,
    pub headers: Arc<HeaderMap>,
    pub method: Method,
    pub warnings: Warnings,
    pub request: Request,
    /// The resource it belongs to, if that is stored.
    pub endpoint: Option<Arc<Endpoint>>,
}

/// What is answered and not stored has metadata to show, but no table.
const ANSWERED: negotiate::ResourceEndpoint<'_> =
    negotiate::ResourceEndpoint { own: negotiate::BUILT_IN, has_table: false };

impl ActionCall {
    /// The request's body as an object of a built-in kind.
    pub async fn decode(&mut self, kind: &GroupVersionKind) -> Result<Value, Status> {
        Ok(self.decode_create(std::slice::from_ref(kind)).await?.0)
    }

    /// The body of a create, which may be of any of `kinds` (the first is the usual one), and its options.
    pub async fn decode_create(&mut self, kinds: &[GroupVersionKind]) -> Result<(Value, WriteOptions), Status> {
        // Who cannot take the answer is told before anything is read or done.
        let produces: Vec<&str> = negotiate::BUILT_IN.iter().map(|format| format.media_type()).collect();
        negotiate::route_accepts(&accept_of(&self.headers), &produces).map_err(route_error)?;
        self.negotiate(&ANSWERED)?;
        let body = std::mem::replace(self.request.body_mut(), RequestBody::Full(None));
        let content_type = self.headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
        let format = negotiate::input(content_type, negotiate::BUILT_IN).map_err(negotiation_error)?;
        let bytes = crate::body::read(body, Limits::default().body_bytes).await?;
        let options = WriteOptions::parse(&self.query, Write::Create)?;
        let strictness = match options.field_validation {
            FieldValidation::Ignore => Strictness::Lenient,
            FieldValidation::Warn | FieldValidation::Strict => Strictness::Report,
        };
        let decoded = crate::typed::decode_any(&bytes, format, strictness, kinds)?;
        let kind = decoded.object.gvk();
        crate::body::report_strict(&self.warnings, &kind, &decoded.strict, options.field_validation)?;
        if let Some(audit) = self.request.audit() {
            audit.request_object(&decoded.object);
        }
        Ok((decoded.object, options))
    }

    /// Whether the answer is indented.
    fn pretty(&self) -> bool {
        let agent = self.headers.get(http::header::USER_AGENT).and_then(|v| v.to_str().ok()).unwrap_or("");
        negotiate::wants_pretty(self.query.get("pretty"), agent)
    }

    /// A Status that says how it went, as the answer itself.
    pub fn status(&self, status: &Status) -> Response {
        negotiated::status(&self.headers, self.pretty(), status)
    }

    /// Notes the creator's fields in an object of a built-in kind of which nothing is stored.
    pub fn track_create(&self, kind: &GroupVersionKind, mut object: Value, now: Time) -> Result<Value, Status> {
        let options = WriteOptions::parse(&self.query, Write::Create)?;
        let Some(schema) = kubelith_catalog::builtin().kind_schema(kind) else { return Ok(object) };
        // What is as good as absent is nobody's.
        let mut owned = object.clone();
        canonicalize(&schema.table, &schema.root, &mut owned, Empties::Distinct);
        let manager = crate::context::manager_of(&options.field_manager, &self.headers);
        let by = By { manager: &manager, subresource: &self.info.subresource, now };
        let mut tracked = KindFields { kind: kind.clone(), schema: &schema }.create(&by, owned);
        if let Some(fields) = tracked.remove_at(&["metadata", "managedFields"]) {
            object.set_at(&["metadata", "managedFields"], fields);
        }
        Ok(object)
    }

    /// Adds to the request's record in the audit log.
    pub fn annotate(&self, annotations: impl IntoIterator<Item = (&'static str, String)>) {
        let Some(audit) = self.request.audit() else { return };
        annotations.into_iter().for_each(|(key, value)| audit.annotate(key, value));
    }

    /// An answer of a built-in kind in the representation that the client asks for.
    pub fn answer(&self, code: StatusCode, object: Value) -> Result<Response, Status> {
        let negotiated = self.negotiate(&ANSWERED)?;
        let object = match &negotiated.convert {
            None => object,
            Some(target) if target.kind == "PartialObjectMetadata" => {
                let metadata = object.get("metadata").cloned().unwrap_or_else(Value::object);
                crate::views::as_partial(metadata, &target.version)
            }
            Some(target) => return Err(crate::output::no_list_of(&object.gvk(), &target.kind)),
        };
        self.answer_as(&negotiated, code, object)
    }

    /// How the client wants what `endpoint` offers.
    pub fn negotiate(&self, endpoint: &dyn negotiate::Endpoint) -> Result<Output, Status> {
        negotiate::output(&accept_of(&self.headers), negotiate::BUILT_IN, endpoint).map_err(negotiation_error)
    }

    /// An answer of a built-in kind as it was negotiated.
    pub fn answer_as(&self, negotiated: &Output, code: StatusCode, mut object: Value) -> Result<Response, Status> {
        if let Some(schema) = kubelith_catalog::builtin().kind_schema(&object.gvk()) {
            kubelith_schema::canonicalize(&schema.table, &schema.root, &mut object, kubelith_schema::Empties::Absent);
        }
        // A list of nothing is still a list.
        if object.get("items").is_some_and(Value::is_null) {
            object.set_at(&["items"], Value::Array(Vec::new()));
        }
        let body = negotiated::encode(negotiated.format, &object, self.pretty() || negotiated.pretty)?;
        let media_type = HeaderValue::from_static(negotiated.format.media_type());
        Ok(kubelith_http::respond::with_type(code, media_type, body))
    }
}

/// One resource of a group version.
pub struct Served {
    pub descriptor: Arc<Descriptor>,
    pub version_index: usize,
    /// `None` for resources of which nothing is stored.
    pub endpoint: Option<Arc<Endpoint>>,
    /// What the resource itself does if it is not stored.
    pub action: Option<Arc<dyn Action>>,
    /// By subresource.
    pub actions: HashMap<Str, Arc<dyn Action>>,
    /// Endpoints of subresources that are an object of their own (scale).
    pub subresources: HashMap<Str, Arc<Endpoint>>,
}

/// All resources of a set of group versions.
#[derive(Default)]
pub struct Routes {
    pub versions: HashMap<GroupVersion, HashMap<Str, Served, QuickHash>, QuickHash>,
}

/// Serves `Routes` and passes on the rest.
pub struct Api {
    routes: Routes,
    /// Those that are in the routes.
    groups: HashSet<Str>,
    next: BoxHandler,
}

impl Api {
    pub fn new(routes: Routes, next: BoxHandler) -> Arc<Api> {
        Arc::new(Api { groups: routes.versions.keys().map(|gv| gv.group.clone()).collect(), routes, next })
    }

    /// Whether a path lies below a group that is served here: nobody further down the chain is asked about it then.
    fn owns(&self, path: &str) -> bool {
        let mut parts = path.split('/').skip(1);
        match (parts.next(), parts.next()) {
            (Some("api"), Some(_)) => self.groups.contains(""),
            (Some("apis"), Some(group)) => !group.is_empty() && self.groups.contains(group),
            _ => false,
        }
    }
}

impl Served {
    fn version(&self) -> &Version {
        &self.descriptor.versions[self.version_index]
    }
}

impl Handler for Api {
    fn handle(&self, request: Request) -> Reply {
        let info = request.context().info.as_ref();
        if let Some(info) = info.filter(|i| i.is_resource_request && !i.path.starts_with("//")) {
            let version = GroupVersion::new(info.group.clone(), info.version.clone());
            if let Some(resources) = self.routes.versions.get(&version) {
                let (served, info) = (resources.get(&info.resource), info.clone());
                return answer(request, |asked, request| {
                    dispatch(served.ok_or_else(no_such_resource)?, info, asked, request)
                });
            }
            if !self.groups.contains(&info.group) {
                return self.next.handle(request);
            }
        }
        if !self.owns(request.uri().path()) {
            return self.next.handle(request);
        }
        let status = no_such_resource();
        Reply::Ready(negotiated::status(request.headers(), false, &status))
    }
}

/// What a request says besides its path and body.
pub struct Asked {
    pub user: Arc<User>,
    pub query: Query,
    pub headers: Arc<HeaderMap>,
    /// For the client, with the answer.
    pub warnings: Warnings,
    /// Who decided that the request may pass.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// The request's record in the audit log, if it is kept.
    pub audit: Option<Arc<AuditContext>>,
}

/// Runs `work` for a request, and gives its errors and warnings the form in which clients get them. What it begins with
/// is done at once: only what must wait becomes a future.
pub fn answer(request: Request, work: impl FnOnce(Asked, Request) -> Result<Answering, Status>) -> Reply {
    let carried = request.context();
    let user = carried.user.clone().unwrap_or_default();
    let headers = Arc::new(request.headers().clone());
    let query = Query::parse(request.uri().query());
    let pretty = negotiate::wants_pretty(
        query.get("pretty"),
        headers.get(http::header::USER_AGENT).and_then(|v| v.to_str().ok()).unwrap_or(""),
    );
    let authorizer = carried.authorizer.clone();
    let audit = carried.audit.clone();
    let latency = carried.latency.clone();
    let warnings = if audit.is_some() { Warnings::default() } else { Warnings::unaudited() };
    let asked =
        Asked { user, query, headers: headers.clone(), warnings: warnings.clone(), authorizer, audit: audit.clone() };
    let begun = work(asked, request);
    let is_routed = begun.is_ok();
    let begun = begun.unwrap_or_else(|status| Answer::Ready(Err(status)));
    begun.map(move |result| {
        if let Some(audit) = audit {
            warnings.take_annotations().into_iter().for_each(|(key, value)| audit.annotate(key, value));
            let revealing = warnings.take_revealing_annotations();
            revealing.into_iter().for_each(|(key, value)| audit.annotate_revealing(key, value));
        }
        if let Some(latency) = latency {
            latency.add_waited(warnings.waited());
        }
        let mut response = result.unwrap_or_else(|status| negotiated::status(&headers, pretty, &status));
        for value in header_values(&warnings.take()) {
            response.headers_mut().append(WARNING, value);
        }
        if is_routed { response } else { not_routed(response) }
    })
}

fn dispatch(served: &Served, info: Arc<RequestInfo>, asked: Asked, request: Request) -> Result<Answering, Status> {
    let Asked { user, query, headers, warnings, authorizer, audit } = asked;
    let route = route(served, &info, request.method())?;
    check_media_types(&route, &headers, request.method())?;
    let deprecation = served.version().deprecation.as_ref();
    if let Some(deprecation) = deprecation {
        warnings.add(deprecation.warning.as_str());
        if let Some(audit) = request.audit() {
            audit.annotate("k8s.io/deprecated", "true");
        }
    }
    let answering = match route {
        Route::Verb(endpoint, verb) => {
            let deadline = request.deadline().map(Into::into);
            let late = request.context().late.clone();
            let cx = Context { endpoint, info, user, query, headers, warnings, authorizer, audit, deadline, late };
            let cx = Arc::new(cx);
            crate::serve(cx, verb, request)
        }
        Route::Action(action) => {
            let method = request.method().clone();
            let endpoint = served.endpoint.clone();
            Answer::Pending(action.run(ActionCall { info, user, query, headers, method, warnings, request, endpoint }))
        }
    };
    let Some(deprecation) = deprecation else { return Ok(answering) };
    let api = DeprecatedApi { removed_release: removed_release(&deprecation.warning).into() };
    Ok(answering.map(|result| {
        result.map(|mut response| {
            response.extensions_mut().insert(api);
            response
        })
    }))
}

/// `1.25` of "…, unavailable in v1.25+; …"; empty if no release without it is named.
fn removed_release(warning: &str) -> &str {
    let rest = warning.split_once("unavailable in v").map_or("", |(_, rest)| rest);
    rest.split_once('+').map_or("", |(release, _)| release)
}

enum Route {
    Verb(Arc<Endpoint>, &'static str),
    Action(Arc<dyn Action>),
}

/// Finds what a path and method mean, by the descriptor alone.
fn route(served: &Served, info: &RequestInfo, method: &Method) -> Result<Route, Status> {
    let namespaced = served.descriptor.scope == Scope::Namespaced;
    // A path may name a namespace and leave it empty: that is the route of one namespace all the same.
    let in_namespace = !info.namespace.is_empty() || (namespaced && info.path.contains("/namespaces//"));
    // A namespace path for a cluster resource, but for `/namespaces/x` itself, leads nowhere.
    if !namespaced && in_namespace && (served.descriptor.plural != "namespaces" || is_below_namespace(info)) {
        return Err(no_such_resource());
    }
    let named = info.parts.len() > 1;
    if namespaced && !in_namespace && named {
        return Err(no_such_resource());
    }
    let watch_prefix = info.verb == "watch" && info.path.contains("/watch/");
    if info.parts.len() > 2 {
        return subresource_route(served, info, method);
    }
    // Of what is only answered, as reviews are, there is nothing by a name.
    if named
        && served.action.is_some()
        && !["get", "update", "patch", "delete"].iter().any(|v| served.version().allows(v))
    {
        return Err(no_such_resource());
    }
    let verb = match (method, named, watch_prefix) {
        (&Method::GET, _, true) => "watch",
        (_, _, true) => return Err(no_such_method()),
        (&Method::GET, true, _) => "get",
        (&Method::GET, false, _) => "list",
        (&Method::POST, false, _) => "create",
        (&Method::PUT, true, _) => "update",
        (&Method::PATCH, true, _) => "patch",
        (&Method::DELETE, true, _) => "delete",
        (&Method::DELETE, false, _) => "deletecollection",
        _ => return Err(no_such_method()),
    };
    // Across all namespaces one can only look.
    if namespaced && !in_namespace && verb != "list" && verb != "watch" {
        return Err(no_such_method());
    }
    if let Some(action) = &served.action {
        if !served.version().allows(verb) {
            return Err(no_such_method());
        }
        return Ok(Route::Action(action.clone()));
    }
    if !served.version().allows(verb) {
        return Err(no_such_method());
    }
    let endpoint = served.endpoint.clone().ok_or_else(no_such_method)?;
    Ok(Route::Verb(endpoint, verb))
}

/// Whether `/namespaces/x` stands before the resource in the path: what comes before is `api/v1`, and a `watch` at most.
fn is_below_namespace(info: &RequestInfo) -> bool {
    info.path.trim_matches('/').split('/').count() > info.parts.len() + 3
}

fn subresource_route(served: &Served, info: &RequestInfo, method: &Method) -> Result<Route, Status> {
    let subresource = served.version().subresource(&info.subresource).ok_or_else(no_such_resource)?;
    let verb = match *method {
        Method::GET => "get",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        // Proxies also take what no verb is named after.
        ref other if subresource.name == "proxy" && matches!(other.as_str(), "HEAD" | "OPTIONS") => "get",
        _ => return Err(no_such_method()),
    };
    // Only proxies lead further.
    if info.parts.len() > 3 && subresource.name != "proxy" {
        return Err(no_such_resource());
    }
    if let Some(action) = served.actions.get(&info.subresource) {
        if !subresource.verbs.iter().any(|v| v == verb) {
            return Err(no_such_method());
        }
        return Ok(Route::Action(action.clone()));
    }
    if !subresource.verbs.iter().any(|v| v == verb) {
        return Err(no_such_method());
    }
    let own = served.subresources.get(&info.subresource).or(served.endpoint.as_ref());
    Ok(Route::Verb(own.cloned().ok_or_else(no_such_method)?, verb))
}

/// What the route as a whole sends and takes, before the verb looks closer.
fn check_media_types(route: &Route, headers: &HeaderMap, method: &Method) -> Result<(), Status> {
    let Route::Verb(endpoint, verb) = route else { return Ok(()) };
    let mut produces: Vec<&str> = endpoint.formats.iter().map(|f| f.media_type()).collect();
    if matches!(*verb, "list" | "watch") {
        produces.extend(endpoint.formats.iter().filter_map(|f| f.stream_media_type()));
    }
    if *verb == "patch" {
        let types = crate::patch_types(endpoint);
        let content_type = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
        negotiate::route_consumes(content_type, method.as_str(), &types).map_err(route_error)?;
    }
    negotiate::route_accepts(&accept_of(headers), &produces).map_err(route_error)
}
