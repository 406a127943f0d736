//! ImagePolicyWebhook: another server says which images may run.

use super::list;
use crate::config::Reviewer;
use crate::plugin::{Plugin, Verdict};
use bytes::Bytes;
use kubelith_auth::expiring::ExpiringMap;
use kubelith_auth::hook::{self, Failed, Hook};
use kubelith_auth::remote::{Backoff, FetchError};
use kubelith_codec::{json, yaml};
use kubelith_meta::text::json_kind;
use kubelith_meta::time::{Clock, Duration as Shown};
use kubelith_meta::{GroupVersion, Status, Value, names};
use kubelith_registry::admission::Request;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const API_VERSION: &str = "imagepolicy.k8s.io/v1alpha1";
const KIND: &str = "ImageReview";
/// Annotations with this in their key are shown to the other server.
const SHOWN: &str = ".image-policy.k8s.io/";
/// How keys in the audit log begin.
const AUDIT: &str = "imagepolicywebhook.image-policy.k8s.io/";
/// Answers that are kept, as many as in the reference.
const MAX_KEPT: usize = 1024;
/// For one try, with the body of the answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often the server is asked before it counts as failed.
const TRIES: u32 = 5;
/// The part of the reference that knows built-in kinds, as it calls itself in errors.
const SCHEME: &str = "pkg/api/legacyscheme/scheme.go:30";

pub struct ImagePolicyWebhook {
    server: Arc<dyn Hook>,
    settings: Settings,
    clock: Arc<dyn Clock>,
    /// By the spec of the review, as JSON. Held for a lookup or an insertion, never while the server is asked.
    kept: Mutex<ExpiringMap<Vec<u8>, Arc<Answer>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Settings {
    kubeconfig: String,
    allow_ttl: Duration,
    deny_ttl: Duration,
    backoff: Duration,
    default_allow: bool,
}

/// What the server decided.
#[derive(Debug, Default, PartialEq, Eq)]
struct Answer {
    allowed: bool,
    reason: String,
    annotations: Vec<(String, String)>,
}

impl ImagePolicyWebhook {
    pub fn new(reviewer: &Reviewer, clock: Arc<dyn Clock>, text: Option<&[u8]>) -> Result<ImagePolicyWebhook, String> {
        let settings = Settings::read(text.ok_or("no config specified")?)?;
        let server = reviewer(Path::new(&settings.kubeconfig))?;
        Ok(ImagePolicyWebhook { server, settings, clock, kept: Mutex::new(ExpiringMap::new(MAX_KEPT)) })
    }

    async fn judge(&self, request: Request<'_>, pod: &Value) -> Result<(), Status> {
        let spec = json::to_vec(&spec(request, pod));
        let known = self.kept.lock().expect("no panic under this lock").get(&spec, self.clock.now()).cloned();
        let answer = match known {
            Some(answer) => answer,
            None => match self.ask(&spec).await {
                Ok(answer) => self.keep(spec, answer),
                Err(why) if self.settings.default_allow => {
                    tracing::warn!("the image policy webhook failed, and images are allowed in spite of it: {why}");
                    request.call.annotate(format!("{AUDIT}failed-open"), "true");
                    return Ok(());
                }
                Err(why) => return Err(request.forbidden(pod, why)),
            },
        };
        for (key, value) in &answer.annotations {
            let key = format!("{AUDIT}{key}");
            match names::is_qualified_name(&key).is_empty() {
                true => request.call.annotate(key, value.as_str()),
                false => tracing::warn!(key, "an audit annotation of the image policy webhook has no valid name"),
            }
        }
        match (answer.allowed, answer.reason.as_str()) {
            (true, _) => Ok(()),
            (false, "") => Err(request.forbidden(pod, "one or more images rejected by webhook backend")),
            (false, reason) => {
                let why = format!("image policy webhook backend denied one or more images: {reason}");
                Err(request.forbidden(pod, why))
            }
        }
    }

    fn keep(&self, spec: Vec<u8>, answer: Answer) -> Arc<Answer> {
        let answer = Arc::new(answer);
        let ttl = if answer.allowed { self.settings.allow_ttl } else { self.settings.deny_ttl };
        if !ttl.is_zero() {
            let mut kept = self.kept.lock().expect("no panic under this lock");
            kept.insert(spec, answer.clone(), self.clock.now(), ttl);
        }
        answer
    }

