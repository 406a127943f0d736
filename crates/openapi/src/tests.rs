//! Tests that walk the catalogue: every kind is published, everything that is referred to is there, and both encodings
//! say the same.

use super::words::Words;
use super::{DeleteAnswer, Detail, Dialect, Library, Published, Renamed, Subject, v2, v3};
use kubelith_codec::json;
use kubelith_meta::{GroupVersion, Str, Value};
use kubelith_schema::{Descriptor, Shape, TypedSchema};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, LazyLock};

pub fn library() -> Library {
    Library { catalog: kubelith_catalog::builtin(), release: "1.36".into(), enums: true }
}

/// Every version of every resource that can be served.
pub fn everything() -> Vec<Subject> {
    let catalog = kubelith_catalog::builtin();
    let mut versions: BTreeMap<GroupVersion, Vec<Published>> = BTreeMap::new();
    let switchable: HashSet<&GroupVersion> = catalog.switchable().map(|api| &api.gv).collect();
    for descriptor in &catalog.descriptors {
        for (version_index, version) in descriptor.versions.iter().enumerate() {
            let gv = GroupVersion::new(descriptor.group.clone(), version.name.clone());
            if switchable.contains(&gv) {
                versions.entry(gv).or_default().push(published(descriptor.clone(), version_index));
            }
        }
    }
    let groups: BTreeSet<Str> = versions.keys().map(|gv| gv.group.clone()).filter(|g| !g.is_empty()).collect();
    let rest = [Subject::Core, Subject::Groups, Subject::Release, Subject::OpenIdConfiguration, Subject::OpenIdKeys];
    let versions = versions.into_iter().map(|(gv, resources)| Subject::Version(gv, resources));
    rest.into_iter().chain(groups.into_iter().map(Subject::Group)).chain(versions).collect()
}

pub fn shared(subjects: Vec<Subject>) -> Vec<Arc<Subject>> {
    subjects.into_iter().map(Arc::new).collect()
}

pub fn published(descriptor: Arc<Descriptor>, version_index: usize) -> Published {
    let (delete_answer, detail) = (DeleteAnswer::Status, Detail::Full);
    Published { descriptor, version_index, delete_answer, detail, written: None, renamed: Renamed::default() }
}

/// The document of each, made once for all tests.
fn documents() -> &'static [(Subject, Value)] {
    static DOCUMENTS: LazyLock<Vec<(Subject, Value)>> = LazyLock::new(|| {
        let words = Words::load();
        everything().into_iter().map(|subject| (subject.clone(), json_of(&subject, &words))).collect()
    });
    &DOCUMENTS
}

fn json_of(subject: &Subject, words: &Words) -> Value {
    let mut bytes = Vec::new();
    v3::Document::new(subject, &library(), words).write_json(&mut bytes).unwrap();
    json::parse(&bytes).unwrap()
}

/// What stands behind `$ref` anywhere.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| match value.as_str() {
            Some(target) if key == "$ref" => drop(found.insert(target.to_owned())),
            _ => references(value, found),
        }),
        Value::Array(elements) => elements.iter().for_each(|e| references(e, found)),
        _ => {}
    }
}

fn resolves(document: &Value, reference: &str) -> bool {
    let path: Vec<&str> = reference.trim_start_matches("#/").split('/').collect();
    document.at(&path).is_some()
}

fn operations(document: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    let paths = document.get("paths").and_then(Value::as_object).unwrap().iter();
    paths.flat_map(|(path, item)| {
        let operations = item.as_object().unwrap().iter().filter(|(method, _)| *method != "parameters");
        operations.map(move |(method, operation)| (path, method, operation))
    })
}

#[test]
fn every_document_has_all_that_it_refers_to() {
    for (subject, document) in documents() {
        let mut found = BTreeSet::new();
        references(document, &mut found);
        let missing: Vec<&String> = found.iter().filter(|r| !resolves(document, r)).collect();
        assert!(missing.is_empty(), "{}: {missing:?}", subject.path());
        let Subject::Version(gv, resources) = subject else { continue };
        for resource in resources {
            let kind = [("group", &gv.group), ("kind", &resource.descriptor.kind), ("version", &gv.version)];
            let kind = Value::Object(kind.into_iter().map(|(k, v)| (k, Value::String(v.clone()))).collect());
            let schema = document.at(&["components", "schemas", &resource.model()]).unwrap();
            let kinds = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array).unwrap_or(&[]);
            assert!(kinds.contains(&kind), "{} of {gv}", resource.descriptor.kind);
        }
    }
}

