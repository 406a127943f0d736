//! Admission webhooks that the test answers itself: on a port of loopback, with the server's certificate, so that the configuration
//! can be written without knowing either.

use crate::{Error, Kubelith, Result};
use http::StatusCode;
use http_body_util::{BodyExt, Limited};
use kubelith::plane::Plane;
use kubelith_codec::base64;
use kubelith_http::{BoxHandler, Reply, Request, Response, respond};
use kubelith_listen::Stop;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Of a review, which has an object twice at most; no object is larger than a few megabytes.
const MAX_REVIEW: usize = 32 << 20;
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// Which requests a test wants to be asked about.
#[derive(Debug, Clone)]
pub struct Webhook(Told);

#[derive(Debug, Clone)]
enum Told {
    /// The kind of its configuration, and what that has as its one webhook.
    One(&'static str, Value),
    /// A file with configurations, or a folder of them.
    At(PathBuf),
    Text(String),
}

/// What the test is asked.
#[derive(Debug, Clone)]
pub struct Review {
    /// Of the URL: what `clientConfig.service.path` says, or the name of the webhook.
    pub path: String,
    /// `request` of the AdmissionReview: `operation`, `object`, `oldObject`, `userInfo` and so on.
    pub request: Value,
}

/// What the test answers.
#[derive(Debug, Clone)]
pub struct Decision(Value);

pub(crate) type Answering = Arc<dyn Fn(&Review) -> Decision + Send + Sync>;

/// Serves for as long as somebody has it: a server, or a fork of it.
pub(crate) struct Served(Stop);

impl Webhook {
    /// One that may refuse. The name needs two dots: `deny.example.com`.
    pub fn validating(name: &str) -> Webhook {
        Webhook::named("ValidatingWebhookConfiguration", name)
    }

    /// One that may change objects, too.
    pub fn mutating(name: &str) -> Webhook {
        Webhook::named("MutatingWebhookConfiguration", name)
    }

    fn named(kind: &'static str, name: &str) -> Webhook {
        let webhook = json!({"name": name, "rules": [], "sideEffects": "None", "admissionReviewVersions": ["v1"]});
        Webhook(Told::One(kind, webhook))
    }

    /// Configurations as they are shipped, in a file or in all files of a folder. Whatever they say of where their webhooks are, they
    /// are in the test.
    pub fn manifests(at: impl AsRef<Path>) -> Webhook {
        Webhook(Told::At(at.as_ref().to_owned()))
    }

    /// The same, as JSON or YAML.
    pub fn manifest(text: impl Into<String>) -> Webhook {
        Webhook(Told::Text(text.into()))
    }

    /// Asks about these operations (`CREATE`, `UPDATE`, `DELETE`, `CONNECT`, `*`) on these resources of a version (`v1`, `apps/v1`).
    /// Those of manifests have their own rules.
    #[must_use]
    pub fn on(mut self, operations: &[&str], version: &str, resources: &[&str]) -> Webhook {
        if let Told::One(_, webhook) = &mut self.0
            && let Some(rules) = webhook["rules"].as_array_mut()
        {
            let (group, version) = version.split_once('/').unwrap_or(("", version));
            let rule = json!({"operations": operations, "apiGroups": [group], "apiVersions": [version], "resources": resources});
            rules.push(rule);
        }
        self
    }

    /// Any other field of the webhook: `failurePolicy`, `objectSelector`, `matchConditions`, `timeoutSeconds`.
    #[must_use]
    pub fn with(mut self, field: &str, value: Value) -> Webhook {
        if let Told::One(_, webhook) = &mut self.0 {
            webhook[field] = value;
        }
        self
    }

