//! Asks extension servers which resources they have, for the aggregated discovery document. A server that does not answer
//! keeps its place there, marked as stale.

mod documents;

use crate::api_service::{ApiService, ApiServices, ServiceReference};
use crate::availability;
use crate::metrics::AggregatorMetrics;
use crate::resolve::Resolver;
use crate::routes::Transports;
use documents::{V2, Versions};
use http::header::{CONTENT_TYPE, ETAG};
use http::uri::PathAndQuery;
use http::{HeaderValue, StatusCode};
use kubelith_auth::User;
use kubelith_meta::{GroupVersion, Str, Value};
use kubelith_openapi::discovery::{Discovery, Entry, Freshness, GroupVersion as DiscoveredVersion, Source};
use kubelith_outbound::proxy::{Fetched, Target, Transport};
use kubelith_server::controller::Next;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often servers are asked again: nothing tells when they have something new.
pub const REFRESH: Duration = Duration::from_secs(60);
/// For one request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Of one document. The whole of a server with every built-in API has less than a tenth of it.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Keeps what servers say of themselves.
pub struct DiscoveryAggregation {
    pub api_services: ApiServices,
    pub resolver: Arc<Resolver>,
    pub transports: Arc<Transports>,
    pub discovery: Arc<Discovery>,
    pub metrics: Arc<AggregatorMetrics>,
    pub state: Mutex<DiscoveryState>,
}

#[derive(Default)]
pub struct DiscoveryState {
    /// By APIService, with the server that it is of.
    entries: BTreeMap<Str, (Entry, ServiceReference)>,
    /// The last answer of each server: it describes all of its versions, so one request serves several APIServices.
    answers: HashMap<ServiceReference, Arc<Answer>>,
    /// Since when an APIService needs an answer newer than this.
    dirty: HashMap<Str, Instant>,
}

struct Answer {
    versions: Versions,
    etag: Option<HeaderValue>,
    /// When it was asked for.
    asked: Instant,
}

impl DiscoveryAggregation {
    /// The APIService has changed: what is known of its server may be old.
    pub fn changed(&self, name: &Str) {
        self.state().dirty.insert(name.clone(), Instant::now());
    }

