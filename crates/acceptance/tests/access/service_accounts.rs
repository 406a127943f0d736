//! Tokens of service accounts: given out, bound, published, and refused when something is wrong with them.

use super::issuer::{forged, unsigned};
use super::{bearer, header, raw};
use crate::support::{Server, TOKEN};
use kubelith_auth::jwt::signer::Signer;
use kubelith_conformance::http::{Address, Client, Request};
use kubelith_meta::time::unix_time;
use serde_json::{Value, json};

const ISSUER: &str = "https://kubernetes.default.svc";

fn server(flags: &[&str]) -> (Server, Signer, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let pem = Signer::generate_rsa_pem().unwrap();
    let key = dir.path().join("sa.key");
    std::fs::write(&key, &pem).unwrap();
    let (sign, verify) = (
        format!("--service-account-signing-key-file={}", key.display()),
        format!("--service-account-key-file={}", key.display()),
    );
    let mut all = vec![sign.as_str(), verify.as_str()];
    all.extend(flags);
    (Server::start(&all), Signer::from_pem(pem.as_bytes()).unwrap(), dir)
}

fn make(server: &Server, collection: &str, body: &str) -> Value {
    let made = server.as_admin("POST", collection, body);
    assert_eq!(made.status, 201, "{}", made.body);
    made.json()
}

