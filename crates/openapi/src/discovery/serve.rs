//! Discovery as a link of the server chain. What there is comes from several sources. It is merged and encoded when
//! somebody asks for it, and kept until something changes: a thousand definitions can come without a thousand documents.

use super::peers::{self, PeerCounts, PeerGroups};
use super::{Group, aggregated, documents};
use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderValue, Method, StatusCode};
use kubelith_codec::negotiate::{self, Endpoint, Format, Output, RouteError};
use kubelith_http::negotiated::{self, accept_of, negotiation_error, no_such_method, not_routed, route_error};
use kubelith_http::{Body, BoxHandler, Handler, Reply, Request, Response};
use kubelith_meta::{GroupVersion, GroupVersionKind, Status, Str, Value};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::watch;

/// Its document is a route like those of versions; those of other groups are what is left of a path.
const AGGREGATOR: &str = "apiregistration.k8s.io";

/// Who adds groups. Of those that have the same group version, the first one here is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Aggregated,
    BuiltIn,
    CustomResources,
}

/// A group version with its place among the others.
#[derive(Debug, Clone)]
pub struct Entry {
    pub group: Str,
    pub version: super::GroupVersion,
    pub group_priority: i32,
    pub version_priority: i32,
}

impl Entry {
    fn group_version(&self) -> GroupVersion {
        GroupVersion::new(self.group.clone(), self.version.name.clone())
    }
}

pub struct Discovery {
    sources: Mutex<BTreeMap<Source, BTreeMap<GroupVersion, Entry>>>,
    /// Made of `sources` when somebody asks; `None` after a change.
    merged: ArcSwapOption<Merged>,
    /// `host:port` that `/api` names.
    address: Str,
    /// Which groups the documents without resources list, if not all that there are.
    listed: OnceLock<Listed>,
    /// Other servers of the cluster, if they are asked.
    peers: OnceLock<Peers>,
    peer_counts: Arc<PeerCounts>,
    /// Told of each change of `sources`.
    changes: watch::Sender<()>,
}

/// What other servers serve.
struct Peers {
    /// What this one is called among them.
    server: Str,
    groups: ArcSwap<PeerGroups>,
    /// The document of all, with what it was made of.
    joined: ArcSwapOption<Joined>,
}

struct Joined {
    own: Arc<Merged>,
    peers: Arc<PeerGroups>,
    document: Aggregated,
}

type Listed = Box<dyn Fn() -> Arc<Vec<Group>> + Send + Sync>;

/// The groups of all sources and their aggregated documents, encoded on first use.
#[derive(Default)]
struct Merged {
    groups: Vec<Group>,
    /// Versions that definitions add to built-in groups: they are listed, but no path leads to them.
    unreachable: BTreeSet<GroupVersion>,
    aggregated: [OnceLock<Aggregated>; 2],
}

struct Aggregated {
    json: Bytes,
    etag: HeaderValue,
}

impl Discovery {
    pub fn new(address: impl Into<Str>) -> Arc<Discovery> {
        Arc::new(Discovery {
            sources: Mutex::default(),
            merged: ArcSwapOption::empty(),
            address: address.into(),
            listed: OnceLock::new(),
            peers: OnceLock::new(),
            peer_counts: Arc::default(),
            changes: watch::Sender::default(),
        })
    }

    /// Serves the documents and passes on everything else.
    pub fn before(self: &Arc<Self>, next: BoxHandler) -> BoxHandler {
        Arc::new(Link { discovery: self.clone(), next })
    }

    /// Replaces what a source contributes.
    pub fn set(&self, source: Source, entries: Vec<Entry>) {
        self.change(source, |known| *known = entries.into_iter().map(|e| (e.group_version(), e)).collect());
    }

    /// Replaces what a source says of some group versions: those of `entries`, and those that it has no more.
    pub fn update(&self, source: Source, entries: Vec<Entry>, gone: &[GroupVersion]) {
        self.change(source, |known| {
            gone.iter().for_each(|gv| drop(known.remove(gv)));
            known.extend(entries.into_iter().map(|e| (e.group_version(), e)));
        });
    }

    fn change(&self, source: Source, change: impl FnOnce(&mut BTreeMap<GroupVersion, Entry>)) {
        let mut sources = self.sources.lock().expect("no panic under this lock");
        change(sources.entry(source).or_default());
        self.merged.store(None);
        self.changes.send_replace(());
    }

