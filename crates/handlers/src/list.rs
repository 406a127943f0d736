//! LIST: a header, the objects' bytes one after another, a footer. Memory does not grow with the list unless
//! a limit or a conversion makes it a page.

use super::context::Context;
use super::continue_token::ContinueToken;
use super::endpoint::ListItems;
use super::options::{ListOptions, VersionMatch, parse_revision};
use super::selection::Selection;
use super::{output, views};
use crate::table;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderValue, StatusCode};
use kubelith_codec::gzip;
use kubelith_codec::json::TypeMeta;
use kubelith_codec::negotiate::{Format, Output};
use kubelith_codec::proto::{self, Envelope, ListFrame};
use kubelith_http::negotiated::encode;
use kubelith_http::{Body, BoxError, Response};
use kubelith_meta::{Map, Status, Value};
use kubelith_observe::metrics::reads::CacheRead;
use kubelith_registry::ReadAt;
use kubelith_store::cache::{CachedObject, Snapshot};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Objects of a list that are converted at a time.
const CONVERSIONS: usize = 16;

/// Objects whose bytes are queued at a time while a list is sent.
const BATCH: usize = 64;

/// A page of a list, or all of it.
pub struct Page {
    pub snapshot: Snapshot,
    /// Until the cache had it.
    waited: Duration,
    is_consistent: bool,
    pub selection: Selection,
    /// The only key that the selection can match, if there is one.
    pub single: Option<String>,
    /// Keys below the prefix that are less than this were sent before.
    pub start: Option<String>,
    /// With a limit or a selector: the objects of the page. Without: `None`, and they are found while they are sent.
    pub items: Option<Vec<Arc<CachedObject>>>,
    /// How many objects were looked at, if an index led to them.
    looked_at: Option<usize>,
    pub continue_token: Option<String>,
    pub remaining: Option<usize>,
}

pub async fn list(cx: Arc<Context>, options: ListOptions, negotiated: Output) -> Result<Response, Status> {
    let cx = &*cx;
    let page = find(cx, &options).await?;
    let read = page.read();
    let mut response = answer(cx, &negotiated, page).await?;
    response.extensions_mut().insert(read);
    Ok(response)
}

/// The page in the form that was asked for.
pub async fn answer(cx: &Context, negotiated: &Output, page: Page) -> Result<Response, Status> {
    let plain = negotiated.convert.is_none() && !cx.pretty() && !negotiated.pretty;
    match negotiated.format {
        Format::Json if plain && page.is_native(cx) => Ok(stream(cx, page)),
        Format::Protobuf if negotiated.convert.is_none() => protobuf(cx, page).await,
        _ => built(cx, negotiated, page).await,
    }
}

/// Chooses the state to read and cuts the page out of it.
pub async fn find(cx: &Context, options: &ListOptions) -> Result<Page, Status> {
    let selection = Selection::new(cx, options)?;
    let (at, start) = resolve(options)?;
    let (began, is_consistent) = (Instant::now(), at == ReadAt::Latest);
    cx.check_reached(at).await?;
    let snapshot = match cx.endpoint.resource.snapshot(at).await {
        Err(status) if status.is_expired() && start.is_some() => return Err(expired_continue(status, start)),
        read => read?,
    };
    let is_whole = options.resource_version == "0" && !cx.endpoint.limits.pages_any_age;
    let limit = if is_whole { 0 } else { options.limit };
    let single = selection.single_key();
    let mut page = Page {
        snapshot,
        waited: began.elapsed(),
        is_consistent,
        selection,
        single,
        start,
        items: None,
        looked_at: None,
        continue_token: None,
        remaining: None,
    };
    if page.selection.judges_shown(cx) {
        page.choose_shown(cx, limit).await?;
    } else if limit > 0 || !page.selection.is_everything() {
        page.choose(cx.endpoint.resource.cache.indexed_field(), if limit == 0 { usize::MAX } else { limit });
    }
    if page.snapshot.odd.broken > 0 {
        page.check_readable(cx)?;
    }
    Ok(page)
}