fn token(server: &Server, account: &str, spec: &str) -> Result<String, String> {
    let path = format!("/api/v1/namespaces/default/serviceaccounts/{account}/token");
    let body = format!(r#"{{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{spec}}}"#);
    let answer = server.as_admin("POST", &path, &body);
    match answer.status {
        201 => Ok(answer.json()["status"]["token"].as_str().unwrap().to_owned()),
        _ => Err(answer.message()),
    }
}

fn account(server: &Server, name: &str) -> String {
    let body = format!(r#"{{"apiVersion":"v1","kind":"ServiceAccount","metadata":{{"name":"{name}"}}}}"#);
    let made = make(server, "/api/v1/namespaces/default/serviceaccounts", &body);
    made["metadata"]["uid"].as_str().unwrap().to_owned()
}

fn known(name: &str) -> Result<String, u16> {
    let groups = "system:serviceaccounts,system:serviceaccounts:default,system:authenticated";
    Ok(format!("system:serviceaccount:default:{name} {groups}"))
}

#[test]
fn tokens_of_service_accounts() {
    let (server, signer, _dir) = server(&["--service-account-max-token-expiration=2h"]);
    given_out_and_bound(&server);
    signed_by_our_key_is_not_enough(&server, &signer);
    legacy_tokens_live_in_their_secret(&server, &signer);
}

#[test]
fn tokens_of_a_deleted_secret_open_nothing_from_the_answer_on() {
    let (server, _, _dir) = server(&[]);
    account(&server, "robot");
    let url = format!("https://{}", server.address());
    // Each is the others' load, so that the server has more to do than to tell its caches.
    let some = &|client: usize| {
        let mut client = Kept { client: Client::new(Address::parse(&url).unwrap()), name: format!("s{client}") };
        (0..40).filter(|_| client.is_let_in_after_deletion()).count()
    };
    let let_in: usize = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..6).map(|client| scope.spawn(move || some(client))).collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    assert_eq!(let_in, 0, "of 240");
}

/// A client that keeps its connection, and a Secret of its own.
struct Kept {
    client: Client,
    name: String,
}

impl Kept {
    fn is_let_in_after_deletion(&mut self) -> bool {
        let secrets = "/api/v1/namespaces/default/secrets";
        let object = json!({"metadata": {"name": self.name}});
        let (code, secret) = self.send(TOKEN, "POST", secrets, Some(object));
        assert_eq!(code, 201, "{secret}");
        let bound = json!({"kind": "Secret", "apiVersion": "v1", "name": self.name, "uid": secret["metadata"]["uid"]});
        let wanted = json!({"spec": {"boundObjectRef": bound}});
        let path = "/api/v1/namespaces/default/serviceaccounts/robot/token";
        let (code, given) = self.send(TOKEN, "POST", path, Some(wanted));
        assert_eq!(code, 201, "{given}");
        let token = given["status"]["token"].as_str().unwrap().to_owned();
        assert_eq!(self.send(TOKEN, "DELETE", &format!("{secrets}/{}", self.name), None).0, 200);
        let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        self.send(&token, "POST", review, Some(json!({}))).0 != 401
    }

    fn send(&mut self, token: &str, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let headers = vec![bearer(token), header("content-type", "application/json")];
        let body = body.map(|body| body.to_string().into_bytes());
        let request = Request { method: method.into(), path: path.into(), headers, body };
        let answer = self.client.send(&request).unwrap();
        (answer.status, serde_json::from_slice(&answer.body).unwrap())
    }
}

fn given_out_and_bound(server: &Server) {
    account(server, "robot");
    let free = token(server, "robot", "{}").unwrap();
    assert_eq!(server.who_has(&free), known("robot"));
    assert_eq!(server.who_has(&unsigned(&free)), Err(401));
    assert_eq!(server.who_has(&forged(&free)), Err(401));
    assert_eq!(server.who_has(&free[..free.len() - 4]), Err(401));
    let elsewhere = token(server, "robot", r#"{"audiences":["vault"]}"#).unwrap();
    assert_eq!(server.who_has(&elsewhere), Err(401), "a token for others opens nothing here");

    // Bound to a Secret, it dies with it. Each token is tried once: the server remembers for a while whose one is.
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = make(server, secrets, r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}"#);
    let uid = secret["metadata"]["uid"].as_str().unwrap();
    let reference = format!(r#"{{"boundObjectRef":{{"apiVersion":"v1","kind":"Secret","name":"s","uid":"{uid}"}}}}"#);
    let (before, after) = (token(server, "robot", &reference).unwrap(), token(server, "robot", &reference).unwrap());
    assert_eq!(server.who_has(&before), known("robot"));
    assert_eq!(server.as_admin("DELETE", &format!("{secrets}/s"), "").status, 200);
    assert_eq!(server.who_has(&after), Err(401));
    make(server, secrets, r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}"#);
    let third = token(server, "robot", r#"{"boundObjectRef":{"apiVersion":"v1","kind":"Secret","name":"s"}}"#).unwrap();
    assert_eq!(server.who_has(&third), known("robot"), "the new Secret");
    assert_eq!(server.who_has(&after), Err(401), "a Secret of the same name is another one");
    assert!(token(server, "robot", &reference).unwrap_err().contains("does not match the UID in record"));

    let long = r#"{"expirationSeconds":86400}"#;
    let path = "/api/v1/namespaces/default/serviceaccounts/robot/token";
    let cut = server.as_admin("POST", path, &format!(r#"{{"spec":{long}}}"#));
    assert!(cut.head.contains("requested expiration of 86400 seconds shortened to 7200 seconds"), "{}", cut.head);

    // The account itself gone, nothing of it is left.
    let orphan = token(server, "robot", "{}").unwrap();
    assert_eq!(server.as_admin("DELETE", "/api/v1/namespaces/default/serviceaccounts/robot", "").status, 200);
    assert_eq!(server.who_has(&orphan), Err(401));
}

fn signed_by_our_key_is_not_enough(server: &Server, signer: &Signer) {
    let uid = account(server, "robot");
    let now = unix_time().as_secs() as i64;
    let make = |issuer: &str, audience: &str, (from, until): (i64, i64), account: &str, uid: &str| {
        let text = format!(
            r#"{{"iss":"{issuer}","aud":["{audience}"],"iat":{from},"nbf":{from},"exp":{until},"jti":"x","sub":"system:serviceaccount:default:{account}",
            "kubernetes.io":{{"namespace":"default","serviceaccount":{{"name":"{account}","uid":"{uid}"}}}}}}"#,
        );
        signer.sign(&kubelith_codec::json::parse(text.as_bytes()).unwrap()).unwrap()
    };
    let fine = (now - 10, now + 600);
    assert_eq!(server.who_has(&make(ISSUER, ISSUER, fine, "robot", &uid)), known("robot"));
    let cases = [
        ("expired", make(ISSUER, ISSUER, (now - 7200, now - 3600), "robot", &uid)),
        ("not yet valid", make(ISSUER, ISSUER, (now + 3600, now + 7200), "robot", &uid)),
        ("another issuer", make("https://evil", ISSUER, fine, "robot", &uid)),
        ("another audience", make(ISSUER, "https://evil", fine, "robot", &uid)),
        ("another account's uid", make(ISSUER, ISSUER, fine, "robot", "0")),
        ("no such account", make(ISSUER, ISSUER, fine, "nobody", &uid)),
        // Legacy tokens need their Secret.
        ("legacy without a Secret", {
            let text = format!(
                r#"{{"iss":"kubernetes/serviceaccount","sub":"system:serviceaccount:default:robot","kubernetes.io/serviceaccount/namespace":"default",
                "kubernetes.io/serviceaccount/secret.name":"none","kubernetes.io/serviceaccount/service-account.name":"robot","kubernetes.io/serviceaccount/service-account.uid":"{uid}"}}"#
            );
            signer.sign(&kubelith_codec::json::parse(text.as_bytes()).unwrap()).unwrap()
        }),
    ];
    for (what, token) in cases {
        assert_eq!(server.who_has(&token), Err(401), "{what}");
    }
    // The public key is no secret: a token "signed" with it by HMAC must not pass.
    let hmac = "eyJhbGciOiJIUzI1NiJ9";
    let good = make(ISSUER, ISSUER, fine, "robot", &uid);
    let parts: Vec<&str> = good.split('.').collect();
    assert_eq!(server.who_has(&format!("{hmac}.{}.{}", parts[1], parts[2])), Err(401));
}

fn legacy_tokens_live_in_their_secret(server: &Server, signer: &Signer) {
    let uid = account(server, "old");
    let claims = format!(
        r#"{{"iss":"kubernetes/serviceaccount","sub":"system:serviceaccount:default:old","kubernetes.io/serviceaccount/namespace":"default",
        "kubernetes.io/serviceaccount/secret.name":"old-token","kubernetes.io/serviceaccount/service-account.name":"old","kubernetes.io/serviceaccount/service-account.uid":"{uid}"}}"#
    );
    let token = signer.sign(&kubelith_codec::json::parse(claims.as_bytes()).unwrap()).unwrap();
    let secret = format!(
        r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"old-token","annotations":{{"kubernetes.io/service-account.name":"old"}}}},
        "type":"kubernetes.io/service-account-token","stringData":{{"token":"{token}"}}}}"#
    );
    let secrets = "/api/v1/namespaces/default/secrets";
    make(server, secrets, &secret);
    assert_eq!(server.who_has(&token), known("old"));
    // Its use is noted in the Secret.
    let label = "kubernetes.io/legacy-token-last-used";
    server.wait_for("noted", || {
        let secret = server.as_admin("GET", &format!("{secrets}/old-token"), "").json();
        secret["metadata"]["labels"][label].is_string()
    });
}

