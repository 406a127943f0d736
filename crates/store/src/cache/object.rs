//! One object as readers get it: the bytes that go on the wire, and the few parsed things that selectors need.

use bytes::{BufMut, Bytes, BytesMut};
use kubelith_meta::Str;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

const ADDED: &[u8] = br#"{"type":"ADDED","object":"#;
const MODIFIED: &[u8] = br#"{"type":"MODIFIED","object":"#;
const DELETED: &[u8] = br#"{"type":"DELETED","object":"#;
const FRAME_END: &[u8] = b"}\n";

/// What happened to an object, as a watcher without a selector sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// What a renderer makes of stored bytes.
#[derive(Debug, Default, PartialEq)]
pub struct Rendered {
    /// Compact JSON of the object at its hub version, with metadata.resourceVersion set.
    pub json: Vec<u8>,
    /// Where the text of metadata.resourceVersion stands in it, if its maker knows.
    pub version: Option<Range<usize>>,
    pub labels: Vec<(Str, Str)>,
    /// Values of the resource's selectable fields, in the order of its descriptor.
    pub fields: Vec<Str>,
    /// It is in another version than the one in which objects of the resource are cached.
    pub is_foreign: bool,
}

impl Rendered {
    /// The watch frame of the object with another resourceVersion.
    fn frame_at(&self, kind: EventKind, revision: i64) -> Bytes {
        kind.frame_at(&self.json, self.version.clone().or_else(|| resource_version_in(&self.json)), revision)
    }
}

/// An object on its way to the store, as readers will get it but for its resourceVersion.
#[derive(Debug)]
pub struct Draft {
    rendered: Rendered,
    /// Made once: the cache and the answer to the writer share it.
    frame: OnceLock<(EventKind, i64, Bytes)>,
}

impl Draft {
    pub fn new(rendered: Rendered) -> Draft {
        Draft { rendered, frame: OnceLock::new() }
    }

    fn frame_at(&self, kind: EventKind, revision: i64) -> Bytes {
        let make = || self.rendered.frame_at(kind, revision);
        match self.frame.get_or_init(|| (kind, revision, make())) {
            (made_kind, made_revision, frame) if (*made_kind, *made_revision) == (kind, revision) => frame.clone(),
            _ => make(),
        }
    }

    /// Whether it is what a renderer makes of the stored bytes.
    pub fn reads_as(&self, read: &Rendered) -> bool {
        let text = |rendered: &Rendered| rendered.frame_at(EventKind::Added, 0);
        let Rendered { labels, fields, is_foreign, .. } = &self.rendered;
        text(&self.rendered) == text(read)
            && (labels, fields, is_foreign) == (&read.labels, &read.fields, &read.is_foreign)
    }

    /// The JSON of the object once it is written, if that is seen as `kind`.
    pub fn json_at(&self, kind: EventKind, revision: i64) -> Bytes {
        kind.json_in(&self.frame_at(kind, revision))
    }

    /// The object once it is written.
    pub fn written(&self, key: Arc<str>, kind: EventKind, revision: i64) -> CachedObject {
        let Rendered { labels, fields, is_foreign, .. } = &self.rendered;
        CachedObject {
            labels: labels.as_slice().into(),
            fields: fields.as_slice().into(),
            is_foreign: *is_foreign,
            ..CachedObject::of_frame(key, revision, kind, self.frame_at(kind, revision))
        }
    }
}

/// An object in one revision: immutable and shared.
#[derive(Debug)]
pub struct CachedObject {
    /// Below the resource's prefix: `namespace/name`, or `name`.
    pub key: Arc<str>,
    pub revision: i64,
    pub labels: Box<[(Str, Str)]>,
    pub fields: Box<[Str]>,
    /// The watch frame of the event that brought this revision. The object's JSON is a slice of it, so the
    /// most common event needs no bytes of its own.
    frame: Bytes,
    kind: EventKind,
    /// Set if the stored bytes could not be read. There is no JSON then.
    pub broken: Option<Box<Broken>>,
    /// See [`Rendered::is_foreign`].
    pub is_foreign: bool,
    forms: Forms,
}

