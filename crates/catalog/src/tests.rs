//! Walks over the whole catalogue.

use crate::{Serve, builtin};
use kubelith_meta::{GroupVersion, GroupVersionKind, Value};
use kubelith_schema::{
    Cell, Empties, Encoding, ListKind, ProtoSlot, Schema, Scope, Shape, TypeTable, TypedSchema, apply_defaults,
    canonicalize,
};

fn gvk(api_version: &str, kind: &str) -> GroupVersionKind {
    GroupVersion::parse(api_version).unwrap().with_kind(kind)
}

/// Every schema below `schema`, itself included.
fn walk(schema: &Schema, see: &mut impl FnMut(&Schema)) {
    see(schema);
    if let Shape::List(inner) | Shape::Map(inner) = &schema.shape {
        walk(inner, see);
    }
}

#[test]
fn every_type_refers_to_types_of_the_table() {
    let table = &builtin().table;
    for t in table.iter() {
        assert_eq!(table.find(&t.name).map(|id| table.get(id).name.clone()), Some(t.name.clone()));
        assert!(t.fields.is_sorted_by(|a, b| a.name < b.name), "{}", t.name);
        for f in &t.fields {
            walk(&f.schema, &mut |s| match s.shape {
                Shape::Named(id)
                | Shape::JsonSchemaOrBool(id)
                | Shape::JsonSchemaOrArray(id)
                | Shape::JsonSchemaOrStrings(id) => assert!((id.0 as usize) < table.iter().len()),
                Shape::Struct(_) => panic!("{} has an unnamed struct", t.name),
                _ => {}
            });
            if let (ListKind::Map(keys), Shape::List(item)) = (&f.schema.list, &f.schema.shape) {
                let item = table.resolve(item).unwrap();
                assert!(keys.iter().all(|k| item.field(k).is_some()), "{}.{}", t.name, f.name);
            }
        }
    }
}

#[test]
fn protobuf_numbers_are_unique_and_cover_the_fields() {
    fn check(slots: &[ProtoSlot], seen: &mut Vec<u16>) {
        let numbers: Vec<u32> = slots
            .iter()
            .map(|s| match s {
                ProtoSlot::Field { number, field } => {
                    seen.push(*field);
                    *number
                }
                ProtoSlot::Inline { number, slots } => {
                    check(slots, seen);
                    *number
                }
            })
            .collect();
        assert!(numbers.is_sorted_by(|a, b| a < b) && numbers.first() != Some(&0));
    }
    for t in builtin().table.iter().filter(|t| !t.proto.is_empty()) {
        let mut seen = Vec::new();
        check(&t.proto, &mut seen);
        seen.sort();
        let expected = |f: &str| !(t.embedded && ["apiVersion", "kind"].contains(&f));
        let fields = t.fields.iter().enumerate().filter(|(_, f)| expected(&f.name)).map(|(i, _)| i as u16);
        assert_eq!(seen, fields.collect::<Vec<_>>(), "{}", t.name);
    }
}

#[test]
fn every_resource_is_whole() {
    let c = builtin();
    for d in &c.descriptors {
        let name = d.group_resource().to_string();
        for v in &d.versions {
            let gvk = d.gvk(&v.name);
            let root = v.schema.root_struct().unwrap();
            assert_eq!(c.kind_type(&gvk).map(|id| &c.table.get(id).name), Some(&root.name), "{name}");
            assert!(root.embedded, "{name}");
            assert!(!v.verbs.is_empty() && v.verbs.is_sorted(), "{name}");
            if v.allows("list") {
                let list = GroupVersionKind { kind: d.list_kind.clone(), ..gvk };
                let list = c.table.get(c.kind_type(&list).expect("a list kind"));
                let Shape::List(item) = &list.field("items").unwrap().schema.shape else { panic!("items is a list") };
                assert_eq!(c.table.resolve(item).unwrap().name, root.name);
                assert!(!v.columns.is_empty(), "{name} has no columns");
                assert!(v.columns.iter().any(|column| column.cell == Cell::Path(".metadata.name".into())
                    || column.cell == Cell::Function("default_class_name".into())));
            }
            for path in paths(v) {
                assert!(leads_somewhere(&c.table, &v.schema.root, &path), "{name} {}: {path}", v.name);
            }
            for sub in &v.subresources {
                assert!(!sub.verbs.is_empty() && sub.verbs.is_sorted(), "{name}/{}", sub.name);
                assert!(c.kind_type(&sub.kind).is_some(), "{name}/{}", sub.name);
                assert!(sub.accepted.iter().all(|k| c.kind_type(k).is_some()), "{name}/{}", sub.name);
            }
        }
        let stored = c.kind_type(&d.storage.kind).unwrap();
        let protobuf = d.storage.encoding == Encoding::Protobuf;
        assert!(!protobuf || !c.table.get(stored).proto.is_empty(), "{name} has no protobuf form to be stored in");
        assert_eq!(d.storage.keeps_objects(), d.versions[0].allows("get") && d.plural != "componentstatuses", "{name}");
    }
}

