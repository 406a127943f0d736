use super::*;
use crate::json;
use kubelith_meta::Value;
use kubelith_schema::{Field, GoField, Presence, Schema, Shape, StructType, TypeId, TypeTable};
use std::sync::Arc;

fn schema(shape: Shape) -> Schema {
    Schema { shape, ..Schema::default() }
}

fn list(item: Shape) -> Shape {
    Shape::List(Box::new(schema(item)))
}

fn map(value: Shape) -> Shape {
    Shape::Map(Box::new(schema(value)))
}

/// Fields whose names end in `?` are pointers, lists or maps.
fn ty(name: &str, fields: Vec<(&str, Shape)>) -> StructType {
    let mut fields: Vec<Field> = fields
        .into_iter()
        .map(|(name, shape)| Field {
            name: name.trim_end_matches('?').into(),
            schema: schema(shape),
            required: false,
            presence: Presence { nilable: name.ends_with('?'), ..Presence::default() },
        })
        .collect();
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    let go = fields.iter().filter_map(|field| {
        let (type_name, embedded) = match field.name.as_str() {
            "uid" => ("types.UID", ""),
            "imagePullPolicy" => ("v1.PullPolicy", ""),
            "hostPath" => ("", "VolumeSource"),
            _ => return None,
        };
        Some(GoField { name: field.name.clone(), type_name: type_name.into(), embedded: embedded.into() })
    });
    StructType { name: name.into(), go: go.collect(), fields: fields.into(), ..StructType::default() }
}

/// A pocket edition of the API.
fn pod() -> TypedSchema {
    let id = TypeId;
    let types = vec![
        ty(
            "io.k8s.api.core.v1.Pod",
            vec![
                ("apiVersion", Shape::String),
                ("kind", Shape::String),
                ("metadata", Shape::Named(id(1))),
                ("spec", Shape::Named(id(2))),
            ],
        ),
        ty(
            "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
            vec![
                ("name", Shape::String),
                ("uid", Shape::String),
                ("labels?", map(Shape::String)),
                ("creationTimestamp", Shape::Time),
                ("generation", Shape::Int64),
            ],
        ),
        ty(
            "io.k8s.api.core.v1.PodSpec",
            vec![
                ("containers?", list(Shape::Named(id(3)))),
                ("hostNetwork", Shape::Bool),
                ("priority?", Shape::Int32),
                ("volumes?", list(Shape::Named(id(4)))),
                ("overhead?", map(Shape::Quantity)),
                ("schema?", Shape::Named(id(5))),
                ("raw", Shape::RawExtension),
                ("any", Shape::Any),
                ("ratio", Shape::Float),
                ("secret?", map(Shape::Bytes)),
                ("renewTime?", Shape::MicroTime),
                ("timeout?", Shape::Duration),
                ("port", Shape::IntOrString),
                ("extra?", map(list(Shape::String))),
            ],
        ),
        ty(
            "io.k8s.api.core.v1.Container",
            vec![
                ("name", Shape::String),
                ("imagePullPolicy", Shape::String),
                ("args?", list(Shape::String)),
                ("tty", Shape::Bool),
            ],
        ),
        ty("io.k8s.api.core.v1.Volume", vec![("name", Shape::String), ("hostPath?", Shape::Named(id(3)))]),
        ty(
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps",
            vec![
                ("type", Shape::String),
                ("items?", Shape::JsonSchemaOrArray(id(5))),
                ("additionalProperties?", Shape::JsonSchemaOrBool(id(5))),
                ("dependencies?", map(Shape::JsonSchemaOrStrings(id(5)))),
                ("not?", Shape::Named(id(5))),
                ("default?", Shape::Json),
                ("enum?", list(Shape::Json)),
            ],
        ),
    ];
    TypedSchema::named(Arc::new(TypeTable::new(types)), id(0))
}

fn read(text: &str) -> Result<Decoded, DecodeError> {
    decode(text.as_bytes(), &pod(), Strictness::Report)
}

