//! `strategy: Webhook`: another server converts objects. It is believed as little as possible: the object that comes
//! back must be the one that was sent, and of its metadata only labels and annotations count.

use super::schemas::Schemas;
use crate::Config;
use crate::metrics::{ExtensionsMetrics, Failure};
use futures::future::BoxFuture;
use kubelith_auth::hook::{self, Hook};
use kubelith_codec::json::{self, Strictness};
use kubelith_meta::field::Path;
use kubelith_meta::object::validate_annotations;
use kubelith_meta::random::MadeUp;
use kubelith_meta::selector::validate_labels;
use kubelith_meta::text::{go_type, json_kind, quote};
use kubelith_meta::{GroupVersion, GroupVersionKind, Map, Status, Str, Value};
use kubelith_registry::Conversion;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct Webhook {
    hook: Result<Arc<dyn Hook>, String>,
    timeout: Duration,
    /// Versions of ConversionReview that it understands, the best first.
    reviews: Vec<Str>,
    schemas: Arc<Schemas>,
    /// Name of the definition.
    definition: Str,
    metrics: Arc<ExtensionsMetrics>,
    made_up: MadeUp,
}

impl Webhook {
    /// `webhook` is `spec.conversion.webhook`.
    pub fn new(config: &Config, definition: &str, webhook: &Value, schemas: Arc<Schemas>) -> Webhook {
        let client = webhook.get("clientConfig").cloned().unwrap_or_default();
        let reviews = webhook.get("conversionReviewVersions").and_then(Value::as_array).unwrap_or(&[]);
        Webhook {
            hook: config.hooks.hook(&client),
            timeout: config.webhook_timeout,
            reviews: reviews.iter().filter_map(Value::as_str).map(Str::from).collect(),
            schemas,
            definition: definition.into(),
            metrics: config.metrics.clone(),
            made_up: config.definitions.made_up.clone(),
        }
    }

    /// Converts without leaving the thread, for field ownership. What may wait must be able to.
    pub fn convert_now(&self, object: Value, to: &GroupVersionKind) -> Result<Value, String> {
        use tokio::runtime::{Handle, RuntimeFlavor};
        if object.gvk() == *to {
            return Ok(object);
        }
        let handle = Handle::try_current().map_err(|e| e.to_string())?;
        if handle.runtime_flavor() == RuntimeFlavor::CurrentThread {
            return Err("a webhook cannot be waited for on the only thread".into());
        }
        tokio::task::block_in_place(|| handle.block_on(self.ask(object, to)))
    }

    async fn ask(&self, object: Value, to: &GroupVersionKind) -> Result<Value, String> {
        let from = object.gvk();
        for (direction, version) in [("to", to.group_version()), ("from", from.group_version())] {
            if version.group != self.schemas.group || self.schemas.of(&version.version).is_none() {
                return Err(format!("request to convert CR {direction} an invalid group/version: {version}"));
            }
        }
        // An object of which nothing is known but its type need not be asked about.
        if object.as_object().is_some_and(|m| m.len() == 2) {
            return super::convert::rename(object, to);
        }
        let version = self.reviews.iter().find(|v| matches!(v.as_str(), "v1" | "v1beta1"));
        let version = version.ok_or("no supported conversion review versions")?;
        let began = Instant::now();
        let outcome = self.converted(&object, to, version).await;
        let failure = outcome.as_ref().err().map(|(failure, _)| *failure);
        self.metrics.converted(&self.definition, &from.version, &to.version, failure, began.elapsed());
        outcome.map_err(|(_, why)| why)
    }

    async fn converted(
        &self,
        object: &Value,
        to: &GroupVersionKind,
        version: &str,
    ) -> Result<Value, (Failure, String)> {
        let uid = self.made_up.uid(&["review", &self.definition, object.meta().namespace(), object.meta().name()]);
        let about = format!("conversion webhook for {}", object.gvk());
        let failed = |failure: Failure, why: String| (failure, format!("{about} failed: {why}"));
        let answer = self.post(&review(version, &uid, object, to)).await.map_err(|why| failed(Failure::Call, why))?;
        is_review(&answer, version).map_err(|why| failed(Failure::Call, why))?;
        let objects = converted(&answer, version, &uid).map_err(|why| failed(Failure::MalformedResponse, why))?;
        let [converted] = objects else {
            let why = format!("{about} returned {} objects, expected 1", objects.len());
            return Err((Failure::PartialResponse, why));
        };
        check(object, converted.clone(), to, &about).map_err(|why| (Failure::InvalidObject, why))
    }

    async fn post(&self, review: &Value) -> Result<Value, String> {
        let hook = self.hook.as_ref().map_err(Clone::clone)?;
        let response = hook.post(json::to_vec(review).into(), self.timeout).await.map_err(|e| e.to_string())?;
        hook::answer(&response).map_err(|e| e.to_string())
    }
}

impl Conversion for Webhook {
    fn rewrites(&self) -> bool {
        true
    }

    fn generation(&self) -> i64 {
        self.schemas.generation
    }

