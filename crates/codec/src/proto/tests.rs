use super::wire::{put_bytes, put_int, put_nested};
use super::*;
use crate::json;
use kubelith_catalog::builtin;
use kubelith_meta::GroupVersionKind;

fn schema(group: &str, version: &str, kind: &str) -> TypedSchema {
    builtin().kind_schema(&GroupVersionKind::new(group, version, kind)).unwrap()
}

fn pod() -> TypedSchema {
    schema("", "v1", "Pod")
}

fn message(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn read(message: &[u8]) -> Result<String, String> {
    decode(message, &pod()).map(|v| json::to_string(&v)).map_err(|e| e.to_string())
}

#[test]
fn envelopes() {
    let v = json::parse(br#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#).unwrap();
    let bytes = to_vec(&v, &pod()).unwrap();
    let envelope = Envelope::read(&bytes).unwrap();
    assert_eq!((envelope.type_meta.api_version.as_str(), envelope.type_meta.kind.as_str()), ("v1", "Pod"));
    assert_eq!((envelope.content_encoding.as_ref(), envelope.content_type.as_ref()), ("", ""));
    assert!(bytes.ends_with(&[0x1a, 0, 0x22, 0]));
    assert_eq!(from_slice(&bytes, &pod()).unwrap().str_at(&["metadata", "name"]), "a");
    for (data, want) in [
        (&b""[..], "empty data"),
        (b"{}", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (b"k8s\0", "empty body"),
        (b"k8s\0\x12\x05abc", "unexpected EOF"),
        (b"k8s\0\x10\x05", "proto: wrong wireType = 0 for field Raw"),
        (b"k8s\0\x0a\x02\x08\x01", "proto: wrong wireType = 0 for field APIVersion"),
        (b"k8s\0\x04", "proto: Unknown: wiretype end group for non-group"),
    ] {
        assert_eq!(Envelope::read(data).unwrap_err().to_string(), want);
    }
}

#[test]
fn unknown_fields_are_skipped() {
    let m = message(|out| {
        put_int(out, 1000, 5);
        put_bytes(out, 1001, b"xyz");
        put_nested(out, 1, |out| {
            put_bytes(out, 999, b"?");
            put_bytes(out, 1, b"name");
        });
        // A group.
        out.extend_from_slice(&[0x43, 0x08, 0x01, 0x44]);
    });
    assert_eq!(read(&m).as_deref(), Ok(r#"{"metadata":{"name":"name"}}"#));
}

#[test]
fn malformed_messages_are_worded_as_go_does() {
    for (m, want) in [
        (&[0x0a][..], "unexpected EOF"),
        (&[0x0a, 5, 1], "unexpected EOF"),
        (&[0x08, 1], "proto: wrong wireType = 0 for field ObjectMeta"),
        (&[0x12, 2, 0x08, 1], "proto: wrong wireType = 0 for field Volumes"),
        (&[0x0c], "proto: Pod: wiretype end group for non-group"),
        (&[0x12, 1, 0x04], "proto: PodSpec: wiretype end group for non-group"),
        (&[0x00], "proto: Pod: illegal tag 0 (wire type 0)"),
        (&[0xff; 11], "proto: integer overflow"),
        (
            &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            "proto: negative length found during unmarshaling",
        ),
    ] {
        assert_eq!(read(m), Err(want.into()), "{m:?}");
    }
}

#[test]
fn numbers_and_repetitions() {
    // supplementalGroups (4) of the security context (14): packed and one by one; negative numbers in ten bytes.
    let m = message(|out| {
        put_nested(out, 2, |out| {
            put_nested(out, 14, |out| {
                put_bytes(out, 4, &[1, 2, 0xac, 0x02]);
                put_int(out, 4, -1);
            });
            put_int(out, 4, 30);
            put_int(out, 4, 40);
        });
        // A message given twice is merged.
        put_nested(out, 1, |out| put_bytes(out, 1, b"a"));
        put_nested(out, 1, |out| put_bytes(out, 3, b"b"));
    });
    assert_eq!(
        read(&m).as_deref(),
        Ok(concat!(
            r#"{"metadata":{"name":"a","namespace":"b"},"#,
            r#""spec":{"securityContext":{"supplementalGroups":[1,2,300,-1]},"terminationGracePeriodSeconds":40}}"#
        ))
    );
    let v = json::parse(br#"{"spec":{"priority":-1}}"#).unwrap();
    let mut out = Vec::new();
    encode(&mut out, &v, &pod()).unwrap();
    let minus_one = [0xc8, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert!(out.windows(minus_one.len()).any(|w| w == minus_one));
}

#[test]
fn repeating_a_message_without_end_is_refused() {
    let many = [0x0a, 0].repeat(1000);
    assert_eq!(read(&many), Err("proto: too many repeated messages".into()));
}

#[test]
fn presence_follows_go() {
    let hex = |v: &str, schema: &TypedSchema| {
        let mut out = Vec::new();
        encode(&mut out, &json::parse(v.as_bytes()).unwrap(), schema).unwrap();
        out.iter().map(|b| format!("{b:02x}")).collect::<String>()
    };
    let secret = schema("", "v1", "Secret");
    let metadata = hex("{}", &secret);
    // Empty bytes are there, absent ones are not; type is a string and always there.
    assert!(metadata.ends_with("1a00"));
    let data = hex(r#"{"data":{"b":"","a":"aGk="}}"#, &secret);
    assert_eq!(data[metadata.len() - 4..], *"12070a01611202686912050a016212001a00");
    assert_eq!(hex(r#"{"immutable":false}"#, &secret)[metadata.len() - 4..], *"1a002800");
    assert_eq!(hex(r#"{"data":{}}"#, &secret), metadata);
    // A port's targetPort is no pointer: type, number and text are all written.
    let service = schema("", "v1", "Service");
    assert!(hex(r#"{"spec":{"ports":[{"port":80}]}}"#, &service).contains("18502206080010001a00"));
}

#[test]
fn special_values() {
    let lease = schema("coordination.k8s.io", "v1", "Lease");
    for text in [
        r#"{"spec":{"acquireTime":"2020-01-01T00:00:00.123456Z","leaseDurationSeconds":5}}"#,
        r#"{"spec":{"renewTime":"1960-01-01T00:00:00.000001Z"}}"#,
    ] {
        let v = json::parse(text.as_bytes()).unwrap();
        let mut out = Vec::new();
        encode(&mut out, &v, &lease).unwrap();
        assert_eq!(json::to_string(&decode(&out, &lease).unwrap()).replace(r#""metadata":{},"#, ""), text);
    }
    let quota = |text: &str| {
        let m = message(|out| {
            put_nested(out, 2, |out| {
                put_nested(out, 1, |out| {
                    put_bytes(out, 1, b"cpu");
                    put_nested(out, 2, |out| put_bytes(out, 1, text.as_bytes()));
                });
            });
        });
        decode(&m, &schema("", "v1", "ResourceQuota"))
            .map(|v| v.str_at(&["spec", "hard", "cpu"]).to_owned())
            .map_err(|e| e.to_string())
    };
    assert_eq!(quota("1000m").as_deref(), Ok("1"));
    assert!(quota("x").unwrap_err().starts_with("quantities must match the regular expression"));
}

#[test]
fn types_without_protobuf() {
    let table = schema("meta.k8s.io", "v1", "Table");
    let e = encode(&mut Vec::new(), &kubelith_meta::Value::object(), &table).unwrap_err();
    assert_eq!(
        e.to_string(),
        "object *v1.Table does not implement the protobuf marshalling interface and cannot be encoded to a protobuf message"
    );
}

#[test]
fn depth_is_limited() {
    let crd = schema("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let not = |n: usize| {
        let inner = format!("{}{{}}{}", "{\"not\":".repeat(n), "}".repeat(n));
        let text = format!(r#"{{"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{inner}}}}}]}}}}"#);
        json::parse(text.as_bytes()).unwrap()
    };
    let mut out = Vec::new();
    encode(&mut out, &not(150), &crd).unwrap();
    assert!(decode(&out, &crd).is_ok());
    assert_eq!(encode(&mut Vec::new(), &not(300), &crd), Err(EncodeError::TooDeep));
    // Deeper than any encoder here writes: JSONSchemaProps.not is field 26.
    let mut deep = Vec::new();
    for _ in 0..300 {
        let inner = std::mem::take(&mut deep);
        put_bytes(&mut deep, 26, &inner);
    }
    for number in [1, 4, 7, 2] {
        let inner = std::mem::take(&mut deep);
        put_bytes(&mut deep, number, &inner);
    }
    assert_eq!(decode(&deep, &crd).unwrap_err().to_string(), "proto: exceeded max depth");
}

#[test]
fn lists_are_put_together_from_their_items() {
    let items =
        [r#"{"metadata":{"name":"a"}}"#.to_owned(), format!(r#"{{"metadata":{{"name":"{}"}}}}"#, "b".repeat(300))];
    let meta = TypeMeta { api_version: "v1".into(), kind: "ConfigMapList".into() };
    let text = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMapList","metadata":{{"resourceVersion":"7"}},"items":[{}]}}"#,
        items.join(",")
    );
    let want = to_vec(&json::parse(text.as_bytes()).unwrap(), &schema("", "v1", "ConfigMapList")).unwrap();

    let messages: Vec<Vec<u8>> = items
        .iter()
        .map(|item| {
            message(|out| encode(out, &json::parse(item.as_bytes()).unwrap(), &schema("", "v1", "ConfigMap")).unwrap())
        })
        .collect();
    let table = builtin().table.clone();
    let list_meta =
        TypedSchema::named(table.clone(), table.find("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta").unwrap());
    let metadata =
        message(|out| encode(out, &json::parse(br#"{"resourceVersion":"7"}"#).unwrap(), &list_meta).unwrap());
    let frame = ListFrame::new(messages.iter().map(Vec::len));
    let mut got = frame.begin(&meta, &metadata);
    for m in &messages {
        ListFrame::item_prefix(&mut got, m.len());
        got.extend_from_slice(m);
    }
    got.extend_from_slice(&ListFrame::END);
    assert_eq!(got, want);
    assert_eq!(frame.count(), 2);
}
