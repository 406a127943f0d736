//! Fields that exist only while a feature gate is on.

use crate::tests::kind;
use kubelith_features::{FeatureGates, GATES};
use kubelith_meta::Value;
use kubelith_rules::gated::Gated;

fn value(text: &str) -> Value {
    kubelith_codec::json::parse(text.as_bytes()).unwrap()
}

fn dropped(of: (&str, &str), off: &[&str], object: &str, old: Option<&str>) -> Value {
    let mut object = value(object);
    let gates = |name: &str| !off.contains(&name);
    Gated::of(&kind(of.0, of.1), &gates).drop_from(&mut object, old.map(value).as_ref());
    object
}

#[test]
fn fields_go_with_their_gates_unless_in_use() {
    let pod = r#"{"spec":{"containers":[{"name":"a","lifecycle":{"stopSignal":"SIGTERM"}},
        {"name":"b","lifecycle":{"stopSignal":"SIGTERM","preStop":{}}}]}}"#;
    let off: &[&str] = &["ContainerStopSignals"];
    let without = r#"{"spec":{"containers":[{"name":"a"},{"name":"b","lifecycle":{"preStop":{}}}]}}"#;
    assert_eq!(dropped(("", "pods"), off, pod, None), value(without));
    assert_eq!(dropped(("", "pods"), off, pod, Some(without)), value(without));
    assert_eq!(dropped(("", "pods"), off, pod, Some(pod)), value(pod), "who has it keeps it");
    assert_eq!(dropped(("", "pods"), &[], pod, None), value(pod));
    let cases = [
        (
            ("batch", "cronjobs"),
            "ClusterTrustBundleProjection",
            r#"{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"volumes":[{"projected":{"sources":[
                {"clusterTrustBundle":{"path":"p"}}]}}]}}}}}}"#,
            r#"{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"volumes":[{"projected":{"sources":[{}]}}]}}}}}}"#,
        ),
        (
            ("", "pods"),
            "ContainerRestartRules",
            r#"{"spec":{"containers":[{"restartPolicy":"Always","restartPolicyRules":[]}],
                "initContainers":[{"restartPolicy":"Always"},{"restartPolicy":"Never"}]}}"#,
            r#"{"spec":{"containers":[{}],"initContainers":[{"restartPolicy":"Always"},{}]}}"#,
        ),
        (
            ("", "persistentvolumeclaims"),
            "CrossNamespaceVolumeDataSource",
            r#"{"spec":{"dataSourceRef":{"kind":"K","namespace":"n"}}}"#,
            r#"{"spec":{}}"#,
        ),
        (
            ("", "persistentvolumeclaims"),
            "CrossNamespaceVolumeDataSource",
            r#"{"spec":{"dataSourceRef":{"kind":"K"}}}"#,
            r#"{"spec":{"dataSourceRef":{"kind":"K"}}}"#,
        ),
        (
            ("resource.k8s.io", "resourceslices"),
            "DRAConsumableCapacity",
            r#"{"spec":{"devices":[{"capacity":{"c":{"value":"1","requestPolicy":{}}}}]}}"#,
            r#"{"spec":{"devices":[{"capacity":{"c":{"value":"1"}}}]}}"#,
        ),
        (
            ("coordination.k8s.io", "leases"),
            "CoordinatedLeaderElection",
            r#"{"spec":{"strategy":"s","preferredHolder":"h","holderIdentity":"i"}}"#,
            r#"{"spec":{"holderIdentity":"i"}}"#,
        ),
        (
            ("", "pods"),
            "ProcMountType",
            r#"{"spec":{"containers":[{"securityContext":{"procMount":"Unmasked"}}]}}"#,
            r#"{"spec":{"containers":[{"securityContext":{"procMount":"Default"}}]}}"#,
        ),
    ];
    for (kind, gate, object, expected) in cases {
        assert_eq!(dropped(kind, &[gate], object, None), value(expected), "{gate}");
    }
}

#[test]
fn every_gate_is_known() {
    let catalog = kubelith_catalog::builtin();
    for descriptor in &catalog.descriptors {
        let (group, plural) = (descriptor.group.as_str(), descriptor.plural.as_str());
        let asked = std::cell::RefCell::new(Vec::new());
        let all = Gated::of(&kind(group, plural), &|gate| {
            asked.borrow_mut().push(gate.to_owned());
            false
        });
        for gate in asked.into_inner() {
            assert!(GATES.iter().any(|known| known.name == gate), "{gate} of {plural}");
        }
        assert!(all.paths().all(|mut paths| paths.next().is_some()));
    }
}

#[test]
fn few_kinds_have_something_to_drop() {
    let features = FeatureGates::default();
    let count =
        |group: &str, plural: &str| Gated::of(&kind(group, plural), &|gate| features.enabled(gate)).paths().count();
    assert_eq!(count("", "configmaps"), 0);
    assert_eq!(count("", "nodes"), 0);
    assert_eq!(count("", "pods"), 6);
    assert_eq!(count("apps", "deployments"), 4);
}

#[test]
fn every_path_is_a_field() {
    let catalog = kubelith_catalog::builtin();
    let mut count = 0;
    for descriptor in &catalog.descriptors {
        let all = Gated::of(&kind(&descriptor.group, &descriptor.plural), &|_| false);
        // A field is known if it is one of the version that is stored, or of any other.
        let schemas: Vec<_> = descriptor.versions.iter().map(|version| &version.schema).collect();
        for path in all.paths().flatten() {
            let is_known = schemas.iter().any(|schema| path.is_known(schema));
            assert!(is_known, "{} {path:?}", descriptor.plural);
            count += 1;
        }
    }
    assert!(count > 100, "{count} paths");
}

#[test]
fn image_volumes_go_with_their_mounts() {
    let pod = r#"{"spec":{"volumes":[{"name":"a","image":{"reference":"r"}},{"name":"b","emptyDir":{}}],
        "containers":[{"volumeMounts":[{"name":"a"},{"name":"b"}]}]}}"#;
    let without = r#"{"spec":{"volumes":[{"name":"b","emptyDir":{}}],"containers":[{"volumeMounts":[{"name":"b"}]}]}}"#;
    assert_eq!(dropped(("", "pods"), &["ImageVolume"], pod, None), value(without));
    assert_eq!(dropped(("", "pods"), &["ImageVolume"], pod, Some(pod)), value(pod));
}

#[test]
fn what_updates_keep() {
    let node = r#"{"status":{"runtimeHandlers":[{"name":"h"}]}}"#;
    let both: &[&str] = &["RecursiveReadOnlyMounts", "UserNamespacesSupport"];
    assert_eq!(dropped(("", "nodes"), both, node, Some(node)), value(r#"{"status":{}}"#), "whatever there was");
    assert_eq!(dropped(("", "nodes"), &both[..1], node, None), value(node), "one of the gates is enough");
    let job = r#"{"spec":{"managedBy":"m","podFailurePolicy":{"rules":[{"action":"FailIndex"},{"action":"Count"}]}}}"#;
    let off: &[&str] = &["JobManagedBy", "JobBackoffLimitPerIndex"];
    let without = r#"{"spec":{"podFailurePolicy":{"rules":[{"action":"Count"}]}}}"#;
    assert_eq!(dropped(("batch", "jobs"), off, job, None), value(without));
    assert_eq!(dropped(("batch", "jobs"), off, job, Some("{}")), value(job), "it is refused by its rules");
}
