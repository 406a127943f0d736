use super::*;
use kubelith_codec::json;

fn schema(subjects: &str, rules: &str) -> FlowSchema {
    let text = format!(
        r#"{{"metadata":{{"name":"s","uid":"u"}},"spec":{{"matchingPrecedence":500,
            "priorityLevelConfiguration":{{"name":"l"}},"distinguisherMethod":{{"type":"ByNamespace"}},
            "rules":[{{"subjects":[{subjects}],{rules}}}]}},
            "status":{{"conditions":[{{"type":"Dangling","status":"False","reason":"Found","message":"m"}}]}}}}"#
    );
    FlowSchema::parse(&json::parse(text.as_bytes()).unwrap())
}

const ANY_RESOURCE: &str = r#""resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],
    "clusterScope":true,"namespaces":["*"]}]"#;

fn pods<'a>(user: &'a str, groups: &'a [Str]) -> Digest<'a> {
    Digest {
        user,
        groups,
        is_resource_request: true,
        verb: "get",
        resource: "pods",
        namespace: "ns",
        ..Digest::default()
    }
}

#[test]
fn reads_the_object() {
    let schema = schema(r#"{"kind":"User","user":{"name":"a"}}"#, ANY_RESOURCE);
    assert_eq!((schema.name.as_str(), schema.uid.as_str(), schema.precedence), ("s", "u", 500));
    assert_eq!(schema.level, "l");
    assert_eq!(schema.dangling.as_ref().unwrap().reason, "Found");
    assert_eq!(schema.flow(&pods("a", &[])), "ns");
}

#[test]
fn subjects() {
    let groups = ["g".into(), "h".into()];
    let cases = [
        (r#"{"kind":"User","user":{"name":"a"}}"#, "a", true),
        (r#"{"kind":"User","user":{"name":"a"}}"#, "b", false),
        (r#"{"kind":"User","user":{"name":"*"}}"#, "b", true),
        (r#"{"kind":"User"}"#, "b", false),
        (r#"{"kind":"Group","group":{"name":"h"}}"#, "b", true),
        (r#"{"kind":"Group","group":{"name":"i"}}"#, "b", false),
        (r#"{"kind":"Group","group":{"name":"*"}}"#, "b", true),
        (
            r#"{"kind":"ServiceAccount","serviceAccount":{"namespace":"n","name":"x"}}"#,
            "system:serviceaccount:n:x",
            true,
        ),
        (
            r#"{"kind":"ServiceAccount","serviceAccount":{"namespace":"n","name":"x"}}"#,
            "system:serviceaccount:n:y",
            false,
        ),
        (
            r#"{"kind":"ServiceAccount","serviceAccount":{"namespace":"n","name":"*"}}"#,
            "system:serviceaccount:n:y",
            true,
        ),
        (
            r#"{"kind":"ServiceAccount","serviceAccount":{"namespace":"n","name":"*"}}"#,
            "system:serviceaccount:nn:y",
            false,
        ),
        (r#"{"kind":"ServiceAccount","serviceAccount":{"namespace":"n","name":"*"}}"#, "n:y", false),
        (r#"{"kind":"Other"}"#, "b", false),
        (r#"{"kind":"Other"},{"kind":"User","user":{"name":"b"}}"#, "b", true),
        ("", "b", false),
    ];
    for (subjects, user, expected) in cases {
        assert_eq!(schema(subjects, ANY_RESOURCE).matches(&pods(user, &groups)), expected, "{subjects} {user}");
    }
}

#[test]
fn resource_rules() {
    let rule = |verbs: &str, groups: &str, resources: &str, scope: &str| {
        let rules = format!(
            r#""resourceRules":[{{"verbs":[{verbs}],"apiGroups":[{groups}],"resources":[{resources}],{scope}}}]"#
        );
        schema(r#"{"kind":"User","user":{"name":"*"}}"#, &rules)
    };
    let everywhere = r#""clusterScope":true,"namespaces":["*"]"#;
    let request = pods("a", &[]);
    let status = Digest { subresource: "status", ..request };
    let cluster = Digest { namespace: "", ..request };
    let cases = [
        (rule(r#""get","list""#, r#""""#, r#""pods""#, everywhere), request, true),
        (rule(r#""list""#, r#""""#, r#""pods""#, everywhere), request, false),
        (rule(r#""*""#, r#""apps""#, r#""pods""#, everywhere), request, false),
        (rule(r#""*""#, r#""*""#, r#""pods""#, everywhere), status, false),
        (rule(r#""*""#, r#""*""#, r#""pods/status""#, everywhere), status, true),
        (rule(r#""*""#, r#""*""#, r#""pods/status""#, everywhere), request, false),
        (rule(r#""*""#, r#""*""#, r#""*""#, r#""namespaces":["other","ns"]"#), request, true),
        (rule(r#""*""#, r#""*""#, r#""*""#, r#""namespaces":["other"]"#), request, false),
        (rule(r#""*""#, r#""*""#, r#""*""#, r#""clusterScope":true"#), request, false),
        (rule(r#""*""#, r#""*""#, r#""*""#, r#""namespaces":["*"]"#), cluster, false),
        (rule(r#""*""#, r#""*""#, r#""*""#, r#""clusterScope":true"#), cluster, true),
        // A star beside others is no wildcard.
        (rule(r#""*","list""#, r#""*""#, r#""*""#, everywhere), request, false),
    ];
    for (i, (schema, request, expected)) in cases.into_iter().enumerate() {
        assert_eq!(schema.matches(&request), expected, "case {i}");
    }
    let path = Digest { is_resource_request: false, path: "/healthz", ..request };
    assert!(!rule(r#""*""#, r#""*""#, r#""*""#, everywhere).matches(&path));
}

#[test]
fn paths() {
    for (rule, path, expected) in [
        ("*", "/anything", true),
        ("/healthz", "/healthz", true),
        ("/healthz", "/healthz/etcd", true),
        ("/healthz", "/healthzz", false),
        ("/apis/*", "/apis/apps", true),
        ("/apis/*", "/apis", false),
        ("/apis/", "/apis/apps", true),
        ("/", "/x", true),
        ("/livez", "/readyz", false),
    ] {
        assert_eq!(covers_path(rule, path), expected, "{rule} {path}");
    }
}

#[test]
fn the_first_by_precedence_then_name() {
    let named = |name: &str, precedence| FlowSchema { name: name.into(), precedence, ..FlowSchema::mandatory_exempt() };
    let mut schemas = [named("c", 2), named("b", 2), named("z", 1)];
    sort(&mut schemas);
    assert_eq!(schemas.each_ref().map(|s| s.name.as_str()), ["z", "b", "c"]);
}
