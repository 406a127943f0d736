use super::*;
use kubelith_meta::field::Error;

pub fn value(text: &str) -> Value {
    fn convert(v: serde_json::Value) -> Value {
        match v {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(b) => b.into(),
            serde_json::Value::Number(n) => n.as_i64().map_or_else(|| n.as_f64().unwrap().into(), Value::from),
            serde_json::Value::String(s) => s.into(),
            serde_json::Value::Array(a) => Value::Array(a.into_iter().map(convert).collect()),
            serde_json::Value::Object(o) => Value::Object(o.into_iter().map(|(k, v)| (k, convert(v))).collect()),
        }
    }
    convert(serde_json::from_str(text).expect("tests are JSON"))
}

pub fn schema(text: &str) -> Structural {
    Structural::parse(&value(text))
}

#[test]
fn formats_are_checked() {
    let table: [(&str, &[&str], &[&str]); 12] = [
        ("uri", &["/a", "https://x/y?z", "mailto:a"], &["", "a b", "x"]),
        ("email", &["a@b", "N <a@b.c>"], &["a", "@b", "a@"]),
        ("hostname", &["a.bc", "x-y"], &["-a", "a..b"]),
        ("mac", &["00:11:22:33:44:55", "0011.2233.4455"], &["00:11", "zz:11:22:33:44:55"]),
        ("isbn", &["0321751043", "978-0321751041"], &["0321751044", "1"]),
        ("creditcard", &["4012 8888 8888 1881"], &["4012888888881882"]),
        ("date", &["2026-02-28"], &["2026-02-30", "x"]),
        (
            "date-time",
            &["2026-02-28T10:00:00Z", "2026-02-28t10:00:00.5+01:00"],
            &["2026-02-28", "2026-02-28T25:00:00Z"],
        ),
        ("duration", &["1h", "3 days", "-2.5s"], &["", "x"]),
        ("byte", &["YQ=="], &["a", "?"]),
        ("uuid4", &["9f8d3f1e-6c1b-4a57-8f0a-000000000000"], &["9f8d3f1e-6c1b-1a57-8f0a-000000000000"]),
        ("k8s-short-name", &["a-b"], &["A", "a.b"]),
    ];
    for (format, good, bad) in table {
        assert!(formats::is_known(Some(Type::String), format), "{format}");
        good.iter().for_each(|text| assert!(formats::fits(format, text), "{format}: {text}"));
        bad.iter().for_each(|text| assert!(!formats::fits(format, text), "{format}: {text}"));
    }
    assert!(!formats::is_known(Some(Type::String), "int32") && formats::is_known(Some(Type::Integer), "int32"));
}

#[test]
fn unknown_fields_go_and_are_reported() {
    let schema = schema(
        r#"{"type":"object","properties":{
            "spec":{"type":"object","properties":{
                "a":{"type":"string"},
                "keep":{"type":"object","x-kubernetes-preserve-unknown-fields":true,
                        "properties":{"inner":{"type":"object","properties":{"known":{"type":"string"}}}}},
                "list":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}},
                "map":{"type":"object","additionalProperties":{"type":"object","properties":{"x":{"type":"string"}}}},
                "res":{"type":"object","x-kubernetes-embedded-resource":true}}}}}"#,
    );
    let mut object = value(
        r#"{"apiVersion":"g/v","kind":"K","metadata":{"name":"n"},"top":1,"spec":{
            "a":"x","b":1,"keep":{"any":{"thing":1},"inner":{"known":"k","lost":1}},
            "list":[{"n":1,"m":2}],"map":{"k":{"x":"y","z":1}},
            "res":{"apiVersion":"v1","kind":"Pod","metadata":{},"spec":{}}}}"#,
    );
    let found = prune_reporting(&schema, &mut object);
    assert_eq!(found, ["spec.b", "spec.keep.inner.lost", "spec.list[0].m", "spec.map.k.z", "spec.res.spec", "top"]);
    let expected = r#"{"apiVersion":"g/v","kind":"K","metadata":{"name":"n"},"spec":{
            "a":"x","keep":{"any":{"thing":1},"inner":{"known":"k"}},
            "list":[{"n":1}],"map":{"k":{"x":"y"}},"res":{"apiVersion":"v1","kind":"Pod","metadata":{}}}}"#;
    assert_eq!(object, value(expected));
}

/// What resources have by nature needs no schema, in a default neither.
#[test]
fn defaults_of_metadata_within_stay() {
    let mut schema = schema(
        r#"{"type":"object","properties":{"res":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{
            "metadata":{"type":"object","default":{"name":"n"}},"spec":{"type":"object","default":{"lost":1}}}}}}"#,
    );
    schema.prune_defaults();
    let mut object = value(r#"{"res":{}}"#);
    apply_defaults(&schema, &mut object);
    assert_eq!(object, value(r#"{"res":{"metadata":{"name":"n"},"spec":{}}}"#));
}

#[test]
fn defaults_and_nulls() {
    let schema = schema(
        r#"{"type":"object","properties":{
            "a":{"type":"string","default":"x"},
            "b":{"type":"string","nullable":true,"default":"y"},
            "c":{"type":"string"},
            "d":{"type":"object","default":{},"properties":{"e":{"type":"integer","default":5}}},
            "l":{"type":"array","items":{"type":"object","properties":{"f":{"type":"boolean","default":true}}}}}}"#,
    );
    let mut object = value(r#"{"a":null,"b":null,"c":null,"l":[{}]}"#);
    drop_nulls(&schema, &mut object);
    apply_defaults(&schema, &mut object);
    assert_eq!(object, value(r#"{"a":"x","b":null,"d":{"e":5},"l":[{"f":true}]}"#));
}

#[test]
fn list_elements_are_unique() {
    let schema = schema(
        r#"{"type":"object","properties":{
            "s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
            "m":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
                 "items":{"type":"object","properties":{"k":{"type":"string"}}}}}}"#,
    );
    let object = value(r#"{"s":["a","b","a","a"],"m":[{"k":"x","v":1},{"k":"x","v":2},{}]}"#);
    let texts: Vec<String> = validate_lists(&schema, &object).iter().map(Error::to_string).collect();
    assert_eq!(texts, [r#"m[1]: Duplicate value: {"k":"x"}"#, r#"s[2]: Duplicate value: "a""#]);
}
