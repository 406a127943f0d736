//! What the webhook server does, by the first part of the path. Parameters follow as further parts `name=value`, or
//! `name64=VALUE` in base64url: a URL of a webhook has no query.

use super::Counts;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::time::Duration;

pub enum Answer {
    Document(Value),
    Raw {
        status: u16,
        content_type: &'static str,
        body: Vec<u8>,
    },
    Redirect(&'static str),
    /// No answer: the connection ends.
    Close,
}

struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn of(path: &str) -> Parameters {
        let pairs = path.split('/').skip(2).filter_map(|part| part.split_once('='));
        let decode = |(key, value): (&str, &str)| match key.strip_suffix("64") {
            Some(key) => {
                let raw = URL_SAFE_NO_PAD.decode(value).unwrap_or_default();
                (key.to_owned(), String::from_utf8_lossy(&raw).into_owned())
            }
            None => (key.to_owned(), unescape(value)),
        };
        Parameters(pairs.map(decode).collect())
    }

    fn all(&self, key: &str) -> Vec<&str> {
        self.0.iter().filter(|(k, _)| k == key).map(|(_, v)| v.as_str()).collect()
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.all(key).first().copied()
    }

    fn or<'a>(&'a self, key: &str, default: &'a str) -> &'a str {
        self.get(key).unwrap_or(default)
    }
}