    /// Tells that a source may have come to serve something else.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    fn merged(&self) -> Arc<Merged> {
        if let Some(merged) = self.merged.load_full() {
            return merged;
        }
        // Kept under the lock, so that no change is overwritten by an older state.
        let sources = self.sources.lock().expect("no panic under this lock");
        let mut known = BTreeMap::new();
        for (gv, entry) in sources.values().flatten() {
            known.entry(gv).or_insert(entry);
        }
        let groups = merge(known.into_values().cloned().collect());
        let merged = Arc::new(Merged { groups, unreachable: unreachable(&sources), ..Merged::default() });
        self.merged.store(Some(merged.clone()));
        merged
    }

    /// Whether a source has this group version.
    pub fn has(&self, source: Source, gv: &GroupVersion) -> bool {
        let sources = self.sources.lock().expect("no panic under this lock");
        sources.get(&source).is_some_and(|known| known.contains_key(gv))
    }

    /// `/apis` without resources lists what `list` says, and `/apis/<group>` describes such a group so.
    pub fn list_groups_by(&self, list: impl Fn() -> Arc<Vec<Group>> + Send + Sync + 'static) {
        let _ = self.listed.set(Box::new(list));
    }

    /// From now on `/apis` has what other servers serve, too. This one is called `server` among them.
    pub fn join_peers(&self, server: impl Into<Str>) {
        let peers = Peers { server: server.into(), groups: ArcSwap::default(), joined: ArcSwapOption::empty() };
        let _ = self.peers.set(peers);
    }

    pub fn set_peers(&self, groups: PeerGroups) {
        if let Some(peers) = self.peers.get() {
            peers.groups.store(Arc::new(groups));
        }
    }

    pub fn peer_counts(&self) -> Arc<PeerCounts> {
        self.peer_counts.clone()
    }

    /// The resources that this server or one behind it serves.
    pub fn resources(&self) -> Vec<(GroupVersion, Str)> {
        let mut all = Vec::new();
        for group in &self.merged().groups {
            for version in &group.versions {
                let gv = GroupVersion::new(group.name.clone(), version.name.clone());
                all.extend(version.resources.iter().map(|resource| (gv.clone(), resource.plural.clone())));
                let described = version.described.as_ref().and_then(|v| v.get("resources")).and_then(Value::as_array);
                let names = described.unwrap_or(&[]).iter().map(|r| Str::from(r.str_at(&["resource"])));
                all.extend(names.map(|name| (gv.clone(), name)));
            }
        }
        all
    }

    pub fn groups(&self) -> Vec<Group> {
        self.merged().groups.clone()
    }

    /// Who in this server serves a resource, or a subresource if one is named. Other servers are not asked.
    pub fn server_of(&self, gv: &GroupVersion, plural: &str, subresource: &str) -> Option<Source> {
        let sources = self.sources.lock().expect("no panic under this lock");
        [Source::BuiltIn, Source::CustomResources].into_iter().find(|source| {
            let resources = sources.get(source).and_then(|known| known.get(gv)).map(|e| &e.version.resources);
            let resource = resources.and_then(|all| all.iter().find(|r| r.plural == plural));
            resource.is_some_and(|r| subresource.is_empty() || r.subresources.iter().any(|s| s.name == subresource))
        })
    }
}

/// Everything below a built-in group is answered by the built-in server, which does not know the versions that
/// definitions add to it.
fn unreachable(sources: &BTreeMap<Source, BTreeMap<GroupVersion, Entry>>) -> BTreeSet<GroupVersion> {
    let of = |source: Source| sources.get(&source).into_iter().flat_map(BTreeMap::keys);
    let groups: BTreeSet<&Str> = of(Source::BuiltIn).map(|gv| &gv.group).collect();
    let is_known = |gv: &&GroupVersion| of(Source::BuiltIn).chain(of(Source::Aggregated)).any(|known| known == *gv);
    of(Source::CustomResources).filter(|gv| groups.contains(&gv.group) && !is_known(gv)).cloned().collect()
}

/// Groups by the highest priority of their versions, then by name; versions by priority, then as Kubernetes sorts them.
fn merge(mut entries: Vec<Entry>) -> Vec<Group> {
    let mut priority: BTreeMap<Str, i32> = BTreeMap::new();
    for e in &entries {
        let best = priority.entry(e.group.clone()).or_insert(e.group_priority);
        *best = (*best).max(e.group_priority);
    }
    entries.sort_by(|a, b| {
        (Reverse(priority[&a.group]), &a.group, Reverse(a.version_priority))
            .cmp(&(Reverse(priority[&b.group]), &b.group, Reverse(b.version_priority)))
            .then_with(|| kubelith_meta::gvk::compare_versions(&b.version.name, &a.version.name))
    });
    let mut groups: Vec<Group> = Vec::new();
    for e in entries {
        match groups.last_mut() {
            Some(group) if group.name == e.group => group.versions.push(e.version),
            _ => groups.push(Group { name: e.group, versions: vec![e.version] }),
        }
    }
    groups
}

