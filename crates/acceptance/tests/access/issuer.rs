//! OpenID tokens of an issuer on loopback that rotates its keys, by flags and by a file that is followed.

use super::stub::{Reply, Stub};
use crate::support::{LIMIT, Server};
use kubelith_auth::jwt::signer::Signer;
use kubelith_auth::service_account::KeySet;
use kubelith_meta::Value;
use kubelith_meta::time::unix_time;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

struct Issuer {
    stub: Stub,
    ca_pem: String,
    published: Arc<Mutex<String>>,
}

fn keys(signers: &[&Signer]) -> String {
    KeySet::new(signers.iter().map(|s| s.public_key().clone()).collect()).jwks_json()
}

fn signer() -> Signer {
    Signer::from_pem(Signer::generate_rsa_pem().unwrap().as_bytes()).unwrap()
}

impl Issuer {
    fn start(first: &Signer) -> Issuer {
        let mut ca = CertificateParams::new(vec![]).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".into(), "localhost".into()]).unwrap();
        let certificate = params.signed_by(&key, &ca).unwrap();
        let published = Arc::new(Mutex::new(keys(&[first])));
        let (document, port) = (published.clone(), Arc::new(Mutex::new(0)));
        let own_port = port.clone();
        let stub = Stub::start_tls(&certificate.pem(), &key.serialize_pem(), move |path, _| {
            let url = format!("https://127.0.0.1:{}", own_port.lock().unwrap());
            match path {
                "/.well-known/openid-configuration" => {
                    Reply::Json(200, format!(r#"{{"issuer":"{url}","jwks_uri":"{url}/keys"}}"#))
                }
                "/keys" => Reply::Json(200, document.lock().unwrap().clone()),
                _ => Reply::Json(404, "{}".into()),
            }
        });
        *port.lock().unwrap() = stub.port;
        Issuer { stub, ca_pem: ca.pem(), published }
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.stub.port)
    }

    /// A token for `sub`, with more claims.
    fn token(&self, signer: &Signer, subject: &str, more: &str) -> String {
        let issuer = self.url();
        let text = format!(
            r#"{{"iss":"{issuer}","aud":"me","sub":"{subject}","exp":{},"groups":["devs","system:masters"]{more}}}"#,
            now() + 600
        );
        signer.sign(&json(&text)).unwrap()
    }
}

fn json(text: &str) -> Value {
    kubelith_codec::json::parse(text.as_bytes()).unwrap()
}

fn now() -> u64 {
    unix_time().as_secs()
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !condition() {
        assert!(Instant::now() < end, "not {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn keys_rotate_and_bad_tokens_stay_out() {
    let (old, new) = (signer(), signer());
    let issuer = Issuer::start(&old);
    let dir = tempfile::tempdir().unwrap();
    let ca = dir.path().join("ca.crt");
    std::fs::write(&ca, &issuer.ca_pem).unwrap();
    let server = Server::start(&[
        &format!("--oidc-issuer-url={}", issuer.url()),
        &format!("--oidc-ca-file={}", ca.display()),
        "--oidc-client-id=me",
        "--oidc-username-prefix=oidc:",
        "--oidc-groups-claim=groups",
        "--oidc-groups-prefix=oidc:",
        "--oidc-required-claim=tier=gold",
    ]);
    let good = |signer: &Signer, subject: &str| issuer.token(signer, subject, r#","tier":"gold""#);
    // A claim that says system:masters makes nobody a master.
    let known = |name: &str| Ok(format!("oidc:{name} oidc:devs,oidc:system:masters,system:authenticated"));
    wait_until("known", || server.who_has(&good(&old, "ann")) == known("ann"));

    let claims = |iss: &str, aud: &str, exp: u64, more: &str| {
        json(&format!(r#"{{"iss":"{iss}","aud":"{aud}","sub":"eve","exp":{exp},"tier":"gold"{more}}}"#))
    };
    let (url, later) = (issuer.url(), now() + 600);
    let sign = |signer: &Signer, claims: Value| signer.sign(&claims).unwrap();
    let bad = [
        ("expired", sign(&old, claims(&url, "me", now() - 1, ""))),
        ("another audience", sign(&old, claims(&url, "you", later, ""))),
        ("another issuer", sign(&old, claims("https://evil", "me", later, ""))),
        ("not yet valid", sign(&old, claims(&url, "me", later, &format!(r#","nbf":{}"#, later)))),
        ("without the required claim", issuer.token(&old, "eve", "")),
        ("with another value of it", issuer.token(&old, "eve", r#","tier":"tin""#)),
        ("a key that is not published", good(&new, "eve")),
        ("no signature", unsigned(&good(&old, "eve"))),
        ("changed", forged(&good(&old, "eve"))),
    ];
    for (what, token) in &bad {
        assert_eq!(server.who_has(token), Err(401), "{what}");
    }

    *issuer.published.lock().unwrap() = keys(&[&new]);
    assert_eq!(server.who_has(&good(&new, "bea")), known("bea"), "the new key is fetched when it is first seen");
    assert_eq!(server.who_has(&good(&old, "cleo")), Err(401), "the old key is gone");
}

/// The same claims under `alg: none`, without a signature.
pub fn unsigned(token: &str) -> String {
    let payload = token.split('.').nth(1).unwrap();
    // {"alg":"none"}
    format!("eyJhbGciOiJub25lIn0.{payload}.")
}

/// Other claims under the same signature.
pub fn forged(token: &str) -> String {
    let parts: Vec<&str> = token.split('.').collect();
    let mut payload = parts[1].to_owned();
    // Changing one letter changes the claims, or breaks them.
    let last = payload.pop().unwrap();
    payload.push(if last == 'A' { 'B' } else { 'A' });
    format!("{}.{payload}.{}", parts[0], parts[2])
}

#[test]
fn several_issuers_in_a_file_that_changes() {
    let (one, two) = (signer(), signer());
    let (first, second) = (Issuer::start(&one), Issuer::start(&two));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("authn.yaml");
    let entry = |issuer: &Issuer, prefix: &str| {
        let ca = issuer.ca_pem.replace('\n', "\n        ");
        format!(
            "- issuer:\n    url: {}\n    audiences: [me]\n    certificateAuthority: |\n        {ca}\n  claimMappings:\n    \
             username: {{claim: sub, prefix: \"{prefix}\"}}\n",
            issuer.url()
        )
    };
    let write = |entries: &[String]| {
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n{}",
            entries.concat()
        );
        // In one step: the server may read it at any time.
        std::fs::write(dir.path().join("new"), text).unwrap();
        std::fs::rename(dir.path().join("new"), &file).unwrap();
    };
    write(&[entry(&first, "a:"), entry(&second, "b:")]);
    let server = Server::start(&[&format!("--authentication-config={}", file.display())]);
    let known = |name: &str| Ok(format!("{name} system:authenticated"));
    wait_until("both known", || {
        server.who_has(&first.token(&one, "x", "")) == known("a:x")
            && server.who_has(&second.token(&two, "x", "")) == known("b:x")
    });
    assert_eq!(server.who_has(&second.token(&one, "x", "")), Err(401), "signed by the other issuer");

    write(&["- issuer: {url: http://plain, audiences: [me]}\n".into()]);
    server.wait_for("a refused reload", || server.log().contains("failed to reload the authentication config"));
    assert_eq!(server.who_has(&first.token(&one, "y", "")), known("a:y"), "still the first file");
    write(&[entry(&second, "c:")]);
    wait_until("reloaded", || server.who_has(&second.token(&two, "z", &format!(r#","n":{}"#, rand()))) == known("c:z"));
    assert_eq!(server.who_has(&first.token(&one, "z", "")), Err(401));
}

#[test]
fn expressions_make_users_of_claims() {
    let key = signer();
    let issuer = Issuer::start(&key);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("authn.yaml");
    let write = |username: &str| {
        let ca = issuer.ca_pem.replace('\n', "\n        ");
        let text = format!(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n- issuer:\n    url: {}\n    \
             audiences: [me]\n    certificateAuthority: |\n        {ca}\n  claimValidationRules:\n  - expression: \
             claims.exp - claims.?iat.orValue(claims.exp) < 3600.0\n    message: too long\n  claimMappings:\n    username: \
             {{expression: \"{username}\"}}\n    groups: {{expression: \"dyn(claims.groups).filter(g, g != \
             'system:masters')\"}}\n  userValidationRules:\n  - expression: \"!user.username.startsWith('system:')\"\n    \
             message: reserved\n",
            issuer.url()
        );
        std::fs::write(dir.path().join("new"), text).unwrap();
        std::fs::rename(dir.path().join("new"), &file).unwrap();
    };
    write("claims.sub");
    let server = Server::start(&[&format!("--authentication-config={}", file.display())]);
    let known = |name: &str| Ok(format!("{name} devs,system:authenticated"));
    wait_until("known", || server.who_has(&issuer.token(&key, "ann", "")) == known("ann"));
    assert_eq!(server.who_has(&issuer.token(&key, "system:ann", "")), Err(401), "a rule about users");
    assert_eq!(server.who_has(&issuer.token(&key, "bob", r#","iat":1"#)), Err(401), "a rule about claims");

    write("claims.sub +");
    server.wait_for("a refused reload", || server.log().contains("claimMappings.username.expression"));
    assert_eq!(server.who_has(&issuer.token(&key, "cleo", "")), known("cleo"), "still the first file");
    write("'oidc:' + claims.sub");
    wait_until("reloaded", || {
        server.who_has(&issuer.token(&key, "dora", &format!(r#","n":{}"#, rand()))) == known("oidc:dora")
    });
    let metrics = server.as_admin("GET", "/metrics", "").body;
    for status in ["failure", "success"] {
        let name = "apiserver_authentication_config_controller_automatic_reloads_total";
        let counted = |line: &&str| line.starts_with(name) && line.contains(&format!("status=\"{status}\""));
        let line = metrics.lines().find(counted).unwrap_or_else(|| panic!("no {status} in {metrics}"));
        assert!(line.ends_with(" 1"), "{line}");
    }
}

/// Makes a token that no cache has seen.
fn rand() -> u128 {
    unix_time().as_nanos() % 1_000_000_000
}
