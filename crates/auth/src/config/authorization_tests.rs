use super::*;
use crate::expression::Cel;
use crate::json;

fn check(authorizers: &str, required: &[AuthorizerMode]) -> Result<(), String> {
    let text = format!(
        r#"{{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthorizationConfiguration","authorizers":{authorizers}}}"#
    );
    AuthorizationConfig::decode(&json::parse(text.as_bytes()).unwrap())?.validate(&Cel::default(), required)
}

fn webhook(change: &[(&str, &str)]) -> String {
    let mut fields = vec![
        ("timeout", r#""3s""#),
        ("subjectAccessReviewVersion", r#""v1""#),
        ("failurePolicy", r#""Deny""#),
        ("connectionInfo", r#"{"type":"InClusterConfig"}"#),
    ];
    for (key, value) in change {
        fields.retain(|(k, _)| k != key);
        if !value.is_empty() {
            fields.push((key, value));
        }
    }
    let fields: Vec<String> = fields.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
    format!(r#"[{{"type":"Webhook","name":"hook","webhook":{{{}}}}}]"#, fields.join(","))
}

#[test]
fn modes() {
    let ok = Ok(());
    let err = |e: &str| Err(e.to_string());
    let cases = [
        (r#"[{"type":"Node","name":"node"},{"type":"RBAC","name":"rbac"}]"#, ok.clone()),
        ("[]", err("authorizers: Required value: at least one authorization mode must be defined")),
        (r#"[{"name":"x"}]"#, err("authorizers[0].type: Required value")),
        (
            r#"[{"type":"Magic","name":"x"}]"#,
            err(
                r#"authorizers[0].type: Unsupported value: "Magic": supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook""#,
            ),
        ),
        (
            r#"[{"type":"RBAC","name":"rbac"},{"type":"RBAC","name":"rbac2"}]"#,
            err(r#"authorizers[1].type: Duplicate value: "RBAC""#),
        ),
        (r#"[{"type":"RBAC","name":"other"}]"#, err("expected name rbac for authorizer RBAC instead of other")),
        (r#"[{"type":"RBAC"}]"#, err("authorizers[0].name: Required value")),
        (
            r#"[{"type":"Webhook","name":"w"}]"#,
            err("authorizers[0].webhook: Required value: required when type=Webhook"),
        ),
        (
            r#"[{"type":"RBAC","name":"rbac","webhook":{}}]"#,
            err(r#"authorizers[0].webhook: Invalid value: "non-null": may only be specified when type=Webhook"#),
        ),
        (
            r#"[{"type":"RBAC","name":"rbac","extra":1}]"#,
            err(r#"strict decoding error: unknown field "authorizers[0].extra""#),
        ),
    ];
    for (authorizers, want) in cases {
        assert_eq!(check(authorizers, &[]), want, "{authorizers}");
    }
    let only_rbac = r#"[{"type":"RBAC","name":"rbac"}]"#;
    assert_eq!(
        check(only_rbac, &[AuthorizerMode::Rbac, AuthorizerMode::Node, AuthorizerMode::Webhook]).unwrap_err(),
        "missing required types: [Node]"
    );
}

#[test]
fn webhooks() {
    let wrong = |path: &str, what: &str| Err(format!("authorizers[0].{path}: {what}"));
    let cases = [
        (vec![], Ok(())),
        (vec![("timeout", "")], wrong("timeout", "Required value")),
        (vec![("timeout", r#""31s""#)], wrong("timeout", r#"Invalid value: "31s": must be > 0s and <= 30s"#)),
        (vec![("authorizedTTL", r#""-1s""#)], wrong("authorizedTTL", r#"Invalid value: "-1s": must be > 0s"#)),
        (
            vec![("subjectAccessReviewVersion", r#""v2""#)],
            wrong("subjectAccessReviewVersion", r#"Unsupported value: "v2": supported values: "v1", "v1beta1""#),
        ),
        (vec![("failurePolicy", "")], wrong("failurePolicy", "Required value")),
        (vec![("connectionInfo", "{}")], wrong("connectionInfo.type", "Required value")),
        (
            vec![("connectionInfo", r#"{"type":"KubeConfigFile","kubeConfigFile":"relative"}"#)],
            wrong("connectionInfo.kubeConfigFile", r#"Invalid value: "relative": must be an absolute path"#),
        ),
        (
            vec![("matchConditions", r#"[{"expression":"request.user == 'x'"}]"#)],
            wrong(
                "matchConditionSubjectAccessReviewVersion",
                "Required value: required if match conditions are specified",
            ),
        ),
        (
            vec![
                ("matchConditionSubjectAccessReviewVersion", r#""v1""#),
                ("matchConditions", r#"[{"expression":"nonsense"},{"expression":""},{"expression":"request.user"}]"#),
            ],
            Err(concat!(
                r#"[authorizers[0].matchConditions[0].expression: Invalid value: "nonsense": "#,
                "compilation failed: ERROR: <input>:1:1: undeclared reference to 'nonsense' (in container '')\n",
                " | nonsense\n | ^, ",
                "authorizers[0].matchConditions[1].expression: Required value, ",
                r#"authorizers[0].matchConditions[2].expression: Invalid value: "request.user": "#,
                "must evaluate to bool but got string]"
            )
            .to_string()),
        ),
    ];
    for (change, want) in cases {
        assert_eq!(check(&webhook(&change), &[]), want, "{change:?}");
    }
}

#[test]
fn defaults_and_versions() {
    let text = format!(
        r#"{{"apiVersion":"apiserver.config.k8s.io/v1beta1","kind":"AuthorizationConfiguration","authorizers":{}}}"#,
        webhook(&[])
    );
    let config = AuthorizationConfig::decode(&json::parse(text.as_bytes()).unwrap()).unwrap();
    let webhook = config.authorizers[0].webhook.as_ref().unwrap();
    assert_eq!((webhook.authorized_ttl, webhook.unauthorized_ttl), (Duration::from_secs(300), Duration::from_secs(30)));
    assert!(webhook.cache_authorized && webhook.cache_unauthorized);
    assert_eq!(webhook.on_error(), Verdict::Deny);
    let decode = |text: &str| AuthorizationConfig::decode(&json::parse(text.as_bytes()).unwrap());
    assert!(decode(r#"{"kind":"AuthorizationConfiguration"}"#).is_err());
    assert!(decode(r#"{"apiVersion":"apiserver.config.k8s.io/v9","kind":"AuthorizationConfiguration"}"#).is_err());
}