    /// The configurations, with their webhooks at this server.
    fn configurations(&self, server: SocketAddr, authority: &str) -> Result<Vec<Value>> {
        let mut found = match &self.0 {
            Told::One(kind, webhook) => {
                let metadata = json!({"name": webhook["name"]});
                let version = "admissionregistration.k8s.io/v1";
                vec![json!({"apiVersion": version, "kind": kind, "metadata": metadata, "webhooks": [webhook]})]
            }
            Told::At(path) => read(&crate::builder::documents_at(path)?)?,
            Told::Text(text) => read(&crate::builder::documents(text))?,
        };
        found.retain(|object| plural(object).is_some());
        if found.is_empty() {
            return Err(Error("no configuration of webhooks was found".to_owned()));
        }
        let bundle = base64::encode(authority.as_bytes());
        for webhook in found.iter_mut().filter_map(|object| object["webhooks"].as_array_mut()).flatten() {
            let path = webhook["clientConfig"]["service"]["path"].as_str().or(webhook["name"].as_str());
            let path = path.unwrap_or_default().trim_start_matches('/').to_owned();
            webhook["clientConfig"] = json!({"url": format!("https://{server}/{path}"), "caBundle": bundle});
        }
        Ok(found)
    }
}

fn read(documents: &[String]) -> Result<Vec<Value>> {
    let one = |text: &String| {
        let document = kubelith_codec::yaml::read(text.as_bytes()).map_err(|e| Error(e.to_string()))?;
        serde_json::from_str(&kubelith_codec::json::to_string(&document.value)).map_err(|e| Error(e.to_string()))
    };
    documents.iter().map(one).collect()
}

fn plural(configuration: &Value) -> Option<&'static str> {
    match configuration["kind"].as_str()? {
        "ValidatingWebhookConfiguration" => Some("validatingwebhookconfigurations"),
        "MutatingWebhookConfiguration" => Some("mutatingwebhookconfigurations"),
        _ => None,
    }
}

impl Decision {
    pub fn allow() -> Decision {
        Decision(json!({"allowed": true}))
    }

    /// With 403, unless [`Decision::code`] says otherwise.
    pub fn deny(message: &str) -> Decision {
        Decision(json!({"allowed": false, "status": {"message": message}}))
    }

    /// Allows what these operations (JSON patch) make of the object.
    pub fn patch(operations: &Value) -> Decision {
        let patch = base64::encode(operations.to_string().as_bytes());
        Decision(json!({"allowed": true, "patchType": "JSONPatch", "patch": patch}))
    }

    #[must_use]
    pub fn code(mut self, code: u16) -> Decision {
        self.0["status"]["code"] = code.into();
        self
    }

    /// What clients are told beside the answer.
    #[must_use]
    pub fn warning(mut self, text: &str) -> Decision {
        match self.0["warnings"].as_array_mut() {
            Some(warnings) => warnings.push(text.into()),
            None => self.0["warnings"] = json!([text]),
        }
        self
    }
}

impl Served {
    /// Serves reviews beside a server. Answers where.
    pub fn start(plane: &Plane, answer: Answering) -> Result<(Served, SocketAddr)> {
        let handler = move |request: Request| {
            let answer = answer.clone();
            Reply::pending(async move { answer_to(request, &*answer).await })
        };
        let (handler, stop): (BoxHandler, Stop) = (Arc::new(handler), Stop::default());
        let address = plane.serve_beside((Ipv4Addr::LOCALHOST, 0).into(), handler, stop.clone())?;
        Ok((Served(stop), address))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.gracefully.cancel();
        self.0.now.cancel();
    }
}

async fn answer_to(request: Request, answer: &(dyn Fn(&Review) -> Decision + Send + Sync)) -> Response {
    let path = request.uri().path().trim_start_matches('/').to_owned();
    let body = match Limited::new(request.into_body(), MAX_REVIEW).collect().await {
        Ok(body) => body.to_bytes(),
        Err(why) => return respond::error_text(StatusCode::BAD_REQUEST, why),
    };
    let mut review: Value = match serde_json::from_slice(&body) {
        Ok(review) => review,
        Err(why) => return respond::error_text(StatusCode::BAD_REQUEST, why),
    };
    let (uid, version) = (review["request"]["uid"].clone(), review["apiVersion"].clone());
    let Decision(mut response) = answer(&Review { path, request: review["request"].take() });
    response["uid"] = uid;
    let answer = json!({"apiVersion": version, "kind": "AdmissionReview", "response": response});
    respond::json(StatusCode::OK, answer.to_string())
}

impl Kubelith {
    /// Serves what asks about requests, and tells the server of it.
    pub(crate) async fn add_webhook(&mut self, webhook: &Webhook, answer: Answering) -> Result<()> {
        let (served, address) = Served::start(&self.plane, answer)?;
        self.webhooks.push(Arc::new(served));
        for configuration in webhook.configurations(address, &self.plane.authority()?)? {
            let Some(plural) = plural(&configuration) else { continue };
            let made = self.post(&format!("{GROUP}/{plural}"), &configuration).await?;
            if made.code != 201 {
                return Err(Error(format!("a configuration of webhooks was refused: {}", made.body["message"])));
            }
        }
        Ok(())
    }
}
