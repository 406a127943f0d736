//! Leases and their candidates.

use crate::tests::{check_create, check_update};

#[test]
fn leases() {
    let cases = [
        ("{}", vec![]),
        (
            r#"{"leaseDurationSeconds":0,"leaseTransitions":-1}"#,
            vec![
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ],
        ),
        (
            r#"{"strategy":"x"}"#,
            vec!["spec.strategy.strategy: Unsupported value: \"x\": supported values: \"OldestEmulationVersion\""],
        ),
        (
            r#"{"preferredHolder":"x"}"#,
            vec!["spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined"],
        ),
    ];
    for (spec, expected) in cases {
        let object = format!(r#"{{"metadata":{{"name":"x","namespace":"n","finalizers":["x"]}},"spec":{spec}}}"#);
        assert_eq!(check_create("coordination.k8s.io", "leases", &object), expected, "{spec}");
    }
}

#[test]
fn candidates() {
    let cases = [
        (
            "{}",
            vec![
                "spec.leaseName: Required value",
                "spec.binaryVersion: Required value",
                "spec.strategy: Required value",
            ],
        ),
        (
            r#"{"leaseName":"l","binaryVersion":"x","emulationVersion":"1.2.0","strategy":"OldestEmulationVersion"}"#,
            vec![
                "spec.binaryVersion: Invalid value: \"x\": must be a valid semantic version",
                "spec.binaryVersion: Invalid value: \"x\": must be greater than or equal to `emulationVersion`",
            ],
        ),
        (
            r#"{"leaseName":"l","binaryVersion":"1.3.0","emulationVersion":"y","strategy":"OldestEmulationVersion"}"#,
            vec![
                "spec.emulationVersion: Invalid value: \"y\": must be a valid semantic version",
                "spec.emulationVersion: Required value: must be specified when `strategy` is 'OldestEmulationVersion'",
            ],
        ),
    ];
    for (spec, expected) in cases {
        let object = format!(r#"{{"metadata":{{"name":"x","namespace":"n"}},"spec":{spec}}}"#);
        assert_eq!(check_create("coordination.k8s.io", "leasecandidates", &object), expected, "{spec}");
    }
    let object = |lease: &str| {
        let spec = r#""binaryVersion":"1.2.3","strategy":"a.b/c""#;
        let metadata = r#"{"name":"x","namespace":"n","resourceVersion":"1"}"#;
        format!(r#"{{"metadata":{metadata},"spec":{{"leaseName":"{lease}",{spec}}}}}"#)
    };
    let errors = check_update("coordination.k8s.io", "leasecandidates", "", &object("b"), &object("a"));
    assert_eq!(errors, ["spec.leaseName: Invalid value: \"b\": field is immutable"]);
}