/// Why a stored object cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub problem: Problem,
    pub why: Box<str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// It cannot be decrypted.
    Untransformable,
    /// What was decrypted, or stored in the clear, is no object of the resource.
    Undecodable,
}

impl Broken {
    pub fn new(problem: Problem, why: impl Into<Box<str>>) -> Broken {
        Broken { problem, why: why.into() }
    }
}

/// Other encodings of an object or event, made on first use and kept: protobuf, another API version, a table row.
/// The id is whatever its maker uses to tell forms apart.
#[derive(Debug, Default)]
struct Forms(OnceLock<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    forms: Vec<(u64, Bytes)>,
    /// Read or made since the last [`Forms::drop_unused`].
    used: bool,
}

impl Forms {
    fn get(&self, id: u64) -> Option<Bytes> {
        let mut kept = self.0.get()?.lock().expect("no panic under this lock");
        let found = kept.forms.iter().find(|(i, _)| *i == id).map(|(_, b)| b.clone());
        kept.used |= found.is_some();
        found
    }

    /// Keeps a form; if another reader was first, theirs stays and is answered.
    fn keep(&self, id: u64, bytes: Bytes) -> Bytes {
        let mut kept = self.0.get_or_init(Mutex::default).lock().expect("no panic under this lock");
        kept.used = true;
        if let Some((_, known)) = kept.forms.iter().find(|(i, _)| *i == id) {
            return known.clone();
        }
        kept.forms.push((id, bytes.clone()));
        bytes
    }

    fn drop_unused(&self) {
        let Some(kept) = self.0.get() else { return };
        let mut kept = kept.lock().expect("no panic under this lock");
        if !std::mem::replace(&mut kept.used, false) {
            kept.forms = Vec::new();
        }
    }
}

impl EventKind {
    pub fn as_str(self) -> &'static str {
        match self {
            EventKind::Added => "ADDED",
            EventKind::Modified => "MODIFIED",
            EventKind::Deleted => "DELETED",
        }
    }

    fn frame_start(self) -> &'static [u8] {
        match self {
            EventKind::Added => ADDED,
            EventKind::Modified => MODIFIED,
            EventKind::Deleted => DELETED,
        }
    }

    /// The watch frame of an object whose JSON comes in pieces.
    fn frame(self, json: &[&[u8]]) -> Bytes {
        let start = self.frame_start();
        let length = json.iter().map(|piece| piece.len()).sum::<usize>();
        let mut frame = BytesMut::with_capacity(start.len() + length + FRAME_END.len());
        frame.put_slice(start);
        json.iter().for_each(|piece| frame.put_slice(piece));
        frame.put_slice(FRAME_END);
        frame.freeze()
    }

    /// The same with another resourceVersion, whose text stands `at` there.
    fn frame_at(self, json: &[u8], at: Option<Range<usize>>, revision: i64) -> Bytes {
        match at {
            Some(at) => self.frame(&[&json[..at.start], revision.to_string().as_bytes(), &json[at.end..]]),
            None => self.frame(&[json]),
        }
    }

    /// The object in a frame of this kind.
    fn json_in(self, frame: &Bytes) -> Bytes {
        frame.slice(self.frame_start().len()..frame.len() - FRAME_END.len())
    }
}

impl CachedObject {
    pub fn new(key: Arc<str>, revision: i64, kind: EventKind, rendered: Rendered) -> CachedObject {
        CachedObject {
            labels: rendered.labels.into(),
            fields: rendered.fields.into(),
            is_foreign: rendered.is_foreign,
            ..CachedObject::of_frame(key, revision, kind, kind.frame(&[&rendered.json]))
        }
    }

    fn of_frame(key: Arc<str>, revision: i64, kind: EventKind, frame: Bytes) -> CachedObject {
        CachedObject {
            key,
            revision,
            labels: Box::default(),
            fields: Box::default(),
            frame,
            kind,
            broken: None,
            is_foreign: false,
            forms: Forms::default(),
        }
    }