    /// Asks, and asks again where that may help.
    async fn ask(&self, spec: &[u8]) -> Result<Answer, String> {
        let spec = String::from_utf8_lossy(spec);
        let review = Bytes::from(format!(
            r#"{{"kind":"{KIND}","apiVersion":"{API_VERSION}","metadata":{{}},"spec":{spec},"status":{{"allowed":false}}}}"#
        ));
        let backoff = Backoff { first: self.settings.backoff, tries: TRIES };
        for tried in 1..=TRIES {
            let (why, is_passing) = match self.server.post(review.clone(), TIMEOUT).await {
                Err(FetchError::ConnectionLost(why)) => {
                    let is_reset = why.ends_with("connection reset by peer");
                    (why, is_reset)
                }
                Err(FetchError::Timeout(why) | FetchError::Other(why)) => (why, false),
                Ok(response) => match hook::answer(&response) {
                    Ok(document) => return Answer::read(&document),
                    Err(Failed::Unreadable(why)) => (why, false),
                    Err(Failed::Refused(status)) => {
                        let is_passing = status.is_internal_error()
                            || status.is_timeout()
                            || status.is_too_many_requests()
                            || status.retry_after_seconds().is_some();
                        (status.message, is_passing)
                    }
                },
            };
            if !is_passing || tried == TRIES {
                return Err(why);
            }
            tokio::time::sleep(backoff.pause(tried)).await;
        }
        Err(String::new())
    }
}

impl Plugin for ImagePolicyWebhook {
    fn validate<'a>(&'a self, request: Request<'a>, pod: &'a Value) -> Verdict<'a> {
        let is_meant = matches!(request.call.subresource.as_str(), "" | "ephemeralcontainers");
        if !is_meant || !request.is_for_any_part("", "pods") {
            return Verdict::Idle;
        }
        Verdict::pending(self.judge(request, pod))
    }
}

/// What is asked about: the images that the request is about, in order.
fn spec(request: Request<'_>, pod: &Value) -> Value {
    let kinds = if request.call.subresource.is_empty() {
        &["containers", "initContainers"][..]
    } else {
        &["ephemeralContainers"]
    };
    let containers = kinds.iter().flat_map(|kind| list(pod, &["spec", kind]));
    let images: Vec<Value> = containers
        .map(|container| match container.str_at(&["image"]) {
            "" => Value::object(),
            image => Value::from([("image", image)]),
        })
        .collect();
    let mut spec = Value::object();
    if !images.is_empty() {
        spec.set_at(&["containers"], Value::Array(images));
    }
    let annotations = pod.at(&["metadata", "annotations"]).and_then(Value::as_object);
    for (key, value) in annotations.into_iter().flat_map(|all| all.iter()).filter(|(key, _)| key.contains(SHOWN)) {
        spec.set_at(&["annotations", key], value.clone());
    }
    if !request.call.namespace.is_empty() {
        spec.set_at(&["namespace"], Value::String(request.call.namespace.clone()));
    }
    spec
}

impl Answer {
    /// The error is that of Go's decoder.
    fn read(document: &Value) -> Result<Answer, String> {
        let said = |key: &str, default: &str| match document.str_at(&[key]) {
            "" => default.to_owned(),
            said => said.to_owned(),
        };
        let (kind, version) = (said("kind", KIND), said("apiVersion", API_VERSION));
        if (kind.as_str(), version.as_str()) != (KIND, API_VERSION) {
            let named = GroupVersion::parse(&version).unwrap_or_default().with_kind(&*kind);
            return Err(match kubelith_catalog::builtin().kind_schema(&named) {
                Some(_) => format!("converting ({}.{kind}) to (v1alpha1.{KIND}): unknown conversion", named.version),
                None => format!("no kind \"{kind}\" is registered for version \"{version}\" in scheme \"{SCHEME}\""),
            });
        }
        let status = document.get("status").filter(|status| !status.is_null());
        let at = |key: &str| status.and_then(|status| status.get(key)).filter(|value| !value.is_null());
        let wrong = |value: &Value, field: &str, go: &str| {
            format!("json: cannot unmarshal {} into Go struct field {field} of type {go}", json_kind(value))
        };
        if let Some(status) = status.filter(|status| status.as_object().is_none()) {
            return Err(wrong(status, "ImageReview.status", "v1alpha1.ImageReviewStatus"));
        }
        let mut answer = Answer::default();
        if let Some(allowed) = at("allowed") {
            let field = "ImageReviewStatus.status.allowed";
            answer.allowed = allowed.as_bool().ok_or_else(|| wrong(allowed, field, "bool"))?;
        }
        if let Some(reason) = at("reason") {
            let field = "ImageReviewStatus.status.reason";
            answer.reason = reason.as_str().ok_or_else(|| wrong(reason, field, "string"))?.to_owned();
        }
        if let Some(annotations) = at("auditAnnotations") {
            let field = "ImageReviewStatus.status.auditAnnotations";
            let map = annotations.as_object().ok_or_else(|| wrong(annotations, field, "map[string]string"))?;
            for (key, value) in map.iter() {
                let text = value.as_str().ok_or_else(|| wrong(value, field, "string"))?;
                answer.annotations.push((key.to_owned(), text.to_owned()));
            }
        }
        Ok(answer)
    }
}

const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;

/// A length of time in the configuration: 0 stands for `usual`, -1 for none at all.
struct Setting {
    key: &'static str,
    /// In nanoseconds, as the rest.
    unit: i64,
    min: i64,
    max: i64,
    usual: i64,
}

const BACKOFF: Setting =
    Setting { key: "retryBackoff", unit: MILLISECOND, min: 1, max: 300 * SECOND, usual: 500 * MILLISECOND };