fn paths(v: &kubelith_schema::Version) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for c in &v.columns {
        match &c.cell {
            Cell::Path(path) => paths.push(path.to_string()),
            Cell::Function(_) => paths.extend(c.arguments.iter().map(|a| a.to_string())),
        }
    }
    for s in v.selectable.iter().filter(|s| !s.path.is_empty()) {
        paths.push(s.path.to_string());
        paths.extend(s.fallback.iter().map(|f| f.to_string()));
    }
    paths
}

/// Whether a simple path names declared fields all the way.
fn leads_somewhere(table: &TypeTable, schema: &Schema, path: &str) -> bool {
    let mut schema = schema;
    for step in path.split('.').skip(1) {
        let (name, index) = step.split_once('[').map_or((step, false), |(name, _)| (name, true));
        let Some(field) = table.resolve(schema).and_then(|t| t.field(name)) else { return false };
        schema = &field.schema;
        if index {
            let Shape::List(item) = &schema.shape else { return false };
            schema = item;
        }
    }
    true
}

#[test]
fn keys_do_not_collide() {
    let mut prefixes: Vec<&str> = Vec::new();
    for d in builtin().descriptors.iter().filter(|d| d.storage.keeps_objects()) {
        if d.storage.resource == d.group_resource() {
            prefixes.push(&d.storage.prefix);
        }
    }
    prefixes.sort();
    assert!(prefixes.is_sorted_by(|a, b| a < b), "{prefixes:?}");
    for (group, plural, prefix) in [
        ("", "pods", "pods"),
        ("", "nodes", "minions"),
        ("", "services", "services/specs"),
        ("", "endpoints", "services/endpoints"),
        ("", "replicationcontrollers", "controllers"),
        ("networking.k8s.io", "ingresses", "ingress"),
        ("events.k8s.io", "events", "events"),
        ("apiregistration.k8s.io", "apiservices", "apiregistration.k8s.io/apiservices"),
        ("apiextensions.k8s.io", "customresourcedefinitions", "apiextensions.k8s.io/customresourcedefinitions"),
    ] {
        assert_eq!(builtin().descriptor(group, plural).unwrap().storage.prefix, prefix);
    }
}

#[test]
fn kinds_are_found() {
    let c = builtin();
    let cases = [
        ("v1", "Pod", "io.k8s.api.core.v1.Pod"),
        ("v1", "PodList", "io.k8s.api.core.v1.PodList"),
        ("v1", "Status", "io.k8s.apimachinery.pkg.apis.meta.v1.Status"),
        ("v1", "DeleteOptions", "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"),
        ("apps/v1", "DeleteOptions", "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"),
        ("apps/v1", "WatchEvent", "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent"),
        ("autoscaling/v1", "Scale", "io.k8s.api.autoscaling.v1.Scale"),
        ("policy/v1", "Eviction", "io.k8s.api.policy.v1.Eviction"),
        ("meta.k8s.io/v1", "Table", "io.k8s.apimachinery.pkg.apis.meta.v1.Table"),
        ("meta.k8s.io/v1beta1", "Table", "io.k8s.apimachinery.pkg.apis.meta.v1.Table"),
        ("authentication.k8s.io/v1", "TokenRequest", "io.k8s.api.authentication.v1.TokenRequest"),
        ("admission.k8s.io/v1", "AdmissionReview", "io.k8s.api.admission.v1.AdmissionReview"),
        ("apidiscovery.k8s.io/v2", "APIGroupDiscoveryList", "io.k8s.api.apidiscovery.v2.APIGroupDiscoveryList"),
        ("extensions/v1beta1", "Ingress", "io.k8s.api.extensions.v1beta1.Ingress"),
    ];
    for (api_version, kind, name) in cases {
        let found = c.kind_type(&gvk(api_version, kind)).map(|id| c.table.get(id).name.as_str());
        assert_eq!(found, Some(name), "{api_version} {kind}");
    }
    for (api_version, kind) in [("v1", "Deployment"), ("example.com/v1", "DeleteOptions"), ("apps/v1", "PodSpec")] {
        assert_eq!(c.kind_type(&gvk(api_version, kind)), None, "{api_version} {kind}");
    }
}