/// resourceVersion, its match, limit and continue, in all their combinations.
fn resolve(options: &ListOptions) -> Result<(ReadAt, Option<String>), Status> {
    let version = options.resource_version.as_str();
    if !options.continue_token.is_empty() {
        let token = ContinueToken::decode(&options.continue_token)?;
        if !matches!(version, "" | "0") {
            return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
        }
        return Ok((token.revision.map_or(ReadAt::Latest, |r| ReadAt::Exact(r as u64)), Some(token.start)));
    }
    let at = match version {
        "" => ReadAt::Latest,
        "0" => ReadAt::AnyAge,
        version => {
            let invalid = |why| Status::bad_request(format!("invalid resource version: {why}"));
            let revision = parse_revision(version).map_err(invalid)?;
            match options.version_match {
                VersionMatch::Exact => ReadAt::Exact(revision),
                VersionMatch::NotOlderThan => ReadAt::NotOlderThan(revision),
                // A name is no page.
                VersionMatch::Unset if options.limit > 0 && !options.is_named() => ReadAt::Exact(revision),
                VersionMatch::Unset => ReadAt::NotOlderThan(revision),
            }
        }
    };
    Ok((at, None))
}

/// The state behind a token is gone: the client may go on in the newest one, knowing that it is another.
fn expired_continue(mut status: Status, start: Option<String>) -> Status {
    status.message = "The provided continue parameter is too old to display a consistent list result. You can start a new \
                      list without the continue parameter, or use the continue token in this response to retrieve the \
                      remainder of the results. Continuing with the provided token results in an inconsistent list - \
                      objects that were created, modified, or deleted between the time the first chunk was returned and \
                      now may show up in the list."
        .into();
    let token = ContinueToken { revision: None, start: start.unwrap_or_default() };
    status.continue_token = Some(token.encode().into());
    status
}

impl Page {
    /// At most `limit` objects that match.
    fn choose(&mut self, indexed: Option<usize>, limit: usize) {
        let candidates = match &self.single {
            None if !self.selection.is_everything() => {
                self.selection.candidates(&self.snapshot, indexed, self.from().as_deref())
            }
            _ => None,
        };
        self.looked_at = candidates.as_ref().map(Vec::len);
        let items = match candidates {
            Some(found) => found.into_iter().filter(|object| self.selection.matches(object)).take(limit).collect(),
            None => self.matching().take(limit).cloned().collect(),
        };
        self.cut(items, limit);
    }

    /// The objects that match as the endpoint shows them.
    async fn choose_shown(&mut self, cx: &Context, limit: usize) -> Result<(), Status> {
        let range: Vec<Arc<CachedObject>> = self.in_range().cloned().collect();
        let mut items = Vec::new();
        for object in range {
            if self.selection.matches_shown(cx, &object).await? {
                items.push(object);
            }
            if limit > 0 && items.len() == limit {
                break;
            }
        }
        self.cut(items, if limit == 0 { usize::MAX } else { limit });
        Ok(())
    }

    /// Makes a page of its items, of which there are at most `limit`.
    fn cut(&mut self, items: Vec<Arc<CachedObject>>, limit: usize) {
        // What follows the page need not match: the reference looks at keys only. Where the selection names one
        // object, nothing else is read.
        let more = match items.last().filter(|_| items.len() == limit && self.single.is_none()) {
            Some(last) => self.snapshot.count_from(&self.selection.prefix, Some(&last.key)).saturating_sub(1),
            None => 0,
        };
        if more > 0 {
            let last = items.last().map_or("", |o| &o.key[self.selection.prefix.len()..]);
            let token = ContinueToken { revision: Some(self.snapshot.revision), start: format!("{last}\0") };
            self.continue_token = Some(token.encode());
            self.remaining = self.selection.is_everything().then_some(more);
        }
        self.items = Some(items);
    }