    pub fn broken(key: Arc<str>, revision: i64, why: Broken) -> CachedObject {
        CachedObject {
            broken: Some(Box::new(why)),
            ..CachedObject::of_frame(key, revision, EventKind::Modified, Bytes::new())
        }
    }

    /// The last state of this object as its deletion at `revision` shows it. Only the resourceVersion is another.
    pub fn deleted_at(&self, revision: i64) -> CachedObject {
        let json = self.json();
        let frame = match &self.broken {
            None => EventKind::Deleted.frame_at(&json, resource_version_in(&json), revision),
            Some(_) => Bytes::new(),
        };
        CachedObject {
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            broken: self.broken.clone(),
            is_foreign: self.is_foreign,
            ..CachedObject::of_frame(self.key.clone(), revision, EventKind::Deleted, frame)
        }
    }

    /// The object as compact JSON; empty if it is broken.
    pub fn json(&self) -> Bytes {
        if self.frame.is_empty() {
            return Bytes::new();
        }
        self.kind.json_in(&self.frame)
    }

    /// Another encoding of this object, if a reader made it before.
    pub fn form(&self, id: u64) -> Option<Bytes> {
        self.forms.get(id)
    }

    /// Keeps an encoding for later readers. Two may make the same one at once; nobody waits for an encoder.
    pub fn keep_form(&self, id: u64, bytes: Bytes) -> Bytes {
        self.forms.keep(id, bytes)
    }

    /// Drops the other encodings if nobody asked for one since the last call.
    pub fn drop_unused_forms(&self) {
        self.forms.drop_unused();
    }

    /// A JSON watch frame of this object as `kind`: the stored frame if it is that, else made now.
    pub fn json_frame(&self, kind: EventKind) -> Bytes {
        if kind == self.kind {
            return self.frame.clone();
        }
        kind.frame(&[&self.json()])
    }

    /// The namespace part of the key; empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.key.rsplit_once('/').map_or("", |(ns, _)| ns)
    }

    pub fn name(&self) -> &str {
        self.key.rsplit_once('/').map_or(&self.key, |(_, name)| name)
    }

    /// Bytes held, for the bounds of the history.
    pub fn weight(&self) -> usize {
        // 256: this struct, its key and the map slots around it, roughly.
        self.frame.len() + 256
    }
}

/// Where the text of metadata.resourceVersion stands in an object's compact JSON, without its quotes.
fn resource_version_in(json: &[u8]) -> Option<Range<usize>> {
    let metadata = member(json, 0, b"metadata")?;
    let value = member(json, metadata, b"resourceVersion")?;
    let end = string_end(json, value)?;
    Some(value + 1..end - 1)
}

/// Where the value of a member begins, in the object that begins at `at`.
fn member(json: &[u8], at: usize, name: &[u8]) -> Option<usize> {
    if json.get(at) != Some(&b'{') {
        return None;
    }
    let mut i = at + 1;
    while json.get(i) == Some(&b'"') {
        let end = string_end(json, i)?;
        let found = &json[i + 1..end - 1] == name;
        if found {
            return Some(end + 1);
        }
        i = value_end(json, end + 1)? + 1;
    }
    None
}

/// Behind the closing quote of the string that begins at `at`.
fn string_end(json: &[u8], at: usize) -> Option<usize> {
    if json.get(at) != Some(&b'"') {
        return None;
    }
    let mut i = at + 1;
    loop {
        match json.get(i)? {
            b'"' => return Some(i + 1),
            b'\\' => i += 2,
            _ => i += 1,
        }
    }
}

/// Behind the value that begins at `at`.
fn value_end(json: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0;
    let mut i = at;
    loop {
        match json.get(i)? {
            b'"' => i = string_end(json, i)? - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return Some(i),
            b'}' | b']' => depth -= 1,
            b',' if depth == 0 => return Some(i),
            _ => {}
        }
        i += 1;
    }
}

