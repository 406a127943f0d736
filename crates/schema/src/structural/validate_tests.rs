use super::super::tests::{schema, value};
use super::*;

fn errors(schema_text: &str, object: &str) -> Vec<String> {
    let found = validate(&schema(schema_text), &value(object), None);
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn rules_are_worded_as_the_reference_words_them() {
    let object = |property: &str| format!(r#"{{"type":"object","properties":{{"x":{property}}}}}"#);
    let table: [(&str, &str, &[&str]); 22] = [
        (r#"{"type":"string"}"#, "1", &[r#"x: Invalid value: "integer": x in body must be of type string: "integer""#]),
        (
            r#"{"type":"integer"}"#,
            "1.5",
            &[
                r#"x: Invalid value: "number": x in body must be of type integer: "number""#,
                r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in x"#,
            ],
        ),
        (r#"{"type":"integer"}"#, "5.0", &[]),
        (r#"{"type":"number"}"#, "5", &[]),
        (r#"{"type":"string"}"#, "null", &[r#"x: Invalid value: "null": x in body must be of type string: "null""#]),
        (r#"{"type":"string","nullable":true}"#, "null", &[]),
        (r#"{"x-kubernetes-int-or-string":true}"#, r#""a""#, &[]),
        (
            r#"{"x-kubernetes-int-or-string":true}"#,
            "true",
            &[r#"x: Invalid value: "boolean": x in body must be of type integer,string: "boolean""#],
        ),
        (
            r#"{"type":"integer","maximum":3}"#,
            "4",
            &["x: Invalid value: 4: x in body should be less than or equal to 3"],
        ),
        (
            r#"{"type":"integer","minimum":3,"exclusiveMinimum":true}"#,
            "3",
            &["x: Invalid value: 3: x in body should be greater than 3"],
        ),
        (
            r#"{"type":"number","multipleOf":0.1}"#,
            "0.25",
            &["x: Invalid value: 0.25: x in body should be a multiple of 0.1"],
        ),
        (
            r#"{"type":"integer","format":"int32"}"#,
            "3000000000",
            &[r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in x"#],
        ),
        (r#"{"type":"string","maxLength":2}"#, r#""äöü""#, &["x: Too long: may not be more than 2 bytes"]),
        (
            r#"{"type":"string","minLength":4}"#,
            r#""äöü""#,
            &[r#"x: Invalid value: "äöü": x in body should be at least 4 chars long"#],
        ),
        (r#"{"type":"string","pattern":"^a$"}"#, r#""b""#, &[r#"x: Invalid value: "b": x in body should match '^a$'"#]),
        (
            r#"{"type":"string","enum":["a","b"]}"#,
            r#""c""#,
            &[r#"x: Unsupported value: "c": supported values: "a", "b""#],
        ),
        (
            r#"{"type":"string","format":"ipv4"}"#,
            r#""x""#,
            &[r#"x: Invalid value: "x": x in body must be of type ipv4: "x""#],
        ),
        (r#"{"type":"string","format":"unheard-of"}"#, r#""x""#, &[]),
        (
            r#"{"type":"array","maxItems":1,"items":{"type":"string"}}"#,
            r#"["a","b"]"#,
            &["x: Too many: 2: must have at most 1 item"],
        ),
        (
            r#"{"type":"array","minItems":1,"items":{"type":"string"}}"#,
            "[]",
            &["x: Invalid value: 0: x in body should have at least 1 items"],
        ),
        (r#"{"type":"object","required":["a"]}"#, "{}", &["x.a: Required value"]),
        (
            r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
            r#"{"k":1}"#,
            &[r#"x.k: Invalid value: "integer": x.k in body must be of type string: "integer""#],
        ),
    ];
    for (property, x, expected) in table {
        assert_eq!(errors(&object(property), &format!(r#"{{"x":{x}}}"#)), expected, "{property} on {x}");
    }
}

#[test]
fn alternatives_show_the_failure_that_fits_most() {
    let one_of = r#"{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}"#;
    assert_eq!(errors(one_of, r#"{"a":1}"#), [""; 0]);
    let both =
        r#"<nil>: Invalid value: "": "" must validate one and only one schema (oneOf). Found 2 valid alternatives"#;
    assert_eq!(errors(one_of, r#"{"a":1,"b":1}"#), [both]);
    let none = r#"<nil>: Invalid value: "": "" must validate one and only one schema (oneOf). Found none valid"#;
    assert_eq!(errors(one_of, "{}"), [none, "a: Required value"]);
    let not = r#"{"type":"object","properties":{"x":{"type":"string","not":{"enum":["no"]}}}}"#;
    assert_eq!(errors(not, r#"{"x":"no"}"#), [r#"<nil>: Invalid value: "": "x" must not validate the schema (not)"#]);
}

#[test]
fn updates_pass_over_what_they_do_not_change() {
    let schema = schema(
        r#"{"type":"object","properties":{
            "short":{"type":"string","maxLength":1},
            "atomic":{"type":"array","items":{"type":"string","maxLength":1}},
            "keyed":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{
                "type":"object","properties":{"k":{"type":"string"},"v":{"type":"string","maxLength":1}}}}}}"#,
    );
    let old = value(r#"{"short":"long","atomic":["long"],"keyed":[{"k":"a","v":"long"}]}"#);
    let table: [(&str, usize); 5] = [
        (r#"{"short":"long","atomic":["long"],"keyed":[{"k":"a","v":"long"}]}"#, 0),
        (r#"{"short":"other"}"#, 1),
        (r#"{"atomic":["long","x"]}"#, 1),
        (r#"{"keyed":[{"k":"b","v":"x"},{"k":"a","v":"long"}]}"#, 0),
        (r#"{"keyed":[{"k":"b","v":"long"},{"k":"a","v":"long"}]}"#, 1),
    ];
    for (new, expected) in table {
        assert_eq!(validate_update(&schema, &value(new), Some(&old), None).len(), expected, "{new}");
    }
}
