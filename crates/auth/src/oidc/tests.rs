use super::*;
use crate::config::authentication::{ClaimRule, ExtraMapping, IssuerConfig, Mapping, Rule};
use crate::expression::Cel;
use crate::json;
use crate::jwt::signer::Signer;
use crate::remote::{FetchError, FetchRequest, FetchResponse};
use crate::testing::{advance, block_on, clock_at};
use futures::future::BoxFuture;
use kubelith_meta::time::TestClock;
use std::collections::HashMap;
use std::sync::Mutex;

const NOW: i64 = 1_750_000_000;
const ISSUER: &str = "https://issuer";

/// An issuer's web server: documents by URL.
#[derive(Default)]
struct Web {
    pages: Mutex<HashMap<String, String>>,
    asked: Mutex<Vec<FetchRequest>>,
}

impl HttpFetch for Web {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        let page = self.pages.lock().unwrap().get(&request.url).cloned();
        self.asked.lock().unwrap().push(request);
        Box::pin(async move {
            match page {
                Some(body) => Ok(FetchResponse { status: 200, body: body.into(), ..FetchResponse::default() }),
                None => Ok(FetchResponse { status: 404, ..FetchResponse::default() }),
            }
        })
    }
}

impl Web {
    fn put(&self, url: &str, body: String) {
        self.pages.lock().unwrap().insert(url.into(), body);
    }

