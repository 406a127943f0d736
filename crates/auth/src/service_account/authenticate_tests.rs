use super::*;
use crate::json;
use crate::jwt::key::PublicKey;
use crate::jwt::signer::Signer;
use crate::objects::testing::Objects;
use crate::service_account::issue::{BoundTo, ExternalSigner, NodeRef, TokenIssuer, TokenSpec};
use crate::testing::{advance, block_on, clock_at};
use futures::future::BoxFuture;
use kubelith_meta::time::{TestClock, Time};
use std::sync::Mutex;

const NOW: i64 = 1_750_000_000;
const ISSUER: &str = "https://kubernetes.default.svc";

fn object(namespace: &str, name: &str, uid: &str) -> Value {
    let mut object = Value::object();
    object.set_at(&["metadata", "name"], name.into());
    object.set_at(&["metadata", "uid"], uid.into());
    if !namespace.is_empty() {
        object.set_at(&["metadata", "namespace"], namespace.into());
    }
    object
}

/// A server with one account, one pod on one node, one secret.
struct World {
    objects: Arc<Objects>,
    clock: Arc<TestClock>,
    issuer: TokenIssuer,
    keys: Arc<ArcSwap<KeySet>>,
}

impl World {
    fn new() -> World {
        let objects = Arc::new(Objects::default());
        objects.put(Looked::ServiceAccount, object("ns", "sa", "sa-uid"));
        objects.put(Looked::Pod, object("ns", "pod", "pod-uid"));
        objects.put(Looked::Secret, object("ns", "secret", "secret-uid"));
        objects.put(Looked::Node, object("", "node", "node-uid"));
        let signer = Signer::from_pem(Signer::generate_pem().unwrap().as_bytes()).unwrap();
        let keys = KeySet::new(vec![signer.public_key().clone()]);
        World {
            objects,
            clock: clock_at(NOW),
            issuer: TokenIssuer::new(ISSUER, signer),
            keys: Arc::new(ArcSwap::from_pointee(keys)),
        }
    }

    fn bound(&self) -> ServiceAccountTokens {
        let issuers = vec!["https://old".to_string(), ISSUER.to_string()];
        let audiences = vec![Str::from("api")];
        ServiceAccountTokens::bound(issuers, self.keys.clone(), audiences, self.objects.clone(), self.clock.clone())
    }

    fn token(&self, bound_to: BoundTo<'_>, audiences: &[&str]) -> String {
        let audiences: Vec<Str> = audiences.iter().map(|a| Str::from(*a)).collect();
        let spec = TokenSpec {
            service_account: &object("ns", "sa", "sa-uid"),
            bound_to,
            audiences: &audiences,
            expiration_seconds: 3600,
            warn_after_seconds: 0,
            now: self.clock.now(),
        };
        block_on(self.issuer.issue(&spec)).unwrap().token
    }

    fn ask(&self, token: &str) -> Authentication {
        block_on(self.bound().authenticate_token(token, &[]))
    }

    fn error(&self, token: &str) -> String {
        self.ask(token).unwrap_err().to_string()
    }
}

#[test]
fn a_pods_token() {
    let world = World::new();
    let pod = object("ns", "pod", "pod-uid");
    let node = Some(NodeRef { name: "node", uid: "node-uid" });
    let response = world.ask(&world.token(BoundTo::Pod { pod: &pod, node }, &["api", "other"])).unwrap().unwrap();
    assert_eq!(response.audiences, ["api"]);
    let user = response.user;
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:ns:sa", "sa-uid"));
    assert_eq!(user.groups, ["system:serviceaccounts", "system:serviceaccounts:ns"]);
    let extra: Vec<(&str, &str)> = user.extra.iter().map(|(k, v)| (k.as_str(), v[0].as_str())).collect();
    assert_eq!(
        extra[1..],
        [
            ("authentication.kubernetes.io/node-name", "node"),
            ("authentication.kubernetes.io/node-uid", "node-uid"),
            ("authentication.kubernetes.io/pod-name", "pod"),
            ("authentication.kubernetes.io/pod-uid", "pod-uid"),
        ]
    );
    assert!(extra[0].0 == "authentication.kubernetes.io/credential-id" && extra[0].1.starts_with("JTI="));
}