#[test]
fn path_parameters_are_declared() {
    for (_, document) in documents() {
        for (path, item) in document.get("paths").and_then(Value::as_object).unwrap().iter() {
            let in_path: BTreeSet<&str> =
                path.split('/').filter_map(|s| s.strip_prefix('{')?.strip_suffix('}')).collect();
            let declared = item.get("parameters").and_then(Value::as_array).unwrap_or(&[]);
            let declared: BTreeSet<&str> =
                declared.iter().filter(|p| p.str_at(&["in"]) == "path").map(|p| p.str_at(&["name"])).collect();
            assert_eq!(declared, in_path, "{path}");
        }
    }
}

#[test]
fn version_two_has_everything_once() {
    let (words, library) = (Words::load(), library());
    let document = v2::Document::new(&shared(everything()), &library, &words);
    let mut bytes = Vec::new();
    document.write_json(&mut bytes).unwrap();
    let value = json::parse(&bytes).unwrap();
    let mut found = BTreeSet::new();
    references(&value, &mut found);
    assert!(found.iter().any(|r| r.starts_with("#/parameters/")));
    let missing: Vec<&String> = found.iter().filter(|r| !resolves(&value, r)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let mut ids = HashSet::new();
    for (path, method, operation) in operations(&value) {
        assert!(ids.insert(operation.str_at(&["operationId"])), "{method} {path} has the name of another");
    }
    assert!(!json::to_string(value.get("definitions").unwrap()).contains("\"allOf\":["));
}

#[test]
fn nearly_everything_is_described() {
    let mut bare = BTreeSet::new();
    for (_, document) in documents() {
        let Some(schemas) = document.at(&["components", "schemas"]).and_then(Value::as_object) else { continue };
        for (name, schema) in schemas.iter() {
            if schema.get("description").is_none() {
                bare.insert(name.to_owned());
            }
            let fields = schema.get("properties").and_then(Value::as_object);
            for (field, schema) in fields.into_iter().flat_map(|f| f.iter()) {
                if schema.get("description").is_none() {
                    bare.insert(format!("{name}.{field}"));
                }
            }
        }
        for (path, method, operation) in operations(document) {
            for parameter in operation.get("parameters").and_then(Value::as_array).unwrap_or(&[]) {
                assert_ne!(parameter.str_at(&["description"]), "", "{method} {path}: {parameter:?}");
            }
        }
    }
    // These have no words in the reference either.
    let is_known = |name: &str| BARE.iter().any(|bare| name.contains(bare));
    let bare: Vec<&String> = bare.iter().filter(|name| !is_known(name)).collect();
    assert!(bare.is_empty(), "{bare:?}");
}

const BARE: [&str; 9] = [
    // Of a version that only an emulated release serves: the library that has the words does not have it.
    "admissionregistration.v1beta1.",
    "admissionregistration.v1alpha1.MatchCondition",
    "CertificateSigningRequest.metadata",
    "IngressRule.http",
    "ExternalDocumentation.",
    "JSONSchemaProps.",
    "GroupResource.",
    "WatchEvent.type",
    "version.Info.",
];

#[test]
fn an_operation_looks_like_this() {
    let words = Words::load();
    let catalog = kubelith_catalog::builtin();
    let pods = catalog.descriptor("", "pods").unwrap();
    let document = json_of(&Subject::Version(GroupVersion::new("", "v1"), vec![published(pods.clone(), 0)]), &words);
    let log = document.at(&["paths", "/api/v1/namespaces/{namespace}/pods/{name}/log", "get"]).unwrap();
    assert_eq!(log.str_at(&["operationId"]), "readCoreV1NamespacedPodLog");
    let content = log.at(&["responses", "200", "content"]).and_then(Value::as_object).unwrap();
    let types: Vec<&str> = content.keys().collect();
    assert_eq!(types, ["application/json", "application/vnd.kubernetes.protobuf", "application/yaml", "text/plain"]);
    let expected = [
        ("/api/v1/namespaces/{namespace}/pods", "get", "listCoreV1NamespacedPod", "list"),
        ("/api/v1/namespaces/{namespace}/pods", "delete", "deleteCoreV1CollectionNamespacedPod", "deletecollection"),
        ("/api/v1/pods", "get", "listCoreV1PodForAllNamespaces", "list"),
        ("/api/v1/watch/pods", "get", "watchCoreV1PodListForAllNamespaces", "watchlist"),
        ("/api/v1/watch/namespaces/{namespace}/pods", "get", "watchCoreV1NamespacedPodList", "watchlist"),
        ("/api/v1/watch/namespaces/{namespace}/pods/{name}", "get", "watchCoreV1NamespacedPod", "watch"),
        ("/api/v1/namespaces/{namespace}/pods/{name}/exec", "post", "connectCoreV1PostNamespacedPodExec", "connect"),
        (
            "/api/v1/namespaces/{namespace}/pods/{name}/proxy/{path}",
            "head",
            "connectCoreV1HeadNamespacedPodProxyWithPath",
            "connect",
        ),
        ("/api/v1/namespaces/{namespace}/pods/{name}/eviction", "post", "createCoreV1NamespacedPodEviction", "post"),
    ];
    for (path, method, id, action) in expected {
        let operation = document.at(&["paths", path, method]).unwrap_or_else(|| panic!("{method} {path}"));
        assert_eq!(operation.str_at(&["operationId"]), id);
        assert_eq!(operation.str_at(&["x-kubernetes-action"]), action);
    }
}

/// A custom resource as its own crate hands it over: a schema that it writes itself, and little detail.
fn custom() -> Subject {
    let catalog = kubelith_catalog::builtin();
    let mut descriptor = Descriptor::clone(catalog.descriptor("apps", "deployments").unwrap());
    descriptor.group = "stable.example.com".into();
    (descriptor.plural, descriptor.kind, descriptor.list_kind) = ("foos".into(), "Foo".into(), "FooList".into());
    let table = catalog.table.clone();
    let root = kubelith_schema::Schema { shape: Shape::Struct(Box::default()), ..Default::default() };
    descriptor.versions[0].schema = TypedSchema { table, root: Arc::new(root) };
    descriptor.versions[0].subresources.retain(|s| s.name == "status");
    let mut resource = published(Arc::new(descriptor), 0);
    resource.detail = Detail::Brief;
    resource.written = Some(Arc::new(|dialect: Dialect, _: &Words| {
        let metadata = dialect.reference("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
        Value::from([("properties", Value::from([("metadata", Value::from([("$ref", metadata)]))]))])
    }));
    Subject::Version(GroupVersion::new("stable.example.com", "v1"), vec![resource])
}

#[test]
fn a_custom_kind_stands_beside_a_built_in_one_of_the_same_name() {
    let (words, catalog) = (Words::load(), kubelith_catalog::builtin());
    let deployments = published(catalog.descriptor("apps", "deployments").unwrap().clone(), 0);
    let name = deployments.model();
    let Subject::Version(_, mut resources) = custom() else { unreachable!("it is one") };
    let mut descriptor = Descriptor::clone(&resources[0].descriptor);
    // A group whose name, turned round, is the path to the built-in type.
    descriptor.group = "apps.api.k8s.io".into();
    (descriptor.kind, descriptor.list_kind) = ("Deployment".into(), "Deploys".into());
    resources[0].descriptor = Arc::new(descriptor);
    assert_eq!(resources[0].model(), name);
    let subjects = [
        Arc::new(Subject::Version(GroupVersion::new("apps", "v1"), vec![deployments])),
        Arc::new(Subject::Version(GroupVersion::new("apps.api.k8s.io", "v1"), resources)),
    ];
    let (library, mut text) = (library(), Vec::new());
    let document = v2::Document::new(&subjects, &library, &words);
    document.write_json(&mut text).unwrap();
    let document = json::parse(&text).unwrap();
    let definition = |name: &str| document.at(&["definitions", name]).cloned();
    assert!(definition(&name).unwrap().at(&["properties", "spec"]).is_some(), "the built-in one");
    assert!(definition(&format!("{name}_v2")).unwrap().at(&["properties", "spec"]).is_none(), "the custom one");
    let list = definition("io.k8s.api.apps.v1.Deploys").unwrap();
    let item = list.str_at(&["properties", "items", "items", "$ref"]);
    assert_eq!(item, format!("#/definitions/{name}_v2"));
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.contains(&format!("#/definitions/{name}_v2")) && found.contains(&format!("#/definitions/{name}")));
}

#[test]
fn custom_resources_are_published_the_same_way() {
    let words = Words::load();
    let document = json_of(&custom(), &words);
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.iter().all(|r| resolves(&document, r)), "{found:?}");
    let schemas = document.at(&["components", "schemas"]).unwrap();
    let list = schemas.get("com.example.stable.v1.FooList").unwrap();
    let item = list.str_at(&["properties", "items", "items", "$ref"]);
    assert_eq!(item, "#/components/schemas/com.example.stable.v1.Foo");
    assert!(schemas.get("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").is_some());
    let paths: Vec<&str> = document.get("paths").and_then(Value::as_object).unwrap().keys().collect();
    assert_eq!(
        paths,
        [
            "/apis/stable.example.com/v1/foos",
            "/apis/stable.example.com/v1/namespaces/{namespace}/foos",
            "/apis/stable.example.com/v1/namespaces/{namespace}/foos/{name}",
            "/apis/stable.example.com/v1/namespaces/{namespace}/foos/{name}/status",
        ]
    );
    let list = document.at(&["paths", paths[1], "get"]).unwrap();
    assert_eq!(list.str_at(&["operationId"]), "listStableExampleComV1NamespacedFoo");
}