    fn publish(&self, issuer: &str, signers: &[&Signer]) {
        let document = format!(r#"{{"issuer":"{issuer}","jwks_uri":"{issuer}/keys"}}"#);
        self.put(&format!("{issuer}/.well-known/openid-configuration"), document);
        let keys: Vec<String> = signers.iter().map(|s| s.public_key().to_jwk_json()).collect();
        self.put(&format!("{issuer}/keys"), format!(r#"{{"keys":[{{"kty":"oct","k":"x"}},{}]}}"#, keys.join(",")));
    }

    fn asked(&self, url: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|r| r.url == url).count()
    }
}

fn signer() -> Signer {
    Signer::from_pem(Signer::generate_pem().unwrap().as_bytes()).unwrap()
}

fn config() -> JwtConfig {
    JwtConfig {
        issuer: IssuerConfig { url: ISSUER.into(), audiences: vec!["me".into()], ..IssuerConfig::default() },
        username: Mapping { claim: "sub".into(), prefix: Some("oidc:".into()), expression: "".into() },
        groups: Mapping { claim: "groups".into(), prefix: Some("g:".into()), expression: "".into() },
        ..JwtConfig::default()
    }
}

struct World {
    web: Arc<Web>,
    signer: Signer,
    clock: Arc<TestClock>,
    authenticator: OidcAuthenticator,
}

fn world(config: JwtConfig) -> World {
    let (web, signer, clock) = (Arc::new(Web::default()), signer(), clock_at(NOW));
    web.publish(ISSUER, &[&signer]);
    let algorithms = ["ES256".to_string(), "RS256".to_string()];
    let authenticator =
        OidcAuthenticator::new(config, &algorithms, &[], &Cel::default(), web.clone(), clock.clone()).unwrap();
    block_on(authenticator.initialize()).unwrap();
    World { web, signer, clock, authenticator }
}

impl World {
    fn ask(&self, token: &str) -> Result<Option<String>, String> {
        let result = block_on(self.authenticator.authenticate_token(token, &[]));
        result.map(|r| r.map(|r| format!("{} {}", r.user.name, r.user.groups.join(",")))).map_err(|e| e.to_string())
    }

    fn token(&self, claims: &str) -> String {
        self.signer.sign(&claims_of(claims)).unwrap()
    }
}

/// `claims` over good ones; null removes.
fn claims_of(claims: &str) -> Value {
    let mut all = json::parse(
        format!(r#"{{"iss":"{ISSUER}","aud":"me","sub":"jane","exp":{},"groups":["a","b"]}}"#, NOW + 60).as_bytes(),
    )
    .unwrap();
    for (key, value) in json::parse(claims.as_bytes()).unwrap().as_object().unwrap().iter() {
        match value {
            Value::Null => drop(all.remove_at(&[key])),
            value => all.set_at(&[key], value.clone()),
        }
    }
    all
}

#[test]
fn claims() {
    let world = world(config());
    let jane = || Ok(Some("oidc:jane g:a,g:b".to_string()));
    let err = |e: &str| Err(format!("oidc: {e}"));
    let cases = [
        ("{}", jane()),
        (r#"{"aud":["x","me"]}"#, jane()),
        (r#"{"groups":"one"}"#, Ok(Some("oidc:jane g:one".into()))),
        (r#"{"groups":null}"#, Ok(Some("oidc:jane ".into()))),
        (r#"{"iss":"https://other"}"#, Ok(None)),
        (r#"{"iss":null}"#, Ok(None)),
        (r#"{"aud":"you"}"#, err(r#"verify token: oidc: expected audience "me" got ["you"]"#)),
        (r#"{"aud":null}"#, err(r#"verify token: oidc: expected audience "me" got []"#)),
        (r#"{"exp":1749999999}"#, err("verify token: oidc: token is expired (Token Expiry: 2025-06-15T15:06:39Z)")),
        (r#"{"exp":null}"#, err("verify token: oidc: token is expired (Token Expiry: 0001-01-01T00:00:00Z)")),
        (
            r#"{"nbf":1750000301}"#,
            err(
                "verify token: oidc: current time 2025-06-15T15:06:40Z before the nbf (not before) time: 2025-06-15T15:11:41Z",
            ),
        ),
        (r#"{"nbf":1750000300}"#, jane()),
        (r#"{"sub":null}"#, err(r#"parse username claims "sub": claim not present"#)),
        (
            r#"{"sub":7}"#,
            err(
                "verify token: oidc: failed to unmarshal claims: json: cannot unmarshal number into Go struct field idToken.sub of type string",
            ),
        ),
        (r#"{"jti":7}"#, jane()),
        (
            r#"{"nonce":7}"#,
            err(
                "verify token: oidc: failed to unmarshal claims: json: cannot unmarshal number into Go struct field idToken.nonce of type string",
            ),
        ),
        (
            r#"{"groups":[1]}"#,
            err(r#"parse groups claim "groups": json: cannot unmarshal array into Go value of type string"#),
        ),
    ];
    for (claims, want) in cases {
        assert_eq!(world.ask(&world.token(claims)), want, "{claims}");
    }
    assert_eq!(world.ask("opaque"), Ok(None));
}

#[test]
fn keys_rotate() {
    let world = world(config());
    let keys_url = format!("{ISSUER}/keys");
    assert!(world.ask(&world.token("{}")).is_ok());
    assert!(world.ask(&world.token("{}")).is_ok());
    assert_eq!(world.web.asked(&keys_url), 1, "known keys are not fetched again");
    let next = signer();
    let signed_with_next = next.sign(&claims_of("{}")).unwrap();
    let refused =
        Err("oidc: verify token: failed to verify signature: failed to verify id token signature".to_string());
    assert_eq!(world.ask(&signed_with_next), refused);
    world.web.publish(ISSUER, &[&next]);
    assert!(world.ask(&signed_with_next).unwrap().is_some());
    assert_eq!(world.ask(&world.token("{}")), refused, "the old key is gone");
}

#[test]
fn forgeries() {
    let world = world(config());
    let good = world.token("{}");
    let [_, payload, signature] = good.split('.').collect::<Vec<_>>().try_into().unwrap();
    let header = |json: &str| crate::jwt::encode(json);
    let forged = signer().sign(&claims_of("{}")).unwrap();
    let kid = world.signer.public_key().id();
    for token in [
        format!("{}.{payload}.", header(r#"{"alg":"none"}"#)),
        format!("{}.{payload}.{signature}", header(r#"{"alg":"HS256"}"#)),
        format!("{}.{payload}.{signature}", header(r#"{"alg":"ES512"}"#)),
        format!("{}.{}", header(&format!(r#"{{"alg":"ES256","kid":"{kid}"}}"#)), forged.split_once('.').unwrap().1),
        forged,
    ] {
        assert!(world.ask(&token).is_err(), "{token}");
    }
    // Accepted algorithms are the configured ones, whatever keys there are.
    let only_rsa =
        OidcAuthenticator::new(config(), &[], &[], &Cel::default(), world.web.clone(), world.clock.clone()).unwrap();
    block_on(only_rsa.initialize()).unwrap();
    let error = block_on(only_rsa.authenticate_token(&good, &[])).unwrap_err().to_string();
    assert!(error.contains(r#"unexpected signature algorithm "ES256"; expected ["RS256"]"#), "{error}");
}

#[test]
fn initialisation() {
    let web = Arc::new(Web::default());
    let new = || OidcAuthenticator::new(config(), &[], &[], &Cel::default(), web.clone(), clock_at(NOW)).unwrap();
    let authenticator = new();
    assert!(authenticator.health().unwrap_err().to_string().contains("is not initialized"));
    let token = signer().sign(&claims_of("{}")).unwrap();
    let error = block_on(authenticator.authenticate_token(&token, &[])).unwrap_err();
    assert_eq!(error.to_string(), "oidc: authenticator not initialized");
    assert!(block_on(authenticator.initialize()).is_err());
    let well_known = format!("{ISSUER}/.well-known/openid-configuration");
    web.put(&well_known, r#"{"issuer":"https://evil","jwks_uri":"https://evil/keys"}"#.into());
    let mismatch = block_on(authenticator.initialize()).unwrap_err().to_string();
    assert_eq!(
        mismatch,
        r#"oidc: issuer did not match the issuer returned by provider, expected "https://issuer" got "https://evil""#
    );
    web.publish(ISSUER, &[]);
    assert!(block_on(authenticator.initialize()).is_ok() && authenticator.health().is_ok());
    let bad = OidcAuthenticator::new(config(), &["HS256".into()], &[], &Cel::default(), web.clone(), clock_at(NOW));
    assert_eq!(bad.err().unwrap().to_string(), "oidc: unsupported signing alg: \"HS256\"");
}

#[test]
fn email_must_be_verified_if_the_issuer_says_so() {
    let mut config = config();
    config.username = Mapping { claim: "email".into(), prefix: Some("".into()), expression: "".into() };
    let world = world(config);
    let ask = |claims: &str| world.ask(&world.token(claims)).map(|u| u.unwrap());
    assert_eq!(ask(r#"{"email":"j@x"}"#), Ok("j@x g:a,g:b".into()));
    assert_eq!(ask(r#"{"email":"j@x","email_verified":true}"#), Ok("j@x g:a,g:b".into()));
    assert_eq!(ask(r#"{"email":"j@x","email_verified":false}"#), Err("oidc: email not verified".into()));
    assert!(ask(r#"{"email":"j@x","email_verified":"true"}"#).is_err());
}

#[test]
fn required_claims_and_expressions() {
    let mut config = config();
    config.issuer.audiences = vec!["b".into(), "a".into()];
    config.issuer.audience_match_policy = "MatchAny".into();
    config.username = Mapping { expression: "claims.name".into(), ..Mapping::default() };
    config.groups = Mapping { expression: "claims.roles".into(), ..Mapping::default() };
    config.uid = Mapping { claim: "sub".into(), ..Mapping::default() };
    config.extra = vec![ExtraMapping { key: "acme.io/team".into(), expression: "claims.team".into() }];
    let rule = |e: &str| Rule { expression: e.into(), message: "sorry".into() };
    config.claim_rules = vec![
        ClaimRule { claim: "hd".into(), required_value: "acme".into(), ..ClaimRule::default() },
        ClaimRule { rule: rule(r#"claims.kind == "human""#), ..ClaimRule::default() },
    ];
    config.user_rules = vec![rule(r#"user.uid == "jane""#)];
    let world = world(config);
    let good = r#""aud":"a","name":"j","roles":["x","",null],"team":"t","hd":"acme","kind":"human","jti":"7""#;
    let good = good.replace(",null", "");
    let response = block_on(world.authenticator.authenticate_token(&world.token(&format!("{{{good}}}")), &[]));
    let user = response.unwrap().unwrap().user;
    assert_eq!((user.name.as_str(), user.uid.as_str(), user.groups.join(",").as_str()), ("j", "jane", "x"));
    assert_eq!(user.extra_first("acme.io/team"), "t");
    assert_eq!(user.extra_first(crate::user::EXTRA_CREDENTIAL_ID), "JTI=7");
    let refused = |change: &str| world.ask(&world.token(&format!("{{{good},{change}}}"))).unwrap_err();
    assert_eq!(refused(r#""hd":"x""#), "oidc: required claim hd value does not match. Got = x, want = acme");
    assert_eq!(refused(r#""hd":null"#), "oidc: required claim hd not present in ID token");
    assert_eq!(
        refused(r#""kind":"robot""#),
        "oidc: error evaluating claim validation expression: validation expression 'claims.kind == \"human\"' failed: sorry"
    );
    assert_eq!(
        refused(r#""sub":"eve""#),
        "oidc: error evaluating user info validation rule: validation expression 'user.uid == \"jane\"' failed: sorry"
    );
    assert_eq!(refused(r#""name":"""#), "oidc: empty username via CEL expression is not allowed");
    assert!(refused(r#""roles":7"#).ends_with("expression must return a string or a list of strings"));
    assert_eq!(refused(r#""aud":"c""#), r#"oidc: verify token: oidc: expected audience in ["a" "b"] got ["c"]"#);
}

#[test]
fn distributed_claims() {
    let world = world(config());
    let other = signer();
    world.web.publish("https://groups", &[&other]);
    let ask = || {
        world.ask(&world.token(
            r#"{"groups":null,"_claim_names":{"groups":"s"},"_claim_sources":{"s":{"endpoint":"https://groups/jane","access_token":"secret"}}}"#,
        ))
    };
    assert!(
        ask().unwrap_err().starts_with("oidc: could not expand distributed claims: while getting distributed claim")
    );
    let claims = claims_of(r#"{"iss":"https://groups","groups":["far"]}"#);
    world.web.put("https://groups/jane", other.sign(&claims).unwrap());
    assert_eq!(ask(), Ok(Some("oidc:jane g:far".into())));
    let sent = world.web.asked.lock().unwrap().iter().rev().find(|r| r.url == "https://groups/jane").cloned().unwrap();
    assert_eq!(sent.bearer_token.as_deref(), Some("secret"));
    world.web.put("https://groups/jane", world.signer.sign(&claims).unwrap());
    assert!(ask().is_err(), "signed by somebody else");
}

#[test]
fn time_passes() {
    let world = world(config());
    let token = world.token("{}");
    assert!(world.ask(&token).is_ok());
    advance(&world.clock, 61);
    assert!(world.ask(&token).is_err());
}