    /// What metrics say of the list.
    fn read(&self) -> CacheRead {
        let fetched = match (self.looked_at, &self.single) {
            (Some(looked_at), _) => looked_at,
            (None, Some(key)) => usize::from(self.snapshot.get(key).is_some()),
            (None, None) => self.snapshot.count_from(&self.selection.prefix, self.from().as_deref()),
        };
        // Without items, nothing is left out.
        let returned = self.items.as_ref().map_or(fetched, Vec::len);
        CacheRead::List { waited: self.waited, is_consistent: self.is_consistent, fetched, returned }
    }

    /// The objects of the list in key order, from its start on.
    fn matching(&self) -> impl Iterator<Item = &Arc<CachedObject>> {
        self.in_range().filter(|o| self.selection.matches(o))
    }

    /// The key from which on objects were not sent before.
    fn from(&self) -> Option<String> {
        self.start.as_ref().map(|start| format!("{}{start}", self.selection.prefix))
    }

    /// All that must be looked at to find them, if no index helps.
    fn in_range(&self) -> impl Iterator<Item = &Arc<CachedObject>> {
        let (one, all) = match &self.single {
            Some(key) => (self.snapshot.get(key), None),
            None => (None, Some(self.snapshot.range_from(&self.selection.prefix, self.from().as_deref()))),
        };
        one.into_iter().chain(all.into_iter().flatten())
    }

    /// A list with an object in its range that cannot be read is an error: nobody knows whether it matches.
    fn check_readable(&self, cx: &Context) -> Result<(), Status> {
        let end = self.items.as_ref().filter(|_| self.continue_token.is_some()).and_then(|items| items.last());
        cx.endpoint.resource.all_readable(self.in_range().take_while(|o| end.is_none_or(|end| o.key <= end.key)))
    }

    pub fn objects(&self) -> Vec<Arc<CachedObject>> {
        match &self.items {
            Some(items) => items.clone(),
            None => self.in_range().cloned().collect(),
        }
    }

    /// metadata of the list.
    pub fn meta(&self, cx: &Context) -> Value {
        let mut meta = Map::new();
        match (&self.continue_token, cx.endpoint.items) {
            (Some(token), _) => drop(meta.insert("continue", token.as_str())),
            // Lists that are no Go type always have it.
            (None, ListItems::WithType) => drop(meta.insert("continue", "")),
            (None, ListItems::WithoutType) => {}
        }
        if let Some(remaining) = self.remaining {
            meta.insert("remainingItemCount", remaining as i64);
        }
        meta.insert("resourceVersion", self.snapshot.revision.to_string());
        if let Some(shards) = &self.selection.shards {
            meta.insert("shardInfo", Value::from([("selector", Value::from(shards.to_string()))]));
        }
        Value::Object(meta)
    }

    /// Whether the cache's JSON is at the version asked for.
    fn is_native(&self, cx: &Context) -> bool {
        if !views::has_native_cache(cx) {
            return false;
        }
        // Custom resources are cached in the version that each was written in.
        match &self.items {
            Some(items) => !items.iter().any(|o| o.is_foreign),
            None => self.snapshot.odd.foreign == 0,
        }
    }
}

fn list_header(cx: &Context, page: &Page) -> Vec<u8> {
    let version = cx.endpoint.kind.group_version();
    let mut out =
        format!("{{\"kind\":\"{}\",\"apiVersion\":\"{version}\",\"metadata\":", cx.endpoint.list_kind()).into_bytes();
    kubelith_codec::json::write(&mut out, &page.meta(cx));
    out.extend_from_slice(b",\"items\":[");
    out
}

