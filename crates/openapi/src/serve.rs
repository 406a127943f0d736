//! OpenAPI as a link of the server chain: `/openapi/v3` with an index and a document for each group version, and
//! `/openapi/v2`.

use super::documents::{Encoding, Kept, Packed, Stamp};
use super::words::Words;
use super::{Foreign, Library, Subject};
use arc_swap::ArcSwapOption;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, EXPIRES, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, LAST_MODIFIED, LOCATION, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use kubelith_codec::{gzip, json, negotiate};
use kubelith_http::{Body, BoxHandler, Handler, Reply, Request, Response, query, respond};
use kubelith_meta::Value;
use kubelith_meta::time::wall_time;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

const V2: &str = "/openapi/v2";
const V3: &str = "/openapi/v3";

/// How long a document that is asked for by its hash may be kept: a year.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

pub struct OpenApi {
    library: Library,
    documents: Mutex<Documents>,
    /// Made of `documents` when somebody asks; `None` after a change.
    shelf: ArcSwapOption<Shelf>,
}

/// What there is: our own documents of version 3 by their path below `/openapi/v3/`, and other servers'.
#[derive(Default)]
struct Documents {
    v3: BTreeMap<String, Arc<Kept>>,
    /// The document of version 2; `None` if it would be another one now.
    v2: Option<Arc<Kept>>,
    foreign: Foreigners,
}

/// Documents of version 3 by path, which several servers have: each is made once for all of them.
#[derive(Clone)]
pub struct SharedDocuments(Arc<BTreeMap<String, Arc<Kept>>>);

impl SharedDocuments {
    pub fn new(subjects: impl IntoIterator<Item = Subject>) -> SharedDocuments {
        SharedDocuments(Arc::new(made(subjects).collect()))
    }
}

fn made(subjects: impl IntoIterator<Item = Subject>) -> impl Iterator<Item = (String, Arc<Kept>)> {
    subjects.into_iter().map(|subject| (subject.path(), Arc::new(Kept::v3(subject))))
}

/// OpenAPI with what comes after it.
struct Link {
    openapi: Arc<OpenApi>,
    next: BoxHandler,
}

/// All documents as they are at one time.
struct Shelf {
    v3: BTreeMap<String, Arc<Kept>>,
    v2: Arc<Kept>,
    foreign: Foreigners,
}

/// What other servers have.
#[derive(Clone, Default)]
struct Foreigners {
    /// Documents of version 3 by path, with the URL by which to ask for each.
    v3: BTreeMap<String, String>,
    v2: Vec<Arc<Foreign>>,
    /// Documents of version 3 by path that we made of theirs of version 2.
    upgraded: BTreeMap<String, Arc<Kept>>,
}

impl OpenApi {
    /// What the index at `/` shows of it.
    pub const LISTED: [&str; 3] = ["/openapi/v2", "/openapi/v3", "/openapi/v3/"];

    pub fn new(library: Library) -> Arc<OpenApi> {
        Arc::new(OpenApi { library, documents: Mutex::default(), shelf: ArcSwapOption::empty() })
    }

    /// Serves the documents and passes on everything else.
    pub fn before(self: &Arc<Self>, next: BoxHandler) -> BoxHandler {
        Arc::new(Link { openapi: self.clone(), next })
    }

    /// Adds documents or replaces them. Other documents of version 3 stay as they are.
    pub fn put(&self, subjects: impl IntoIterator<Item = Subject>) {
        self.change(|documents| {
            documents.v3.extend(made(subjects));
            documents.v2 = None;
        });
    }

    /// The same for documents that other servers have, too.
    pub fn put_shared(&self, shared: &SharedDocuments) {
        self.change(|documents| {
            documents.v3.append(&mut BTreeMap::clone(&shared.0));
            documents.v2 = None;
        });
    }

