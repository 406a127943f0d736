//! Tokens in Secrets that were made for accounts and that nobody has used for a year: first marked as invalid, and deleted
//! after another year without use.

use crate::{Context, KUBE_SYSTEM, caches};
use kubelith_auth::service_account::legacy::{INVALID_SINCE_LABEL, LAST_USED_LABEL};
use kubelith_meta::time::{Clock, Duration as Span, Time};
use kubelith_meta::{GroupVersionResource, Status, Str, Value};
use kubelith_server::controller::{Controller, Next};
use kubelith_server::loopback::{LoopbackClient, PatchType, ResourceRef};
use kubelith_store::cache::ResourceCache;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Where the server says since when it notes the use of tokens.
const TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";
const SINCE: &str = "since";
/// How long a token must be unused.
const UNUSED: Span = Span::from_secs(365 * DAY);
const DAY: i64 = 24 * 3600;
/// Between two looks at all of them.
const AGAIN: Duration = Duration::from_secs(DAY as u64);
const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";

struct Cleaner {
    client: LoopbackClient,
    accounts: Arc<ResourceCache>,
    secrets: Arc<ResourceCache>,
    pods: Arc<ResourceCache>,
    clock: Arc<dyn Clock>,
}

/// What is done about a secret.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Keep,
    Mark,
    Delete,
}

pub fn start(context: &Context) {
    let cache = |plural: &str| context.world.cache("", plural);
    let (Some(accounts), Some(secrets), Some(pods)) = (cache("serviceaccounts"), cache("secrets"), cache("pods"))
    else {
        return;
    };
    let client = context.client("legacy-service-account-token-cleaner");
    let this = Arc::new(Cleaner { client, accounts, secrets, pods, clock: context.clock.clone() });
    Controller::new("legacy-service-account-token-cleaner", move |_: Str| {
        let this = this.clone();
        async move {
            // A look that failed is not made up for: the next one comes.
            if let Err(why) = this.look().await {
                tracing::error!(err = why, "old tokens were not looked at");
            }
            Ok::<_, String>(Next::After(AGAIN))
        }
    })
    .key("all")
    .by(&context.clock)
    .start(&context.tasks);
}

fn date(time: Time) -> String {
    time.rfc3339().chars().take("2006-01-02".len()).collect()
}

fn parse_date(text: &str) -> Option<Time> {
    (text.len() == "2006-01-02".len()).then(|| Time::parse(&format!("{text}T00:00:00Z")).ok()).flatten()
}

impl Cleaner {
    async fn look(&self) -> Result<(), String> {
        let now = self.clock.now();
        let resource = GroupVersionResource::new("", "v1", "configmaps");
        let map = self.client.get(&ResourceRef::new(&resource).namespace(KUBE_SYSTEM).name(TRACKING)).await;
        let map = map.map_err(|status| status.message)?;
        let since = map.at(&["data", SINCE]).and_then(Value::as_str).ok_or("configMap does not have since label")?;
        let since = parse_date(since).ok_or_else(|| format!("error parsing trackedSince time: {since}"))?;
        // Tracking began some time on that day.
        if now.since(since + Span::from_secs(DAY)) < UNUSED {
            return Ok(());
        }
        let mut mounted = BTreeMap::new();
        let snapshot = self.secrets.snapshot();
        for secret in snapshot.range("", None).filter(|secret| caches::mentions(secret, TYPE)) {
            let Some(secret) = caches::value(secret) else { continue };
            let outcome = match verdict(&secret, now) {
                Verdict::Keep => continue,
                _ if !self.was_made_for_account(&secret) || self.is_mounted(&secret, &mut mounted) => continue,
                Verdict::Mark => self.mark(&secret, &date(now)).await,
                Verdict::Delete => self.delete(&secret).await,
            };
            if let Err(why) = outcome {
                tracing::error!(err = why.message, secret = secret.meta().name(), "cleaning up an old token");
            }
        }
        Ok(())
    }

    /// Only accounts that list a secret can have had it made for them.
    fn was_made_for_account(&self, secret: &Value) -> bool {
        let meta = secret.meta();
        let Some(name) = meta.annotation(NAME).filter(|name| !name.is_empty()) else { return false };
        let account = self.accounts.get(&format!("{}/{name}", meta.namespace())).and_then(|a| caches::value(&a));
        let same =
            |account: &Value| meta.annotation(UID).is_none_or(|uid| uid.is_empty() || uid == account.meta().uid());
        account.filter(same).is_some_and(|account| {
            list(&account, &["secrets"]).iter().any(|reference| reference.str_at(&["name"]) == meta.name())
        })
    }

    fn is_mounted(&self, secret: &Value, mounted: &mut BTreeMap<String, BTreeSet<String>>) -> bool {
        let namespace = secret.meta().namespace();
        let names = mounted.entry(namespace.to_owned()).or_insert_with(|| {
            let (prefix, snapshot) = (format!("{namespace}/"), self.pods.snapshot());
            snapshot
                .range(&prefix, None)
                .filter_map(|pod| caches::value(pod))
                .flat_map(|pod| secret_names(&pod))
                .collect()
        });
        names.contains(secret.meta().name())
    }

    async fn mark(&self, secret: &Value, today: &str) -> Result<(), Status> {
        let meta = secret.meta();
        tracing::info!(secret = meta.name(), namespace = meta.namespace(), "an unused token becomes invalid");
        let mut patch = Value::from([("apiVersion", "v1"), ("kind", "Secret")]);
        patch.meta_mut().set_name(meta.name()).set_namespace(meta.namespace());
        patch.set_at(&["metadata", "uid"], meta.uid().into());
        patch.set_at(&["metadata", "labels", INVALID_SINCE_LABEL], today.into());
        let resource = GroupVersionResource::new("", "v1", "secrets");
        let target = ResourceRef::new(&resource).namespace(meta.namespace()).name(meta.name());
        self.client.patch(&target, PatchType::Merge, &patch).await.map(drop)
    }

