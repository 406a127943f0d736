//! One object as readers get it: the bytes that go on the wire, and the few parsed things that selectors need.

use super::text::Text;
use bytes::{BufMut, Bytes, BytesMut};
use kubelith_meta::{GroupVersionKind, Str};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

const ADDED: &[u8] = br#"{"type":"ADDED","object":"#;
const MODIFIED: &[u8] = br#"{"type":"MODIFIED","object":"#;
const DELETED: &[u8] = br#"{"type":"DELETED","object":"#;
const FRAME_END: &[u8] = b"}\n";

/// What stands around any object: its struct, the counts of it and of its key, and its entry in a map that is three quarters full.
const AROUND_ANY: usize = size_of::<CachedObject>() + 2 * 2 * size_of::<usize>() + 4 * size_of::<usize>();

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
    /// Where the text of metadata.resourceVersion stands.
    fn version(&self) -> Option<Range<usize>> {
        self.version.clone().or_else(|| resource_version_in(&self.json))
    }
}

/// An object on its way to the store, as readers will get it but for its resourceVersion, which is a guess until the
/// store has given it one.
#[derive(Debug)]
pub struct Draft {
    labels: Box<[(Str, Str)]>,
    fields: Box<[Str]>,
    is_foreign: bool,
    is_judged: bool,
    kind: EventKind,
    frame: Mutex<Frame>,
}

/// The text of a draft.
#[derive(Debug)]
enum Frame {
    /// With a guess at its revision, and where that stands.
    Guessed(BytesMut, Option<Range<usize>>),
    /// Shared by the cache and the answer to the writer.
    Final(i64, Bytes),
}

impl Draft {
    /// Of a write that is going to be seen as `kind`, at `revision` if no other comes first.
    pub fn new(rendered: Rendered, kind: EventKind, revision: i64) -> Draft {
        let at = rendered.version();
        let text = revision.to_string();
        let frame = kind.frame_at(&rendered.json, at.clone(), &text);
        let at = at.map(|at| at.start + kind.frame_start().len()).map(|start| start..start + text.len());
        Draft {
            labels: rendered.labels.into(),
            fields: rendered.fields.into(),
            is_foreign: rendered.is_foreign,
            is_judged: false,
            kind,
            frame: Mutex::new(Frame::Guessed(frame, at)),
        }
    }

    /// Says whether the object is known to obey all rules.
    #[must_use]
    pub fn judged(self, is_judged: bool) -> Draft {
        Draft { is_judged, ..self }
    }

    pub(super) fn kind(&self) -> EventKind {
        self.kind
    }

    fn frame_at(&self, revision: i64) -> Bytes {
        let mut frame = self.frame.lock().expect("no panic under this lock");
        let made = match &mut *frame {
            Frame::Final(made, bytes) if *made == revision => return bytes.clone(),
            Frame::Final(_, bytes) => self.at_another(bytes, revision),
            Frame::Guessed(bytes, at) => {
                let text = revision.to_string();
                match at.clone().and_then(|at| bytes.get_mut(at)).filter(|room| room.len() == text.len()) {
                    Some(room) => {
                        room.copy_from_slice(text.as_bytes());
                        std::mem::take(bytes).freeze()
                    }
                    None => self.at_another(&std::mem::take(bytes).freeze(), revision),
                }
            }
        };
        *frame = Frame::Final(revision, made.clone());
        made
    }

    fn at_another(&self, frame: &Bytes, revision: i64) -> Bytes {
        let json = self.kind.json_in(frame);
        self.kind.frame_at(&json, resource_version_in(&json), &revision.to_string()).freeze()
    }

    /// Whether it is what a renderer makes of the stored bytes.
    pub fn reads_as(&self, read: &Rendered) -> bool {
        let frame = self.kind.frame_at(&read.json, read.version(), "0");
        let guessed = match &*self.frame.lock().expect("no panic under this lock") {
            Frame::Guessed(bytes, _) => Bytes::copy_from_slice(bytes),
            Frame::Final(_, bytes) => bytes.clone(),
        };
        self.at_another(&guessed, 0) == frame
            && (&self.labels[..], &self.fields[..], self.is_foreign) == (&read.labels, &read.fields, read.is_foreign)
    }

    /// The JSON of the object once it is written.
    pub fn json_at(&self, revision: i64) -> Bytes {
        self.kind.json_in(&self.frame_at(revision))
    }