const ALLOW_TTL: Setting =
    Setting { key: "allowTTL", unit: SECOND, min: SECOND, max: 1800 * SECOND, usual: 300 * SECOND };
const DENY_TTL: Setting = Setting { key: "denyTTL", unit: SECOND, min: SECOND, max: 1800 * SECOND, usual: 30 * SECOND };

impl Setting {
    fn read(&self, config: &Value) -> Result<Duration, String> {
        let given = match config.get(self.key).filter(|value| !value.is_null()) {
            None => 0,
            Some(value) => value.as_i64().ok_or_else(|| mistyped(value, self.key, "time.Duration"))?,
        };
        let nanos = match given {
            -1 => 0,
            0 => self.usual,
            given => {
                let nanos = given.saturating_mul(self.unit);
                if !(self.min..=self.max).contains(&nanos) {
                    let [min, max, got] = [self.min, self.max, nanos].map(Shown::from_nanos);
                    return Err(format!("valid value is between {min} and {max}, got {got}"));
                }
                nanos
            }
        };
        Ok(Duration::from_nanos(nanos.unsigned_abs()))
    }
}

fn mistyped(value: &Value, key: &str, go: &str) -> String {
    format!(
        "json: cannot unmarshal {} into Go struct field imagePolicyWebhookConfig.imagePolicy.{key} of type {go}",
        json_kind(value)
    )
}

impl Settings {
    /// Reads `imagePolicy` of a file that has no version.
    fn read(text: &[u8]) -> Result<Settings, String> {
        let document = yaml::read(text).map_err(|e| e.to_string())?.value;
        let nothing = Value::object();
        let config = document.get("imagePolicy").filter(|config| !config.is_null()).unwrap_or(&nothing);
        let given = |key: &str| config.get(key).filter(|value| !value.is_null());
        let kubeconfig = match given("kubeConfigFile") {
            None => "",
            Some(value) => value.as_str().ok_or_else(|| mistyped(value, "kubeConfigFile", "string"))?,
        };
        let default_allow = match given("defaultAllow") {
            None => false,
            Some(value) => value.as_bool().ok_or_else(|| mistyped(value, "defaultAllow", "bool"))?,
        };
        let (backoff, allow_ttl, deny_ttl) = (BACKOFF.read(config)?, ALLOW_TTL.read(config)?, DENY_TTL.read(config)?);
        if kubeconfig.is_empty() {
            return Err("invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER \
                        environment variable"
                .to_owned());
        }
        Ok(Settings { kubeconfig: kubeconfig.to_owned(), allow_ttl, deny_ttl, backoff, default_allow })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_limits_and_usual_values() {
        let read = |rest: &str| Settings::read(format!("imagePolicy: {{kubeConfigFile: f{rest}}}").as_bytes());
        let usual = read("").unwrap();
        let millis = [usual.backoff, usual.allow_ttl, usual.deny_ttl].map(|time| time.as_millis());
        assert_eq!((millis, usual.default_allow), ([500, 300_000, 30_000], false));
        let own = read(", allowTTL: 7, denyTTL: -1, retryBackoff: 20, defaultAllow: true").unwrap();
        let millis = [own.backoff, own.allow_ttl, own.deny_ttl].map(|time| time.as_millis());
        assert_eq!((millis, own.default_allow), ([20, 7_000, 0], true));
        for (rest, why) in [
            (", allowTTL: 3600", "valid value is between 1s and 30m0s, got 1h0m0s"),
            (", denyTTL: -2", "valid value is between 1s and 30m0s, got -2s"),
            (", retryBackoff: 600000", "valid value is between 1ns and 5m0s, got 10m0s"),
            (
                ", allowTTL: 5s",
                "json: cannot unmarshal string into Go struct field imagePolicyWebhookConfig.imagePolicy.allowTTL of type \
                 time.Duration",
            ),
        ] {
            assert_eq!(read(rest).unwrap_err(), why);
        }
        assert!(Settings::read(b"imagePolicy: {}").unwrap_err().starts_with("invalid configuration: no configuration"));
    }

    #[test]
    fn answers_are_reviews() {
        let read = |text: &str| Answer::read(&json::parse(text.as_bytes()).unwrap());
        let yes = read(r#"{"status":{"allowed":true,"auditAnnotations":{"a":"b"}}}"#).unwrap();
        assert_eq!((yes.allowed, yes.annotations), (true, vec![("a".to_owned(), "b".to_owned())]));
        assert_eq!(read("{}").unwrap(), Answer::default());
        for (text, why) in [
            (
                r#"{"apiVersion":"v1","kind":"Pod"}"#,
                "converting (v1.Pod) to (v1alpha1.ImageReview): unknown conversion",
            ),
            (
                r#"{"apiVersion":"a/v1","kind":"B"}"#,
                "no kind \"B\" is registered for version \"a/v1\" in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
            ),
            (
                r#"{"status":{"allowed":"yes"}}"#,
                "json: cannot unmarshal string into Go struct field ImageReviewStatus.status.allowed of type bool",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), why);
        }
    }
}