/// Sends cached bytes: nothing is parsed, nothing is joined.
fn stream(cx: &Context, page: Page) -> Response {
    let header = Bytes::from(list_header(cx, &page));
    let prefix = views::type_prefix(&cx.endpoint.kind);
    let strip = match cx.endpoint.items {
        ListItems::WithoutType => prefix.len(),
        ListItems::WithType => 0,
    };
    let chunks = Chunks { queue: VecDeque::from([header]), page, strip, position: Position::Start };
    let mut response = sized_or_streamed(chunks, cx.wants_gzip());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Small bodies are sent with their length, large ones as a stream, compressed if the client takes that.
fn sized_or_streamed(mut chunks: impl Iterator<Item = Bytes> + Send + 'static, gzip: bool) -> Response {
    let mut first = VecDeque::new();
    let mut size = 0;
    while size <= gzip::THRESHOLD_BYTES {
        match chunks.next() {
            Some(chunk) => {
                size += chunk.len();
                first.push_back(chunk);
            }
            None => return Response::new(Body::Chunks(first)),
        }
    }
    let all = first.into_iter().chain(chunks);
    if !gzip {
        return Response::new(Body::stream(futures::stream::iter(all.map(Ok::<_, BoxError>))));
    }
    let mut gzip = Some(gzip::Gzip::default());
    let mut all = all.fuse();
    let compressed = std::iter::from_fn(move || {
        loop {
            match all.next() {
                Some(chunk) => {
                    if let Some(piece) = gzip.as_mut()?.push(&chunk) {
                        return Some(Bytes::from(piece));
                    }
                }
                None => return gzip.take().map(|g| Bytes::from(g.finish())),
            }
        }
    });
    let mut response = Response::new(Body::stream(futures::stream::iter(compressed.map(Ok::<_, BoxError>))));
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

/// The bytes of a list, found while they are sent.
struct Chunks {
    queue: VecDeque<Bytes>,
    page: Page,
    /// How much of each object's JSON its type takes; the item goes without it.
    strip: usize,
    position: Position,
}

enum Position {
    Start,
    /// After this key; another item was sent before.
    After(Arc<str>),
    /// This many items of a page were sent.
    Item(usize),
    End,
}

impl Iterator for Chunks {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.queue.is_empty() {
            self.fill();
        }
        self.queue.pop_front()
    }
}

impl Chunks {
    fn fill(&mut self) {
        let batch: Vec<Arc<CachedObject>> = match (&self.position, &self.page.items) {
            (Position::End, _) => return,
            (Position::Start, Some(items)) => items.iter().take(BATCH).cloned().collect(),
            (Position::Item(sent), Some(items)) => items.iter().skip(*sent).take(BATCH).cloned().collect(),
            (Position::After(key), _) => {
                self.page.snapshot.range(&self.page.selection.prefix, Some(key)).take(BATCH).cloned().collect()
            }
            _ => self.page.in_range().take(BATCH).cloned().collect(),
        };
        let mut first = matches!(self.position, Position::Start);
        self.position = match (&self.position, &self.page.items, batch.last()) {
            (_, _, None) => Position::End,
            (Position::Item(sent), Some(_), _) => Position::Item(sent + batch.len()),
            (_, Some(_), _) => Position::Item(batch.len()),
            (_, None, Some(last)) => Position::After(last.key.clone()),
        };
        if batch.is_empty() {
            self.queue.push_back(Bytes::from_static(b"]}"));
            return;
        }
        for object in batch {
            self.push(&object, std::mem::replace(&mut first, false));
        }
    }

    fn push(&mut self, object: &CachedObject, first: bool) {
        let json = object.json_once();
        let separator: &'static [u8] = match (self.strip > 0, first) {
            (true, true) => b"{",
            (true, false) => b",{",
            (false, true) => b"",
            (false, false) => b",",
        };
        if !separator.is_empty() {
            self.queue.push_back(Bytes::from_static(separator));
        }
        self.queue.push_back(json.slice(self.strip.min(json.len())..));
    }
}

/// A protobuf list: sizes are needed first, so every object's message is made (or found) before the first byte.
async fn protobuf(cx: &Context, page: Page) -> Result<Response, Status> {
    let mut messages = Vec::new();
    for object in page.objects() {
        let enveloped = views::protobuf_of(cx, &object).await?;
        let raw = Envelope::read(&enveloped).map_err(Status::internal_error)?.raw;
        messages.push(enveloped.slice_ref(raw));
    }
    let meta = TypeMeta { api_version: cx.endpoint.kind.api_version().into(), kind: cx.endpoint.list_kind().clone() };
    let mut response = sized_or_streamed(protobuf_chunks(&meta, &page.meta(cx), messages)?, cx.wants_gzip());
    let media_type = HeaderValue::from_static(Format::Protobuf.media_type());
    response.headers_mut().insert(CONTENT_TYPE, media_type);
    Ok(response)
}

