//! What is encoded of text is what is encoded of the values that are read from it.

use super::*;
use crate::json;
use bytes::Bytes;
use kubelith_catalog::builtin;
use kubelith_meta::{GroupVersionKind, Key, Map};

fn schema(group: &str, version: &str, kind: &str) -> TypedSchema {
    builtin().kind_schema(&GroupVersionKind::new(group, version, kind)).unwrap()
}

fn message(value: &Value, schema: &TypedSchema) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    encode(&mut out, value, schema).map(|()| out)
}

fn read(text: &Bytes) -> Vec<(Key, Value)> {
    json::parse(text).unwrap().as_object().cloned().unwrap().into_own()
}

/// The object with each of its members that is an object left as text.
fn in_text(value: &Value) -> Value {
    let part = |value: &Value| match value {
        Value::Object(map) if !map.is_empty() => Value::Object(Map::of_text(json::to_vec(value).into(), read)),
        other => other.clone(),
    };
    Value::Object(value.as_object().unwrap().iter().map(|(name, value)| (name, part(value))).collect())
}

/// Encodes an object as values, from its text, and from the text of its parts. Returns whether no text was read.
fn compare(json: &str, schema: &TypedSchema) -> bool {
    let value = json::parse(json.as_bytes()).unwrap();
    if let Some(whole) = from_json(json.as_bytes(), schema) {
        assert_eq!(whole, to_vec(&value, schema).unwrap(), "{json}");
    }
    // Some numbers are others once they are written.
    let parts = in_text(&value);
    let value = json::parse(&json::to_vec(&value)).unwrap();
    assert_eq!(message(&parts, schema), message(&value, schema), "{json}");
    let mut texts =
        parts.as_object().unwrap().values().filter_map(Value::as_object).filter(|part| part.text().is_some());
    texts.all(|part| part.unread().is_some())
}

#[test]
fn text_is_encoded_as_the_values_in_it() {
    let pod = schema("", "v1", "Pod");
    let texts = [
        r#"{}"#,
        r#"{"metadata":{},"spec":{},"status":null}"#,
        r#"{"spec":{"containers":[]}}"#,
        r#"{"spec":{"containers":[{},null,{"name":"a"}]}}"#,
        r#"{"spec":{"containers":null,"nodeName":null,"nodeSelector":{},"volumes":[{"emptyDir":{}}]}}"#,
        r#"{"metadata":{"annotations":{"a":"","b":"é\n\t\"\\ \u003c\u00e9\u2028\ud83d\ude00😀\ud800 end"}}}"#,
        r#"{"metadata":{"annotations":{"a":null,"b":1,"c":[],"d":"x"}}}"#,
        r#"{"spec":{"containers":[{"resources":{"limits":{"a":1,"b":-5,"c":"1Gi","d":"","e":null,"f":1.5}}}]}}"#,
        r#"{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":80}}},{"livenessProbe":{"httpGet":{"port":"http"}}}]}}"#,
        r#"{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":null}}},{"livenessProbe":{"httpGet":{}}}]}}"#,
        r#"{"spec":{"priority":-1,"securityContext":{"supplementalGroups":[1,9223372036854775807,-9223372036854775808]}}}"#,
        r#"{"spec":{"activeDeadlineSeconds":9223372036854775808,"priority":1.0,"terminationGracePeriodSeconds":1e2}}"#,
        r#"{"spec":{"priority":"1","nodeName":5,"hostNetwork":"true","containers":{"a":1},"nodeSelector":[1]}}"#,
        r#"{"status":{"startTime":"2020-01-01T00:00:00Z","conditions":[{"lastProbeTime":null,"type":"Ready"}]}}"#,
        r#"{"status":{"startTime":"","conditions":[{"lastProbeTime":"not a time","status":"True"}]}}"#,
        r#"{"spec":{"hostNetwork":true,"hostPID":false,"unknown":{"a":[[[{"b":[1,{}]}]]]},"zzz":1}}"#,
        r#"{"spec":{"unknown":[[],{}],"nodeName":"n"},"status":{"phase":"Running"}}"#,
    ];
    for text in texts {
        assert!(compare(text, &pod), "{text} was read");
        let json = json::to_vec(&json::parse(text.as_bytes()).unwrap());
        assert!(from_json(&json, &pod).is_some(), "{text}");
    }
}