    pub async fn reconcile(self: Arc<Self>, name: Str) -> Result<Next, String> {
        let Some((api_service, service)) = self.api_services.get(&name).and_then(|a| {
            let service = a.service.clone()?;
            Some((a, service))
        }) else {
            self.forget(&name);
            return Ok(Next::Done);
        };
        let outcome = self.describe(&api_service, &service).await;
        let (described, freshness) = match &outcome {
            Ok(described) => (described.clone(), Freshness::Current),
            Err(_) => (self.last_known(&name), Freshness::Stale),
        };
        let entry = Entry {
            group: api_service.gv.group.clone(),
            version: DiscoveredVersion {
                name: api_service.gv.version.clone(),
                freshness,
                described: Some(described),
                ..DiscoveredVersion::default()
            },
            group_priority: api_service.group_priority,
            version_priority: api_service.version_priority,
        };
        self.put(&name, entry, service);
        outcome.map(|_| Next::Done)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, DiscoveryState> {
        self.state.lock().expect("no panic under this lock")
    }

    fn last_known(&self, name: &str) -> Arc<Value> {
        let known = self.state().entries.get(name).and_then(|(e, _)| e.version.described.clone());
        known.unwrap_or_else(|| Arc::new(documents::nothing()))
    }

    fn forget(&self, name: &str) {
        let mut state = self.state();
        state.dirty.remove(name);
        if state.entries.remove(name).is_some() {
            self.publish(&mut state);
        }
    }

    fn put(&self, name: &Str, entry: Entry, service: ServiceReference) {
        let mut state = self.state();
        let same = state.entries.get(name).is_some_and(|(known, at)| {
            *at == service
                && known.version.described == entry.version.described
                && known.version.freshness == entry.version.freshness
                && (known.group_priority, known.version_priority) == (entry.group_priority, entry.version_priority)
        });
        if !same {
            state.entries.insert(name.clone(), (entry, service));
            self.publish(&mut state);
        }
    }

    /// Under the lock, so that no older state follows a newer one.
    fn publish(&self, state: &mut DiscoveryState) {
        let used: HashSet<ServiceReference> = state.entries.values().map(|(_, service)| service.clone()).collect();
        state.answers.retain(|service, _| used.contains(service));
        self.metrics.discovery_aggregations.inc();
        self.discovery.set(Source::Aggregated, state.entries.values().map(|(entry, _)| entry.clone()).collect());
    }

    /// What the server says of the version, asked for after the APIService last changed.
    async fn describe(&self, api_service: &ApiService, service: &ServiceReference) -> Result<Arc<Value>, String> {
        let (known, dirty) = {
            let state = self.state();
            (state.answers.get(service).cloned(), state.dirty.get(&api_service.name).copied())
        };
        let of_version = |versions: &Versions| {
            versions.get(&api_service.gv).cloned().unwrap_or_else(|| Arc::new(documents::nothing()))
        };
        if let Some(known) = &known
            && dirty.is_none_or(|since| known.asked > since)
        {
            return Ok(of_version(&known.versions));
        }
        let asked = Instant::now();
        let shown = format!("{}/{}:{}", service.namespace, service.name, service.port);
        let asking =
            Asking { transport: self.transports.get(api_service, service)?, resolver: &self.resolver, service };
        let etag = known.as_ref().and_then(|k| k.etag.as_ref());
        let answer = asking.get("/apis", documents::ACCEPT, etag, &availability::user()).await?;
        let (versions, etag) = match answer.status {
            StatusCode::NOT_MODIFIED => match known {
                Some(known) => (known.versions.clone(), known.etag.clone()),
                None => return Err(format!("service {shown} answered 304 to an unconditional request")),
            },
            StatusCode::SERVICE_UNAVAILABLE => {
                return Err(format!("service {shown} returned non-success response code: 503"));
            }
            StatusCode::OK if documents::kind(&answer.headers) == Some(V2) => {
                (documents::versions(&answer.body)?, answer.headers.get(ETAG).cloned())
            }
            _ => return self.describe_the_old_way(&asking, &api_service.gv).await,
        };
        let found = of_version(&versions);
        self.state().answers.insert(service.clone(), Arc::new(Answer { versions, etag, asked }));
        Ok(found)
    }

    /// A server that does not know aggregated discovery has a document for each version.
    async fn describe_the_old_way(&self, asking: &Asking<'_>, gv: &GroupVersion) -> Result<Arc<Value>, String> {
        let path = match gv.group.is_empty() {
            true => format!("/api/{}", gv.version),
            false => format!("/apis/{}/{}", gv.group, gv.version),
        };
        let answer = asking.get(&path, "application/json", None, &User::named("system:kube-aggregator")).await?;
        if answer.status != StatusCode::OK {
            let text = String::from_utf8_lossy(&answer.body[..answer.body.len().min(256)]).into_owned();
            return Err(format!("failed to download legacy discovery for {path}: {}: {text}", answer.status.as_u16()));
        }
        documents::of_resource_list(&answer.body).map(Arc::new)
    }
}

/// A server to be asked.
struct Asking<'a> {
    transport: Arc<Transport>,
    resolver: &'a Resolver,
    service: &'a ServiceReference,
}

impl Asking<'_> {
    async fn get(
        &self,
        path: &str,
        accept: &'static str,
        etag: Option<&HeaderValue>,
        user: &User,
    ) -> Result<Fetched, String> {
        let authority = self.resolver.resolve(self.service).map_err(|e| e.to_string())?;
        let path_and_query = PathAndQuery::try_from(path).map_err(|e| e.to_string())?;
        let target = Target { authority, path_and_query };
        self.transport.fetch(target, user, accept, etag, (MAX_BYTES, TIMEOUT)).await.map_err(|e| e.to_string())
    }
}

/// The type of an answer's body.
pub fn content_type(headers: &http::HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("")
}
