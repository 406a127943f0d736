//! JSON merge patch (RFC 7386), with the deviations of the library that kube-apiserver uses: a null inside a value
//! that replaces a scalar or an absent member is dropped, but nulls in lists stay.

use crate::PatchError;
use kubelith_meta::{Map, Value};

/// Applies `patch` to the object `doc`.
pub fn apply(doc: &mut Value, patch: Value) -> Result<(), PatchError> {
    match (doc, patch) {
        (Value::Object(doc), Value::Object(patch)) => {
            merge_objects(doc, patch);
            Ok(())
        }
        (doc, patch @ (Value::Object(_) | Value::Array(_))) => {
            *doc = patch;
            prune_nulls(doc);
            Ok(())
        }
        _ => Err(PatchError::BadRequest("Invalid JSON Patch".into())),
    }
}

/// The decoding error of a body that is not an object, which the checked modes of fieldValidation (Warn, the default,
/// and Strict) report before the patch is tried.
pub fn check_decoded(patch: &Value) -> Result<(), PatchError> {
    let kind = match patch {
        Value::Object(_) | Value::Null => return Ok(()),
        other => kubelith_meta::text::json_kind(other),
    };
    Err(PatchError::BadRequest(format!(
        "error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
    )))
}

fn merge_objects(doc: &mut Map, patch: Map) {
    for (key, patch_value) in patch {
        if patch_value.is_null() {
            doc.remove(&key);
            continue;
        }
        match (doc.get_mut(&key), patch_value) {
            (Some(Value::Object(current)), Value::Object(patch)) => merge_objects(current, patch),
            // Nulls stay below a list or scalar that replaces an object; only whole replacements of
            // something else are pruned.
            (Some(slot @ Value::Object(_)), replacement) => *slot = replacement,
            (Some(slot), mut replacement) => {
                prune_nulls(&mut replacement);
                *slot = replacement;
            }
            (None, mut added) => {
                prune_nulls(&mut added);
                doc.insert(key, added);
            }
        }
    }
}

/// Drops null members of objects at any depth; nulls that are list elements stay.
fn prune_nulls(value: &mut Value) {
    match value {
        Value::Object(m) => m.retain(|_, v| {
            prune_nulls(v);
            !v.is_null()
        }),
        Value::Array(a) => a.iter_mut().for_each(prune_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::tests::v;

    #[test]
    fn merges() {
        let table = [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (r#"{"a":{"b":"c"}}"#, r#"{"a":{"b":"d","c":null}}"#, r#"{"a":{"b":"d"}}"#),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1,null]}"#, r#"{"a":[1,null]}"#),
            (r#"{}"#, r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"e":null,"a":1}"#),
            (r#"{"e":null}"#, r#"{"e":{"x":null,"y":1}}"#, r#"{"e":{"y":1}}"#),
            // A list in place of an object keeps what it holds.
            (r#"{"a":{"x":1}}"#, r#"{"a":[{"n":null}]}"#, r#"{"a":[{"n":null}]}"#),
            (r#"{"a":1}"#, r#"{"a":[{"n":null}]}"#, r#"{"a":[{}]}"#),
            (r#"{"a":1}"#, r#"[{"n":null},null]"#, r#"[{},null]"#),
            (r#"{"a":1}"#, r#"{}"#, r#"{"a":1}"#),
        ];
        for (doc, patch, want) in table {
            let mut doc = v(doc);
            apply(&mut doc, v(patch)).unwrap();
            assert_eq!(doc, v(want), "{patch}");
        }
    }

    #[test]
    fn refuses_what_is_no_patch() {
        for patch in ["null", "1", "\"x\""] {
            let err = apply(&mut v("{}"), v(patch)).unwrap_err();
            assert_eq!(err, PatchError::BadRequest("Invalid JSON Patch".into()), "{patch}");
        }
        assert_eq!(
            check_decoded(&v("[]")).unwrap_err().to_string(),
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
        );
    }
}