fn protobuf_chunks(
    meta: &TypeMeta,
    list_meta: &Value,
    messages: Vec<Bytes>,
) -> Result<impl Iterator<Item = Bytes> + Send + use<>, Status> {
    let mut metadata = Vec::new();
    let schema = kubelith_catalog::builtin().type_schema("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta");
    let schema = schema.ok_or_else(|| Status::internal_error("ListMeta has no type"))?;
    proto::encode(&mut metadata, list_meta, &schema).map_err(Status::internal_error)?;
    let begin = ListFrame::new(messages.iter().map(Bytes::len)).begin(meta, &metadata);
    let items = messages.into_iter().flat_map(|message| {
        let mut prefix = Vec::with_capacity(8);
        ListFrame::item_prefix(&mut prefix, message.len());
        [Bytes::from(prefix), message]
    });
    Ok(std::iter::once(Bytes::from(begin)).chain(items).chain([Bytes::from_static(&ListFrame::END)]))
}

/// Lists that are built as a value first: other versions, tables, metadata only, YAML, indented.
async fn built(cx: &Context, negotiated: &Output, page: Page) -> Result<Response, Status> {
    // A webhook may have to convert each of them.
    let read = |object: Arc<CachedObject>| async move { views::value_of(cx, &object).await };
    let read = futures::stream::iter(page.objects()).map(read).buffered(CONVERSIONS);
    let objects = read.try_collect().await?;
    let list = list_value(cx, negotiated, objects, page.meta(cx))?;
    let body = encode(negotiated.format, &list, cx.pretty() || negotiated.pretty)?;
    Ok(output::bytes(cx, StatusCode::OK, negotiated.format, body))
}

/// A list object of the kind that was asked for.
fn list_value(cx: &Context, negotiated: &Output, objects: Vec<Value>, mut meta: Value) -> Result<Value, Status> {
    if negotiated.convert.is_some() && meta.str_at(&["continue"]).is_empty() {
        meta.remove_at(&["continue"]);
    }
    match &negotiated.convert {
        None => {
            let strip = |mut object: Value| {
                if cx.endpoint.items == ListItems::WithoutType {
                    object.remove_at(&["kind"]);
                    object.remove_at(&["apiVersion"]);
                }
                object
            };
            Ok(Value::from([
                ("kind", Value::String(cx.endpoint.list_kind().clone())),
                ("apiVersion", Value::from(cx.endpoint.kind.api_version())),
                ("metadata", meta),
                ("items", Value::Array(objects.into_iter().map(strip).collect())),
            ]))
        }
        Some(target) if target.kind == "Table" => table::of_list(cx, &objects, meta, &target.version),
        Some(target) if target.kind == "PartialObjectMetadataList" => {
            let items: Vec<Value> = objects.iter().map(|o| views::partial_metadata(cx, o, &target.version)).collect();
            // Go prints the nil slice of an empty result.
            let items = if items.is_empty() { Value::Null } else { Value::Array(items) };
            Ok(Value::from([
                ("kind", Value::from("PartialObjectMetadataList")),
                ("apiVersion", Value::from(format!("meta.k8s.io/{}", target.version))),
                ("metadata", meta),
                ("items", items),
            ]))
        }
        Some(target) => {
            let go_type = match cx.endpoint.items {
                ListItems::WithType => "unstructured.UnstructuredList".to_owned(),
                ListItems::WithoutType => {
                    format!("{}.{}", super::typed::internal_package(&cx.endpoint.kind), cx.endpoint.list_kind())
                }
            };
            Err(output::wrong_shape(format!(
                "you requested {}, but the requested object is a list (*{go_type})",
                target.kind
            )))
        }
    }
}