/// Discovery with what comes after it.
struct Link {
    discovery: Arc<Discovery>,
    next: BoxHandler,
}

impl Handler for Link {
    fn handle(&self, request: Request) -> Reply {
        let info = request.context().info.clone();
        // Nearly all requests; documents are no resources.
        if info.as_ref().is_some_and(|info| info.is_resource_request) {
            return self.next.handle(request);
        }
        let path = info.as_ref().map_or(request.uri().path(), |info| info.path.as_str());
        let Some(parts) = Parts::of(path) else { return self.next.handle(request) };
        let merged = self.discovery.merged();
        let group = |name: &str| merged.groups.iter().find(|g| g.name == name);
        let version = |name: &str, version: &str| {
            let found = group(name).and_then(|g| g.versions.iter().find(|v| v.name == version));
            found.map(|v| Document::Value(documents::resource_list(name, v)))
        };
        let found = match parts {
            Parts::Legacy => Some(Document::Legacy),
            Parts::Groups => Some(Document::Groups),
            Parts::Group(name) => {
                let listed = self.discovery.listed.get().map(|list| list());
                let listed = listed.as_ref().and_then(|groups| groups.iter().find(|g| g.name == name));
                listed.or_else(|| group(name)).map(|g| Document::Value(documents::group(g)))
            }
            Parts::Version(name, number) if merged.unreachable.contains(&GroupVersion::new(name, number)) => None,
            Parts::Version(name, number) => version(name, number),
        };
        let Some(document) = found else { return self.next.handle(request) };
        // Only `/api`, the aggregator's own group and the documents of built-in versions mind the method.
        let minds = match parts {
            Parts::Groups => false,
            Parts::Group(name) => name == AGGREGATOR,
            Parts::Legacy => true,
            Parts::Version(group, number) => {
                let gv = GroupVersion::new(group, number);
                self.discovery.has(Source::BuiltIn, &gv) || !self.discovery.has(Source::CustomResources, &gv)
            }
        };
        if minds && request.method() != Method::GET {
            let status = no_such_method();
            return Reply::Ready(not_routed(negotiated::status(request.headers(), false, &status)));
        }
        let response = match document {
            // Paths of the core group and of versions are routes, which have media types of their own.
            _ if minds && let Err(e) = route_accepts(&request) => {
                not_routed(negotiated::status(request.headers(), pretty(&request), &route_error(e)))
            }
            Document::Value(value) => plain(&request, &value),
            Document::Legacy => self.aggregatable(&request, &merged, 0, || {
                documents::legacy_versions(&merged.groups, &self.discovery.address)
            }),
            Document::Groups => self.aggregatable(&request, &merged, 1, || match self.discovery.listed.get() {
                Some(list) => documents::group_list(&list()),
                None => documents::group_list(&merged.groups),
            }),
        };
        Reply::Ready(response)
    }
}

/// What a path leads to, if it may lead to a document.
enum Parts<'a> {
    Legacy,
    Groups,
    Group(&'a str),
    Version(&'a str, &'a str),
}

impl Parts<'_> {
    /// One slash in front, at most one behind: `//api` is no document.
    fn of(path: &str) -> Option<Parts<'_>> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let mut parts = path.strip_suffix('/').unwrap_or(path).split('/');
        let found = match (parts.next()?, parts.next(), parts.next()) {
            ("api", None, None) => Parts::Legacy,
            ("apis", None, None) => Parts::Groups,
            ("api", Some(version), None) => Parts::Version("", version),
            ("apis", Some(name), None) if !name.is_empty() => Parts::Group(name),
            ("apis", Some(name), Some(version)) if !name.is_empty() => Parts::Version(name, version),
            _ => return None,
        };
        parts.next().is_none().then_some(found)
    }
}

enum Document {
    Legacy,
    Groups,
    Value(Value),
}

struct AggregatedEndpoint;

impl Endpoint for AggregatedEndpoint {
    fn allows_transform(&self, _: Format, target: Option<&GroupVersionKind>) -> bool {
        target
            .is_some_and(|t| t.group == "apidiscovery.k8s.io" && t.version == "v2" && t.kind == "APIGroupDiscoveryList")
    }
}

fn pretty(request: &Request) -> bool {
    let agent = request.headers().get(http::header::USER_AGENT).and_then(|v| v.to_str().ok()).unwrap_or("");
    negotiate::wants_pretty(kubelith_http::query::first(request.uri().query(), "pretty").as_deref(), agent)
}