#[test]
fn text_of_special_types() {
    let long = "x".repeat(200);
    let revision = |data: &str| (schema("apps", "v1", "ControllerRevision"), format!(r#"{{"data":{data}}}"#));
    let crd = |field: &str| {
        let text = format!(r#"{{"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{{{field}}}}}}}]}}}}"#);
        (schema("apiextensions.k8s.io", "v1", "CustomResourceDefinition"), text)
    };
    let cases = [
        (schema("", "v1", "Secret"), r#"{"data":{"a":"aGk=","b":"","c":null,"d":"!","e":"aGk"}}"#.to_owned()),
        (schema("", "v1", "ConfigMap"), r#"{"binaryData":{"a":"aGk="},"data":{"a":"1\n2","b":"\u0026"}}"#.to_owned()),
        (
            schema("coordination.k8s.io", "v1", "Lease"),
            r#"{"spec":{"renewTime":"1960-01-01T00:00:00.000001Z"}}"#.to_owned(),
        ),
        (schema("", "v1", "ResourceQuota"), r#"{"spec":{"hard":{"cpu":1,"memory":"1Gi"}}}"#.to_owned()),
        revision(r#"{"a":[1,null,1.5,"\u003c",true,{}]}"#),
        revision(&format!(r#"{{"a":"{long}","b":[1e40,-0.25]}}"#)),
        revision("null"),
        crd(r#""default":{"a":[1,null]},"enum":[1,"a\u003c",null,1.5,[],{}],"example":"x""#),
        crd(r#""maximum":1.5,"minimum":-3,"multipleOf":null"#),
        crd(r#""items":[{"type":"a"},{},null]"#),
        crd(r#""items":{"type":"a"}"#),
        crd(r#""additionalProperties":{"not":{"type":"x"}}"#),
        crd(r#""additionalProperties":true"#),
        crd(r#""additionalProperties":null"#),
        crd(r#""dependencies":{"a":["b",null],"c":{},"d":1}"#),
        crd(&format!(r#""default":{{"a":"{long}"}},"properties":{{"x":{{"items":{{}}}}}}"#)),
    ];
    for (schema, text) in cases {
        assert!(compare(&text, &schema), "{text} was read");
        assert!(from_json(text.as_bytes(), &schema).is_some(), "{text}");
    }
    // Lists of lists of strings, and field sets, which stay as they are.
    let review = r#"{"spec":{"extra":{"a":["b","c"],"d":[]},"groups":["g"]}}"#;
    assert!(compare(review, &schema("authorization.k8s.io", "v1", "SubjectAccessReview")));
    let fields = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"managedFields":[{"fieldsV1":{"f:z":{},"f:a":{"k:{\"a\":\"b\"}":{}}}},{"fieldsV1":null}],"name":"a"}}"#;
    let value = json::parse_stored(fields.as_bytes()).unwrap();
    let pod = schema("", "v1", "Pod");
    assert_eq!(from_json(fields.as_bytes(), &pod).unwrap(), to_vec(&value, &pod).unwrap());
}

#[test]
fn other_texts_are_read() {
    let pod = schema("", "v1", "Pod");
    for text in [
        r#"{"spec":{"nodeSelector":{"a\"b":"c"}}}"#,
        r#"{"spec":{"nodeSelector":{"b":"1","a":"2"}}}"#,
        r#"{"spec":{"nodeName":"a","nodeName":"b"}}"#,
        r#"{"spec" :{"nodeName":"a"}}"#,
        r#"{"spec":{"nodeName":"a" }}"#,
        "{\"spec\":{\"nodeName\":\"a\u{1}\"}}",
        r#"{"spec":{"nodeName":"\x"}}"#,
        r#"{"spec":{"priority":1e999}}"#,
        r#"{"spec":{"priority":01}}"#,
        r#"{"spec":{"priority":-0}}"#,
        r#"{"spec":{"priority":1,}}"#,
        r#"{"spec":{"containers":[1,]}}"#,
        r#"{"spec":{"containers":[}}"#,
        r#"{"spec":{"hostNetwork":tru}}"#,
        r#"{"spec":{}}{}"#,
        "",
    ] {
        assert_eq!(from_json(text.as_bytes(), &pod), None, "{text}");
    }
    let whole =
        r#"{"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"name":"a"}],"hostNetwork":true,"priority":-1.5}}"#;
    for end in 0..whole.len() {
        assert_eq!(from_json(&whole.as_bytes()[..end], &pod), None, "to {end}");
    }
    assert_eq!(from_json(b"{\"spec\":{\"nodeName\":\"\xff\"}}", &pod), None, "no text");
    // In the object itself names may be in any order, and the last one counts.
    let mixed =
        r#"{"spec":{"nodeName":"a"},"metadata":{"name":"a"},"kind":"P","kind":"Pod","spec":null,"apiVersion":"v1"}"#;
    let value = json::parse(mixed.as_bytes()).unwrap();
    assert_eq!(from_json(mixed.as_bytes(), &pod).unwrap(), to_vec(&value, &pod).unwrap());
    let table = schema("meta.k8s.io", "v1", "Table");
    assert_eq!(from_json(b"{}", &table), None, "it has no message");
}

#[test]
fn text_is_as_deep_as_values_may_be() {
    let crd = schema("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    for n in [0, 50, 90, 93, 94, 95, 96, 100, 150, 194, 195, 196, 197, 300] {
        let inner = format!("{}{{}}{}", "{\"not\":".repeat(n), "}".repeat(n));
        let text = format!(r#"{{"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{inner}}}}}]}}}}"#);
        let was_text = compare(&text, &crd);
        assert_eq!(was_text, n < 96, "{n}");
    }
    // What nobody encodes does not count.
    let pod = schema("", "v1", "Pod");
    let unknown = |n: usize| format!(r#"{{"spec":{{"unknown":{}1{}}}}}"#, "[".repeat(n), "]".repeat(n));
    assert!(compare(&unknown(50), &pod) && !compare(&unknown(5_000), &pod));
    assert_eq!(from_json("[".repeat(1_000_000).as_bytes(), &pod), None);
}
