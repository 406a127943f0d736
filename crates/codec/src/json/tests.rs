use super::*;
use kubelith_meta::Value;

fn message(json: &str) -> String {
    parse(json.as_bytes()).unwrap_err().to_string()
}

#[test]
fn reads_values() {
    for (json, want) in [
        ("null", Value::Null),
        (" true ", Value::Bool(true)),
        ("-0", Value::Int(0)),
        ("9223372036854775807", Value::Int(i64::MAX)),
        ("9223372036854775808", Value::Float(9223372036854775808.0)),
        ("1e2", Value::Float(100.0)),
        ("3.0", Value::Float(3.0)),
        (r#""""#, "".into()),
        (r#""a\u00e9\n\"\/\\""#, "aé\n\"/\\".into()),
        (r#""\ud83d\ude00""#, "😀".into()),
        (r#""\ud83d""#, "\u{fffd}".into()),
        (r#""\ud83d\ud83d\ude00""#, "\u{fffd}😀".into()),
        (r#""\ude00x\ud83d\u0041""#, "\u{fffd}x\u{fffd}A".into()),
        ("[]", Value::Array(vec![])),
        ("[ [ ] , { } ]", Value::Array(vec![Value::Array(vec![]), Value::object()])),
        (
            r#"{"b":1,"a":[2,{"c":3}]}"#,
            Value::from([("a", Value::Array(vec![2i64.into(), [("c", 3i64)].into()])), ("b", 1i64.into())]),
        ),
        (r#"{"a":1,"b":2,"a":3}"#, [("a", 3i64), ("b", 2)].into()),
    ] {
        assert_eq!(parse(json.as_bytes()).unwrap(), want, "{json}");
    }
}

#[test]
fn repairs_utf8_byte_by_byte() {
    assert_eq!(parse(b"\"a\xe2\x82z\xff\"").unwrap(), "a\u{fffd}\u{fffd}z\u{fffd}".into());
    assert_eq!(parse(b"\"\\n\xf0\x9f\x98\"").unwrap(), "\n\u{fffd}\u{fffd}\u{fffd}".into());
    assert_eq!(parse(b"{\"\xff\":1}").unwrap(), [("\u{fffd}", 1i64)].into());
}

/// The right-hand sides are what Go's encoding/json says.
#[test]
fn errors_are_worded_as_go_does() {
    for (json, want) in [
        ("", "unexpected end of JSON input"),
        ("  ", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ("[1,", "unexpected end of JSON input"),
        ("{\"a\"", "unexpected end of JSON input"),
        ("\"abc", "unexpected end of JSON input"),
        ("\"abc\\n", "unexpected end of JSON input"),
        ("\"abc\\", "invalid character ' ' in string escape code"),
        ("\"\\u12", "invalid character ' ' in \\u hexadecimal character escape"),
        ("\"\\u12x", "invalid character 'x' in \\u hexadecimal character escape"),
        ("\"\\'\"", "invalid character '\\'' in string escape code"),
        ("\"\t\"", "invalid character '\\t' in string literal"),
        ("\"a\\n\u{1}\"", "invalid character '\\x01' in string literal"),
        ("garbage", "invalid character 'g' looking for beginning of value"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("{1", "invalid character '1' looking for beginning of object key string"),
        ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
        ("{\"a\" 1", "invalid character '1' after object key"),
        ("{\"a\":010}", "invalid character '1' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1}", "invalid character '}' after array element"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("{}{", "invalid character '{' after top-level value"),
        ("nil", "invalid character 'i' in literal null (expecting 'u')"),
        ("tru", "invalid character ' ' in literal true (expecting 'e')"),
        ("fals?", "invalid character '?' in literal false (expecting 'e')"),
        ("-", "invalid character ' ' in numeric literal"),
        ("-a", "invalid character 'a' in numeric literal"),
        ("1.", "invalid character ' ' after decimal point in numeric literal"),
        ("1.e", "invalid character 'e' after decimal point in numeric literal"),
        ("1e+", "invalid character ' ' in exponent of numeric literal"),
        ("\u{81}", "invalid character '\u{c2}' looking for beginning of value"),
        ("'", "invalid character '\\'' looking for beginning of value"),
        ("[1e999]", "json: cannot unmarshal number 1e999 into Go value of type float64"),
    ] {
        assert_eq!(message(json), want, "{json:?}");
    }
    assert_eq!(parse(b"\x81").unwrap_err().to_string(), "invalid character '\\u0081' looking for beginning of value");
}

#[test]
fn nesting_is_limited() {
    let deep = |n: usize| [b"[".repeat(n), b"]".repeat(n)].concat();
    validate(&deep(MAX_DEPTH)).unwrap();
    let want = "invalid character '[' exceeded max depth";
    assert_eq!(validate(&deep(MAX_DEPTH + 1)).unwrap_err().to_string(), want);
    assert_eq!(parse(&deep(MAX_DEPTH + 1)).unwrap_err().to_string(), want);
    assert_eq!(parse(&b"{\"a\":".repeat(MAX_DEPTH + 1)).unwrap_err().to_string(), want.replace('[', "{"));
    assert_eq!(parse(&b"[".repeat(1_000_000)).unwrap_err().to_string(), want);
}

#[test]
fn duplicates_are_reported_with_their_paths() {
    for (json, want) in [
        (r#"{"a":1}"#, vec![]),
        (r#"{"a":1,"a":2}"#, vec!["a"]),
        (r#"{"b":1,"a":2,"b":3,"a":4}"#, vec!["b", "a"]),
        (r#"{"spec":{"l":[0,{"x":{"y":1,"y":2}},[[1,{"z":1,"z":2}]]]}}"#, vec!["spec.l[1].x.y", "spec.l[2][0][1].z"]),
        // Once per path, the outer one before what is inside its second value.
        (r#"{"a":1,"a":{"b":1,"b":2,"b":3},"a":0}"#, vec!["a", "a.b"]),
        (r#"[{"a":1},{"b":1,"b":2}]"#, vec!["[1].b"]),
    ] {
        let strict = parse_strict(json.as_bytes()).unwrap().strict;
        let want: Vec<_> = want.into_iter().map(|p| StrictError::DuplicateField(p.into())).collect();
        assert_eq!(strict, want, "{json}");
    }
    assert_eq!(StrictError::DuplicateField("a.\"b".into()).to_string(), r#"duplicate field "a.\"b""#);
}

#[test]
fn many_unsorted_keys_are_compared_and_complaints_limited() {
    let keys: Vec<_> = (0..500).map(|i| format!("\"k{}\":0", (i * 7) % 250)).collect();
    let strict = parse_strict(format!("{{{}}}", keys.join(",")).as_bytes()).unwrap().strict;
    assert_eq!(strict.len(), MAX_STRICT_ERRORS);
    assert_eq!(strict[0], StrictError::DuplicateField("k0".into()));
    assert_eq!(strict[99], StrictError::DuplicateField("k193".into()));
}

#[test]
fn writes_as_go_does() {
    let v = parse(r#"{"s":"<a&b>\u2028\u2029\u2030\u0001\b\f\n\r\t\"\\\u007fé😀","f":[0.1,1e21,1e-7,1.5e-10,100.0,-2.5,123456789012345680000]}"#.as_bytes()).unwrap();
    assert_eq!(
        to_string(&v),
        concat!(
            r#"{"f":[0.1,1e+21,1e-7,1.5e-10,100,-2.5,123456789012345680000],"#,
            r#""s":"\u003ca\u0026b\u003e\u2028\u2029‰\u0001\b\f\n\r\t\"\\"#,
            "\u{7f}é😀\"}"
        )
    );
}

#[test]
fn pretty_is_two_spaces() {
    let json = r#"{"a":[],"b":{},"c":[1,{"d":"x: {,}\""}],"e":null}"#;
    let want = "{\n  \"a\": [],\n  \"b\": {},\n  \"c\": [\n    1,\n    {\n      \"d\": \"x: {,}\\\"\"\n    }\n  ],\n  \"e\": null\n}";
    let mut out = Vec::new();
    write_pretty(&mut out, &parse(json.as_bytes()).unwrap());
    assert_eq!(String::from_utf8(out).unwrap(), want);
    let mut out = Vec::new();
    reindent(&mut out, json.as_bytes());
    assert_eq!(String::from_utf8(out).unwrap(), want);
}

#[test]
fn kind_is_found_and_the_rest_checked() {
    let meta = |json: &str| type_meta(json.as_bytes()).map_err(|e| e.to_string());
    let want = TypeMeta { api_version: "v1".into(), kind: "Pod".into() };
    assert_eq!(meta(r#"{"spec":{"a":[1,{}]},"kind":"Pod","apiVersion":"v1"}"#), Ok(want));
    assert_eq!(meta("null"), Ok(TypeMeta::default()));
    let st = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let p = "couldn't get version/kind; json parse error: ";
    for (json, want) in [
        ("", "unexpected end of JSON input".to_owned()),
        ("[]", format!("json: cannot unmarshal array into Go value of type {st}")),
        ("[1", "unexpected end of JSON input".to_owned()),
        ("\"x\"", format!("json: cannot unmarshal string into Go value of type {st}")),
        ("5 x", "invalid character 'x' after top-level value".to_owned()),
        (r#"{"kind":5}"#, "json: cannot unmarshal number into Go struct field .kind of type string".to_owned()),
        (
            r#"{"kind":{"a":1},"apiVersion":[]}"#,
            "json: cannot unmarshal object into Go struct field .kind of type string".to_owned(),
        ),
        (r#"{"kind":5,}"#, "invalid character '}' looking for beginning of object key string".to_owned()),
    ] {
        assert_eq!(meta(json), Err(format!("{p}{want}")), "{json}");
    }
}

#[test]
fn missing_parts_of_the_kind_come_from_the_default() {
    let default = kubelith_meta::GroupVersionKind::new("apps", "v1", "Deployment");
    for (api_version, kind, want) in [
        ("", "", ("apps", "v1", "Deployment")),
        ("", "Scale", ("apps", "v1", "Scale")),
        ("v1", "", ("", "v1", "Deployment")),
        ("batch/v1", "Job", ("batch", "v1", "Job")),
    ] {
        let meta = TypeMeta { api_version: api_version.into(), kind: kind.into() };
        let (g, v, k) = want;
        assert_eq!(meta.with_defaults(&default).unwrap(), kubelith_meta::GroupVersionKind::new(g, v, k));
    }
    let bad = TypeMeta { api_version: "a/b/c".into(), ..TypeMeta::default() };
    assert_eq!(bad.with_defaults(&default).unwrap_err().to_string(), "unexpected GroupVersion string: a/b/c");
}

#[test]
fn deep_values_are_written_without_recursion() {
    for n in [100, 128, 129, 130, 1000] {
        for (open, inner, close) in [("[1,", "[]", ",2]"), ("{\"a\":", "{}", ",\"b\":\"[\"}"), ("[[],{},", "null", "]")]
        {
            let text = format!("{}{inner}{}", open.repeat(n), close.repeat(n));
            assert_eq!(to_string(&parse(text.as_bytes()).unwrap()), text);
        }
    }
}

#[test]
fn stored_objects_keep_field_sets_as_text() {
    let text = r#"{"fieldsV1":{"a":1},"metadata":{"managedFields":[{"fieldsV1":{"f:a":{".":{}}},"manager":"m"},{"fieldsV1":null}]}}"#;
    let stored = parse_stored(text.as_bytes()).unwrap();
    let entries = stored.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap();
    assert_eq!(entries[0].get("fieldsV1"), Some(&Value::Raw(r#"{"f:a":{".":{}}}"#.into())));
    assert_eq!(entries[1].get("fieldsV1"), Some(&Value::Null));
    assert_eq!(stored.get("fieldsV1"), Some(&parse(br#"{"a":1}"#).unwrap()));
    assert_eq!(to_string(&stored), text);
    let mut unfolded = stored;
    unfold_fields(&mut unfolded);
    assert_eq!(unfolded, parse(text.as_bytes()).unwrap());
}

#[test]
fn patches_keep_numbers_as_they_are_written() {
    let table = [
        (r#"{"a":[1,-5,1.5]}"#, false, None),
        (r#"{"a":3.0}"#, true, None),
        (r#"{"a":1e2}"#, true, None),
        (r#"{"a":99999999999999999999}"#, true, None),
        (r#"{"a":1e400}"#, true, Some("1e400")),
    ];
    for (text, raw, bad) in table {
        let parsed = parse_patch(text.as_bytes(), Strictness::Report).unwrap();
        assert_eq!((parsed.has_raw_numbers, parsed.bad_number.as_deref()), (raw, bad), "{text}");
        assert_eq!(to_string(&parsed.value), text);
    }
}

/// A pod whose spec, and the larger container in it, are long enough to be left as text.
fn finished() -> (bytes::Bytes, Value) {
    let env: Vec<String> = (0..12).map(|i| format!(r#"{{"name":"SETTING_{i}","value":"<{i}> \"}}]"}}"#)).collect();
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"labels":{{"a":"{long}"}},"managedFields":[{{"fieldsV1":{{"f:spec":{{}}}}}}],"name":"a"}},"spec":{{"containers":[{{"env":[{env}],"name":"large"}},{{"name":"small"}}],"nodeName":"n"}},"status":{{"phase":"Pending"}}}}"#,
        long = "x".repeat(200),
        env = env.join(","),
    );
    let mut written = Vec::new();
    compact(&mut written, text.as_bytes()).unwrap();
    let value = parse_stored(&written).unwrap();
    (written.into(), value)
}

#[test]
fn parts_of_what_is_finished_are_read_when_they_are_looked_into() {
    let (text, whole) = finished();
    let object = parse_finished(&text).unwrap();
    let part = |value: &Value, path: &[&str]| value.at(path).and_then(Value::as_object).cloned().unwrap();
    assert!(part(&object, &["spec"]).is_sealed() && !part(&object, &["metadata"]).is_sealed());
    assert_eq!(part(&object, &["status"]).text(), None, "it is short");
    let spec = part(&object, &["spec"]);
    let is_in_text = |part: &[u8]| text.as_ptr_range().contains(&part.as_ptr());
    assert!(is_in_text(spec.text().unwrap()));
    // It is what it would have been if it had been read at once, however it is looked at.
    assert_eq!(to_vec(&object), to_vec(&whole));
    assert_eq!(spec.get("nodeName"), Some(&Value::from("n")));
    let containers = spec.get("containers").unwrap().items();
    let texts: Vec<bool> = containers.iter().map(|c| c.as_object().unwrap().text().is_some()).collect();
    assert_eq!(texts, [true, false]);
    assert!(is_in_text(containers[0].as_object().unwrap().text().unwrap()));
    assert_eq!(object, whole);
    assert_eq!(to_vec(&object), to_vec(&whole));
}

#[test]
fn a_part_that_was_changed_is_not_written_as_it_was() {
    let (text, mut whole) = finished();
    for change in [["nodeName", "m"], ["zone", "z"]] {
        let mut object = parse_finished(&text).unwrap();
        let original = object.clone();
        object.set_at(&["spec", change[0]], change[1].into());
        whole.set_at(&["spec", change[0]], change[1].into());
        let spec = object.get("spec").and_then(Value::as_object).unwrap();
        assert!(spec.text().is_none() && !spec.is_sealed());
        assert!(spec.get("containers").unwrap().items()[0].as_object().unwrap().text().is_some(), "nobody changed it");
        assert_eq!(to_vec(&object), to_vec(&whole));
        assert_ne!(object, original);
        assert_eq!(to_vec(&original), &text[..], "copies stay as they were");
        whole.set_at(&["spec"], parse_stored(&text).unwrap().get("spec").unwrap().clone());
    }
}

#[test]
fn equal_parts_are_equal_whether_they_were_read_or_not() {
    let (text, _) = finished();
    let (a, b) = (parse_finished(&text).unwrap(), parse_finished(&text).unwrap());
    assert!(!a.shares("spec", &b) && a.shares("spec", &a.clone()));
    assert_eq!(a, b);
    let other = String::from_utf8(text.to_vec()).unwrap().replace("SETTING_3", "SETTING_4");
    assert_ne!(a, parse_finished(&other.into()).unwrap());
}

#[test]
#[should_panic(expected = "cannot be read")]
fn a_part_that_is_broken_is_not_taken_for_an_empty_one() {
    let (text, _) = finished();
    let broken = String::from_utf8(text.to_vec()).unwrap().replace(r#""nodeName":"n""#, r#""nodeName":n"#);
    let object = parse_finished(&broken.into()).unwrap();
    object.at(&["spec", "nodeName"]);
}
