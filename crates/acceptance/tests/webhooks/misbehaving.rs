//! Webhook servers that break off, never end, are restarted or change their certificates.

use super::wild::{Authority, Wild};
use super::{CONFIGURATIONS, World};
use crate::support::LIMIT;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Instant;

const VALIDATING: &str = "validatingwebhookconfigurations";
const MUTATING: &str = "mutatingwebhookconfigurations";

/// A webhook at a wild server.
fn hook(world: &World, wild: &Wild, authority: &Authority, path: &str) -> Value {
    let client = json!({"url": wild.url(path), "caBundle": authority.bundle()});
    world.hook("wild", path, json!({"clientConfig": client, "timeoutSeconds": 30}))
}

/// How long it is waited for, in seconds: those that never end have little time, the others enough on any machine.
fn seconds(path: &str) -> u64 {
    match path {
        "later" | "hang" => 2,
        // So long it has for its headers, too.
        "body-without-end" => 5,
        _ => 30,
    }
}

#[test]
fn who_breaks_off_is_given_up() {
    let pair = Pair::start();
    let post = |path: &str| pair.post(path);
    let body = BODY;
    let cut = format!("{body} unexpected EOF");
    let broken = "net/http: HTTP/1.x transport connection broken:";
    for (path, why) in [
        ("headers-only", cut.clone()),
        ("half-body", cut.clone()),
        ("half-chunk", cut),
        ("half-status", format!("{} {broken} malformed HTTP status code \"20\"", post("half-status"))),
        (
            "half-headers",
            format!("{} {broken} malformed MIME header: missing colon: \"Content-Le\"", post("half-headers")),
        ),
        ("no-colon", format!("{} {broken} malformed MIME header: missing colon: \"no colon\"", post("no-colon"))),
        ("odd-length", format!("{} {broken} bad Content-Length \"-5\"", post("odd-length"))),
        ("odd-coding", format!("{} {broken} unsupported transfer encoding: \"odd\"", post("odd-coding"))),
        ("odd-chunk", format!("{body} invalid byte in chunk length")),
        ("no-gzip", format!("{body} gzip: invalid header")),
        ("odd-type", "failed to call webhook: Internal error occurred: mime: expected token after slash".to_owned()),
        ("in-circles", "failed to call webhook: Post \"/in-circles\": stopped after 10 redirects".to_owned()),
        (
            "to-nowhere",
            format!(
                "{} failed to parse Location header \"ht!tp://%zz\": parse \"ht!tp://%zz\": first path segment in URL cannot \
                 contain colon",
                post("to-nowhere")
            ),
        ),
        ("to-refused", "failed to call webhook: Post \"https://127.0.0.1:1/x\": dial tcp 127.0.0.1:1: connect: connection \
                        refused".to_owned()),
        (
            "wrong-type",
            "failed to call webhook: json: cannot unmarshal string into Go struct field Status.response.status.details of \
             type v1.StatusDetails"
                .to_owned(),
        ),
        ("garbage", format!("{} {broken} malformed HTTP status code \"of\"", post("garbage"))),
        ("odd-code", format!("{} {broken} malformed HTTP status code \"2oo\"", post("odd-code"))),
        ("flood", format!("{body} the answer has more than 33554432 bytes")),
    ] {
        pair.gives_up(path, &why);
    }
}

#[test]
fn who_never_ends_is_given_up() {
    let pair = Pair::start();
    let late = |path: &str| format!("{} context deadline exceeded", pair.post(path));
    // It is asked again until the time is up.
    pair.gives_up("later", &late("later"));
    pair.gives_up("body-without-end", &format!("{BODY} context deadline exceeded"));
    pair.gives_up("hang", &late("hang"));
}

const BODY: &str = "failed to call webhook: unexpected error when reading response body. Please retry. Original error:";

/// A server, and one with webhooks that misbehave.
struct Pair {
    world: World,
    wild: Wild,
    authority: Authority,
}

impl Pair {
    fn start() -> Pair {
        let (world, authority) = (World::start(&[]), Authority::new("wild"));
        let wild = Wild::start(&authority);
        Pair { world, wild, authority }
    }

    /// How errors of a path begin.
    fn post(&self, path: &str) -> String {
        format!("failed to call webhook: Post \"{}?timeout={}s\":", self.wild.url(path), seconds(path))
    }