    /// Takes the documents of these paths away (`apis/example.com/v1`).
    pub fn remove<'a>(&self, paths: impl IntoIterator<Item = &'a str>) {
        self.change(|documents| {
            paths.into_iter().for_each(|path| drop(documents.v3.remove(path)));
            documents.v2 = None;
        });
    }

    /// Lists documents of version 3 that other servers have. Somebody else serves them.
    pub fn list_foreign(&self, v3: BTreeMap<String, String>) {
        self.change(|documents| documents.foreign.v3 = v3);
    }

    /// Joins parts of other servers' documents with ours, the most important first.
    pub fn join(&self, v2: Vec<Arc<Foreign>>) {
        self.change(|documents| {
            documents.foreign.v2 = v2;
            documents.v2 = None;
        });
    }

    /// Serves a document of version 3 for a server that has only one of version 2, which is this.
    pub fn put_upgraded(&self, path: &str, v2: &Value) {
        let kept = Arc::new(Kept::upgraded(v2));
        self.change(|documents| drop(documents.foreign.upgraded.insert(path.to_owned(), kept)));
    }

    pub fn remove_upgraded(&self, path: &str) {
        self.change(|documents| drop(documents.foreign.upgraded.remove(path)));
    }

    /// Drops the documents that nobody asked for since the last call. They are made again for who asks next.
    pub fn drop_unused(&self) {
        if let Some(shelf) = self.shelf.load_full() {
            shelf.all().for_each(Kept::drop_unused);
        }
    }

    fn change(&self, change: impl FnOnce(&mut Documents)) {
        let mut documents = self.documents.lock().expect("no panic under this lock");
        change(&mut documents);
        self.shelf.store(None);
    }

    fn shelf(&self) -> Arc<Shelf> {
        if let Some(shelf) = self.shelf.load_full() {
            return shelf;
        }
        // Kept under the lock, so that no change is overwritten by an older state.
        let mut documents = self.documents.lock().expect("no panic under this lock");
        let v2 = documents.v2.take().unwrap_or_else(|| {
            let subjects = documents.v3.values().filter_map(|kept| kept.subject().cloned()).collect();
            Arc::new(Kept::v2(subjects, documents.foreign.v2.clone()))
        });
        documents.v2 = Some(v2.clone());
        let shelf = Arc::new(Shelf { v3: documents.v3.clone(), v2, foreign: documents.foreign.clone() });
        self.shelf.store(Some(shelf.clone()));
        shelf
    }
}

impl Shelf {
    fn all(&self) -> impl Iterator<Item = &Kept> {
        self.v3.values().chain(self.foreign.upgraded.values()).chain([&self.v2]).map(|kept| &**kept)
    }

    /// By its path below `/openapi/v3/`.
    fn document(&self, path: &str) -> Option<Arc<Kept>> {
        self.v3.get(path).or_else(|| self.foreign.upgraded.get(path)).cloned()
    }
}

impl Handler for Link {
    fn handle(&self, request: Request) -> Reply {
        let path = request.uri().path();
        let shelf = || self.openapi.shelf();
        let library = self.openapi.library.clone();
        if path == V2 {
            let kept = shelf().v2.clone();
            return Reply::pending(async move { document(&request, kept, library, Version::V2).await });
        }
        if path == V3 {
            return Reply::pending(index(shelf(), library));
        }
        let Some(name) = path.strip_prefix(V3).and_then(|p| p.strip_prefix('/')) else {
            return self.next.handle(request);
        };
        match shelf().document(name) {
            Some(kept) => Reply::pending(async move { document(&request, kept, library, Version::V3).await }),
            None => Reply::Ready(empty(StatusCode::NOT_FOUND)),
        }
    }
}

/// The paths of all documents with their hashes. It has no type of its own, so that it is taken for text, as the
/// reference's is.
async fn index(shelf: Arc<Shelf>, library: Library) -> Response {
    let body = blocking(move || {
        let unknown = shelf.v3.values().any(|kept| kept.known_stamp().is_none());
        let words = unknown.then(Words::load);
        let own = shelf.v3.iter().map(|(path, kept)| {
            let stamp = match &words {
                Some(words) => kept.stamp(&library, words),
                None => kept.known_stamp().expect("all are known"),
            };
            (path.as_str(), location(path, stamp))
        });
        let mut urls: BTreeMap<&str, String> = own.collect();
        for (path, url) in &shelf.foreign.v3 {
            urls.entry(path).or_insert_with(|| url.clone());
        }
        for (path, kept) in &shelf.foreign.upgraded {
            let stamp = kept.known_stamp().expect("it is made with its document");
            urls.entry(path).or_insert_with(|| location(path, stamp));
        }
        let mut body = b"{\"paths\":".to_vec();
        let mut separator = b'{';
        for (path, url) in &urls {
            body.push(separator);
            json::write_string(&mut body, path);
            body.extend_from_slice(b":{\"serverRelativeURL\":");
            json::write_string(&mut body, url);
            body.push(b'}');
            separator = b',';
        }
        body.extend_from_slice(if urls.is_empty() { b"{}}" } else { b"}}" });
        body
    });
    let mut response = respond::text(StatusCode::OK, body.await);
    put_time(response.headers_mut(), LAST_MODIFIED, wall_time(), "GMT");
    response
}

fn location(path: &str, stamp: &Stamp) -> String {
    format!("{V3}/{path}?hash={}", stamp.hash)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V2,
    V3,
}