fn spec(text: &str) -> Result<String, String> {
    match read(&format!(r#"{{"spec":{text}}}"#)) {
        Ok(d) => Ok(d.value.get("spec").map_or("absent".into(), json::to_string)),
        Err(e) => Err(e.to_string()),
    }
}

#[test]
fn values_are_pruned_and_put_in_form() {
    for (text, want) in [
        (r#"{"hostNetwork":true,"priority":-5,"bogus":{"a":[1]}}"#, r#"{"hostNetwork":true,"priority":-5}"#),
        (r#"{"ratio":1}"#, r#"{"ratio":1}"#),
        (r#"{"containers":[]}"#, r#"{"containers":[]}"#),
        (r#"{"containers":[{"x":1},{"name":"b","args":["x"]}]}"#, r#"{"containers":[{},{"args":["x"],"name":"b"}]}"#),
        (
            r#"{"overhead":{"cpu":"0.5","memory":1024,"x":" 1Gi "}}"#,
            r#"{"overhead":{"cpu":"500m","memory":"1024","x":"1Gi"}}"#,
        ),
        (r#"{"renewTime":"2020-01-02T03:04:05.123456+01:00"}"#, r#"{"renewTime":"2020-01-02T02:04:05.123456Z"}"#),
        (r#"{"timeout":"90s"}"#, r#"{"timeout":"1m30s"}"#),
        (r#"{"port":80}"#, r#"{"port":80}"#),
        (r#"{"port":"http"}"#, r#"{"port":"http"}"#),
        (r#"{"secret":{"a":"aGk=","b":"aG\nk="}}"#, r#"{"secret":{"a":"aGk=","b":"aGk="}}"#),
        (r#"{"raw":{"b":[1,null],"a":{"x":1.5}}}"#, r#"{"raw":{"a":{"x":1.5},"b":[1,null]}}"#),
        (r#"{"secret":{"a":[104,105],"b":[],"c":[null]}}"#, r#"{"secret":{"a":"aGk=","b":"","c":"AA=="}}"#),
        // Null means absent, but in lists and maps it is a zero.
        (r#"{"priority":null,"hostNetwork":null,"containers":null,"raw":null,"port":null,"any":null}"#, "{}"),
        (
            r#"{"containers":[null],"overhead":{"cpu":null},"extra":{"a":null,"b":[null]}}"#,
            r#"{"containers":[{}],"extra":{"a":null,"b":[""]},"overhead":{"cpu":"0"}}"#,
        ),
        ("null", "absent"),
        ("{}", "{}"),
    ] {
        assert_eq!(spec(text).as_deref(), Ok(want), "{text}");
    }
    let meta = read(r#"{"metadata":{"creationTimestamp":"2020-01-02T03:04:05.9+02:00"}}"#).unwrap().value;
    assert_eq!(meta.str_at(&["metadata", "creationTimestamp"]), "2020-01-02T01:04:05Z");
    assert_eq!(read("null").unwrap().value, kubelith_meta::Value::object());
}

#[test]
fn wrong_types_are_worded_as_go_does() {
    let p = "json: cannot unmarshal ";
    for (text, want) in [
        ("[]", "array into Go value of type v1.Pod"),
        (r#""x""#, "string into Go value of type v1.Pod"),
        (r#"{"metadata":[]}"#, "array into Go struct field Pod.metadata of type v1.ObjectMeta"),
        (r#"{"metadata":{"name":5}}"#, "number into Go struct field ObjectMeta.metadata.name of type string"),
        (r#"{"metadata":{"uid":5}}"#, "number into Go struct field ObjectMeta.metadata.uid of type types.UID"),
        (r#"{"metadata":{"labels":{"a":5}}}"#, "number into Go struct field ObjectMeta.metadata.labels of type string"),
        (
            r#"{"metadata":{"labels":["a"]}}"#,
            "array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        (
            r#"{"metadata":{"creationTimestamp":5}}"#,
            "number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
        ),
        (r#"{"kind":[]}"#, "array into Go struct field Pod.TypeMeta.kind of type string"),
        (r#"{"spec":{"priority":3.0}}"#, "number 3.0 into Go struct field PodSpec.spec.priority of type int32"),
        (
            r#"{"spec":{"priority":2147483648}}"#,
            "number 2147483648 into Go struct field PodSpec.spec.priority of type int32",
        ),
        (r#"{"spec":{"priority":"1"}}"#, "string into Go struct field PodSpec.spec.priority of type int32"),
        (r#"{"spec":{"hostNetwork":1}}"#, "number into Go struct field PodSpec.spec.hostNetwork of type bool"),
        (r#"{"spec":{"ratio":1e999}}"#, "number 1e999 into Go struct field PodSpec.spec.ratio of type float64"),
        (r#"{"spec":{"any":[1e999]}}"#, "number 1e999 into Go struct field PodSpec.spec.any of type float64"),
        (r#"{"spec":{"port":1.5}}"#, "number 1.5 into Go struct field PodSpec.spec.port of type int32"),
        (r#"{"spec":{"port":true}}"#, "bool into Go struct field PodSpec.spec.port of type int32"),
        (
            r#"{"spec":{"containers":{"a":{}}}}"#,
            "object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            r#"{"spec":{"containers":["x"]}}"#,
            "string into Go struct field PodSpec.spec.containers of type v1.Container",
        ),
        (
            r#"{"spec":{"containers":[{"name":[{}]}]}}"#,
            "array into Go struct field Container.spec.containers.name of type string",
        ),
        (
            r#"{"spec":{"containers":[{"imagePullPolicy":1}]}}"#,
            "number into Go struct field Container.spec.containers.imagePullPolicy of type v1.PullPolicy",
        ),
        (
            r#"{"spec":{"containers":[{"args":[1]}]}}"#,
            "number into Go struct field Container.spec.containers.args of type string",
        ),
        (
            r#"{"spec":{"volumes":[{"hostPath":"x"}]}}"#,
            "string into Go struct field Volume.spec.volumes.VolumeSource.hostPath of type v1.Container",
        ),
        (r#"{"spec":{"secret":{"a":5}}}"#, "number into Go struct field PodSpec.spec.secret of type []uint8"),
        (r#"{"spec":{"secret":{"a":[256]}}}"#, "number 256 into Go struct field PodSpec.spec.secret of type uint8"),
        // The first one counts.
        (
            r#"{"spec":{"priority":"a","hostNetwork":"b"}}"#,
            "string into Go struct field PodSpec.spec.priority of type int32",
        ),
        // Inside JSONSchemaProps' sum types, too.
        (
            r#"{"spec":{"schema":{"items":{"type":5}}}}"#,
            "number into Go struct field JSONSchemaProps.spec.schema.items.type of type string",
        ),
        (
            r#"{"spec":{"schema":{"items":[{"type":5}]}}}"#,
            "number into Go struct field JSONSchemaProps.spec.schema.items.type of type string",
        ),
    ] {
        assert_eq!(read(text).map_err(|e| e.to_string()).unwrap_err(), format!("{p}{want}"), "{text}");
    }
}

#[test]
fn errors_have_an_order() {
    for (text, want) in [
        // Syntax before all, a value that parses itself before a wrong type.
        (r#"{"spec":{"priority":"a","overhead":{"cpu":"x"}}"#, "unexpected end of JSON input"),
        (
            r#"{"spec":{"priority":"a","overhead":{"cpu":"x"}}}"#,
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            r#"{"spec":{"overhead":{"cpu":[1]}}}"#,
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (r#"{"spec":{"secret":{"a":"abc"}}}"#, "illegal base64 data at input byte 0"),
        (r#"{"spec":{"schema":{"additionalProperties":"x"}}}"#, "boolean or JSON schema expected"),
        (
            r#"{"metadata":{"creationTimestamp":"yesterday"}}"#,
            "parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"yesterday\" as \"2006\"",
        ),
        (r#"{"spec":{"timeout":"x"}}"#, "time: invalid duration \"x\""),
    ] {
        assert_eq!(read(text).map_err(|e| e.to_string()).unwrap_err(), want, "{text}");
    }
}

#[test]
fn strict_errors_come_in_document_order() {
    let strict = |text: &str| -> Vec<String> { read(text).unwrap().strict.iter().map(ToString::to_string).collect() };
    assert_eq!(
        strict(r#"{"METADATA":{"name":1},"Kind":"x"}"#),
        ["unknown field \"METADATA\"", "unknown field \"Kind\""]
    );
    assert_eq!(
        strict(
            r#"{"spec":{"containers":[{},{"bogus":1,"name":"a","name":"b"}],"x":1,"any":[{"a":1,"a":2}]},"spec":{}}"#
        ),
        [
            "unknown field \"spec.containers[1].bogus\"",
            "duplicate field \"spec.containers[1].name\"",
            "unknown field \"spec.x\"",
            "duplicate field \"spec.any[0].a\"",
            "duplicate field \"spec\"",
        ]
    );
    assert_eq!(
        strict(r#"{"metadata":{"labels":{"b":"1","a":"2","b":"3"}},"spec":{"raw":{"a":1,"a":2}}}"#),
        ["duplicate field \"metadata.labels.b\""]
    );
    // The sum types of JSONSchemaProps hide what is inside them.
    assert_eq!(
        strict(r#"{"spec":{"schema":{"x":1,"items":{"y":1,"type":"a","type":"b"},"not":{"z":1}}}}"#),
        ["unknown field \"spec.schema.x\"", "unknown field \"spec.schema.not.z\""]
    );
    assert!(decode(br#"{"x":1,"x":2}"#, &pod(), Strictness::Lenient).unwrap().strict.is_empty());
}

#[test]
fn a_field_given_twice_is_merged() {
    for (text, want) in [
        (r#"{"priority":1,"priority":2}"#, r#"{"priority":2}"#),
        (r#"{"priority":1,"priority":null}"#, "{}"),
        (r#"{"priority":null,"priority":null}"#, "{}"),
        (r#"{"priority":1,"priority":null,"priority":3}"#, r#"{"priority":3}"#),
        (r#"{"hostNetwork":true,"hostNetwork":null}"#, r#"{"hostNetwork":true}"#),
        (r#"{"overhead":{"a":"1","b":"1"},"overhead":{"b":"2"}}"#, r#"{"overhead":{"a":"1","b":"2"}}"#),
        (
            r#"{"containers":[{"name":"a"},{"name":"b"}],"containers":[{"tty":true}]}"#,
            r#"{"containers":[{"name":"a","tty":true}]}"#,
        ),
    ] {
        assert_eq!(spec(text).as_deref(), Ok(want), "{text}");
    }
    let twice = read(r#"{"spec":{"priority":1},"spec":{"hostNetwork":true}}"#).unwrap().value;
    assert_eq!(json::to_string(&twice), r#"{"spec":{"hostNetwork":true,"priority":1}}"#);
}

#[test]
fn json_schema_sum_types() {
    for (text, want) in [
        (
            r#"{"schema":{"items":{"type":"a","x":1},"additionalProperties":false}}"#,
            r#"{"schema":{"additionalProperties":false,"items":{"type":"a"}}}"#,
        ),
        (r#"{"schema":{"items":[{"type":"a"},{}]}}"#, r#"{"schema":{"items":[{"type":"a"},{}]}}"#),
        (r#"{"schema":{"items":5}}"#, r#"{"schema":{}}"#),
        (
            r#"{"schema":{"dependencies":{"a":["b"],"c":{"type":"d"}}}}"#,
            r#"{"schema":{"dependencies":{"a":["b"],"c":{"type":"d"}}}}"#,
        ),
        (
            r#"{"schema":{"default":{"a":null},"enum":[null,1,"x"]}}"#,
            r#"{"schema":{"default":{"a":null},"enum":[null,1,"x"]}}"#,
        ),
    ] {
        assert_eq!(spec(text).as_deref(), Ok(want), "{text}");
    }
}

#[test]
fn deep_input_costs_no_stack() {
    let deep = |n: usize| format!("{{\"spec\":{{\"schema\":{}{}}}}}", "{\"not\":".repeat(n) + "{}", "}".repeat(n));
    assert!(read(&deep(2000)).is_ok());
    let e = read(&deep(json::MAX_DEPTH)).unwrap_err().to_string();
    assert_eq!(e, "invalid character '{' exceeded max depth");
    let unknown = format!("{{\"x\":{}{}}}", "[".repeat(9_999), "]".repeat(9_999));
    assert!(read(&unknown).is_ok());
}

#[test]
fn whole_doubles_have_the_form_in_which_they_are_stored() {
    let table = [("1", Value::Int(1)), ("1.0", Value::Int(1)), ("1e3", Value::Int(1000)), ("0.5", Value::Float(0.5))];
    for (text, expected) in table {
        let body = format!(r#"{{"spec":{{"ratio":{text}}}}}"#);
        let decoded = read(&body).unwrap().value;
        assert_eq!(decoded.at(&["spec", "ratio"]), Some(&expected), "{text}");
        assert_eq!(crate::json::parse_stored(&crate::json::to_vec(&decoded)).unwrap(), decoded, "{text}");
    }
}
