use super::*;
use crate::field::{ErrorList, Path};
use crate::names;

fn array(texts: &[&str]) -> Value {
    Value::from(texts.to_vec())
}

fn owner(api_version: &str, kind: &str, name: &str, uid: &str, controller: Option<bool>) -> Value {
    let mut v = Value::from([("apiVersion", api_version), ("kind", kind), ("name", name), ("uid", uid)]);
    if let Some(controller) = controller {
        v.set_at(&["controller"], controller.into());
    }
    v
}

fn object(fields: &[(&str, Value)]) -> Value {
    let mut v = Value::object();
    v.set_at(&["metadata"], Value::Object(fields.iter().cloned().collect()));
    v
}

fn texts(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(|e| e.to_string()).collect()
}

#[test]
fn the_view_reads_what_is_there() {
    let v = object(&[
        ("name", "n".into()),
        ("namespace", "ns".into()),
        ("generation", 3i64.into()),
        ("labels", Value::from([("a", "1")])),
        ("finalizers", array(&["x/y", "orphan"])),
        ("creationTimestamp", "2026-01-02T03:04:05Z".into()),
        ("deletionTimestamp", Value::Null),
        (
            "ownerReferences",
            Value::Array(vec![
                owner("v1", "Pod", "p", "u", None),
                owner("apps/v1", "ReplicaSet", "r", "w", Some(true)),
            ]),
        ),
    ]);
    let meta = v.meta();
    assert_eq!((meta.name(), meta.namespace(), meta.uid(), meta.generation()), ("n", "ns", "", 3));
    assert_eq!((meta.label("a"), meta.label("b"), meta.annotation("a")), (Some("1"), None, None));
    assert_eq!(meta.finalizers().collect::<Vec<_>>(), ["x/y", "orphan"]);
    assert_eq!(meta.creation_timestamp().unwrap().unix_seconds(), 1767323045);
    assert!(!meta.is_being_deleted());
    assert_eq!(meta.controller().unwrap().kind(), "ReplicaSet");
    assert_eq!(meta.owner_references().len(), 2);
    let empty = Value::Null;
    assert_eq!((empty.meta().name(), empty.meta().finalizers().len()), ("", 0));
    assert_eq!(owner("apps/v1", "X", "", "", None).gvk().to_string(), "apps/v1, Kind=X");
}