impl Version {
    fn protobuf_type(self) -> &'static str {
        match self {
            Version::V2 => "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            Version::V3 => "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
        }
    }

    /// The name that the protobuf type had before it was found to be no valid media type.
    fn old_protobuf_type(self) -> &'static str {
        match self {
            Version::V2 => "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
            Version::V3 => "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
        }
    }

    /// The first of the wanted types that there is.
    fn choose(self, accept: &str) -> Option<Encoding> {
        let accept = if accept.is_empty() { "*/*" } else { accept };
        let offered = [
            ("application/json", Encoding::Json),
            (self.protobuf_type(), Encoding::Protobuf),
            (self.old_protobuf_type(), Encoding::Protobuf),
        ];
        negotiate::parse_accept(accept).iter().find_map(|clause| {
            let fits = |offer: &(&str, Encoding)| {
                let (kind, subkind) = offer.0.split_once('/').expect("a media type");
                [(clause.kind, kind), (clause.subkind, subkind)].iter().all(|(want, is)| want == is || *want == "*")
            };
            offered.iter().find(|offer| fits(offer)).map(|(_, encoding)| *encoding)
        })
    }
}

async fn document(request: &Request, kept: Arc<Kept>, library: Library, version: Version) -> Response {
    let header = |name: HeaderName| request.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let Some(encoding) = version.choose(header(ACCEPT)) else {
        let mut response = empty(StatusCode::NOT_ACCEPTABLE);
        vary(response.headers_mut());
        return response;
    };
    let (stamp, packed) = match kept.known(encoding) {
        Some((stamp, packed)) => (stamp.clone(), packed),
        None => {
            let kept = kept.clone();
            blocking(move || {
                let (stamp, packed) = kept.make(encoding, &library);
                (stamp.clone(), packed)
            })
            .await
        }
    };
    let mut headers = HeaderMap::new();
    let media_type = match encoding {
        Encoding::Json => "application/json",
        Encoding::Protobuf => version.protobuf_type(),
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(ETAG, HeaderValue::from_str(&format!("\"{}\"", stamp.hash)).expect("hex is a header value"));
    vary(&mut headers);
    if version == Version::V3 {
        let wanted = query::first(request.uri().query(), "hash").filter(|hash| !hash.is_empty());
        match wanted {
            Some(hash) if hash != stamp.hash => return moved(request.uri().path(), headers, &stamp),
            Some(_) => {
                headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
                put_time(&mut headers, EXPIRES, wall_time() + FOREVER, "UTC");
            }
            None => {}
        }
    }
    let has = has_already(header(IF_NONE_MATCH), header(IF_MODIFIED_SINCE), &stamp);
    answer(headers, has, gzip::accepted(header(ACCEPT_ENCODING)), &stamp, packed)
}

fn moved(path: &str, mut headers: HeaderMap, stamp: &Stamp) -> Response {
    let name = path.strip_prefix(V3).unwrap_or(path).trim_start_matches('/');
    let target = HeaderValue::from_str(&location(name, stamp)).expect("a path without control characters");
    headers.insert(LOCATION, target);
    let mut response = empty(StatusCode::MOVED_PERMANENTLY);
    *response.headers_mut() = headers;
    response
}

fn answer(mut headers: HeaderMap, has: bool, takes_gzip: bool, stamp: &Stamp, packed: Packed) -> Response {
    let mut response = match has {
        true => {
            headers.remove(CONTENT_TYPE);
            empty(StatusCode::NOT_MODIFIED)
        }
        false => {
            put_time(&mut headers, LAST_MODIFIED, stamp.modified, "GMT");
            let body = match takes_gzip {
                true => {
                    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                    packed.gzip
                }
                false => packed.unpack(),
            };
            Response::new(Body::from(body))
        }
    };
    *response.headers_mut() = headers;
    response
}

/// Whether the client's copy is good: by its tags if it sent some, else by its time.
fn has_already(tags: &str, since: &str, stamp: &Stamp) -> bool {
    if !tags.is_empty() {
        return tags.split(',').map(str::trim).any(|tag| {
            tag == "*" || tag.trim_start_matches("W/").trim_matches('"') == stamp.hash && tag.ends_with('"')
        });
    }
    !since.is_empty() && since == date(stamp.modified, "GMT")
}

fn vary(headers: &mut HeaderMap) {
    headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    headers.append(VARY, HeaderValue::from_static("Accept"));
}

fn empty(code: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}

fn put_time(headers: &mut HeaderMap, name: HeaderName, time: SystemTime, zone: &str) {
    headers.insert(name, HeaderValue::from_str(&date(time, zone)).expect("a date is a header value"));
}

/// `Mon, 02 Jan 2006 15:04:05 GMT`
fn date(time: SystemTime, zone: &str) -> String {
    let t = time::OffsetDateTime::from(time);
    let (day, month) = (t.weekday().to_string(), t.month().to_string());
    format!(
        "{}, {:02} {} {} {:02}:{:02}:{:02} {zone}",
        &day[..3],
        t.day(),
        &month[..3],
        t.year(),
        t.hour(),
        t.minute(),
        t.second()
    )
}

/// Runs work that takes milliseconds beside the tasks.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // The work does not stop early, so it panicked: so do we, where panics are answered with 500.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

#[cfg(test)]
mod tests;
