use super::*;
use crate::config::authentication::{AnonymousConfig, OidcFlags};
use crate::expression::Cel;
use crate::json;

fn check(jwt: &str) -> String {
    let text =
        format!(r#"{{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration","jwt":{jwt}}}"#);
    match AuthenticationConfig::decode(&json::parse(text.as_bytes()).unwrap()) {
        Ok(config) => validate(&config, &["https://us".to_string()], &Cel::default()).to_string(),
        Err(e) => e,
    }
}

const ISSUER: &str = r#""issuer":{"url":"https://i","audiences":["a"]}"#;
const USERNAME: &str = r#""claimMappings":{"username":{"claim":"sub","prefix":""}}"#;

#[test]
fn issuers() {
    let one = |issuer: &str| check(&format!(r#"[{{"issuer":{issuer},{USERNAME}}}]"#));
    let cases = [
        (r#"{"url":"https://i","audiences":["a"]}"#, ""),
        (r#"{"audiences":["a"]}"#, "jwt[0].issuer.url: Required value"),
        (
            r#"{"url":"http://i","audiences":["a"]}"#,
            r#"jwt[0].issuer.url: Invalid value: "http://i": URL scheme must be https"#,
        ),
        (
            r#"{"url":"https://u:p@i?q#f","audiences":["a"]}"#,
            concat!(
                r#"[jwt[0].issuer.url: Invalid value: "https://u:p@i?q#f": URL must not contain a username or password, "#,
                r#"jwt[0].issuer.url: Invalid value: "https://u:p@i?q#f": URL must not contain a query, "#,
                r#"jwt[0].issuer.url: Invalid value: "https://u:p@i?q#f": URL must not contain a fragment]"#
            ),
        ),
        (
            r#"{"url":"https://us","audiences":["a"]}"#,
            r#"jwt[0].issuer.url: Invalid value: "https://us": URL must not overlap with disallowed issuers: [https://us]"#,
        ),
        (
            r#"{"url":"https://i"}"#,
            "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required",
        ),
        (
            r#"{"url":"https://i","audiences":["a","b"]}"#,
            r#"jwt[0].issuer.audienceMatchPolicy: Invalid value: "": audienceMatchPolicy must be MatchAny for multiple audiences"#,
        ),
        (r#"{"url":"https://i","audiences":["a","b"],"audienceMatchPolicy":"MatchAny"}"#, ""),
        (
            r#"{"url":"https://i","discoveryURL":"https://i/","audiences":["a"]}"#,
            r#"jwt[0].issuer.discoveryURL: Invalid value: "https://i/": discoveryURL must be different from URL"#,
        ),
        (
            r#"{"url":"https://i","audiences":["a"],"certificateAuthority":"x"}"#,
            r#"jwt[0].issuer.certificateAuthority: Invalid value: "<omitted>": data does not contain any valid RSA or ECDSA certificates"#,
        ),
        (
            r#"{"url":"https://i","audiences":["a"],"wrong":1}"#,
            r#"strict decoding error: unknown field "jwt[0].issuer.wrong""#,
        ),
    ];
    for (issuer, want) in cases {
        assert_eq!(one(issuer), want, "{issuer}");
    }
    let twice = format!("[{{{ISSUER},{USERNAME}}},{{{ISSUER},{USERNAME}}}]");
    assert_eq!(check(&twice), r#"jwt[1].issuer.url: Duplicate value: "https://i""#);
}

#[test]
fn mappings_and_rules() {
    let one = |rest: &str| check(&format!("[{{{ISSUER},{rest}}}]"));
    let cases = [
        (r#""claimMappings":{}"#, "jwt[0].claimMappings.username: Required value: claim or expression is required"),
        (
            r#""claimMappings":{"username":{"claim":"sub"}}"#,
            "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. It can be set to an empty string to disable prefixing",
        ),
        (
            r#""claimMappings":{"username":{"expression":"claims.email"}}"#,
            "jwt[0].claimMappings.username.expression: Invalid value: \"claims.email\": claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression",
        ),
        (
            r#""claimMappings":{"username":{"expression":"claims.email"},"extra":[{"key":"acme.io/x","valueExpression":"claims.email_verified"}]}"#,
            "",
        ),
        (
            r#""claimMappings":{"username":{"expression":"claims.sub"},"extra":[{"key":"a.k8s.io/x","valueExpression":"claims.x"}]}"#,
            r#"jwt[0].claimMappings.extra[0].key: Invalid value: "a.k8s.io/x": k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"#,
        ),
        (
            r#""claimMappings":{"username":{"expression":"claims.sub"}},"claimValidationRules":[{"claim":"hd","requiredValue":"x","message":"m"},{"expression":"broken"},{}]"#,
            concat!(
                r#"[jwt[0].claimValidationRules[0].message: Invalid value: "m": may not be specified when claim is set, "#,
                r#"jwt[0].claimValidationRules[1].expression: Invalid value: "broken": compilation failed: ERROR: <input>:1:1: undeclared reference to 'broken' (in container '')"#,
                "\n | broken\n | ^, ",
                "jwt[0].claimValidationRules[2]: Required value: claim or expression is required]"
            ),
        ),
        (
            r#""claimMappings":{"username":{"expression":"claims.sub"}},"userValidationRules":[{"expression":"user.uid == ''"},{"expression":"user.uid == ''"},{"expression":"user.uid"}]"#,
            concat!(
                r#"[jwt[0].userValidationRules[1].expression: Duplicate value: "user.uid == ''", "#,
                r#"jwt[0].userValidationRules[2].expression: Invalid value: "user.uid": must evaluate to bool]"#
            ),
        ),
    ];
    for (rest, want) in cases {
        assert_eq!(one(rest), want, "{rest}");
    }
}

#[test]
fn anonymous() {
    let config = |enabled, paths: &[&str]| AuthenticationConfig {
        anonymous: Some(AnonymousConfig { enabled, paths: paths.iter().map(|p| Str::from(*p)).collect() }),
        ..AuthenticationConfig::default()
    };
    let check = |config| validate(&config, &[], &Cel::default()).to_string();
    assert_eq!(check(config(true, &["/livez"])), "");
    assert_eq!(
        check(config(false, &["/livez"])),
        r#"anonymous.conditions: Invalid value: [{"Path":"/livez"}]: enabled should be set to true when conditions are defined"#
    );
}

#[test]
fn flags() {
    let flags = OidcFlags {
        issuer_url: "https://i".into(),
        client_id: "c".into(),
        username_claim: "sub".into(),
        ..OidcFlags::default()
    };
    let prefix = |flags: &OidcFlags| JwtConfig::from_flags(flags).username.prefix.unwrap().to_string();
    assert_eq!(prefix(&flags), "https://i#");
    assert_eq!(prefix(&OidcFlags { username_claim: "email".into(), ..flags.clone() }), "");
    assert_eq!(prefix(&OidcFlags { username_prefix: "-".into(), ..flags.clone() }), "");
    assert_eq!(prefix(&OidcFlags { username_prefix: "x:".into(), ..flags.clone() }), "x:");
    let config = AuthenticationConfig { jwt: vec![JwtConfig::from_flags(&flags)], anonymous: None };
    assert_eq!(validate(&config, &[], &Cel::default()).to_string(), "");
}