    async fn delete(&self, secret: &Value) -> Result<(), Status> {
        let meta = secret.meta();
        tracing::info!(secret = meta.name(), namespace = meta.namespace(), "an unused token is deleted");
        let options = Value::from([
            ("kind", Value::from("DeleteOptions")),
            ("apiVersion", "v1".into()),
            ("preconditions", Value::from([("resourceVersion", meta.resource_version())])),
        ]);
        let resource = GroupVersionResource::new("", "v1", "secrets");
        let target = ResourceRef::new(&resource).namespace(meta.namespace()).name(meta.name());
        match self.client.delete_unseen(&target, &options).await {
            Err(status) if !status.is_conflict() && !status.is_not_found() => Err(status),
            _ => Ok(()),
        }
    }
}

/// What its own age and marks say of a secret.
fn verdict(secret: &Value, now: Time) -> Verdict {
    let meta = secret.meta();
    let limit = now - UNUSED;
    let young = meta.creation_timestamp().is_none_or(|made| made >= limit);
    if secret.str_at(&["type"]) != TYPE || young || secret.at(&["metadata", "deletionTimestamp"]).is_some() {
        return Verdict::Keep;
    }
    let limit = date(limit);
    if let Some(used) = secret.at(&["metadata", "labels", LAST_USED_LABEL]).and_then(Value::as_str)
        && (parse_date(used).is_none() || *used >= *limit)
    {
        return Verdict::Keep;
    }
    let invalid = secret.str_at(&["metadata", "labels", INVALID_SINCE_LABEL]);
    match parse_date(invalid) {
        None => Verdict::Mark,
        Some(_) if *invalid >= *limit => Verdict::Keep,
        Some(_) => Verdict::Delete,
    }
}

fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    value.at(path).and_then(Value::as_array).unwrap_or_default()
}

/// The secrets that a pod uses.
fn secret_names(pod: &Value) -> Vec<String> {
    let mut names: Vec<&str> = Vec::new();
    names.extend(list(pod, &["spec", "imagePullSecrets"]).iter().map(|secret| secret.str_at(&["name"])));
    for kind in ["initContainers", "containers", "ephemeralContainers"] {
        for container in list(pod, &["spec", kind]) {
            names.extend(list(container, &["envFrom"]).iter().map(|from| from.str_at(&["secretRef", "name"])));
            names.extend(
                list(container, &["env"])
                    .iter()
                    .map(|variable| variable.str_at(&["valueFrom", "secretKeyRef", "name"])),
            );
        }
    }
    for volume in list(pod, &["spec", "volumes"]) {
        for path in [["azureFile", "secretName"], ["secret", "secretName"]] {
            names.push(volume.str_at(&path));
        }
        for source in ["cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"] {
            names.push(volume.str_at(&[source, "secretRef", "name"]));
        }
        names.push(volume.str_at(&["csi", "nodePublishSecretRef", "name"]));
        names.extend(list(volume, &["projected", "sources"]).iter().map(|source| source.str_at(&["secret", "name"])));
    }
    names.into_iter().filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;

    #[test]
    fn tokens_are_judged_by_age_and_use() {
        let now = Time::parse("2026-06-15T12:00:00Z").unwrap();
        for (made, labels, want) in [
            ("2026-01-01", "", Verdict::Keep),
            ("2025-06-15", "", Verdict::Mark),
            ("2020-01-01", "", Verdict::Mark),
            ("2020-01-01", r#""kubernetes.io/legacy-token-last-used":"2025-06-15""#, Verdict::Keep),
            ("2020-01-01", r#""kubernetes.io/legacy-token-last-used":"2025-06-14""#, Verdict::Mark),
            ("2020-01-01", r#""kubernetes.io/legacy-token-last-used":"yesterday""#, Verdict::Keep),
            ("2020-01-01", r#""kubernetes.io/legacy-token-invalid-since":"2025-06-15""#, Verdict::Keep),
            ("2020-01-01", r#""kubernetes.io/legacy-token-invalid-since":"2025-06-14""#, Verdict::Delete),
            ("2020-01-01", r#""kubernetes.io/legacy-token-invalid-since":"?""#, Verdict::Mark),
        ] {
            let text = format!(
                r#"{{"type":"{TYPE}","metadata":{{"creationTimestamp":"{made}T00:00:00Z","labels":{{{labels}}}}}}}"#
            );
            assert_eq!(verdict(&json::parse(text.as_bytes()).unwrap(), now), want, "{text}");
        }
    }

    #[test]
    fn pods_name_secrets_in_many_ways() {
        let pod = json::parse(
            br#"{"spec":{"imagePullSecrets":[{"name":"a"}],
                "containers":[{"env":[{"valueFrom":{"secretKeyRef":{"name":"b"}}},{"value":"x"}]}],
                "initContainers":[{"envFrom":[{"secretRef":{"name":"c"}}]}],
                "volumes":[{"secret":{"secretName":"d"}},{"projected":{"sources":[{"secret":{"name":"e"}}]}},
                    {"csi":{"nodePublishSecretRef":{"name":"f"}}},{"emptyDir":{}}]}}"#,
        );
        let mut names = secret_names(&pod.unwrap());
        names.sort();
        assert_eq!(names, ["a", "b", "c", "d", "e", "f"]);
    }
}
