//! What a verb knows about its request.

use super::endpoint::Endpoint;
use super::options::Query;
use http::HeaderMap;
use http::header::{ACCEPT_ENCODING, HeaderName, USER_AGENT};
use kubelith_auth::forbidden::forbidden_detail;
use kubelith_auth::{Attributes, Authorizer, Decision};
use kubelith_codec::negotiate::{self, Output, ResourceEndpoint};
use kubelith_http::RequestInfo;
use kubelith_http::audit::AuditContext;
use kubelith_http::late::LateWrites;
use kubelith_http::negotiated::{accept_of, negotiation_error};
use kubelith_meta::user::User;
use kubelith_meta::{GroupResource, Status, Str, Value};
use kubelith_registry::{Call, Mode, ReadAt, Warnings};
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

/// Parts of resources that kube-apiserver does not show as a table.
const WITHOUT_TABLE: [(&str, &str, &str); 7] = [
    ("", "namespaces", "finalize"),
    ("", "pods", "ephemeralcontainers"),
    ("", "pods", "resize"),
    ("apiextensions.k8s.io", "customresourcedefinitions", "status"),
    ("apiregistration.k8s.io", "apiservices", "status"),
    ("certificates.k8s.io", "certificatesigningrequests", "approval"),
    ("resource.k8s.io", "resourceclaims", "status"),
];

pub struct Context {
    pub endpoint: Arc<Endpoint>,
    pub info: Arc<RequestInfo>,
    pub user: Arc<User>,
    pub query: Query,
    pub headers: Arc<HeaderMap>,
    pub warnings: Warnings,
    /// Whom to ask if the request wants more than its verb says.
    pub authorizer: Option<Arc<dyn Authorizer>>,
    /// The request's record in the audit log, if it is kept.
    pub audit: Option<Arc<AuditContext>>,
    /// By when the request must be answered.
    pub deadline: Option<Instant>,
    /// Whom to tell of a write that goes on after that.
    pub late: Option<Arc<dyn LateWrites>>,
}

/// Shared by all that have none.
static NO_HEADERS: LazyLock<Arc<HeaderMap>> = LazyLock::new(Arc::default);

impl Context {
    /// Of a request that goes on long after its headers were read: with what they are parts of, they take more than the rest.
    pub(crate) fn without_headers(self: Arc<Context>) -> Arc<Context> {
        match Arc::try_unwrap(self) {
            Ok(context) => Arc::new(Context { headers: NO_HEADERS.clone(), ..context }),
            Err(shared) => shared,
        }
    }

