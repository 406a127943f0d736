//! The JSON that goes on the wire for an object, and what follows from how it begins.

use crate::json;
use kubelith_meta::{GroupVersionKind, Map, Value};
use std::ops::Range;

/// JSON of an object with kind and apiVersion in front. The reference writes them there, and it lets a list cut
/// them off its items without looking further.
pub fn object_json(object: &Value) -> Vec<u8> {
    versioned_json(object).0
}

/// The same of an answer: a list tells of itself before its items, as the reference's do.
pub fn answer_json(answer: &Value) -> Vec<u8> {
    match answer.get("items") {
        Some(_) => json_with_first(answer, &["kind", "apiVersion", "metadata"]).0,
        None => object_json(answer),
    }
}

/// `object_json`, and where the text of metadata.resourceVersion stands in it.
pub fn versioned_json(object: &Value) -> (Vec<u8>, Option<Range<usize>>) {
    json_with_first(object, &["kind", "apiVersion"])
}

fn json_with_first(object: &Value, first: &[&str]) -> (Vec<u8>, Option<Range<usize>>) {
    let mut version = None;
    // Few objects are larger, and what is left of the room goes soon.
    let mut out = Vec::with_capacity(8 << 10);
    let Some(map) = object.as_object() else {
        json::write(&mut out, object);
        return (out, None);
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
            ("metadata", Value::Object(metadata)) => version = write_metadata(&mut out, metadata),
            _ => json::write(&mut out, value),
        }
    }
    out.push(b'}');
    (out, version)
}

/// Where the resourceVersion stands then.
fn write_metadata(out: &mut Vec<u8>, metadata: &Map) -> Option<Range<usize>> {
    let mut version = None;
    out.push(b'{');
    for (i, (key, value)) in metadata.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        json::write_string(out, key);
        out.push(b':');
        let start = out.len();
        json::write(out, value);
        if key == "resourceVersion" && value.as_str().is_some() {
            version = Some(start + 1..out.len() - 1);
        }
    }
    out.push(b'}');
    version
}

/// `{"kind":"Pod","apiVersion":"v1",`: what every object's JSON of that kind begins with.
pub fn type_prefix(kind: &GroupVersionKind) -> String {
    format!("{{\"kind\":\"{}\",\"apiVersion\":\"{}\",", kind.kind, kind.group_version())
}

#[cfg(test)]
mod tests {
    use super::answer_json;
    use crate::json::parse;

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
