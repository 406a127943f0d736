//! The JSON that goes on the wire for an object, and what follows from how it begins.

use crate::json;
use kubelith_meta::{GroupVersionKind, Map, Value};
use std::ops::Range;

/// JSON of an object with kind and apiVersion in front. The reference writes them there, and it lets a list cut
/// them off its items without looking further.
pub fn object_json(object: &Value) -> Vec<u8> {
    ObjectText::new(object).json
}

/// The same of an answer: a list tells of itself before its items, as the reference's do.
pub fn answer_json(answer: &Value) -> Vec<u8> {
    match answer.get("items") {
        Some(_) => json_with_first(answer, &["kind", "apiVersion", "metadata"]).json,
        None => object_json(answer),
    }
}

/// `object_json`, and where the text of metadata.resourceVersion stands in it.
pub fn versioned_json(object: &Value) -> (Vec<u8>, Option<Range<usize>>) {
    let ObjectText { json, slot } = ObjectText::new(object);
    (json, slot.filter(|slot| slot.before.is_empty()).map(|slot| slot.at))
}

/// The JSON of an object, which can be had with another resourceVersion without writing it anew.
#[derive(Debug)]
pub struct ObjectText {
    json: Vec<u8>,
    /// None if the object has no metadata, or something odd in it.
    slot: Option<Slot>,
}

/// Where the text of a resourceVersion goes, and what has to stand around it: nothing if there is one already.
#[derive(Debug, Clone)]
struct Slot {
    at: Range<usize>,
    before: &'static str,
    after: &'static str,
}

impl ObjectText {
    pub fn new(object: &Value) -> ObjectText {
        json_with_first(object, &["kind", "apiVersion"])
    }

    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// As [`versioned_json`] of the same object with an empty resourceVersion. `None` if there is no place for one.
    pub fn unversioned(self) -> Option<(Vec<u8>, Range<usize>)> {
        let ObjectText { mut json, slot } = self;
        let Slot { at, before, after } = slot?;
        let start = at.start + before.len();
        json.splice(at, before.bytes().chain(after.bytes()));
        Some((json, start..start))
    }
}

fn json_with_first(object: &Value, first: &[&str]) -> ObjectText {
    let mut slot = None;
    // Few objects are larger, and what is left of the room goes soon.
    let mut out = Vec::with_capacity(8 << 10);
    let Some(map) = object.as_object() else {
        json::write(&mut out, object);
        return ObjectText { json: out, slot: None };
    };
    out.push(b'{');
    let front = first.iter().filter_map(|k| map.get(k).map(|v| (*k, v)));
    let rest = map.iter().filter(|(k, _)| !first.contains(k));
    for (i, (key, value)) in front.chain(rest).enumerate() {
        if i > 0 {
            out.push(b',');
        }
        json::write_string(&mut out, key);
        out.push(b':');
        match (key, value) {
            ("metadata", Value::Object(metadata)) => slot = write_metadata(&mut out, metadata),
            _ => json::write(&mut out, value),
        }
    }
    out.push(b'}');
    ObjectText { json: out, slot }
}

/// Where the resourceVersion goes then. Members are in the order of their names.
fn write_metadata(out: &mut Vec<u8>, metadata: &Map) -> Option<Slot> {
    const VERSION: &str = "resourceVersion";
    let mut slot = None;
    let mut is_odd = false;
    out.push(b'{');
    for (i, (key, value)) in metadata.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if slot.is_none() && key > VERSION {
            slot = Some(Slot { at: out.len()..out.len(), before: "\"resourceVersion\":\"", after: "\"," });
        }
        json::write_string(out, key);
        out.push(b':');
        let start = out.len();
        json::write(out, value);
        if key == VERSION {
            is_odd = value.as_str().is_none();
            slot = Some(Slot { at: start + 1..out.len() - 1, before: "", after: "" });
        }
    }
    let before = if metadata.is_empty() { "\"resourceVersion\":\"" } else { ",\"resourceVersion\":\"" };
    let last = Slot { at: out.len()..out.len(), before, after: "\"" };
    out.push(b'}');
    (!is_odd).then(|| slot.unwrap_or(last))
}

/// `{"kind":"Pod","apiVersion":"v1",`: what every object's JSON of that kind begins with.
pub fn type_prefix(kind: &GroupVersionKind) -> String {
    format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", kind.kind, kind.group_version())
}

#[cfg(test)]
mod tests {
    use super::{ObjectText, answer_json, versioned_json};
    use crate::json::parse;
    use kubelith_meta::Value;

    #[test]
    fn an_empty_version_is_put_where_it_belongs() {
        for metadata in [
            "{}",
            r#"{"name":"a"}"#,
            r#"{"uid":"a"}"#,
            r#"{"name":"a","uid":"b"}"#,
            r#"{"resourceVersion":"123"}"#,
            r#"{"name":"a","resourceVersion":"","uid":"b"}"#,
            r#"{"name":"a","resourceVersion":"123","uid":"b"}"#,
        ] {
            let text = format!(r#"{{"apiVersion":"v1","data":{{"metadata":{{}}}},"kind":"K","metadata":{metadata}}}"#);
            let mut object = parse(text.as_bytes()).unwrap();
            let made = ObjectText::new(&object).unversioned();
            object.set_at(&["metadata", "resourceVersion"], Value::from(""));
            let (json, version) = versioned_json(&object);
            assert_eq!(made, Some((json, version.unwrap())), "{metadata}");
        }
        for odd in [r#"{"kind":"K"}"#, r#"{"metadata":1}"#, r#"{"metadata":{"resourceVersion":12,"uid":"a"}}"#] {
            let object = parse(odd.as_bytes()).unwrap();
            let text = ObjectText::new(&object);
            assert_eq!(text.json(), odd.as_bytes());
            assert_eq!(text.unversioned(), None);
            assert_eq!(versioned_json(&object).1, None);
        }
    }

    #[test]
    fn lists_tell_of_themselves_first() {
        for (answer, want) in [
            (
                r#"{"apiVersion":"v1","items":[],"kind":"L","metadata":{}}"#,
                r#"{"kind":"L","apiVersion":"v1","metadata":{},"items":[]}"#,
            ),
            (
                r#"{"apiVersion":"v1","data":{},"kind":"K","metadata":{}}"#,
                r#"{"kind":"K","apiVersion":"v1","data":{},"metadata":{}}"#,
            ),
        ] {
            assert_eq!(String::from_utf8(answer_json(&parse(answer.as_bytes()).unwrap())).unwrap(), want);
        }
    }
}