/// `%41` is `A`.
fn unescape(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = tail.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        match escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &tail[2..];
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A review that answers `review`, with `more` in its response.
fn reviewed(review: &Value, allowed: bool, more: Value) -> Value {
    let mut response = json!({"uid": review["request"]["uid"].as_str().unwrap_or_default(), "allowed": allowed});
    if let (Some(response), Value::Object(more)) = (response.as_object_mut(), more) {
        response.extend(more);
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

fn patch(operations: &Value) -> Value {
    json!({"patchType": "JSONPatch", "patch": STANDARD.encode(operations.to_string())})
}

/// Adds a label or annotation.
fn add_to(review: &Value, field: &str, key: &str, value: &str) -> Value {
    let there = &review["request"]["object"]["metadata"][field];
    if there.as_object().is_none_or(|map| map.is_empty()) {
        return json!([{"op": "add", "path": format!("/metadata/{field}"), "value": {key: value}}]);
    }
    let escaped = key.replace('~', "~0").replace('/', "~1");
    json!([{"op": "add", "path": format!("/metadata/{field}/{escaped}"), "value": value}])
}

/// The review as JSON with sorted keys, without what is another one each time.
fn shown(review: &Value) -> String {
    let mut review = review.clone();
    if let Some(request) = review["request"].as_object_mut() {
        request.remove("uid");
    }
    sorted(&review)
}

fn sorted(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<_> = map.keys().collect();
            keys.sort();
            let members: Vec<_> = keys.iter().map(|k| format!("{}:{}", json!(k), sorted(&map[k.as_str()]))).collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(sorted).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

pub fn answer(path: &str, authorization: &str, review: &Value, counts: &Counts) -> Answer {
    let parameters = Parameters::of(path);
    let what = path.split('/').nth(1).unwrap_or_default();
    let text = |status, body: String| Answer::Raw { status, content_type: "text/plain", body: body.into_bytes() };
    let json_text = |body: &str| Answer::Raw { status: 200, content_type: "application/json", body: body.into() };
    if let Some(code) = what.strip_prefix("status-").and_then(|code| code.parse::<u16>().ok()) {
        return text(code, format!("answer {code}"));
    }
    match what {
        "garbage" => return json_text("this is not json"),
        "empty" => return json_text(""),
        "redirect" => return Answer::Redirect("/allow"),
        "close" => return Answer::Close,
        "authorization" => {
            return Answer::Document(reviewed(review, false, json!({"status": {"message": authorization}})));
        }
        "hang" => {
            let seconds = parameters.or("seconds", "30").parse().unwrap_or(30.0);
            std::thread::sleep(Duration::from_secs_f64(seconds));
        }
        _ => {}
    }
    let document = decided(what, &parameters, review)
        .or_else(|| changed(what, &parameters, review, counts))
        .or_else(|| wrong(what, review));
    document.map_or_else(|| text(404, "no such behaviour".to_owned()), Answer::Document)
}

/// Those that say yes or no.
fn decided(what: &str, parameters: &Parameters, review: &Value) -> Option<Value> {
    let ok = |more| Some(reviewed(review, true, more));
    let no = |more| Some(reviewed(review, false, more));
    let warnings = || match parameters.all("w") {
        none if none.is_empty() => vec!["a warning"],
        some => some,
    };
    match what {
        "allow" | "echo" | "hang" => ok(json!({})),
        "show" => no(json!({"status": {"code": 400, "message": shown(review)}})),
        "deny" => no(json!({"status": {"code": 403, "reason": "Forbidden", "message": "denied by test webhook"}})),
        "deny-code" => {
            let mut status = json!({});
            if let Some(code) = parameters.get("code").and_then(|code| code.parse::<i64>().ok()) {
                status["code"] = code.into();
            }
            for key in ["reason", "message"] {
                if let Some(given) = parameters.get(key) {
                    status[key] = given.into();
                }
            }
            no(json!({"status": status}))
        }
        "deny-bare" => no(json!({})),
        "warn" => ok(json!({"warnings": warnings()})),
        "warn-deny" => no(json!({"warnings": warnings(), "status": {"message": "no", "code": 403}})),
        "audit" => ok(json!({"auditAnnotations": {"key": "value", "other-key": "x"}})),
        "deny-patch" => no(patch(&add_to(review, "labels", "mutated", "yes"))),
        _ => None,
    }
}

/// Those that change the object.
fn changed(what: &str, parameters: &Parameters, review: &Value, counts: &Counts) -> Option<Value> {
    let ok = |more| Some(reviewed(review, true, more));
    let with = |field: &str, key: &str, value: &str| ok(patch(&add_to(review, field, key, value)));
    match what {
        "show-annotation" => with("annotations", parameters.or("key", "review"), &shown(review)),
        "count" => {
            let count = {
                let mut counts = counts.lock().unwrap_or_else(|e| e.into_inner());
                let count = counts.entry(parameters.or("id", "").to_owned()).or_default();
                *count += 1;
                *count
            };
            with("labels", parameters.or("key", "count"), &count.to_string())
        }
        "mutate" => with("labels", parameters.or("key", "mutated"), parameters.or("value", "yes")),
        "mutate-annotations" => with("annotations", parameters.or("key", "mutated"), parameters.or("value", "yes")),
        "append" => {
            let key = parameters.or("key", "seen");
            let old = review["request"]["object"]["metadata"]["labels"][key].as_str().unwrap_or_default();
            with("labels", key, &format!("{old}{}", parameters.or("value", "x")))
        }
        "patch" => ok(json!({"patchType": "JSONPatch", "patch": STANDARD.encode(parameters.or("p", "[]"))})),
        "huge-patch" => with("annotations", "huge", &"x".repeat(200_000)),
        "bad-patch" => ok(json!({"patchType": "JSONPatch", "patch": STANDARD.encode("{\"not\": \"a list\"}")})),
        "bad-patch-path" => ok(patch(&json!([{"op": "remove", "path": "/metadata/nowhere/x"}]))),
        "bad-patch-type" => ok(patch(&json!([{"op": "add", "path": "/metadata/labels", "value": 5}]))),
        "unknown-field" => ok(patch(&json!([{"op": "add", "path": "/nosuchfield", "value": 5}]))),
        "patchtype-only" => ok(json!({"patchType": "JSONPatch"})),
        "bad-patchtype" | "no-patchtype" => {
            let mut patch = patch(&add_to(review, "labels", "mutated", "yes"));
            match what {
                "bad-patchtype" => patch["patchType"] = "MergePatch".into(),
                _ => drop(patch.as_object_mut().and_then(|patch| patch.remove("patchType"))),
            }
            ok(patch)
        }
        _ => None,
    }
}

/// Those that answer something else than they should.
fn wrong(what: &str, review: &Value) -> Option<Value> {
    let mut answer = reviewed(review, true, json!({}));
    match what {
        "no-response" => drop(answer.as_object_mut()?.remove("response")),
        "wrong-uid" => answer["response"]["uid"] = "wrong".into(),
        "no-uid" => drop(answer["response"].as_object_mut()?.remove("uid")),
        "wrong-kind" => answer["kind"] = "Other".into(),
        "no-kind" => answer = json!({"response": answer["response"]}),
        "v1beta1" => answer["apiVersion"] = "admission.k8s.io/v1beta1".into(),
        "v1beta1-mutate" => {
            let patch = patch(&add_to(review, "labels", "mutated", "v1beta1"));
            answer = json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview",
                "response": {"allowed": true, "patch": patch["patch"]}});
        }
        _ => return None,
    }
    Some(answer)
}
