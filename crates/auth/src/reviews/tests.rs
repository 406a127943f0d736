use super::access::AccessReviewKind::*;
use super::*;
use crate::authz::builtin::{AlwaysAllow, AlwaysDeny, PrivilegedGroup};
use crate::authz::union::AuthorizerUnion;
use crate::json;
use crate::jwt::signer::Signer;
use crate::objects::Looked;
use crate::objects::testing::Objects;
use crate::service_account::TokenIssuer;
use crate::testing::{block_on, clock_at};
use crate::traits::{Answer, Attributes, Authorizer, Decision, UserRules};
use std::sync::Arc;

fn value(json: &str) -> Value {
    json::parse(json.as_bytes()).unwrap()
}

#[test]
fn access_reviews_are_checked() {
    let form = r#"exactly one of nonResourceAttributes or resourceAttributes must be specified"#;
    let resource = r#""resourceAttributes":{"verb":"get","resource":"pods"}"#;
    let cases = [
        (Subject, format!(r#"{{"spec":{{"user":"x",{resource}}}}}"#), None),
        (Subject, format!(r#"{{"spec":{{"groups":["g"],{resource}}},"metadata":{{"managedFields":[{{}}]}}}}"#), None),
        (
            Subject,
            r#"{"spec":{}}"#.into(),
            Some(format!(
                r#"[spec.resourceAttributes: Invalid value: null: {form}, spec.user: Invalid value: "": at least one of user or group must be specified]"#
            )),
        ),
        (SelfSubject, "{}".into(), Some(format!("spec.resourceAttributes: Invalid value: null: {form}"))),
        (
            SelfSubject,
            format!(r#"{{"spec":{{{resource},"nonResourceAttributes":{{"path":"/x","verb":"get"}}}}}}"#),
            Some(
                r#"spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: cannot be specified in combination with resourceAttributes"#
                    .into(),
            ),
        ),
        (
            Subject,
            r#"{"spec":{"user":"u","resourceAttributes":{"fieldSelector":{"rawSelector":"a=b","requirements":[{"key":"a","operator":"In","values":["b"]}]},"labelSelector":{}}}}"#
                .into(),
            Some(
                concat!(
                    r#"[spec.resourceAttributes.fieldSelector.rawSelector: Invalid value: "a=b": may not specified at the same time as requirements, "#,
                    r#"spec.resourceAttributes.labelSelector.requirements: Required value: when spec.resourceAttributes.labelSelector is specified, requirements or rawSelector is required]"#
                )
                .into(),
            ),
        ),
        (
            Subject,
            format!(r#"{{"metadata":{{"name":"n","managedFields":[{{"time":"t","manager":"m"}}]}},"spec":{{"user":"x",{resource}}}}}"#),
            Some(
                r#"metadata: Invalid value: {"name":"n","managedFields":[{"manager":"m","time":"t"}]}: must be empty"#.into(),
            ),
        ),
        (
            LocalSubject,
            r#"{"metadata":{"namespace":"ns"},"spec":{"user":"x","resourceAttributes":{"namespace":"other"}}}"#.into(),
            Some(r#"spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace"#.into()),
        ),
        (
            LocalSubject,
            r#"{"metadata":{"namespace":"ns"},"spec":{"user":"x","nonResourceAttributes":{"path":"/x","verb":"get"}}}"#.into(),
            Some(
                r#"spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: disallowed on this kind of request"#
                    .into(),
            ),
        ),
        (
            LocalSubject,
            r#"{"metadata":{"namespace":"ns"},"spec":{"user":"x","resourceAttributes":{"namespace":"ns"}}}"#.into(),
            None,
        ),
    ];
    for (kind, review, want) in cases {
        let got = access::validate(kind, &value(&review), "ns").map_err(|s| (s.code, s.message));
        let want = want.map_or(Ok(()), |e| Err((422, format!(".authorization.k8s.io \"\" is invalid: {e}"))));
        assert_eq!(got, want, "{review}");
    }
    let elsewhere =
        value(r#"{"metadata":{"namespace":"a"},"spec":{"user":"x","resourceAttributes":{"namespace":"a"}}}"#);
    assert_eq!(access::validate(LocalSubject, &elsewhere, "b").unwrap_err().code, 400);
}

/// Repeats the attributes in the reason.
struct Echo;

impl Authorizer for Echo {
    fn authorize<'a>(&'a self, a: &'a Attributes) -> Answer<'a, Decision> {
        let text = |s: &crate::traits::Selector| {
            let parts: Vec<String> =
                s.requirements.iter().map(|r| format!("{} {:?} {}", r.key, r.operator, r.values.join("|"))).collect();
            parts.join(" and ")
        };
        let reason = format!(
            "{} {} {}/{} {}{} [{}] [{}] {}",
            a.user.name,
            a.verb,
            a.group,
            a.version,
            a.combined_resource(),
            a.path,
            text(&a.field_selector),
            text(&a.label_selector),
            a.user.extra.len()
        );
        Answer::Ready(Decision::deny(reason).with_error("odd"))
    }

    fn rules_for(&self, _: &User, _: &str) -> UserRules {
        UserRules::default()
    }
}

fn review(kind: access::AccessReviewKind, json: &str, authorizer: &dyn Authorizer) -> String {
    let mut review = value(json);
    let me = Arc::new(User::named("me").with_groups(&["system:masters"]));
    block_on(access::evaluate(kind, &mut review, &me, authorizer));
    json::write(review.get("status").unwrap())
}

#[test]
fn access_reviews_are_answered() {
    let ask = r#"{"spec":{"user":"u","extra":{"a":["b"]},"resourceAttributes":{"verb":"list","group":"g","resource":"r","subresource":"s",
        "fieldSelector":{"requirements":[{"key":"f","operator":"In","values":["1"]},{"key":"g","operator":"Exists"}]},
        "labelSelector":{"rawSelector":"a in (b,c),!d"}}}}"#;
    assert_eq!(
        review(Subject, ask, &Echo),
        r#"{"allowed":false,"denied":true,"evaluationError":"odd; spec.resourceAttributes.fieldSelector partially ignored due to parse error","reason":"u list g/* r/s [f In 1] [a In b|c and d DoesNotExist ] 1"}"#
    );
    let ask = r#"{"spec":{"resourceAttributes":{"verb":"list","version":"v1","resource":"r","fieldSelector":{"rawSelector":"a"},
        "labelSelector":{"requirements":[{"key":"a","operator":"Bogus"}]}}}}"#;
    assert_eq!(
        review(SelfSubject, ask, &Echo),
        r#"{"allowed":false,"denied":true,"evaluationError":"odd; spec.resourceAttributes.fieldSelector ignored due to parse error; spec.resourceAttributes.labelSelector ignored due to parse error","reason":"me list /v1 r [] [] 0"}"#
    );
    let path = r#"{"spec":{"nonResourceAttributes":{"path":"/p","verb":"get"}}}"#;
    let union = AuthorizerUnion::new(vec![Arc::new(PrivilegedGroup), Arc::new(AlwaysDeny)]);
    assert_eq!(review(SelfSubject, path, &union), r#"{"allowed":true}"#);
    assert_eq!(review(Subject, path, &union), r#"{"allowed":false,"reason":"Everything is forbidden."}"#);
}

#[test]
fn rules_reviews() {
    let ask =
        value(r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","spec":{"namespace":"n"}}"#);
    assert_eq!(rules::validate(&ask), Ok(()));
    assert_eq!(rules::validate(&value("{}")).unwrap_err().message, "no namespace on request");
    assert_eq!(
        json::write(&rules::evaluate(&ask, &User::default(), &AlwaysAllow)),
        concat!(
            r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","metadata":{},"spec":{},"status":{"#,
            r#""incomplete":false,"nonResourceRules":[{"nonResourceURLs":["*"],"verbs":["*"]}],"#,
            r#""resourceRules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}}"#
        )
    );
}

#[test]
fn token_reviews() {
    use crate::authn::{audience::Agnostic, bearer::BearerToken, token_file::TokenFile};
    let tokens = TokenFile::parse("good,alice,uid-a,\"devs,ops\"", "f").unwrap();
    let bearer = BearerToken::new(Arc::new(Agnostic::new(vec!["api".into()], tokens)));
    let ask = |spec: &str| {
        let mut review = value(&format!(r#"{{"spec":{spec}}}"#));
        token::validate(&review).map_err(|s| s.message)?;
        block_on(token::evaluate(&mut review, &bearer, &["api".into()])).map_err(|s| s.message)?;
        Ok(json::write(review.get("status").unwrap()))
    };
    let alice = r#"{"audiences":["api"],"authenticated":true,"user":{"groups":["devs","ops"],"uid":"uid-a","username":"alice"}}"#;
    let wrong = r#"{"error":"invalid bearer token","user":{}}"#;
    let cases = [
        (r#"{"token":"good"}"#, Ok(alice)),
        (r#"{"token":"good\n"}"#, Ok(alice)),
        (r#"{"token":"good","audiences":["x","api"]}"#, Ok(alice)),
        (r#"{"token":"good","audiences":["x"]}"#, Ok(wrong)),
        (r#"{"token":"bad"}"#, Ok(wrong)),
        (r#"{"token":"go\nod"}"#, Ok(wrong)),
        (r#"{"token":""}"#, Err("token is required for TokenReview in authentication")),
    ];
    for (spec, want) in cases {
        assert_eq!(ask(spec), want.map(str::to_string).map_err(str::to_string), "{spec}");
    }
}

#[test]
fn who_am_i() {
    let mut user = User::named("u").with_groups(&["g"]);
    user.extra.insert("k".into(), vec!["v".into()]);
    let sent = value(r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview","metadata":{"name":"x"}}"#);
    assert_eq!(
        json::write(&self_subject_review(&sent, &user, "now")),
        concat!(
            r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview","metadata":{"creationTimestamp":"now"},"#,
            r#""status":{"userInfo":{"extra":{"k":["v"]},"groups":["g"],"username":"u"}}}"#
        )
    );
}

fn token_requests() -> token_request::TokenRequests {
    let objects = Objects::default();
    objects.put(Looked::ServiceAccount, value(r#"{"metadata":{"namespace":"ns","name":"sa","uid":"sa-uid"}}"#));
    objects.put(
        Looked::Pod,
        value(r#"{"metadata":{"namespace":"ns","name":"p","uid":"p-uid"},"spec":{"serviceAccountName":"sa","nodeName":"n"}}"#),
    );
    objects.put(
        Looked::Pod,
        value(r#"{"metadata":{"namespace":"ns","name":"q","uid":"q-uid"},"spec":{"serviceAccountName":"other"}}"#),
    );
    objects.put(Looked::Node, value(r#"{"metadata":{"name":"n","uid":"n-uid"}}"#));
    let signer = Signer::from_pem(Signer::generate_pem().unwrap().as_bytes()).unwrap();
    token_request::TokenRequests {
        issuer: Arc::new(TokenIssuer::new("https://issuer", signer)),
        objects: Arc::new(objects),
        clock: clock_at(1_750_000_000),
        api_audiences: vec!["api".into()],
        max_expiration_seconds: 7200,
        extended_expiration_seconds: 31_536_000,
    }
}

fn request_token(body: &str) -> Result<(Value, Value, Vec<String>), (u16, String)> {
    let requests = token_requests();
    let failed = |s: kubelith_meta::Status| (s.code, s.message);
    let prepared = block_on(requests.prepare(value(body), "ns", "sa")).map_err(failed)?;
    let (answer, notes) = block_on(requests.issue(prepared)).map_err(failed)?;
    let payload = answer.str_at(&["status", "token"]).split('.').nth(1).unwrap();
    let claims = json::parse(&crate::jwt::decode(payload).unwrap()).unwrap();
    Ok((answer, claims, notes.warnings))
}

#[test]
fn tokens_are_given_out() {
    let (answer, claims, _) = request_token(r#"{"spec":{"expirationSeconds":3600}}"#).unwrap();
    assert_eq!(answer.str_at(&["metadata", "uid"]), "sa-uid");
    assert_eq!(answer.str_at(&["status", "expirationTimestamp"]), "2025-06-15T16:06:40Z");
    assert_eq!(json::write(claims.get("aud").unwrap()), r#"["api"]"#);

    let bound = r#"{"spec":{"expirationSeconds":3607,"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p","uid":"p-uid"}}}"#;
    let (answer, claims, _) = request_token(bound).unwrap();
    assert_eq!(
        json::write(claims.get("kubernetes.io").unwrap()),
        r#"{"namespace":"ns","node":{"name":"n","uid":"n-uid"},"pod":{"name":"p","uid":"p-uid"},"serviceaccount":{"name":"sa","uid":"sa-uid"},"warnafter":1750003607}"#
    );
    assert_eq!(claims.get("exp").unwrap().as_i64(), Some(1_750_000_000 + 31_536_000));
    assert_eq!(answer.str_at(&["status", "expirationTimestamp"]), "2025-06-15T16:06:47Z");

    let (answer, _, warnings) = request_token(r#"{"spec":{"expirationSeconds":7201}}"#).unwrap();
    assert_eq!(warnings, ["requested expiration of 7201 seconds shortened to 7200 seconds"]);
    assert_eq!(answer.at(&["spec", "expirationSeconds"]).unwrap().as_i64(), Some(7200));
}

#[test]
fn tokens_are_refused() {
    let cases = [
        (
            r#"{"spec":{"expirationSeconds":599}}"#,
            422,
            r#"TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"#,
        ),
        (
            r#"{"spec":{"expirationSeconds":4294967297}}"#,
            422,
            r#"TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"#,
        ),
        (
            r#"{"metadata":{"name":"x"},"spec":{"expirationSeconds":600}}"#,
            422,
            r#"TokenRequest.authentication.k8s.io "sa" is invalid: metadata.name: Invalid value: "x": must match the service account name if specified"#,
        ),
        (
            r#"{"metadata":{"uid":"x"},"spec":{"expirationSeconds":600}}"#,
            409,
            r#"Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "sa": the UID in the token request (x) does not match the UID of the service account (sa-uid)"#,
        ),
        (
            r#"{"spec":{"expirationSeconds":600,"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"nosuch"}}}"#,
            404,
            r#"pods "nosuch" not found"#,
        ),
        (
            r#"{"spec":{"expirationSeconds":600,"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"q"}}}"#,
            400,
            r#"cannot bind token for serviceaccount "sa" to pod running with different serviceaccount name."#,
        ),
        (
            r#"{"spec":{"expirationSeconds":600,"boundObjectRef":{"kind":"Bogus","apiVersion":"v1","name":"x"}}}"#,
            400,
            "cannot bind token to object of type /v1, Kind=Bogus",
        ),
        (
            r#"{"spec":{"expirationSeconds":600,"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"p","uid":"x"}}}"#,
            409,
            r#"Operation cannot be fulfilled on Pod "p": the UID in the bound object reference (x) does not match the UID in record. The object might have been deleted and then recreated"#,
        ),
    ];
    for (body, code, message) in cases {
        assert_eq!(request_token(body).unwrap_err(), (code, message.to_string()), "{body}");
    }
}
