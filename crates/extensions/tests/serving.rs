//! Custom resources from request to answer: schemas take effect at once, definitions take their instances with them.

use crate::common::{PATIENCE, definition, definitions, in_memory, start, start_with, things, value};
use kubelith_meta::{GroupVersionResource, Value};
use kubelith_server::loopback::{PatchType, ResourceRef};
use kubelith_store::{Expect, MemoryStore, Store};
use std::sync::Arc;
use std::time::{Duration, Instant};

const V1: &str = r#"[{"name":"v1","served":true,"storage":true,
    "subresources":{"status":{},"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}},
    "schema":{"openAPIV3Schema":{"type":"object","properties":{
        "spec":{"type":"object","properties":{
            "n":{"type":"integer","minimum":0,"default":1},
            "text":{"type":"string","maxLength":5}}},
        "status":{"type":"object","properties":{"n":{"type":"integer"}}}}}}}]"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_is_served_once_it_is_established() {
    let server = in_memory().await;
    assert_eq!(server.get("v1", "a").await.unwrap_err().code, 404);
    let established = server.define(&definition(V1)).await;
    assert_eq!(established.str_at(&["status", "acceptedNames", "listKind"]), "ThingList");

    let object = r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},
                     "spec":{"text":"x","lost":true},"status":{"n":9}}"#;
    let created = server.create("v1", object).await.unwrap();
    assert_eq!(created.get("spec"), Some(&value(r#"{"n":1,"text":"x"}"#)));
    assert_eq!(created.get("status"), None);
    assert_eq!(created.meta().generation(), 1);

    let long = r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"b"},"spec":{"text":"too long"}}"#;
    let refused = server.create("v1", long).await.unwrap_err();
    assert_eq!(refused.code, 422);
    assert!(refused.message.contains("spec.text: Too long: may not be more than 5 bytes"), "{}", refused.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_discovery_shows_is_served() {
    for round in 0..10 {
        let server = in_memory().await;
        let resource = definitions();
        server.client.create(&ResourceRef::new(&resource), &definition(V1)).await.unwrap();
        let shown = async {
            while !server.discovery.groups().iter().any(|g| &*g.name == "example.com") {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, shown).await.expect("discovery shows it in time");
        let object = r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"}}"#;
        server.create("v1", object).await.unwrap_or_else(|why| panic!("round {round}: {}", why.message));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn scale_and_status_change_their_part() {
    let server = in_memory().await;
    server.define(&definition(V1)).await;
    let object = r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{}}"#;
    server.create("v1", object).await.unwrap();
    let resource = things("v1");
    let target = ResourceRef::new(&resource).namespace("default").name("a");
    let scale = target.clone().subresource("scale");
    let patch = value(r#"{"spec":{"replicas":4}}"#);
    let scaled = server.client.patch(&scale, PatchType::Merge, &patch).await.unwrap();
    assert_eq!(scaled.at(&["spec", "replicas"]), Some(&Value::Int(4)));
    let status = target.clone().subresource("status");
    let patch = value(r#"{"spec":{"n":7},"status":{"n":2},"metadata":{"labels":{"x":"y"}}}"#);
    let patched = server.client.patch(&status, PatchType::Merge, &patch).await.unwrap();
    assert_eq!(patched.at(&["spec", "n"]), Some(&Value::Int(4)));
    assert_eq!(patched.at(&["status", "n"]), Some(&Value::Int(2)));
    assert_eq!(patched.at(&["metadata", "labels"]), None);
    assert_eq!(patched.meta().generation(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_answer_comes_from_a_schema_that_was_replaced() {
    let server = in_memory().await;
    let mut current = server.define(&definition(V1)).await;
    let resource = definitions();
    let target = ResourceRef::new(&resource).name("things.example.com");
    for round in 0..20 {
        let field = format!("f{round}");
        let path = ["schema", "openAPIV3Schema", "properties", "spec", "properties", field.as_str()];
        let mut changed = current.clone();
        let versions = changed.at_mut(&["spec", "versions"]).and_then(Value::as_array_mut).unwrap();
        versions[0].set_at(&path, value(r#"{"type":"string"}"#));
        current = server.client.update(&target, &changed).await.unwrap();
        // Whatever was acknowledged holds for the next request.
        let object = format!(
            r#"{{"apiVersion":"example.com/v1","kind":"Thing","metadata":{{"name":"a{round}"}},"spec":{{"{field}":"kept"}}}}"#
        );
        let created = server.create("v1", &object).await.unwrap();
        assert_eq!(created.str_at(&["spec", &field]), "kept", "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_server_acknowledged_another_reads_by() {
    let store = Arc::new(MemoryStore::default());
    let (one, two) = (start(store.clone()).await, start(store).await);
    let mut current = one.define(&definition(V1)).await;
    let object = r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{}}"#;
    one.create("v1", object).await.unwrap();
    let (resource, things) = (definitions(), things("v1"));
    let target = ResourceRef::new(&resource).name("things.example.com");
    for round in 0..20 {
        let field = format!("f{round}");
        let path = ["schema", "openAPIV3Schema", "properties", "spec", "properties", field.as_str()];
        let versions = current.at_mut(&["spec", "versions"]).and_then(Value::as_array_mut).unwrap();
        versions[0].set_at(&path, value(r#"{"type":"string","default":"new"}"#));
        current = one.client.update(&target, &current).await.unwrap();
        assert_eq!(two.get("v1", "a").await.unwrap().str_at(&["spec", &field]), "new", "round {round}");
        let list = two.client.list(&ResourceRef::new(&things)).await.unwrap();
        let items = list.get("items").and_then(Value::as_array).unwrap();
        assert_eq!(items[0].str_at(&["spec", &field]), "new", "round {round}");
    }
    // Another server knows of its end, too.
    one.client.delete(&target, None).await.unwrap();
    let gone = async { while one.client.get(&target).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, gone).await.expect("the definition goes");
    let refused = two.client.list(&ResourceRef::new(&things)).await.unwrap_err();
    assert_eq!(refused.code, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_counted_for_who_estimates_lists() {
    let server = in_memory().await;
    server.define(&definition(V1)).await;
    for name in ["a", "b"] {
        let object =
            format!(r#"{{"apiVersion":"example.com/v1","kind":"Thing","metadata":{{"name":"{name}"}},"spec":{{}}}}"#);
        server.create("v1", &object).await.unwrap();
    }
    // The cache has what was written once it can be read.
    server.get("v1", "b").await.unwrap();
    server.counts.refresh();
    let stats = server.counts.of("example.com", "things").expect("it is counted");
    assert_eq!(stats.objects, 2);
    assert!(stats.average_bytes > 100, "{stats:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_takes_its_instances_with_it() {
    let server = in_memory().await;
    server.define(&definition(V1)).await;
    let object = r#"{"apiVersion":"example.com/v1","kind":"Thing","spec":{},
                     "metadata":{"name":"a","finalizers":["example.com/wait"]}}"#;
    server.create("v1", object).await.unwrap();
    let resource = definitions();
    let target = ResourceRef::new(&resource).name("things.example.com");
    let marked = server.client.delete(&target, None).await.unwrap();
    assert_eq!(marked.str_at(&["kind"]), "CustomResourceDefinition");
    server.until("Terminating", "True").await;

    let another = r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"b"},"spec":{}}"#;
    let refused = server.create("v1", another).await.unwrap_err();
    assert_eq!(refused.code, 403);
    assert!(refused.message.ends_with("create not allowed while custom resource definition is terminating"));

    // The last finalizer lets the instance go, and with it the definition.
    let mut events = server.client.watch(&ResourceRef::new(&resource).with("resourceVersion", "0")).await.unwrap();
    let things = things("v1");
    let instance = ResourceRef::new(&things).namespace("default").name("a");
    let patch = value(r#"{"metadata":{"finalizers":null}}"#);
    server.client.patch(&instance, PatchType::Merge, &patch).await.unwrap();
    let gone = async {
        while let Some(event) = events.next().await {
            if event.unwrap().kind == kubelith_server::loopback::WatchKind::Deleted {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("the definition goes");
    assert_eq!(server.get("v1", "a").await.unwrap_err().code, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_created_once_the_instances_are_gone() {
    let server = in_memory().await;
    let kept = value(r#"{"metadata":{"finalizers":["example.com/wait"]}}"#);
    server.define(&definition(V1)).await;
    let resource = definitions();
    let target = ResourceRef::new(&resource).name("things.example.com");
    server.client.patch(&target, PatchType::Merge, &kept).await.unwrap();
    server.client.delete(&target, None).await.unwrap();
    server.until("Terminating", "False").await;

    let object = r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{}}"#;
    let refused = server.create("v1", object).await.unwrap_err();
    assert_eq!(refused.code, 403);
    assert!(refused.message.ends_with("create not allowed while custom resource definition is terminating"));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_servers_get_to_see_that_a_definition_is_going() {
    let grace = Duration::from_millis(300);
    let server = start_with(Arc::new(MemoryStore::default()), |config| config.deletion_grace = grace).await;
    server.define(&definition(V1)).await;
    let resource = definitions();
    let target = ResourceRef::new(&resource).name("things.example.com");
    let deleted = Instant::now();
    server.client.delete(&target, None).await.unwrap();
    server.until("Terminating", "True").await;
    let gone = async {
        while server.client.get(&target).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("the definition goes");
    assert!(deleted.elapsed() >= grace, "{:?}", deleted.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_an_older_storage_version_are_shown_in_the_new_one() {
    let plain = r#""schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
                    "x-kubernetes-preserve-unknown-fields":true}}}}"#;
    let versions = |first: bool, second: bool| {
        format!(
            r#"[{{"name":"v1","served":true,"storage":{first},{plain}}},{{"name":"v2","served":true,"storage":{second},{plain}}}]"#
        )
    };
    let server = in_memory().await;
    let mut current = server.define(&definition(&versions(true, false))).await;
    let object = |version: &str, name: &str| {
        format!(
            r#"{{"apiVersion":"example.com/{version}","kind":"Thing","metadata":{{"name":"{name}"}},"spec":{{"x":1}}}}"#
        )
    };
    server.create("v1", &object("v1", "b")).await.unwrap();
    current.set_at(&["spec", "versions"], value(&versions(false, true)));
    let resource = definitions();
    let target = ResourceRef::new(&resource).name("things.example.com");
    let switched = server.client.update(&target, &current).await.unwrap();
    assert_eq!(switched.at(&["status", "storedVersions"]), Some(&value(r#"["v1","v2"]"#)));
    server.create("v2", &object("v2", "a")).await.unwrap();
    for version in ["v1", "v2"] {
        let resource = things(version);
        let list = server.client.list(&ResourceRef::new(&resource)).await.unwrap();
        let items = list.get("items").and_then(Value::as_array).unwrap();
        let versions: Vec<&str> = items.iter().map(|i| i.str_at(&["apiVersion"])).collect();
        let wanted = format!("example.com/{version}");
        assert_eq!(versions, [wanted.as_str(), wanted.as_str()]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_on_one_store_agree() {
    let store = Arc::new(MemoryStore::default());
    let (one, two) = (start(store.clone()).await, start(store.clone()).await);
    one.define(&definition(V1)).await;
    let object = r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"text":"x"}}"#;
    two.create("v1", object).await.expect("what one established, the other serves");
    assert_eq!(one.get("v1", "a").await.unwrap().str_at(&["spec", "text"]), "x");
    // A third one, later, finds it all.
    let three = start(store).await;
    assert_eq!(three.get("v1", "a").await.unwrap().str_at(&["spec", "text"]), "x");
}

/// Wants the kind of the first definition, and comes before it by name.
fn other() -> Value {
    named(r#"{"plural":"others","kind":"Thing","singular":"other"}"#)
}

/// A definition with these names.
fn named(names: &str) -> Value {
    let (mut definition, names) = (definition(V1), value(names));
    definition.set_at(&["metadata", "name"], format!("{}.example.com", names.str_at(&["plural"])).into());
    definition.set_at(&["spec", "names"], names);
    definition
}

#[tokio::test(flavor = "multi_thread")]
async fn names_stay_with_those_who_have_them() {
    let store = Arc::new(MemoryStore::default());
    let server = start(store.clone()).await;
    server.define(&definition(V1)).await;
    let resource = definitions();
    server.client.create(&ResourceRef::new(&resource), &other()).await.unwrap();
    let refused = server.until("NamesAccepted", "False").await;
    // A server that starts comes to the refused one first, by name.
    let later = start(store).await;
    let last = named(r#"{"plural":"whatever","kind":"Whatever"}"#);
    later.client.create(&ResourceRef::new(&resource), &last).await.unwrap();
    later.until_established("whatever.example.com").await;
    let now = later.client.get(&ResourceRef::new(&resource).name("others.example.com")).await.unwrap();
    assert_eq!(now.at(&["status"]), refused.at(&["status"]));
}

/// Whoever is served finds the definition established.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_served_before_the_status_is_written() {
    let server = in_memory().await;
    let resource = definitions();
    for i in 0..20 {
        let plural = format!("kind{i}s");
        let definition = named(&format!(r#"{{"plural":"{plural}","kind":"Kind{i}"}}"#));
        server.client.create(&ResourceRef::new(&resource), &definition).await.unwrap();
        let served = GroupVersionResource::new("example.com", "v1", plural.as_str());
        while server.client.list(&ResourceRef::new(&served)).await.is_err() {
            tokio::task::yield_now().await;
        }
        let name = format!("{plural}.example.com");
        let now = server.client.get(&ResourceRef::new(&resource).name(&name)).await.unwrap();
        assert_eq!(now.str_at(&["status", "acceptedNames", "plural"]), plural);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_given_up_are_free() {
    let server = in_memory().await;
    let mut first = server.define(&named(r#"{"plural":"things","kind":"Thing","shortNames":["x"]}"#)).await;
    let (resource, other) = (definitions(), named(r#"{"plural":"others","kind":"Other","shortNames":["x"]}"#));
    server.client.create(&ResourceRef::new(&resource), &other).await.unwrap();
    server.until("NamesAccepted", "False").await;
    first.set_at(&["spec", "names", "shortNames"], value("[]"));
    server.client.update(&ResourceRef::new(&resource).name("things.example.com"), &first).await.unwrap();
    server.until_established("others.example.com").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_given_once_in_a_group() {
    let server = in_memory().await;
    server.define(&definition(V1)).await;
    let resource = definitions();
    server.client.create(&ResourceRef::new(&resource), &other()).await.unwrap();
    let refused = server.until("NamesAccepted", "False").await;
    assert_eq!(refused.str_at(&["metadata", "name"]), "others.example.com");
    let conditions = refused.at(&["status", "conditions"]).and_then(Value::as_array).unwrap();
    let reasons: Vec<&str> = conditions.iter().map(|c| c.str_at(&["reason"])).collect();
    assert_eq!(reasons, ["ListKindConflict", "NotAccepted"]);
    // When the first one goes, its names are free.
    server.client.delete(&ResourceRef::new(&resource).name("things.example.com"), None).await.unwrap();
    server.until_established("others.example.com").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_null_that_is_applied_is_judged() {
    let server = in_memory().await;
    let schema = r#"[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
        "properties":{"spec":{"type":"object","properties":{
            "text":{"type":"string"},"default":{"type":"string","default":"x"},
            "nullable":{"type":"string","nullable":true},"list":{"type":"array","items":{"type":"string"}},
            "map":{"type":"object","additionalProperties":{"type":"string"}}}}}}}}]"#;
    server.define(&definition(schema)).await;
    let table = [
        (
            r#"{"text":null}"#,
            Err("spec.text: Invalid value: \"null\": spec.text in body must be of type string: \"null\""),
        ),
        (r#"{"default":null}"#, Ok(r#"{"default":"x"}"#)),
        (r#"{"nullable":null}"#, Ok(r#"{"default":"x","nullable":null}"#)),
        (
            r#"{"list":null}"#,
            Err("spec.list: Invalid value: \"null\": spec.list in body must be of type array: \"null\""),
        ),
        (
            r#"{"map":{"k":null}}"#,
            Err("spec.map.k: Invalid value: \"null\": spec.map.k in body must be of type string: \"null\""),
        ),
    ];
    for (spec, expected) in table {
        let resource = things("v1");
        let target = ResourceRef::new(&resource).namespace("default").name("a").with("fieldManager", "test");
        let object =
            format!(r#"{{"apiVersion":"example.com/v1","kind":"Thing","metadata":{{"name":"a"}},"spec":{spec}}}"#);
        let applied = server.client.patch(&target, PatchType::Apply, &value(&object)).await;
        let found = applied.map(|object| object.get("spec").cloned()).map_err(|status| status.message);
        match expected {
            Ok(spec) => assert_eq!(found, Ok(Some(value(spec)))),
            Err(why) => assert_eq!(found, Err(format!("Thing.example.com \"a\" is invalid: {why}"))),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_end_with_the_schema_they_began_with() {
    let server = in_memory().await;
    server.define(&definition(V1)).await;
    let resource = things("v1");
    let mut events = server.client.watch(&ResourceRef::new(&resource)).await.unwrap();
    let definitions = definitions();
    let target = ResourceRef::new(&definitions).name("things.example.com");
    let patch = value(
        r#"[{"op":"add","path":"/spec/versions/0/additionalPrinterColumns",
        "value":[{"name":"N","type":"integer","jsonPath":".spec.n"}]}]"#,
    );
    server.client.patch(&target, PatchType::Json, &patch).await.unwrap();
    // The old schema is over, though nobody comes and asks for the new one.
    let last = tokio::time::timeout(PATIENCE, events.next()).await.expect("the watch ends in time");
    assert!(last.is_none(), "without an error");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_shows_the_defaults_of_the_version_that_is_stored() {
    let server = in_memory().await;
    let version = |name: &str, storage: bool, default: &str| {
        format!(
            r#"{{"name":"{name}","served":true,"storage":{storage},"schema":{{"openAPIV3Schema":{{"type":"object",
                "properties":{{"spec":{{"type":"object","properties":{{
                    "a":{{"type":"string"{default}}},"b":{{"type":"string"}}}}}}}}}}}}}}"#
        )
    };
    let versions = format!("[{},{}]", version("v1", true, r#","default":"stored""#), version("v2", false, ""));
    server.define(&definition(&versions)).await;
    let object = r#"{"apiVersion":"example.com/v2","kind":"Thing","metadata":{"name":"a","resourceVersion":"none"},
                     "spec":{"b":"x"}}"#;
    let created = server.create("v2", object).await.unwrap();
    assert_eq!(created.get("spec"), Some(&value(r#"{"a":"stored","b":"x"}"#)));
    assert_eq!(server.get("v2", "a").await.unwrap().get("spec"), created.get("spec"));
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_metadata_in_the_store_is_dropped_and_the_rest_read() {
    let store = Arc::new(MemoryStore::default());
    let server = start(store.clone()).await;
    let schema = r#"[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object",
        "properties":{"embedded":{"type":"object","x-kubernetes-embedded-resource":true,
            "x-kubernetes-preserve-unknown-fields":true}}}}}]"#;
    server.define(&definition(schema)).await;
    let stored = r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","namespace":"default",
        "uid":"u","labels":{"bad":1},"annotations":{"good":"x"},"finalizers":"no","unknown":true},
        "embedded":{"apiVersion":"v1","kind":1,"metadata":{"name":"e","labels":[],"generation":2,"unknown":1}}}"#;
    let key = bytes::Bytes::from_static(b"/registry/example.com/things/default/a");
    store.put(key, bytes::Bytes::from_static(stored.as_bytes()), Expect::Absent, None).await.unwrap();
    let read = server.get("v1", "a").await.unwrap();
    let metadata = read.get("metadata").unwrap();
    assert_eq!((metadata.get("labels"), metadata.get("finalizers"), metadata.get("unknown")), (None, None, None));
    assert_eq!(metadata.str_at(&["annotations", "good"]), "x");
    assert_eq!(read.get("embedded"), Some(&value(r#"{"apiVersion":"v1","metadata":{"name":"e","generation":2}}"#)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scale_can_be_applied_where_nothing_changes() {
    let server = in_memory().await;
    server.define(&definition(V1)).await;
    let object = r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"n":2}}"#;
    server.create("v1", object).await.unwrap();
    let resource = things("v1");
    let scale = ResourceRef::new(&resource).namespace("default").name("a").subresource("scale");
    let scale = scale.with("fieldManager", "m").with("force", "true");
    let apply = async |replicas: i64| {
        let mut patch = value(r#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a"}}"#);
        patch.set_at(&["spec", "replicas"], Value::Int(replicas));
        server.client.patch(&scale, PatchType::Apply, &patch).await
    };
    assert_eq!(apply(2).await.unwrap().at(&["spec", "replicas"]), Some(&Value::Int(2)));
    assert_eq!(
        apply(3).await.unwrap_err().message,
        "failed to convert new object (/a; autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an \
         invalid group/version: autoscaling/v1"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn defaults_of_embedded_resources_have_readable_metadata() {
    let server = in_memory().await;
    let mut bad = definition(V1);
    let versions = bad.at_mut(&["spec", "versions"]).and_then(Value::as_array_mut).unwrap();
    let path = ["schema", "openAPIV3Schema", "properties", "spec", "properties", "e"];
    let embedded = r#"{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,
                      "default":{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"a":1}}}}"#;
    versions[0].set_at(&path, value(embedded));
    let resource = definitions();
    let refused = server.client.create(&ResourceRef::new(&resource), &bad).await.unwrap_err();
    let text = ".properties[spec].properties[e].default.metadata: Invalid value: {\"labels\":{\"a\":1}}: json: cannot \
                unmarshal number into Go struct field ObjectMeta.labels of type string";
    assert!(refused.message.ends_with(text), "{}", refused.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_makes_no_other_version_of_an_object() {
    let server = in_memory().await;
    let mut two = definition(V1);
    let versions = two.at_mut(&["spec", "versions"]).and_then(Value::as_array_mut).unwrap();
    let mut second = versions[0].clone();
    second.set_at(&["name"], "v2".into());
    second.set_at(&["storage"], false.into());
    versions.push(second);
    server.define(&two).await;
    let object = r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"n":2}}"#;
    let created = server.create("v1", object).await.unwrap();
    let resource = things("v1");
    let target = ResourceRef::new(&resource).namespace("default").name("a");
    for other in ["example.com/v2", "example.com/v9"] {
        let patch = value(&format!(r#"{{"apiVersion":"{other}","spec":{{"n":3}}}}"#));
        let refused = server.client.patch(&target, PatchType::Merge, &patch).await.unwrap_err();
        let text = format!("is invalid: apiVersion: Invalid value: \"{other}\": must be example.com/v1");
        assert!(refused.code == 422 && refused.message.ends_with(&text), "{}", refused.message);
        let status = target.clone().subresource("status");
        let patched = server.client.patch(&status, PatchType::Merge, &patch).await.unwrap();
        assert_eq!(patched.get("spec"), created.get("spec"));
    }
}
