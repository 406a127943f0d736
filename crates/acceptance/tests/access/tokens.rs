//! Bearer tokens that others know: a webhook, Secrets of kube-system, WebSocket headers; and who may be anonymous.

use super::stub::{Reply, Stub};
use super::{bearer, header, raw};
use crate::support::{Server, TOKEN};

/// A TokenReview's answer.
fn review(status: &str) -> Reply {
    let body = format!(r#"{{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{status}}}"#);
    Reply::Json(200, body)
}

#[test]
fn a_token_webhook_is_believed_only_when_it_makes_sense() {
    let hook = Stub::start(|_, body| {
        let asked: serde_json::Value = serde_json::from_str(body).unwrap();
        match asked["spec"]["token"].as_str().unwrap() {
            "good" => review(r#"{"authenticated":true,"user":{"username":"carol","groups":["g"]}}"#),
            "master" => review(r#"{"authenticated":true,"user":{"username":"eve","groups":["system:masters"]}}"#),
            "no" => review(r#"{"authenticated":false,"error":"expired"}"#),
            "text" => review(r#"{"authenticated":"true","user":{"username":"eve"}}"#),
            "other-audience" => review(r#"{"authenticated":true,"audiences":["vault"],"user":{"username":"eve"}}"#),
            "other-kind" => {
                Reply::Json(200, r#"{"apiVersion":"v1","kind":"Pod","status":{"authenticated":true}}"#.into())
            }
            "garbage" => Reply::Json(200, "not json".into()),
            "forbidden" => Reply::Json(403, r#"{"status":{"authenticated":true,"user":{"username":"eve"}}}"#.into()),
            _ => Reply::Close,
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let config = hook.kubeconfig(dir.path(), "hook");
    let server = Server::start(&[
        &format!("--authentication-token-webhook-config-file={config}"),
        "--authentication-token-webhook-version=v1",
    ]);
    assert_eq!(server.who_has("good"), Ok("carol g,system:authenticated".into()));
    for token in ["no", "text", "other-audience", "other-kind", "garbage", "forbidden"] {
        assert_eq!(server.who_has(token), Err(401), "{token}");
    }
    // A webhook may name any group: whoever configures it trusts it. What it must not do is to be asked about
    // tokens that are known here.
    assert_eq!(server.who_has("master"), Ok("eve system:masters,system:authenticated".into()));
    let before = hook.asked.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(server.who_has(TOKEN), Ok("admin system:masters,system:authenticated".into()));
    assert_eq!(server.who_has("good"), Ok("carol g,system:authenticated".into()), "from the cache");
    assert_eq!(hook.asked.load(std::sync::atomic::Ordering::SeqCst), before);
}

#[test]
fn bootstrap_tokens_and_websocket_headers() {
    let server = Server::start(&["--enable-bootstrap-token-auth"]);
    let secret = |name: &str, id: &str, expiration: &str| {
        format!(
            r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"bootstrap-token-{name}"}},
            "type":"bootstrap.kubernetes.io/token","stringData":{{"token-id":"{id}","token-secret":"0123456789abcdef",
            "usage-bootstrap-authentication":"true","auth-extra-groups":"system:bootstrappers:x"{expiration}}}}}"#
        )
    };
    let path = "/api/v1/namespaces/kube-system/secrets";
    for (name, id, expiration) in [
        ("abcdef", "abcdef", ""),
        ("expire", "expire", r#","expiration":"2020-01-01T00:00:00Z""#),
        ("liarid", "abcdef", ""),
    ] {
        let made = server.as_admin("POST", path, &secret(name, id, expiration));
        assert_eq!(made.status, 201, "{}", made.body);
    }
    let known = "system:bootstrap:abcdef system:bootstrappers,system:bootstrappers:x,system:authenticated";
    assert_eq!(server.who_has("abcdef.0123456789abcdef"), Ok(known.into()));
    for token in
        ["abcdef.0123456789abcdeX", "abcdef.0123456789abcde0", "expire.0123456789abcdef", "liarid.0123456789abcdef"]
    {
        assert_eq!(server.who_has(token), Err(401), "{token}");
    }

    // Browsers cannot set Authorization on a WebSocket; the token comes as a protocol.
    let upgrade = |protocols: &str| {
        [header("upgrade", "websocket"), header("connection", "Upgrade"), header("sec-websocket-protocol", protocols)]
    };
    let encoded = "base64url.bearer.authorization.k8s.io.YWRtaW50b2tlbg";
    let admin = "admin system:masters,system:authenticated";
    assert_eq!(server.who(&upgrade(&format!("{encoded},v4.channel.k8s.io"))), Ok(admin.into()));
    assert_eq!(server.who(&upgrade("base64url.bearer.authorization.k8s.io.d3Jvbmc, v4.channel.k8s.io")), Err(401));
    assert_eq!(server.who(&upgrade(encoded)), Err(401), "no protocol would be left to speak");
    let plain = [header("sec-websocket-protocol", &format!("{encoded},v4.channel.k8s.io"))];
    assert_eq!(server.who(&plain), Err(403), "anonymous: this is no WebSocket");
}

#[test]
fn anonymous_where_the_file_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("authn.yaml");
    let text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n\
                anonymous:\n  enabled: true\n  conditions:\n  - path: /livez\n";
    std::fs::write(&file, text).unwrap();
    let server = Server::start(&[&format!("--authentication-config={}", file.display())]);
    let ask = |path: &str| raw::send(server.address(), None, "GET", path, &[], "").status;
    assert_eq!((ask("/livez"), ask("/readyz"), ask("/livez/"), ask("//livez")), (200, 401, 401, 401));
    assert_eq!(ask("/livez/../readyz"), 401);
    assert_eq!(server.who(&[bearer("")]), Err(401), "an empty token is no token, and nobody is anonymous here");
}