#[test]
fn keys_are_published() {
    let server = Server::start(&[]);
    let admin = [bearer(super::TOKEN)];
    let get = |path: &str, accept: &str| {
        let headers = [admin[0].clone(), header("accept", accept)];
        raw::send(server.address(), None, "GET", path, &headers, "")
    };
    let document = get("/.well-known/openid-configuration", "application/json");
    assert!(document.head.to_ascii_lowercase().contains("cache-control: public, max-age=3600"), "{}", document.head);
    let document = document.json();
    assert_eq!(
        (document["issuer"].as_str(), document["id_token_signing_alg_values_supported"][0].as_str()),
        (Some(ISSUER), Some("RS256"))
    );
    assert!(document["jwks_uri"].as_str().unwrap().ends_with("/openid/v1/jwks"));
    let keys = get("/openid/v1/jwks", "application/jwk-set+json").json();
    let key = kubelith_codec::json::parse(keys["keys"][0].to_string().as_bytes()).unwrap();
    let key = kubelith_auth::jwt::key::PublicKey::from_jwk(&key).unwrap();
    account(&server, "robot");
    let token = token(&server, "robot", "{}").unwrap();
    let parsed = kubelith_auth::jwt::UnverifiedToken::parse(&token).unwrap();
    assert!(parsed.verify(&key).is_some(), "what is published verifies what is given out");
    assert_eq!(get("/openid/v1/jwks", "application/json").status, 406);
}