#[test]
fn setters_leave_no_empty_fields() {
    let mut v = Value::object();
    let mut meta = v.meta_mut();
    meta.set_name("n")
        .set_generation(2)
        .set_label("a", "1")
        .set_annotation("b", "2")
        .add_finalizer("f")
        .add_finalizer("f");
    meta.set_deletion_grace_period_seconds(Some(0)).set_creation_timestamp(Some(Time::UNIX_EPOCH));
    assert_eq!(
        crate::text::json(&v),
        r#"{"metadata":{"annotations":{"b":"2"},"creationTimestamp":"1970-01-01T00:00:00Z","deletionGracePeriodSeconds":0,"finalizers":["f"],"generation":2,"labels":{"a":"1"},"name":"n"}}"#
    );
    let mut meta = v.meta_mut();
    assert!(meta.remove_finalizer("f") && !meta.remove_finalizer("f"));
    meta.remove_label("a");
    meta.remove_annotation("b");
    meta.set_name("").set_generation(0).set_deletion_grace_period_seconds(None).set_creation_timestamp(None);
    assert_eq!(crate::text::json(&v), r#"{"metadata":{}}"#);
}

fn created(fields: &[(&str, Value)], namespaced: Namespacing) -> Vec<String> {
    let v = object(fields);
    texts(&validate_object_meta(v.meta(), namespaced, names::name_is_path_segment, &Path::new("metadata")))
}

#[test]
fn creation_is_checked_in_order() {
    let got = created(
        &[
            ("generateName", "a/".into()),
            ("generation", Value::Int(-1)),
            ("labels", Value::from([("a", "b c")])),
            ("annotations", Value::from([("A b", "")])),
            ("ownerReferences", Value::Array(vec![owner("", "", "", "", None)])),
            ("finalizers", array(&["orphan", "foregroundDeletion"])),
            (
                "managedFields",
                Value::Array(vec![Value::from([("operation", "<"), ("fieldsType", "V2"), ("manager", "a\t")])]),
            ),
        ],
        Namespacing::Required,
    );
    let heads: Vec<&str> = got.iter().map(|e| e.split(" (e.g.").next().unwrap()).collect();
    assert_eq!(
        heads,
        [
            "metadata.generateName: Invalid value: \"a/\": may not contain '/'",
            "metadata.name: Required value: name or generateName is required",
            "metadata.namespace: Required value",
            "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
            "metadata.labels: Invalid value: \"b c\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            "metadata.annotations: Invalid value: \"A b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
            "metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty",
            "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set",
            "metadata.managedFields[0].operation: Invalid value: \"\\u003c\": must be `Apply` or `Update`",
            "metadata.managedFields[0].fieldsType: Invalid value: \"V2\": must be `FieldsV1`",
            "metadata.managedFields[0].manager: Invalid value: \"a\\t\": invalid character U+0009 (at position 1)",
        ]
    );
}

#[test]
fn namespaces_are_checked_by_scope() {
    let name = ("name", Value::from("n"));
    assert_eq!(created(&[name.clone(), ("namespace", "ns".into())], Namespacing::Required), Vec::<String>::new());
    assert_eq!(created(std::slice::from_ref(&name), Namespacing::Forbidden), Vec::<String>::new());
    assert_eq!(
        created(&[name.clone(), ("namespace", "ns".into())], Namespacing::Forbidden),
        ["metadata.namespace: Forbidden: not allowed on this type"]
    );
    assert_eq!(
        created(&[name, ("namespace", "a.b".into())], Namespacing::Required),
        ["metadata.namespace: Invalid value: \"a.b\": must not contain dots"]
    );
}

#[test]
fn owners_are_checked() {
    let two = [owner("v1", "Pod", "a", "u", Some(true)), owner("v1", "Pod", "b", "u", Some(true))];
    let name = [("name", "n".into()), ("ownerReferences", Value::Array(two.to_vec()))];
    assert_eq!(
        created(&name, Namespacing::Forbidden),
        [
            "metadata.ownerReferences: Invalid value: [{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"a\",\"uid\":\"u\",\"controller\":true},{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"b\",\"uid\":\"u\",\"controller\":true}]: Only one reference can have Controller set to true. Found \"true\" in references for Pod/a and Pod/b"
        ]
    );
    let event = [("name", "n".into()), ("ownerReferences", Value::Array(vec![owner("v1", "Event", "a", "u", None)]))];
    assert_eq!(
        created(&event, Namespacing::Forbidden),
        [
            "metadata.ownerReferences: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"a\",\"uid\":\"u\"}: /v1, Kind=Event is disallowed from being an owner"
        ]
    );
}

#[test]
fn annotations_are_limited_in_size() {
    let big = Value::from([("a", "x".repeat(ANNOTATIONS_MAX_BYTES - 1))]);
    assert_eq!(created(&[("name", "n".into()), ("annotations", big)], Namespacing::Forbidden), Vec::<String>::new());
    let bigger = Value::from([("a", "x".repeat(ANNOTATIONS_MAX_BYTES))]);
    assert_eq!(
        created(&[("name", "n".into()), ("annotations", bigger)], Namespacing::Forbidden),
        ["metadata.annotations: Too long: may not be more than 262144 bytes"]
    );
}

#[test]
fn updates_may_not_change_identity() {
    let old = object(&[
        ("name", "n".into()),
        ("uid", "u".into()),
        ("generation", 2i64.into()),
        ("finalizers", array(&["a/a"])),
        ("creationTimestamp", "2026-01-02T03:04:05Z".into()),
        ("deletionTimestamp", "2026-01-02T03:04:05Z".into()),
        ("deletionGracePeriodSeconds", 30i64.into()),
    ]);
    let new = object(&[
        ("name", "m".into()),
        ("namespace", "x".into()),
        ("uid", "v".into()),
        ("generation", 1i64.into()),
        ("finalizers", array(&["c/c", "b/b", "a/a"])),
        ("creationTimestamp", "2026-01-02T04:04:05+01:00".into()),
    ]);
    assert_eq!(
        texts(&validate_object_meta_update(new.meta(), old.meta(), &Path::new("metadata"))),
        [
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"b/b\", \"c/c\"}",
            "metadata.resourceVersion: Invalid value: \"\": must be specified for an update",
            "metadata.generation: Invalid value: 1: must not be decremented",
            "metadata.name: Invalid value: \"m\": field is immutable",
            "metadata.namespace: Invalid value: \"x\": field is immutable",
            "metadata.uid: Invalid value: \"v\": field is immutable",
            "metadata.deletionTimestamp: Invalid value: null: field is immutable",
            "metadata.deletionGracePeriodSeconds: Invalid value: null: field is immutable",
        ]
    );
    let mut same = old.clone();
    same.meta_mut().set_resource_version("7");
    assert!(validate_object_meta_update(same.meta(), old.meta(), &Path::new("metadata")).is_empty());
}

#[test]
fn kube_finalizers_need_a_domain() {
    let v = object(&[("finalizers", array(&["kubernetes", "a/b", "mine"]))]);
    assert_eq!(
        texts(&validate_kube_finalizers(v.meta(), &Path::of(&["metadata", "finalizers"]))),
        [
            "metadata.finalizers[2]: Invalid value: \"mine\": name is neither a standard finalizer name nor is it fully qualified"
        ]
    );
}

#[test]
fn conditions_are_checked() {
    let good = Value::from([
        ("type", "Ready"),
        ("status", "True"),
        ("reason", "A:B"),
        ("lastTransitionTime", "2026-01-02T03:04:05Z"),
    ]);
    let bad = Value::from([("type", "Ready"), ("status", "Maybe"), ("reason", "1")]);
    let errors = validate_conditions(&[good.clone(), bad], &Path::new("c"));
    let heads: Vec<String> = texts(&errors).iter().map(|e| e.split(" (e.g.").next().unwrap().to_owned()).collect();
    assert_eq!(
        heads,
        [
            "c[1].type: Duplicate value: \"Ready\"",
            "c[1].status: Unsupported value: \"Maybe\": supported values: \"False\", \"True\", \"Unknown\"",
            "c[1].lastTransitionTime: Required value",
            "c[1].reason: Invalid value: \"1\": a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
        ]
    );
    assert!(validate_conditions(&[good], &Path::new("c")).is_empty());
}

#[test]
fn immutable_fields_show_the_new_value() {
    let p = Path::new("f");
    let (a, b) = (Value::from("a"), Value::from("b"));
    assert_eq!(validate_immutable(Some(&a), Some(&a), &p), None);
    assert_eq!(validate_immutable(None, Some(&Value::Null), &p), None);
    let shown = |new, old| validate_immutable(new, old, &p).unwrap().to_string();
    assert_eq!(shown(Some(&b), Some(&a)), "f: Invalid value: \"b\": field is immutable");
    assert_eq!(shown(None, Some(&a)), "f: Invalid value: null: field is immutable");
}