#[test]
fn claims_of_an_issued_token() {
    let world = World::new();
    let token = world.token(BoundTo::Secret(&object("ns", "secret", "secret-uid")), &["api"]);
    let mut claims = crate::json::parse(&crate::jwt::decode(token.split('.').nth(1).unwrap()).unwrap()).unwrap();
    let id = claims.remove_at(&["jti"]).unwrap();
    assert_eq!(id.as_str().unwrap().len(), 36);
    assert_eq!(
        crate::json::write(&claims),
        format!(
            concat!(
                r#"{{"aud":["api"],"exp":{},"iat":{},"iss":"https://kubernetes.default.svc","kubernetes.io":{{"#,
                r#""namespace":"ns","secret":{{"name":"secret","uid":"secret-uid"}},"#,
                r#""serviceaccount":{{"name":"sa","uid":"sa-uid"}}}},"nbf":{},"sub":"system:serviceaccount:ns:sa"}}"#
            ),
            NOW + 3600,
            NOW,
            NOW
        )
    );
}

#[test]
fn audiences() {
    let world = World::new();
    let ask = |token: &[&str], wanted: &[&str]| {
        let wanted: Vec<Str> = wanted.iter().map(|a| Str::from(*a)).collect();
        let token = world.token(BoundTo::Nothing, token);
        let result = block_on(world.bound().authenticate_token(&token, &wanted));
        result.map(|r| r.unwrap().audiences.join(",")).map_err(|e| e.to_string())
    };
    assert_eq!(ask(&["api"], &[]), Ok("api".into()));
    assert_eq!(ask(&["api", "x"], &["x", "y"]), Ok("x".into()));
    assert_eq!(ask(&[], &["api"]), Ok("api".into()));
    assert_eq!(
        ask(&["other"], &[]),
        Err(r#"token audiences ["other"] is invalid for the target audiences ["api"]"#.into())
    );
    assert!(ask(&["api"], &["vault"]).is_err());
    assert!(ask(&[], &["vault"]).is_err(), "a token without audience is for the API only");
}

#[test]
fn not_ours_or_forged() {
    let world = World::new();
    let stranger = World::new();
    let good = world.token(BoundTo::Nothing, &["api"]);
    assert_eq!(world.ask("opaque"), Ok(None));
    let foreign =
        TokenIssuer::new("https://elsewhere", Signer::from_pem(Signer::generate_pem().unwrap().as_bytes()).unwrap());
    let spec = TokenSpec {
        service_account: &object("ns", "sa", "sa-uid"),
        bound_to: BoundTo::Nothing,
        audiences: &[],
        expiration_seconds: 10,
        warn_after_seconds: 0,
        now: world.clock.now(),
    };
    assert_eq!(world.ask(&block_on(foreign.issue(&spec)).unwrap().token), Ok(None));
    let forged = stranger.token(BoundTo::Nothing, &["api"]);
    assert_eq!(world.error(&forged), "invalid signature, no keys found", "its key id is unknown");
    let [header, payload, signature] = forged.split('.').collect::<Vec<_>>().try_into().unwrap();
    let without_kid = format!("{}.{payload}.{signature}", crate::jwt::encode(r#"{"alg":"ES256"}"#));
    assert_eq!(world.error(&without_kid), "go-jose/go-jose: error in cryptographic primitive");
    let our_header = good.split('.').next().unwrap();
    let borrowed_kid = format!("{our_header}.{payload}.{signature}");
    assert_eq!(world.error(&borrowed_kid), "go-jose/go-jose: error in cryptographic primitive");
    let none = format!("{}.{payload}.", crate::jwt::encode(r#"{"alg":"none"}"#));
    assert!(world.ask(&none).is_err());
    assert_ne!(header, our_header);
}

#[test]
fn expiry() {
    let world = World::new();
    let token = world.token(BoundTo::Nothing, &["api"]);
    advance(&world.clock, 3600 + 60);
    assert!(world.ask(&token).is_ok());
    advance(&world.clock, 1);
    assert_eq!(world.error(&token), "service account token has expired");
    advance(&world.clock, -2 * 3600 - 200);
    assert_eq!(world.error(&token), "service account token is not valid yet");
}

#[test]
fn tokens_die_with_what_they_are_bound_to() {
    let pod = object("ns", "pod", "pod-uid");
    let secret = object("ns", "secret", "secret-uid");
    let node = object("", "node", "node-uid");
    type Change = fn(&Objects);
    let cases: [(BoundTo<'_>, Change, &str); 11] = [
        (BoundTo::Nothing, |o| o.delete(Looked::ServiceAccount, "ns", "sa"), "serviceaccounts \"sa\" not found"),
        (
            BoundTo::Nothing,
            |o| o.put(Looked::ServiceAccount, object("ns", "sa", "new")),
            "service account UID (new) does not match claim (sa-uid)",
        ),
        (
            BoundTo::Nothing,
            |o| deleted(o, Looked::ServiceAccount, "ns", "sa", 61),
            "service account ns/sa has been deleted",
        ),
        (BoundTo::Pod { pod: &pod, node: None }, |o| o.delete(Looked::Pod, "ns", "pod"), INVALIDATED),
        (BoundTo::Pod { pod: &pod, node: None }, |o| deleted(o, Looked::Pod, "ns", "pod", 61), INVALIDATED),
        (
            BoundTo::Pod { pod: &pod, node: None },
            |o| o.put(Looked::Pod, object("ns", "pod", "new")),
            "pod UID (new) does not match service account pod ref claim (pod-uid)",
        ),
        (BoundTo::Secret(&secret), |o| o.delete(Looked::Secret, "ns", "secret"), INVALIDATED),
        (
            BoundTo::Secret(&secret),
            |o| o.put(Looked::Secret, object("ns", "secret", "new")),
            "secret UID (new) does not match service account secret ref claim (secret-uid)",
        ),
        (BoundTo::Node(&node), |o| o.delete(Looked::Node, "", "node"), INVALIDATED),
        (
            BoundTo::Node(&node),
            |o| o.put(Looked::Node, object("", "node", "new")),
            "node UID (new) does not match service account node ref claim (node-uid)",
        ),
        (BoundTo::Node(&node), |o| deleted(o, Looked::Node, "", "node", 61), INVALIDATED),
    ];
    for (i, (bound_to, change, want)) in cases.into_iter().enumerate() {
        let world = World::new();
        let token = world.token(bound_to, &["api"]);
        assert!(world.ask(&token).unwrap().is_some(), "case {i}");
        change(&world.objects);
        assert_eq!(world.error(&token), want, "case {i}");
    }
    // Just deleted: other servers may not know yet.
    let world = World::new();
    let token = world.token(BoundTo::Pod { pod: &pod, node: None }, &["api"]);
    deleted(&world.objects, Looked::Pod, "ns", "pod", 59);
    assert!(world.ask(&token).unwrap().is_some());
    // The node of a pod's token is information only.
    let with_node = BoundTo::Pod { pod: &pod, node: Some(NodeRef { name: "gone", uid: "" }) };
    assert!(world.ask(&world.token(with_node, &["api"])).unwrap().is_some());
}

fn deleted(objects: &Objects, kind: Looked, namespace: &str, name: &str, seconds_ago: i64) {
    let key = (kind, namespace.to_string(), name.to_string());
    let mut object = (**objects.0.lock().unwrap().get(&key).unwrap()).clone();
    let when = Time::from_unix(NOW - seconds_ago).rfc3339();
    object.set_at(&["metadata", "deletionTimestamp"], when.into());
    objects.put(kind, object);
}

#[test]
fn stale_use_is_noted() {
    let world = World::new();
    let spec = TokenSpec {
        service_account: &object("ns", "sa", "sa-uid"),
        bound_to: BoundTo::Nothing,
        audiences: &["api".into()],
        expiration_seconds: 31_536_000,
        warn_after_seconds: 3607,
        now: world.clock.now(),
    };
    let token = block_on(world.issuer.issue(&spec)).unwrap().token;
    assert_eq!(world.ask(&token).unwrap().unwrap().notes, Notes::default());
    advance(&world.clock, 3617);
    let notes = world.ask(&token).unwrap().unwrap().notes;
    assert_eq!(
        notes.annotations,
        [(
            "authentication.k8s.io/stale-token",
            "subject: system:serviceaccount:ns:sa, seconds after warning threshold: 10".to_string()
        )]
    );
}

#[derive(Default)]
struct Uses(Mutex<Vec<String>>);

impl super::super::legacy::LegacyTokenUse for Uses {
    fn used(&self, secret: &Value, date: &str) {
        self.0.lock().unwrap().push(format!("{} {date}", secret.str_at(&["metadata", "name"])));
    }
}

#[test]
fn legacy_tokens() {
    let world = World::new();
    let claims = Value::from([
        ("iss", LEGACY_ISSUER),
        ("sub", "system:serviceaccount:ns:sa"),
        ("kubernetes.io/serviceaccount/namespace", "ns"),
        ("kubernetes.io/serviceaccount/secret.name", "old"),
        ("kubernetes.io/serviceaccount/service-account.name", "sa"),
        ("kubernetes.io/serviceaccount/service-account.uid", "sa-uid"),
    ]);
    let sign = |claims: &Value| world.issuer.signer().sign(claims).unwrap();
    let token = sign(&claims);
    let uses = Arc::new(Uses::default());
    let ask = |token: &str, how: LegacyTokens| {
        let (keys, objects, clock) = (world.keys.clone(), world.objects.clone(), world.clock.clone());
        let tokens = ServiceAccountTokens::legacy(how, keys, vec!["api".into()], objects, clock);
        block_on(tokens.authenticate_token(token, &[])).map_err(|e| e.to_string())
    };
    let lookup = || LegacyTokens::Lookup(uses.clone());
    assert_eq!(ask(&token, lookup()).unwrap_err(), "Token has been invalidated");
    let mut secret = object("ns", "old", "old-uid");
    secret.set_at(&["data", "token"], "d3Jvbmc=".into());
    world.objects.put(Looked::Secret, secret.clone());
    assert_eq!(ask(&token, lookup()).unwrap_err(), "Token does not match server's copy");
    use base64::Engine;
    let copy = base64::engine::general_purpose::STANDARD.encode(&token);
    secret.set_at(&["data", "token"], copy.into());
    world.objects.put(Looked::Secret, secret.clone());
    let response = ask(&token, lookup()).unwrap().unwrap();
    assert_eq!(response.user.name, "system:serviceaccount:ns:sa");
    assert_eq!(response.audiences, ["api"]);
    assert_eq!(*uses.0.lock().unwrap(), ["old 2025-06-15"]);
    let annotations: Vec<&str> = response.notes.annotations.iter().map(|(k, _)| *k).collect();
    assert_eq!(annotations, ["authentication.k8s.io/legacy-token", "authentication.k8s.io/legacy-token-manual-secret"]);

    secret.set_at(&["metadata", "labels", "kubernetes.io/legacy-token-last-used"], "2025-06-15".into());
    secret.set_at(&["metadata", "labels", "kubernetes.io/legacy-token-invalid-since"], "2025-06-01".into());
    world.objects.put(Looked::Secret, secret);
    assert!(ask(&token, lookup()).unwrap_err().contains("has been marked invalid"));
    assert_eq!(uses.0.lock().unwrap().len(), 1, "noted once a day");

    let mut wrong = claims.clone();
    wrong.set_at(&["sub"], "system:serviceaccount:ns:other".into());
    assert_eq!(ask(&sign(&wrong), LegacyTokens::SignatureOnly).unwrap_err(), "sub claim is invalid");
    wrong.remove_at(&["kubernetes.io/serviceaccount/namespace"]);
    assert_eq!(ask(&sign(&wrong), LegacyTokens::SignatureOnly).unwrap_err(), "namespace claim is missing");
    assert!(ask(&token, LegacyTokens::SignatureOnly).unwrap().is_some());
}

/// Knows a key that the server does not have yet.
struct KeyBringer {
    keys: Arc<ArcSwap<KeySet>>,
    key: PublicKey,
}

impl ExternalSigner for KeyBringer {
    fn sign(&self, claims: String) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async move { Err(format!("not for {claims}")) })
    }

    fn refresh_keys(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { self.keys.store(Arc::new(KeySet::new(vec![self.key.clone()]))) })
    }
}

#[test]
fn an_external_signer_is_asked_about_unknown_keys() {
    let world = World::new();
    let token = world.token(BoundTo::Nothing, &["api"]);
    let key = world.keys.load().candidates("").next().unwrap().clone();
    world.keys.store(Arc::new(KeySet::default()));
    assert!(world.ask(&token).is_err(), "nobody knows the key");
    let signer: Arc<dyn ExternalSigner> = Arc::new(KeyBringer { keys: world.keys.clone(), key });
    let tokens = world.bound().signed_by(Some(signer.clone()));
    assert!(block_on(tokens.authenticate_token(&token, &[])).unwrap().is_some());
    let spec = TokenSpec {
        service_account: &object("ns", "sa", "sa-uid"),
        bound_to: BoundTo::Nothing,
        audiences: &[],
        expiration_seconds: 1,
        warn_after_seconds: 0,
        now: world.clock.now(),
    };
    let refused = block_on(TokenIssuer::external(ISSUER, signer).issue(&spec)).unwrap_err();
    let claims = crate::jwt::decode(refused.strip_prefix("not for ").unwrap()).unwrap();
    assert_eq!(json::parse(&claims).unwrap().str_at(&["sub"]), "system:serviceaccount:ns:sa");
}

#[test]
fn claims_that_are_there_twice_are_none() {
    let token =
        |payload: &str| format!("{}.{}.c2ln", crate::jwt::encode(r#"{"alg":"RS256"}"#), crate::jwt::encode(payload));
    let cases = [
        (r#"{"sub":"a","sub":"a"}"#, Some("sub")),
        (r#"{"kubernetes.io":{},"kubernetes.io":{}}"#, Some("kubernetes.io")),
        (r#"{"kubernetes.io":{"namespace":"a","namespace":"b"}}"#, Some("namespace")),
        (
            r#"{"kubernetes.io/serviceaccount/namespace":"a","kubernetes.io/serviceaccount/namespace":"a"}"#,
            Some("kubernetes.io/serviceaccount/namespace"),
        ),
        (r#"{"other":{"a":1,"a":2}}"#, None),
        (r#"{"sub":"a"}"#, None),
    ];
    for (payload, repeated) in cases {
        let text = token(payload);
        assert_eq!(UnverifiedToken::parse(&text).unwrap().repeated().and_then(repeated_claim), repeated, "{payload}");
    }
    let twice = format!("{}.{}.c2ln", crate::jwt::encode(r#"{"alg":"RS256","alg":"none"}"#), crate::jwt::encode("{}"));
    assert!(UnverifiedToken::parse(&twice).is_none());
}
