use crate::tests::{check_create, check_update};

const GROUP: &str = "storage.k8s.io";

#[test]
fn inline_volumes_of_attachments() {
    let check = |spec: &str| {
        let object = format!(
            r#"{{"metadata":{{"name":"a"}},"spec":{{"attacher":"a","nodeName":"n","source":{{"inlineVolumeSpec":{spec}}}}}}}"#
        );
        check_create(GROUP, "volumeattachments", &object)
    };
    let good = r#"{"accessModes":["ReadWriteOnce"],"csi":{"driver":"d","volumeHandle":"h"}}"#;
    assert!(check(good).is_empty(), "{:?}", check(good));
    let bad = r#"{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1"},"claimRef":{},"nodeAffinity":{},
        "persistentVolumeReclaimPolicy":"Delete","storageClassName":"c","volumeMode":"Block","local":{"path":"/p"}}"#;
    let at = "spec.source.inlineVolumeSpec";
    let misplaced = "Forbidden: may not be specified in the context of inline volumes";
    assert_eq!(
        check(bad),
        [
            format!("{at}.claimRef: {misplaced}"),
            format!("{at}.capacity: {misplaced}"),
            format!("{at}.csi: Required value: has to be specified in the context of inline volumes"),
            format!(
                "{at}.persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes"
            ),
            format!("{at}.nodeAffinity: {misplaced}"),
            format!("{at}.nodeAffinity: Required value: Local volume requires node affinity"),
            format!("{at}.storageClassName: {misplaced}"),
            format!(
                "{at}.volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline volumes"
            ),
        ]
    );
}

#[test]
fn updates_are_validated_as_a_whole() {
    let old = r#"{"metadata":{"name":"a","resourceVersion":"1"},"provisioner":"p","volumeBindingMode":"Immediate"}"#;
    let new = r#"{"metadata":{"name":"a","resourceVersion":"1"},"volumeBindingMode":"Immediate","reclaimPolicy":"x"}"#;
    assert_eq!(
        check_update(GROUP, "storageclasses", "", new, old),
        [
            "provisioner: Required value",
            r#"reclaimPolicy: Unsupported value: "x": supported values: "Delete", "Retain""#,
            r#"provisioner: Invalid value: "": field is immutable"#,
            r#"reclaimPolicy: Invalid value: "x": field is immutable"#,
        ]
    );
    let old = r#"{"metadata":{"name":"a","namespace":"n","resourceVersion":"1"},"storageClassName":"c"}"#;
    let new = r#"{"metadata":{"name":"a","namespace":"n","resourceVersion":"1"},"storageClassName":"c","capacity":"-1",
        "nodeTopology":{"matchExpressions":[],"matchLabels":{"a":"b"}}}"#;
    assert_eq!(
        check_update(GROUP, "csistoragecapacities", "", new, old),
        [
            r#"capacity: Invalid value: "-1": must be greater than or equal to 0"#,
            r#"nodeTopology: Invalid value: {"matchLabels":{"a":"b"}}: field is immutable"#,
        ]
    );
    let old = r#"{"metadata":{"name":"a","resourceVersion":"1"},"handler":"h"}"#;
    let new = r#"{"metadata":{"name":"a","resourceVersion":"1"}}"#;
    assert_eq!(
        check_update("node.k8s.io", "runtimeclasses", "", new, old),
        ["handler: Required value", r#"handler: Invalid value: "": field is immutable"#]
    );
}

#[test]
fn volumes_with_mount_options() {
    let volume = |source: &str| {
        format!(
            r#"{{"metadata":{{"name":"a","annotations":{{"volume.beta.kubernetes.io/mount-options":"ro"}}}},
                "spec":{{"capacity":{{"storage":"1"}},"accessModes":["ReadWriteOnce"],{source}}}}}"#
        )
    };
    let check = |source: &str| check_create("", "persistentvolumes", &volume(source));
    assert!(check(r#""nfs":{"server":"s","path":"/p"}"#).is_empty());
    assert_eq!(
        check(r#""hostPath":{"path":"/p"}"#),
        [
            "metadata.annotations.volume.beta.kubernetes.io/mount-options: Forbidden: may not specify mount options for this \
          volume type"
        ]
    );
}