fn route_accepts(request: &Request) -> Result<(), RouteError> {
    negotiate::route_accepts(&accept_of(request.headers()), &negotiate::media_types(negotiate::BUILT_IN))
}

fn plain(request: &Request, value: &Value) -> Response {
    let accept = accept_of(request.headers());
    let output = match negotiate::output(&accept, negotiate::BUILT_IN, &negotiate::PlainEndpoint) {
        Ok(output) => output,
        Err(e) => {
            return negotiated::status(request.headers(), pretty(request), &negotiation_error(e));
        }
    };
    encoded(request, &output, value)
}

fn encoded(request: &Request, output: &Output, value: &Value) -> Response {
    match negotiated::encode(output.format, value, pretty(request)) {
        Ok(body) => kubelith_http::respond::with_type(
            StatusCode::OK,
            HeaderValue::from_static(output.format.media_type()),
            body,
        ),
        Err(status) => negotiated::status(request.headers(), pretty(request), &status),
    }
}

impl Link {
    /// `/api` and `/apis`: the aggregated document if the client takes that, however much it likes others, else the old one.
    fn aggregatable(
        &self,
        request: &Request,
        merged: &Arc<Merged>,
        which: usize,
        old: impl FnOnce() -> Value,
    ) -> Response {
        let accept = accept_of(request.headers());
        let output = negotiate::output(&accept, negotiate::BUILT_IN, &AggregatedEndpoint);
        let Some(output) = output.ok().filter(|output| output.convert.is_some()) else {
            return plain(request, &old());
        };
        let counts = &self.discovery.peer_counts;
        let alone = output.profile == ALONE;
        if alone {
            counts.alone.fetch_add(1, Ordering::Relaxed);
        }
        let made = match self.discovery.peers.get().filter(|_| which == 1 && !alone) {
            Some(peers) => peers.response(request, merged, counts, &output),
            None => merged.response(request, which, &output),
        };
        let mut response =
            made.unwrap_or_else(|status| negotiated::status(request.headers(), pretty(request), &status));
        response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
        response
    }
}

/// The profile of a media type by which a client asks for what this server serves alone.
const ALONE: &str = "nopeer";

impl Aggregated {
    fn new(document: &Value) -> Aggregated {
        let json = Bytes::from(kubelith_codec::object::object_json(document));
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA512, &json);
        let hex: String = digest.as_ref().iter().map(|b| format!("{b:02X}")).collect();
        let etag = HeaderValue::from_str(&format!("\"{hex}\"")).expect("hex is a header value");
        Aggregated { json, etag }
    }

    /// `document` is what it was made of.
    fn response(
        &self,
        request: &Request,
        output: &Output,
        document: impl FnOnce() -> Value,
    ) -> Result<Response, Status> {
        let known = request.headers().get(IF_NONE_MATCH).is_some_and(|tag| *tag == self.etag);
        let mut response = if known {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            let body = match output.format {
                Format::Json => self.json.clone(),
                format => negotiated::encode(format, &document(), false)?,
            };
            Response::new(Body::from(body))
        };
        let media_type = HeaderValue::from_str(&output.media_type_with_kind()).expect("media types are header values");
        response.headers_mut().insert(CONTENT_TYPE, media_type);
        response.headers_mut().insert(ETAG, self.etag.clone());
        Ok(response)
    }
}

impl Merged {
    fn response(&self, request: &Request, which: usize, output: &Output) -> Result<Response, Status> {
        let core = which == 0;
        let document = || aggregated::discovery_list(self.groups.iter().filter(|g| g.name.is_empty() == core));
        let cached = self.aggregated[which].get_or_init(|| Aggregated::new(&document()));
        cached.response(request, output, document)
    }
}

impl Peers {
    fn response(
        &self,
        request: &Request,
        own: &Arc<Merged>,
        counts: &PeerCounts,
        output: &Output,
    ) -> Result<Response, Status> {
        let peers = self.groups.load_full();
        let document = || {
            let groups = aggregated::group_items(own.groups.iter().filter(|g| !g.name.is_empty()));
            peers::document(peers::merge(&self.server, groups, &peers))
        };
        let known = self.joined.load_full();
        let known = known.filter(|known| Arc::ptr_eq(&known.own, own) && Arc::ptr_eq(&known.peers, &peers));
        let joined = match known {
            Some(known) => {
                counts.hits.fetch_add(1, Ordering::Relaxed);
                known
            }
            None => {
                counts.misses.fetch_add(1, Ordering::Relaxed);
                let document = Aggregated::new(&document());
                let joined = Arc::new(Joined { own: own.clone(), peers: peers.clone(), document });
                self.joined.store(Some(joined.clone()));
                joined
            }
        };
        joined.document.response(request, output, document)
    }
}