    /// The object once it is written.
    pub fn written(&self, key: Arc<str>, revision: i64) -> CachedObject {
        CachedObject {
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            is_foreign: self.is_foreign,
            is_judged: self.is_judged,
            ..CachedObject::of_frame(key, revision, self.kind, self.frame_at(revision))
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
    frame: Text,
    kind: EventKind,
    /// Set if the stored bytes could not be read. There is no JSON then.
    pub broken: Option<Box<Broken>>,
    /// See [`Rendered::is_foreign`].
    pub is_foreign: bool,
    /// This process has seen that it obeys all rules: it judged what it wrote itself.
    pub is_judged: bool,
    /// Bytes that it takes in the store.
    pub(super) stored: u32,
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

/// How an object is encoded, at the version of some kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Json,
    /// In its envelope.
    Protobuf,
}

/// Other encodings of an object, made on first use and kept. The whole kind is part of what they are found by: objects
/// that two groups serve, as events are, have versions of the same name. So is the generation of the conversion: whoever began
/// to read before a definition changed may keep what its old conversion made after it did.
#[derive(Debug, Default)]
struct Forms(OnceLock<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    forms: Vec<(Form, GroupVersionKind, i64, Bytes)>,
    /// Read or made since the last [`Forms::drop_unused`].
    used: bool,
}

impl Forms {
    fn get(&self, form: Form, kind: &GroupVersionKind, generation: i64) -> Option<Bytes> {
        let mut kept = self.0.get()?.lock().expect("no panic under this lock");
        let found = kept.find(form, kind, generation).cloned();
        kept.used |= found.is_some();
        found
    }

    /// Keeps a form; if another reader was first, theirs stays and is answered.
    fn keep(&self, form: Form, kind: &GroupVersionKind, generation: i64, bytes: Bytes) -> Bytes {
        let mut kept = self.0.get_or_init(Mutex::default).lock().expect("no panic under this lock");
        kept.used = true;
        if let Some(known) = kept.find(form, kind, generation) {
            return known.clone();
        }
        kept.forms.push((form, kind.clone(), generation, bytes.clone()));
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

impl Kept {
    fn find(&self, form: Form, kind: &GroupVersionKind, generation: i64) -> Option<&Bytes> {
        let mut forms = self.forms.iter();
        forms.find(|(f, k, g, _)| *f == form && k == kind && *g == generation).map(|(_, _, _, bytes)| bytes)
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
    fn frame(self, json: &[&[u8]]) -> BytesMut {
        let start = self.frame_start();
        let length = json.iter().map(|piece| piece.len()).sum::<usize>();
        let mut frame = BytesMut::with_capacity(start.len() + length + FRAME_END.len());
        frame.put_slice(start);
        json.iter().for_each(|piece| frame.put_slice(piece));
        frame.put_slice(FRAME_END);
        frame
    }

    /// The same with another resourceVersion, whose text stands `at` there.
    fn frame_at(self, json: &[u8], at: Option<Range<usize>>, version: &str) -> BytesMut {
        match at {
            Some(at) => self.frame(&[&json[..at.start], version.as_bytes(), &json[at.end..]]),
            None => self.frame(&[json]),
        }
    }

    /// The object in a frame of this kind.
    fn json_in(self, frame: &Bytes) -> Bytes {
        frame.slice(self.frame_start().len()..frame.len() - FRAME_END.len())
    }
}

impl CachedObject {
    pub(super) fn is_undecodable(&self) -> bool {
        self.broken.as_ref().is_some_and(|broken| broken.problem == Problem::Undecodable)
    }

    pub fn new(key: Arc<str>, revision: i64, kind: EventKind, rendered: Rendered) -> CachedObject {
        CachedObject {
            labels: rendered.labels.into(),
            fields: rendered.fields.into(),
            is_foreign: rendered.is_foreign,
            ..CachedObject::of_frame(key, revision, kind, kind.frame(&[&rendered.json]).freeze())
        }
    }

    fn of_frame(key: Arc<str>, revision: i64, kind: EventKind, frame: Bytes) -> CachedObject {
        CachedObject {
            key,
            revision,
            labels: Box::default(),
            fields: Box::default(),
            frame: Text::new(frame),
            kind,
            broken: None,
            is_foreign: false,
            is_judged: false,
            stored: 0,
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
        let json = self.json_once();
        let frame = match &self.broken {
            None => EventKind::Deleted.frame_at(&json, resource_version_in(&json), &revision.to_string()).freeze(),
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

    /// The object as compact JSON; empty if it is broken. For who wants this object: what is asked for again and again is not
    /// packed.
    pub fn json(&self) -> Bytes {
        if self.frame.is_empty() {
            return Bytes::new();
        }
        self.kind.json_in(&self.frame.read_again())
    }

    /// The same for who reads many objects, each once: those that are packed remain so.
    pub fn json_once(&self) -> Bytes {
        if self.frame.is_empty() {
            return Bytes::new();
        }
        self.kind.json_in(&self.frame.read())
    }

    /// How long its JSON is.
    pub fn json_len(&self) -> usize {
        self.frame.len().saturating_sub(self.kind.frame_start().len() + FRAME_END.len())
    }

    pub(super) fn text(&self) -> &Text {
        &self.frame
    }

    /// Another encoding of this object, if a reader made it before.
    pub fn form(&self, form: Form, kind: &GroupVersionKind, generation: i64) -> Option<Bytes> {
        self.forms.get(form, kind, generation)
    }

    /// Keeps an encoding for later readers. Two may make the same one at once; nobody waits for an encoder.
    pub fn keep_form(&self, form: Form, kind: &GroupVersionKind, generation: i64, bytes: Bytes) -> Bytes {
        self.forms.keep(form, kind, generation, bytes)
    }

    /// Drops the other encodings if nobody asked for one since the last call.
    pub fn drop_unused_forms(&self) {
        self.forms.drop_unused();
    }

    /// A JSON watch frame of this object as `kind`: the stored frame if it is that, else made now.
    pub fn json_frame(&self, kind: EventKind) -> Bytes {
        if kind == self.kind {
            return self.frame.read();
        }
        kind.frame(&[&self.json_once()]).freeze()
    }

    /// The namespace part of the key; empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.key.rsplit_once('/').map_or("", |(ns, _)| ns)
    }

    pub fn name(&self) -> &str {
        self.key.rsplit_once('/').map_or(&self.key, |(_, name)| name)
    }

    /// Bytes held, unless it is packed: for the bounds of the history, which are the same then.
    pub fn weight(&self) -> usize {
        self.frame.len() + self.around()
    }

    /// Bytes that stand around the text, packed or not: this struct with its key and values, and its place in a map, roughly.
    pub fn around(&self) -> usize {
        let beside = |text: &Str| if text.is_heap_allocated() { text.len() } else { 0 };
        let labels = self.labels.iter().map(|(key, value)| beside(key) + beside(value)).sum::<usize>();
        let fields = self.fields.iter().map(beside).sum::<usize>();
        let values = size_of_val(&*self.labels) + labels + size_of_val(&*self.fields) + fields;
        AROUND_ANY + self.key.len() + values
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
        let json = |version: &str| format!(r#"{{"metadata":{{"resourceVersion":"{version}","uid":"u"}}}}"#);
        let draft = |version: Option<Range<usize>>, guess: i64| {
            let labels = vec![("a".into(), "b".into())];
            let rendered = Rendered { json: json("0").into(), version, labels, ..Rendered::default() };
            Draft::new(rendered, EventKind::Modified, guess)
        };
        // As long as it becomes, longer, shorter, and where its maker does not say where it stands.
        for draft in [draft(Some(32..33), 13), draft(Some(32..33), 7), draft(Some(32..33), 789), draft(None, 13)] {
            let read = |version: &str| Rendered {
                json: json(version).into(),
                labels: vec![("a".into(), "b".into())],
                ..Rendered::default()
            };
            assert!(draft.reads_as(&read("5")));
            assert!(!draft.reads_as(&Rendered { labels: vec![], ..read("0") }));
            let cached = draft.written("ns/n".into(), 12);
            assert_eq!((cached.revision, &cached.labels[..]), (12, &[("a".into(), "b".into())][..]));
            assert!(cached.json_frame(EventKind::Modified).starts_with(MODIFIED));
            let answer = draft.json_at(12);
            assert_eq!(answer, json("12"));
            assert_eq!(answer.as_ptr(), cached.json().as_ptr());
            assert_eq!(draft.json_at(7), json("7"));
        }
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
        let kind = |group| GroupVersionKind::new(group, "v1", "Event");
        let (core, events) = (kind(""), kind("events.k8s.io"));
        assert_eq!(o.form(Form::Json, &core, 1), None);
        assert_eq!(o.keep_form(Form::Json, &core, 1, Bytes::from_static(b"x")), "x");
        assert_eq!(o.keep_form(Form::Json, &core, 1, Bytes::from_static(b"y")), "x");
        assert_eq!(o.form(Form::Json, &core, 1).as_deref(), Some(&b"x"[..]));
        assert_eq!((o.form(Form::Json, &events, 1), o.form(Form::Protobuf, &core, 1)), (None, None));
        assert_eq!(o.form(Form::Json, &core, 2), None, "it was made by another conversion");
        o.drop_unused_forms();
        assert!(o.form(Form::Json, &core, 1).is_some(), "it was used");
        o.drop_unused_forms();
        o.drop_unused_forms();
        assert_eq!(o.form(Form::Json, &core, 1), None);
    }
}
