use super::*;
use crate::testing::value;

#[test]
fn one_line() {
    let cases = [
        (
            "RoleRef",
            r#"{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"b"}"#,
            r#"{"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"b"}"#,
        ),
        ("CSINodeDriver", r#"{"name":"d"}"#, r#"{"Name":"d","NodeID":"","TopologyKeys":null,"Allocatable":null}"#),
        (
            "*PodDisruptionBudgetSpec",
            r#"{"maxUnavailable":"1%","selector":{"matchLabels":{"a":"b"}}}"#,
            r#"{"MinAvailable":null,"Selector":{"matchLabels":{"a":"b"}},"MaxUnavailable":"1%","UnhealthyPodEvictionPolicy":null}"#,
        ),
        ("*SuccessPolicy", "null", "null"),
        ("[]NodeAddress", r#"[{"type":"x"},{}]"#, r#"[{"Type":"x","Address":""},{"Type":"","Address":""}]"#),
        ("HTTPGetAction", "{}", r#"{"Path":"","Port":0,"Host":"","Scheme":"","HTTPHeaders":null}"#),
        (
            "ResourceClaimTemplateSpec",
            r#"{"metadata":{"labels":{"a":"b"}},"spec":{"devices":{"requests":[]}}}"#,
            r#"{"labels":{"a":"b"},"Spec":{"Devices":{"Requests":[],"Constraints":null,"Config":null}}}"#,
        ),
    ];
    for (form, object, expected) in cases {
        assert_eq!(json(form, Some(&value(object))), expected);
    }
}

/// The namespaces of the host are fields of the pod's spec on the wire, of its security context in Go.
#[test]
fn fields_from_further_out() {
    let spec = value(r#"{"hostNetwork":true,"hostUsers":false,"securityContext":{"runAsUser":5}}"#);
    let text = json("PodSpec", Some(&spec));
    let from = text.find("\"SecurityContext\"").expect("it is printed");
    let expected = r#""SecurityContext":{"HostNetwork":true,"HostPID":false,"HostIPC":false,"ShareProcessNamespace":null,"HostUsers":false,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":5,"#;
    assert!(text[from..].starts_with(expected), "{}", &text[from..]);
}

#[test]
fn differences() {
    let (old, new) = (value(r#"{"name":"e","image":"a"}"#), value(r#"{"name":"e","image":"b"}"#));
    let expected = "@@ -1,6 +1,6 @@\n {\n  \"Name\": \"e\",\n- \"Image\": \"a\",\n+ \"Image\": \"b\",\n  \"Command\": null,\n  \"Args\": null,\n  \"WorkingDir\": \"\",\n";
    assert_eq!(difference("EphemeralContainer", &old, &new), expected);
}

#[test]
fn sameness() {
    let cases = [
        ("ResourceRequirements", r#"{"limits":{"cpu":"1"}}"#, r#"{"limits":{"cpu":"1000m"},"claims":[]}"#, true),
        ("ResourceRequirements", r#"{"limits":{"cpu":"1"}}"#, r#"{"limits":{"cpu":"2"}}"#, false),
        ("Container", r#"{"name":"a","stdin":false}"#, r#"{"name":"a","command":[]}"#, true),
        ("PodSpec", r#"{"priority":0}"#, "{}", false),
        ("PodSpec", r#"{"hostNetwork":true}"#, "{}", false),
        ("PodSpec", r#"{"securityContext":{}}"#, "{}", true),
        ("*NodeAffinity", "{}", "null", false),
    ];
    for (form, a, b, expected) in cases {
        assert_eq!(same(form, Some(&value(a)), Some(&value(b))), expected, "{form} {a} {b}");
        assert_eq!(same(form, Some(&value(b)), Some(&value(a))), expected, "{form} {b} {a}");
    }
}

#[test]
fn no_type_is_told_twice() {
    let names: Vec<&str> =
        include_str!("forms.txt").lines().filter(|l| !l.is_empty() && !l.starts_with([' ', '#'])).collect();
    let once: std::collections::BTreeSet<&str> = names.iter().copied().collect();
    assert_eq!(names.len(), once.len());
}
