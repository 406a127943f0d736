//! Tables of patches and their results.

use super::*;
use crate::json::tests::v;

fn patched(doc: &str, patch: &str) -> Result<Value, PatchError> {
    let mut doc = v(doc);
    let (patch, _) = JsonPatch::decode(v(patch), Checking::Ignore)?;
    patch.apply(&mut doc, MAX_COPIED_BYTES)?;
    Ok(doc)
}

#[test]
fn applies() {
    let table = [
        (r#"{"a":1}"#, r#"[{"op":"add","path":"/b","value":2}]"#, r#"{"a":1,"b":2}"#),
        (r#"{"a":[1,3]}"#, r#"[{"op":"add","path":"/a/1","value":2}]"#, r#"{"a":[1,2,3]}"#),
        (r#"{"a":[1]}"#, r#"[{"op":"add","path":"/a/-","value":2}]"#, r#"{"a":[1,2]}"#),
        (r#"{"a":[1,2]}"#, r#"[{"op":"add","path":"/a/-1","value":9}]"#, r#"{"a":[1,2,9]}"#),
        (r#"{"a":[1,2]}"#, r#"[{"op":"replace","path":"/a/-1","value":9}]"#, r#"{"a":[1,9]}"#),
        (r#"{"a":[1,2]}"#, r#"[{"op":"remove","path":"/a/-2"}]"#, r#"{"a":[2]}"#),
        (r#"{"a":1}"#, r#"[{"op":"replace","path":"/b","value":2}]"#, r#"{"a":1,"b":2}"#),
        (r#"{"a":1}"#, r#"[{"op":"copy","from":"/x","path":"/b"}]"#, r#"{"a":1,"b":null}"#),
        (r#"{"a":1}"#, r#"[{"op":"add","path":"/b"}]"#, r#"{"a":1,"b":null}"#),
        (r#"{"a":1}"#, r#"[{"op":"add","path":"x/b","value":2}]"#, r#"{"a":1,"b":2}"#),
        (r#"{"a":{"b":1}}"#, r#"[{"op":"move","from":"/a/b","path":"/c"}]"#, r#"{"a":{},"c":1}"#),
        (
            r#"{"a/b":1,"c~1":2}"#,
            r#"[{"op":"remove","path":"/a~1b"},{"op":"test","path":"/c~01","value":2}]"#,
            r#"{"c~1":2}"#,
        ),
        (r#"{"a":1}"#, r#"[{"op":"replace","path":"","value":{"z":1}}]"#, r#"{"z":1}"#),
        (r#"{"a":1}"#, r#"[{"op":"test","path":"/zz","value":null},{"op":"test","path":"/zz"}]"#, r#"{"a":1}"#),
        (
            r#"{"a":{"x":[1,{"y":null}]}}"#,
            r#"[{"op":"test","path":"/a","value":{"x":[1,{"y":null}]}}]"#,
            r#"{"a":{"x":[1,{"y":null}]}}"#,
        ),
        (r#"{"a":1}"#, r#"[{"op":"add","path":"/","value":2}]"#, r#"{"":2,"a":1}"#),
        (r#"{"a":1}"#, "null", r#"{"a":1}"#),
    ];
    for (doc, patch, want) in table {
        assert_eq!(patched(doc, patch).unwrap(), v(want), "{patch}");
    }
}

#[test]
fn fails_with_422() {
    let table = [
        (
            r#"[{"op":"add","path":"","value":1}]"#,
            r#"add operation does not apply: doc is missing path: "": missing value"#,
        ),
        (
            r#"[{"op":"add","path":"/x/y","value":1}]"#,
            r#"add operation does not apply: doc is missing path: "/x/y": missing value"#,
        ),
        (
            r#"[{"op":"add","path":"/s/y","value":1}]"#,
            r#"add operation does not apply: doc is missing path: "/s/y": missing value"#,
        ),
        (
            r#"[{"op":"add","path":"/l/x","value":1}]"#,
            r#"error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing "x": invalid syntax"#,
        ),
        (
            r#"[{"op":"add","path":"/l/4","value":1}]"#,
            "error in add for path: '/l/4': Unable to access invalid index: 4: invalid index referenced",
        ),
        (r#"[{"op":"add"}]"#, "add operation failed to decode path: missing value"),
        (
            r#"[{"op":"remove","path":"/x"}]"#,
            "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            r#"[{"op":"replace","path":"/l/7","value":1}]"#,
            "replace operation does not apply: doc is missing key: /l/7: missing value",
        ),
        (
            r#"[{"op":"replace"}]"#,
            "replace operation failed to decode path: operation missing path field: missing value",
        ),
        (
            r#"[{"op":"replace","path":5}]"#,
            "replace operation failed to decode path: json: cannot unmarshal number into Go value of type string",
        ),
        (r#"[{"op":"replace","path":"","value":5}]"#, "replace operation value must be object or array: %!w(<nil>)"),
        (
            r#"[{"op":"move","from":"/x","path":"/y"}]"#,
            "error in move for path: 'x': Unable to remove nonexistent key: x: missing value",
        ),
        (r#"[{"op":"test","path":"/s","value":"u"}]"#, "testing value /s failed: test failed"),
        (r#"[{"op":"test","path":"/n","value":1.0}]"#, "testing value /n failed: test failed"),
        (r#"[{"op":"boom","path":"/s"}]"#, "Unexpected kind: boom"),
        (r#"[null]"#, "Unexpected kind: unknown"),
        (r#"[{"path":"/s"}]"#, "Unexpected kind: unknown"),
    ];
    for (patch, want) in table {
        let err = patched(r#"{"s":"t","n":1,"l":[1,2]}"#, patch).unwrap_err();
        assert_eq!(err, PatchError::Unprocessable(want.into()), "{patch}");
    }
}

#[test]
fn checked_decoding() {
    let table = [
        (
            r#"{"op":"add"}"#,
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        (r#"["x"]"#, "error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp"),
        (
            r#"[{"op":5}]"#,
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
        ),
    ];
    for (patch, want) in table {
        let err = JsonPatch::decode(v(patch), Checking::Checked).unwrap_err();
        assert_eq!(err, PatchError::BadRequest(want.into()));
    }
    let (_, strict) = JsonPatch::decode(v(r#"[{"op":"add","foo":1}]"#), Checking::Checked).unwrap();
    assert_eq!(strict, [r#"json patch unknown field "[0].foo""#]);
    let err = JsonPatch::decode(v("{}"), Checking::Ignore).unwrap_err();
    assert_eq!(err.to_string(), "json: cannot unmarshal object into Go value of type jsonpatch.Patch");
}

#[test]
fn too_many_operations() {
    let list = vec![v(r#"{"op":"test","path":"/zz"}"#); MAX_OPERATIONS + 1];
    let (patch, _) = JsonPatch::decode(Value::Array(list), Checking::Checked).unwrap();
    let err = patch.at_most(MAX_OPERATIONS).unwrap_err();
    assert!(matches!(err, PatchError::TooLarge(_)));
    assert_eq!(err.to_string(), "The allowed maximum operations in a JSON patch is 10000, got 10001");
}

#[test]
fn copies_are_bounded_in_size_and_depth() {
    let grow = r#"{"op":"copy","from":"/a","path":"/a/-"}"#;
    let doubling = format!("[{}]", vec![grow; 64].join(","));
    let err = patched(r#"{"a":["0123456789"]}"#, &doubling).unwrap_err();
    assert!(
        err.to_string().starts_with("Unable to complete the copy, the accumulated size increase of copy is "),
        "{err}"
    );

    // Each step puts the whole below its own deepest member.
    let steps: Vec<String> =
        (0..14).map(|i| format!(r#"{{"op":"copy","from":"/a","path":"{}"}}"#, "/a".repeat((1 << i) + 1))).collect();
    let err = patched(r#"{"a":{}}"#, &format!("[{}]", steps.join(","))).unwrap_err();
    assert_eq!(err, PatchError::Unprocessable("exceeded max depth".into()));
}