/// The groups and versions of `/apis`, and what they hold by default: `+` marks what is only served on request.
#[test]
fn discovery_lists_in_the_known_order() {
    let c = builtin();
    let mut lines = Vec::new();
    for api in c.apis().iter().filter(|a| a.serve != Serve::Never) {
        let resources = c.descriptors.iter().filter(|d| d.group == api.gv.group);
        let served: Vec<&str> =
            resources.filter(|d| d.version(&api.gv.version).is_some()).map(|d| d.plural.as_str()).collect();
        let mark = if api.serve == Serve::Default { "" } else { "+" };
        lines.push(format!("{mark}{}: {}", api.gv, served.len()));
    }
    let want = "apiregistration.k8s.io/v1: 1, v1: 17, apps/v1: 5, events.k8s.io/v1: 1, authentication.k8s.io/v1: 2, \
        authorization.k8s.io/v1: 4, autoscaling/v2: 1, autoscaling/v1: 1, batch/v1: 2, certificates.k8s.io/v1: 1, \
        +certificates.k8s.io/v1beta1: 2, +certificates.k8s.io/v1alpha1: 1, networking.k8s.io/v1: 5, \
        +networking.k8s.io/v1beta1: 2, policy/v1: 1, rbac.authorization.k8s.io/v1: 4, storage.k8s.io/v1: 6, \
        +storage.k8s.io/v1beta1: 1, admissionregistration.k8s.io/v1: 6, +admissionregistration.k8s.io/v1beta1: 4, \
        +admissionregistration.k8s.io/v1alpha1: 2, apiextensions.k8s.io/v1: 1, scheduling.k8s.io/v1: 1, \
        +scheduling.k8s.io/v1alpha2: 2, coordination.k8s.io/v1: 1, +coordination.k8s.io/v1beta1: 1, \
        +coordination.k8s.io/v1alpha2: 1, node.k8s.io/v1: 1, discovery.k8s.io/v1: 1, resource.k8s.io/v1: 4, \
        +resource.k8s.io/v1beta2: 5, +resource.k8s.io/v1beta1: 4, +resource.k8s.io/v1alpha3: 2, \
        flowcontrol.apiserver.k8s.io/v1: 2, +internal.apiserver.k8s.io/v1alpha1: 1, \
        +storagemigration.k8s.io/v1beta1: 1";
    assert_eq!(lines.join(", "), want);
}

#[test]
fn well_known_resources_have_their_names_and_verbs() {
    let c = builtin();
    let cases = [
        (
            "",
            "pods",
            "Pod",
            Scope::Namespaced,
            "po",
            "all",
            8,
            "attach binding ephemeralcontainers eviction exec log portforward proxy resize status",
        ),
        ("", "bindings", "Binding", Scope::Namespaced, "", "", 1, ""),
        ("", "componentstatuses", "ComponentStatus", Scope::Cluster, "cs", "", 2, ""),
        ("", "services", "Service", Scope::Namespaced, "svc", "all", 8, "proxy status"),
        ("", "namespaces", "Namespace", Scope::Cluster, "ns", "", 7, "finalize status"),
        ("apps", "deployments", "Deployment", Scope::Namespaced, "deploy", "all", 8, "scale status"),
        (
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            "CustomResourceDefinition",
            Scope::Cluster,
            "crd crds",
            "api-extensions",
            8,
            "status",
        ),
    ];
    for (group, plural, kind, scope, short, categories, verbs, subresources) in cases {
        let d = c.descriptor(group, plural).unwrap();
        assert_eq!((d.kind.as_str(), d.scope), (kind, scope));
        assert_eq!((d.short_names.join(" ").as_str(), d.categories.join(" ").as_str()), (short, categories));
        let v = &d.versions[0];
        let subs: Vec<&str> = v.subresources.iter().map(|s| s.name.as_str()).collect();
        assert_eq!((v.verbs.len(), subs.join(" ").as_str()), (verbs, subresources), "{plural}");
    }
    let stored = |group, plural| c.descriptor(group, plural).unwrap().storage.kind.to_string();
    assert_eq!(stored("autoscaling", "horizontalpodautoscalers"), "autoscaling/v2, Kind=HorizontalPodAutoscaler");
    assert_eq!(stored("events.k8s.io", "events"), "/v1, Kind=Event");
    assert_eq!(stored("resource.k8s.io", "devicetaintrules"), "resource.k8s.io/v1alpha3, Kind=DeviceTaintRule");
    let endpoints = c.descriptor("", "endpoints").unwrap().versions[0].deprecation.as_ref().unwrap();
    assert_eq!(endpoints.warning, "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice");
}