    fn convert<'a>(&'a self, object: Value, to: &'a GroupVersionKind) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let mut object = self.ask(object, to).await.map_err(Status::unknown)?;
            self.schemas.tidy(&mut object, Strictness::Lenient);
            Ok(object)
        })
    }
}

fn review(version: &str, uid: &str, object: &Value, to: &GroupVersionKind) -> Value {
    let request = Value::from([
        ("desiredAPIVersion", Value::from(to.api_version())),
        ("objects", Value::Array(vec![object.clone()])),
        ("uid", Value::from(uid)),
    ]);
    Value::from([
        ("apiVersion", Value::from(format!("apiextensions.k8s.io/{version}"))),
        ("kind", Value::from("ConversionReview")),
        ("request", request),
    ])
}

/// Reviews of one version are not taken for those of the other.
fn is_review(answer: &Value, version: &str) -> Result<(), String> {
    let other = if version == "v1" { "v1beta1" } else { "v1" };
    if answer.is_of(&GroupVersionKind::new("apiextensions.k8s.io", other, "ConversionReview")) {
        return Err(format!(
            "converting ({other}.ConversionReview) to ({version}.ConversionReview): unknown conversion"
        ));
    }
    Ok(())
}

/// The objects of an answer that is one.
fn converted<'a>(answer: &'a Value, version: &str, uid: &str) -> Result<&'a [Value], String> {
    if version == "v1" {
        let (wanted, got) = (GroupVersionKind::new("apiextensions.k8s.io", "v1", "ConversionReview"), answer.gvk());
        if got != wanted {
            return Err(format!("expected webhook response of {wanted}, got {got}"));
        }
    }
    let Some(response) = answer.get("response").filter(|r| !r.is_null()) else {
        return Err("no response provided".into());
    };
    let given = response.str_at(&["uid"]);
    if version == "v1" && given != uid {
        return Err(format!("expected response.uid={}, got {}", quote(uid), quote(given)));
    }
    match (response.str_at(&["result", "status"]), response.str_at(&["result", "message"])) {
        ("Success", _) => Ok(response.get("convertedObjects").and_then(Value::as_array).unwrap_or(&[])),
        (status, "") => Err(format!("response.result.status was '{status}', not 'Success'")),
        (_, message) => Err(message.to_owned()),
    }
}

/// The object that came back, if it is the one that was sent, with the metadata it may have.
fn check(sent: &Value, mut got: Value, to: &GroupVersionKind, about: &str) -> Result<Value, String> {
    if got.as_object().is_none() {
        let kind = json_kind(&got);
        return Err(format!("json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"));
    }
    if got.str_at(&["kind"]).is_empty() {
        return Err(format!("Object 'Kind' is missing in '{}'", kubelith_meta::text::json(&got)));
    }
    let given: GroupVersion = got.gvk().group_version();
    if given != to.group_version() {
        let wanted = to.group_version();
        return Err(format!(
            "{about} returned invalid object at index 0: invalid groupVersion (expected {wanted}, received {given})"
        ));
    }
    let (kind, received) = (sent.str_at(&["kind"]), got.str_at(&["kind"]));
    if kind != received {
        return Err(format!(
            "{about} returned invalid object at index 0: invalid kind (expected {kind}, received {received})"
        ));
    }
    for (what, key) in [("name", "name"), ("namespace", "namespace"), ("UID", "uid")] {
        let (a, b) = (sent.str_at(&["metadata", key]), got.str_at(&["metadata", key]));
        if a != b {
            return Err(format!("{about} returned invalid object: must have the same {what}: {a} != {b}"));
        }
    }
    let metadata = restored(sent, &got).map_err(|why| format!("{about} returned invalid metadata: {why}"))?;
    got.set_at(&["metadata"], metadata);
    Ok(got)
}

/// The metadata that was sent, with the labels and annotations that came back.
fn restored(sent: &Value, got: &Value) -> Result<Value, String> {
    let given = match got.get("metadata") {
        None => return Err("missing metadata in converted object".into()),
        Some(Value::Object(map)) => map,
        Some(other) => return Err(format!("invalid metadata of type {} in converted object", go_type(other))),
    };
    let mut metadata = sent.get("metadata").cloned().unwrap_or_else(Value::object);
    for key in ["labels", "annotations"] {
        let Some(value) = given.get(key).filter(|v| !v.is_null()) else {
            metadata.remove_at(&[key]);
            continue;
        };
        let Some(map) = value.as_object() else {
            return Err(format!("invalid metadata.{key} of type {} in converted object", go_type(value)));
        };
        if let Some((name, other)) = map.iter().find(|(_, v)| v.as_str().is_none()) {
            let is = go_type(other);
            return Err(format!("metadata.{key}[{name}] must be a string, but is {is} in converted object"));
        }
        if metadata.get(key) != Some(value) {
            validate(key, map)?;
        }
        metadata.set_at(&[key], value.clone());
    }
    Ok(metadata)
}

fn validate(key: &str, map: &Map) -> Result<(), String> {
    let errors = match key {
        "labels" => validate_labels(map, &Path::of(&["metadata", "labels"])),
        _ => validate_annotations(map, &Path::of(&["metadata", "annotation"])),
    };
    errors.into_result().map_err(|e| e.to_string())
}