/// A change of one object, shared by all watchers.
#[derive(Debug)]
pub struct Event {
    /// Place in the resource's history.
    pub sequence: u64,
    pub kind: EventKind,
    pub revision: i64,
    /// The object after the change; for `Deleted` its last state with the revision of the deletion.
    pub object: Arc<CachedObject>,
    /// The object before the change.
    pub prev: Option<Arc<CachedObject>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: EventKind) -> CachedObject {
        let rendered = Rendered { json: b"{\"a\":1}".to_vec(), ..Rendered::default() };
        CachedObject::new("ns/n".into(), 7, kind, rendered)
    }

    #[test]
    fn json_is_a_slice_of_the_frame() {
        let o = object(EventKind::Modified);
        assert_eq!(&o.json()[..], b"{\"a\":1}");
        assert_eq!(&o.json_frame(EventKind::Modified)[..], b"{\"type\":\"MODIFIED\",\"object\":{\"a\":1}}\n");
        assert_eq!(&o.json_frame(EventKind::Added)[..], b"{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n");
        assert_eq!((o.namespace(), o.name()), ("ns", "n"));
    }

    #[test]
    fn the_cache_and_the_writer_share_the_text_of_a_draft() {
        let json = br#"{"metadata":{"resourceVersion":"0","uid":"u"}}"#.to_vec();
        let labels = vec![("a".into(), "b".into())];
        let draft = Draft::new(Rendered { json, version: Some(32..33), labels, ..Rendered::default() });
        let cached = draft.written("ns/n".into(), EventKind::Added, 12);
        assert_eq!((cached.revision, &cached.labels[..]), (12, &[("a".into(), "b".into())][..]));
        let answer = draft.json_at(EventKind::Added, 12);
        assert_eq!(answer, r#"{"metadata":{"resourceVersion":"12","uid":"u"}}"#);
        assert_eq!(answer.as_ptr(), cached.json().as_ptr());
        // Whoever knows better than the first gets their own.
        assert_eq!(draft.json_at(EventKind::Added, 7), r#"{"metadata":{"resourceVersion":"7","uid":"u"}}"#);
        let other = draft.written("ns/n".into(), EventKind::Modified, 12);
        assert!(other.json_frame(EventKind::Modified).starts_with(MODIFIED));
        assert_eq!(other.json(), answer);
    }

    #[test]
    fn a_deletion_changes_the_resource_version_only() {
        let of = |json: &str| {
            let rendered = Rendered { json: json.into(), ..Rendered::default() };
            let object = CachedObject::new("n".into(), 7, EventKind::Added, rendered);
            String::from_utf8(object.deleted_at(12).json().to_vec()).unwrap()
        };
        let cases = [
            (
                r#"{"kind":"A","metadata":{"name":"n","resourceVersion":"7"}}"#,
                r#"{"kind":"A","metadata":{"name":"n","resourceVersion":"12"}}"#,
            ),
            (
                r#"{"a":{"metadata":{"resourceVersion":"7"}},"b":["]","}\"",1],"metadata":{"annotations":{"resourceVersion":"7"},"resourceVersion":"7","uid":"u"},"x":null}"#,
                r#"{"a":{"metadata":{"resourceVersion":"7"}},"b":["]","}\"",1],"metadata":{"annotations":{"resourceVersion":"7"},"resourceVersion":"12","uid":"u"},"x":null}"#,
            ),
            (r#"{"kind":"A"}"#, r#"{"kind":"A"}"#),
            (r#"{"metadata":"#, r#"{"metadata":"#),
        ];
        for (json, expected) in cases {
            assert_eq!(of(json), expected);
        }
    }

    #[test]
    fn the_first_form_stays() {
        let o = object(EventKind::Added);
        assert_eq!(o.form(1), None);
        assert_eq!(o.keep_form(1, Bytes::from_static(b"x")), "x");
        assert_eq!(o.keep_form(1, Bytes::from_static(b"y")), "x");
        assert_eq!(o.form(1).as_deref(), Some(&b"x"[..]));
        assert_eq!(o.form(2), None);
        o.drop_unused_forms();
        assert!(o.form(1).is_some(), "it was used");
        o.drop_unused_forms();
        o.drop_unused_forms();
        assert_eq!(o.form(1), None);
    }
}