    pub fn header(&self, name: HeaderName) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("")
    }

    /// All Accept headers as one.
    pub fn accept(&self) -> Cow<'_, str> {
        accept_of(&self.headers)
    }

    pub fn pretty(&self) -> bool {
        negotiate::wants_pretty(self.query.get("pretty"), self.header(USER_AGENT))
    }

    pub fn wants_gzip(&self) -> bool {
        self.endpoint.limits.compresses && kubelith_codec::gzip::accepted(self.header(ACCEPT_ENCODING))
    }

    /// Notes what was sent, for the audit log.
    pub fn audit_request(&self, object: &Value) {
        if let Some(audit) = &self.audit {
            audit.request_object(object);
        }
    }

    /// Where the reference has no watch cache, it does not wait for a revision of the future.
    pub(crate) async fn check_reached(&self, at: ReadAt) -> Result<(), Status> {
        match at {
            ReadAt::NotOlderThan(revision) if self.endpoint.limits.pages_any_age => {
                self.endpoint.resource.check_reached(revision).await
            }
            _ => Ok(()),
        }
    }

    /// Updates and patches of custom resources may come to a path without a name.
    pub fn ensure_named(&self) -> Result<(), Status> {
        if self.info.name.is_empty() {
            return Err(Status::bad_request("name must be provided"));
        }
        Ok(())
    }

    fn has_table(&self) -> bool {
        let info = &self.info;
        let place = (info.group.as_str(), info.resource.as_str(), info.subresource.as_str());
        info.subresource.is_empty() || !WITHOUT_TABLE.contains(&place)
    }

    /// How the client wants objects of this endpoint.
    pub fn negotiate(&self) -> Result<Output, Status> {
        let endpoint = ResourceEndpoint { own: self.endpoint.formats, has_table: self.has_table() };
        negotiate::output(&self.accept(), negotiate::BUILT_IN, &endpoint).map_err(negotiation_error)
    }

    pub fn negotiate_stream(&self) -> Result<Output, Status> {
        let endpoint = ResourceEndpoint { own: self.endpoint.formats, has_table: self.has_table() };
        negotiate::output_stream(&self.accept(), negotiate::BUILT_IN, &endpoint).map_err(negotiation_error)
    }

    pub fn call(&self, mode: Mode) -> Call {
        let descriptor = &self.endpoint.resource.descriptor;
        let namespaced = self.endpoint.resource.namespaced();
        Call {
            verb: self.info.verb.clone(),
            user: self.user.clone(),
            resource: descriptor.group_resource(),
            version: self.info.version.clone(),
            kind: self.endpoint.object_kind(),
            namespace: if namespaced { self.info.namespace.clone() } else { Str::default() },
            name: self.info.name.clone(),
            subresource: self.info.subresource.clone(),
            mode,
            deadline: self.deadline,
            warnings: self.warnings.clone(),
        }
    }

    /// Refuses a request whose user may not create as well.
    pub(super) async fn authorize_create(&self) -> Result<(), Status> {
        let Some((decision, attributes)) = self.decide("create").await else {
            return Err(Status::internal_error("no authorizer provided, unable to authorize a create on update"));
        };
        if decision.allowed() {
            return Ok(());
        }
        if let Some(why) = decision.error {
            return Err(Status::internal_error(why));
        }
        let resource = GroupResource::new(attributes.group.clone(), attributes.resource.clone());
        Err(Status::forbidden(&resource, &attributes.name, forbidden_detail(&attributes, &decision.reason)))
    }

    /// Whether the user may do `verb` to what the request is about. `None` if there is nobody to ask.
    pub(super) async fn decide(&self, verb: &str) -> Option<(Decision, Attributes)> {
        let authorizer = self.authorizer.as_ref()?;
        let info = &self.info;
        let attributes = Attributes {
            user: self.user.clone(),
            verb: verb.into(),
            namespace: info.namespace.clone(),
            group: info.group.clone(),
            version: info.version.clone(),
            resource: info.resource.clone(),
            subresource: info.subresource.clone(),
            name: info.name.clone(),
            path: info.path.clone(),
            resource_request: true,
            ..Attributes::default()
        };
        let decision = authorizer.authorize(&attributes).await;
        Some((decision, attributes))
    }

    /// The field manager of a write: as given, else the client's program name.
    pub fn manager(&self, given: &str) -> Str {
        manager_of(given, &self.headers)
    }
}

/// The field manager of a write: as given, else the client's program name.
pub fn manager_of(given: &str, headers: &HeaderMap) -> Str {
    if !given.is_empty() {
        return given.into();
    }
    prefix_of_user_agent(headers.get(USER_AGENT).and_then(|v| v.to_str().ok()).unwrap_or(""))
}

/// `kubectl/v1.36.0 (linux/amd64)` is `kubectl`; cut at the length limit of manager names, at a printable prefix.
fn prefix_of_user_agent(agent: &str) -> Str {
    let program = agent.split('/').next().unwrap_or("");
    let mut end = program.len().min(128);
    while !program.is_char_boundary(end) {
        end -= 1;
    }
    let program = &program[..end];
    if program.chars().all(kubelith_meta::text::is_printable) { program.into() } else { "".into() }
}
