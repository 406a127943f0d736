//! PodNodeSelector: where the pods of a namespace may run.

use crate::plugin::{Plugin, Verdict};
use kubelith_codec::yaml;
use kubelith_meta::{Map, Status, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::Request;
use kubelith_registry::objects::{Collection, parse};
use std::collections::BTreeMap;
use std::sync::Arc;

const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";
const CLUSTER_DEFAULT: &str = "clusterDefaultNodeSelector";
const PATH: [&str; 2] = ["spec", "nodeSelector"];

type Labels = BTreeMap<String, String>;

pub struct PodNodeSelector {
    namespaces: Collection,
    /// Selectors by namespace, and the default of the cluster.
    configured: Labels,
}

impl PodNodeSelector {
    pub fn new(objects: &Arc<Objects>, text: Option<&[u8]>) -> PodNodeSelector {
        let document = text.and_then(|text| yaml::read(text).ok()).map(|document| document.value).unwrap_or_default();
        let configured = document.get("podNodeSelectorPluginConfig").and_then(Value::as_object);
        PodNodeSelector { namespaces: objects.of("", "namespaces"), configured: labels(configured) }
    }

    fn configured(&self, key: &str) -> Result<Labels, Status> {
        selector(self.configured.get(key).map_or("", String::as_str))
    }

    /// What the namespace, or else the cluster, wants of nodes.
    async fn wanted(&self, namespace: &str) -> Result<Labels, Status> {
        let found = self.namespaces.find("", namespace).await;
        let Some(found) = found.map_err(|why| Status::internal_error(why.message))? else {
            return Err(Status::internal_error(format!("namespace {namespace} does not exist")));
        };
        match parse(&found).unwrap_or_default().meta().annotation(ANNOTATION) {
            Some(text) => selector(text),
            None => self.configured(CLUSTER_DEFAULT),
        }
    }

    async fn check(&self, request: Request<'_>, pod: &Value, wanted: &Labels) -> Result<(), Status> {
        let own = labels(pod.at(&PATH).and_then(Value::as_object));
        let refused = |why: &str| Err(Status::forbidden(&request.call.resource, pod.meta().name(), why));
        if wanted.iter().any(|(key, value)| own.get(key).is_some_and(|other| other != value)) {
            return refused("pod node label selector conflicts with its namespace node label selector");
        }
        let allowed = self.configured(&request.call.namespace)?;
        match allowed.is_empty() || own.iter().all(|(key, value)| allowed.get(key) == Some(value)) {
            true => Ok(()),
            false => refused("pod node label selector labels conflict with its namespace whitelist"),
        }
    }
}

impl Plugin for PodNodeSelector {
    fn admit<'a>(&'a self, request: Request<'a>, pod: &'a mut Value) -> Verdict<'a> {
        if !request.is_for("", "pods") {
            return Verdict::Idle;
        }
        Verdict::pending(async move {
            let wanted = self.wanted(&request.call.namespace).await?;
            for (key, value) in &wanted {
                let path = [PATH[0], PATH[1], key.as_str()];
                if pod.at(&path).is_none() {
                    pod.set_at(&path, Value::from(value.as_str()));
                }
            }
            self.check(request, pod, &wanted).await
        })
    }

    fn validate<'a>(&'a self, request: Request<'a>, pod: &'a Value) -> Verdict<'a> {
        if !request.is_for("", "pods") {
            return Verdict::Idle;
        }
        Verdict::pending(async move {
            let wanted = self.wanted(&request.call.namespace).await?;
            self.check(request, pod, &wanted).await
        })
    }
}

fn labels(map: Option<&Map>) -> Labels {
    let entries = map.into_iter().flat_map(Map::iter);
    entries.map(|(key, value)| (key.to_owned(), value.as_str().unwrap_or_default().to_owned())).collect()
}

/// Reads `key=value,…`.
fn selector(text: &str) -> Result<Labels, Status> {
    let mut found = Labels::new();
    for label in text.split(',').filter(|_| !text.is_empty()) {
        let parts: Vec<&str> = label.split('=').collect();
        let [key, value] = parts[..] else {
            return Err(Status::unknown(format!("invalid selector: [{}]", parts.join(" "))));
        };
        let (key, value) = (key.trim(), value.trim());
        let wrong =
            [kubelith_meta::names::is_qualified_name(key), kubelith_meta::names::is_label_value(value)].concat();
        if !wrong.is_empty() {
            return Err(Status::unknown(wrong.join("; ")));
        }
        found.insert(key.to_owned(), value.to_owned());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors() {
        let read = |text: &str| selector(text).map_err(|status| status.message.to_string());
        assert_eq!(read("").unwrap(), Labels::new());
        let want: Labels = [("a", "1"), ("b", "")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
        assert_eq!(read(" a = 1,b=").unwrap(), want);
        assert_eq!(read("a").unwrap_err(), "invalid selector: [a]");
        assert!(read("a b=c").is_err());
    }
}