#[test]
fn empty_objects_are_canonical_at_once_and_take_their_defaults() {
    let c = builtin();
    for (kind, id) in c.kinds() {
        let schema = TypedSchema::named(c.table.clone(), id);
        let mut first = Value::object();
        canonicalize(&schema.table, &schema.root, &mut first, Empties::Distinct);
        let mut second = first.clone();
        canonicalize(&schema.table, &schema.root, &mut second, Empties::Absent);
        assert_eq!(first, second, "{kind}");
        apply_defaults(&schema.table, &schema.root, &mut second);
        let filled = second.clone();
        canonicalize(&schema.table, &schema.root, &mut second, Empties::Distinct);
        assert_eq!(filled, second, "defaults leave {kind} canonical");
    }
    let schema = c.kind_schema(&gvk("apps/v1", "Deployment")).unwrap();
    let mut deployment = Value::object();
    deployment.set_at(&["spec", "template", "spec", "containers"], Value::Array(vec![Value::object()]));
    canonicalize(&schema.table, &schema.root, &mut deployment, Empties::Distinct);
    apply_defaults(&schema.table, &schema.root, &mut deployment);
    let at = |path: &[&str]| deployment.at(path).cloned().unwrap_or_default();
    assert_eq!(at(&["spec", "replicas"]), Value::Int(1));
    assert_eq!(at(&["spec", "strategy", "type"]), "RollingUpdate".into());
    assert_eq!(at(&["spec", "template", "spec", "securityContext"]), Value::object());
    assert_eq!(at(&["spec", "template", "spec", "dnsPolicy"]), "ClusterFirst".into());
    let containers = at(&["spec", "template", "spec", "containers"]);
    assert_eq!(containers.as_array().unwrap()[0].str_at(&["terminationMessagePolicy"]), "File");
}

/// What the build script wrote is what the texts say: nothing is lost between `encode` and `decode`.
#[test]
fn the_compiled_form_is_the_text() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/api");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "api") {
            let source = std::fs::read_to_string(&path).unwrap();
            files.push(crate::text::parse(path.file_stem().unwrap().to_str().unwrap(), &source).unwrap());
        }
    }
    files.sort_by(|a, b| a.stem.cmp(&b.stem));
    let model = crate::text::link(files).unwrap();
    let c = crate::decode::decode(&crate::encode::encode(&model));
    assert_eq!(c.apis, model.apis);
    assert_eq!(c.kinds, model.kinds);
    for (loaded, written) in c.table.iter().zip(&model.types) {
        assert_eq!(format!("{loaded:?}"), format!("{written:?}"));
    }
    for (loaded, written) in c.descriptors.iter().zip(&model.resources) {
        assert_eq!(format!("{:?}", loaded.storage), format!("{:?}", written.storage));
        for (l, w) in loaded.versions.iter().zip(&written.versions) {
            assert_eq!(format!("{:?}{:?}", l.columns, l.selectable), format!("{:?}{:?}", w.columns, w.selectable));
            assert_eq!(l.verbs, w.verbs);
        }
    }
    let builtin: Vec<String> = builtin().table.iter().map(|t| format!("{t:?}")).collect();
    assert!(builtin.iter().eq(c.table.iter().map(|t| format!("{t:?}")).collect::<Vec<_>>().iter()));
}