    fn gives_up(&self, path: &str, why: &str) {
        let Pair { world, wild, authority } = self;
        let mut hook = hook(world, wild, authority, path);
        hook["timeoutSeconds"] = seconds(path).into();
        world.configure(VALIDATING, path, json!([hook]));
        let began = Instant::now();
        let (code, answer) = world.create("a");
        let want = format!("Internal error occurred: failed calling webhook \"wild.example.com\": {why}");
        assert_eq!((code, answer["message"].as_str()), (500, Some(want.as_str())), "{path}");
        assert!(began.elapsed() < LIMIT, "{path}");
        world.delete(VALIDATING, path);
        // Nothing of a failed call is left behind.
        world.server.wait_for("disconnected", || wild.connected.load(Ordering::SeqCst) == 0);
    }
}

#[test]
fn who_is_slow_or_odd_but_right_is_heard() {
    let (world, authority) = (World::start(&[]), Authority::new("wild"));
    let wild = Wild::start(&authority);
    let paths = ["slow", "other-type", "gzip", "busy-once", "allow"];
    for path in paths {
        world.configure(VALIDATING, path, json!([hook(&world, &wild, &authority, path)]));
        let (code, answer) = world.create("a");
        assert_eq!(code, 201, "{path}: {answer}");
        world.delete(VALIDATING, path);
    }
    // Each place has a connection of its own, which is kept: the next hundred calls take one.
    world.configure(VALIDATING, "many", json!([hook(&world, &wild, &authority, "allow")]));
    let before = wild.calls.load(Ordering::SeqCst);
    for _ in 0..100 {
        assert_eq!(world.create("a").0, 201);
    }
    assert_eq!(wild.calls.load(Ordering::SeqCst), before + 100);
    assert!(wild.connected.load(Ordering::SeqCst) <= paths.len(), "{:?}", wild.connected);
    world.delete(VALIDATING, "many");
    world.configure(MUTATING, "big", json!([hook(&world, &wild, &authority, "big-patch")]));
    let (code, answer) = world.create("a");
    let message = answer["message"].as_str().unwrap_or_default();
    assert!(
        code == 422 && message.contains("metadata.annotations: Too long: may not be more than 262144 bytes"),
        "{message}"
    );
}

#[test]
fn who_sends_on_or_says_other_words_is_heard() {
    let (world, authority) = (World::start(&[]), Authority::new("wild"));
    let wild = Wild::start(&authority);
    let path = format!("to-plain/{}", super::wild::plain());
    world.configure(VALIDATING, "plain", json!([hook(&world, &wild, &authority, &path)]));
    let (code, answer) = world.create("a");
    let want = "admission webhook \"wild.example.com\" denied the request: there by plain";
    assert_eq!((code, answer["message"].as_str()), (400, Some(want)));
    world.delete(VALIDATING, "plain");
    world.configure(VALIDATING, "odd", json!([hook(&world, &wild, &authority, "odd-status")]));
    let (code, answer) = world.create("a");
    assert_eq!((code, answer["status"].as_str()), (418, Some("Odd")), "{answer}");
}

#[test]
fn servers_are_restarted_and_change_their_certificates() {
    let (world, first) = (World::start(&[]), Authority::new("first"));
    let wild = Wild::start(&first);
    let address = wild.address;
    world.configure(VALIDATING, "c", json!([hook(&world, &wild, &first, "allow")]));
    assert_eq!(world.create("a").0, 201);
    // The kept connection ends with the server; the next one finds the new server.
    drop(wild);
    let wild = Wild::start_at(&first, address);
    world.server.wait_for("reached again", || world.create("a").0 == 201);
    drop(wild);
    let second = Authority::new("second");
    let wild = Wild::start_at(&second, address);
    let unknown = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    world.server.wait_for("refused", || {
        world.create("a").1["message"].as_str().is_some_and(|message| message.ends_with(unknown))
    });
    // The first request after the change trusts the new authority.
    let path = format!("{CONFIGURATIONS}/{VALIDATING}/c");
    let mut stored: Value = serde_json::from_slice(&world.server.get(&path).unwrap().body).unwrap();
    stored["webhooks"][0]["clientConfig"]["caBundle"] = second.bundle().into();
    assert_eq!(world.server.put(&path, &stored.to_string()).unwrap().status, 200);
    let (code, answer) = world.create("a");
    assert_eq!(code, 201, "{answer}");
    drop(wild);
}
