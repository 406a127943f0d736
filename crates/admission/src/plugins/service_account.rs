//! ServiceAccount: every pod runs as an account of its namespace and, unless it says no, finds that account's token at
//! the usual place.

use super::{list, list_mut};
use crate::plugin::{Plugin, Verdict};
use kubelith_meta::random::MadeUp;
use kubelith_meta::text::parse_bool;
use kubelith_meta::{GroupResource, Map, Status, Str, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::{Operation, Request};
use kubelith_registry::objects::{CachedObject, Collection, parse};
use memchr::memmem::Finder;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

const DEFAULT: &str = "default";
const NAME: [&str; 2] = ["spec", "serviceAccountName"];
const PULL_SECRETS: [&str; 2] = ["spec", "imagePullSecrets"];
const VOLUMES: [&str; 2] = ["spec", "volumes"];
const MIRROR: &str = "kubernetes.io/config.mirror";
const ENFORCE_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const VOLUME_PREFIX: &str = "kube-api-access-";
/// An hour, and the seconds by which kubelets know that nobody chose it.
const TOKEN_SECONDS: i64 = 3607;
/// A controller makes the default account of a new namespace: it gets so many chances, this far apart.
const DEFAULT_ATTEMPTS: usize = 10;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(150);

pub struct ServiceAccount {
    accounts: Collection,
    made_up: MadeUp,
}

impl ServiceAccount {
    pub fn new(objects: &Arc<Objects>, made_up: MadeUp) -> ServiceAccount {
        ServiceAccount { accounts: objects.of("", "serviceaccounts"), made_up }
    }

    /// What the watch cache has of the pod's account.
    fn cached(&self, request: Request<'_>, pod: &Value) -> Option<Value> {
        let account = self.accounts.cached(&request.call.namespace, pod.str_at(&NAME));
        account.and_then(|account| read(&account))
    }

    async fn account(&self, namespace: &str, name: &str) -> Result<Value, Status> {
        let attempts = if name == DEFAULT { DEFAULT_ATTEMPTS } else { 1 };
        for attempt in 0..attempts {
            if attempt > 0 {
                tokio::time::sleep(BETWEEN_ATTEMPTS).await;
            }
            let found = self.accounts.find(namespace, name).await?;
            if let Some(account) = found.and_then(|account| read(&account)) {
                return Ok(account);
            }
        }
        // The singular is the reference's.
        Err(Status::not_found(&GroupResource::new("", "serviceaccount"), name))
    }

    async fn look_up(&self, request: Request<'_>, pod: &Value) -> Result<Value, Status> {
        let namespace = &request.call.namespace;
        let name = pod.str_at(&NAME);
        let refuse = |why: Status| {
            request.forbidden(pod, format!("error looking up service account {namespace}/{name}: {}", why.message))
        };
        self.account(namespace, name).await.map_err(refuse)
    }
}

/// What accounts that have something for pods mention. Most do not, and seeing that costs less than reading one.
static WORDS: LazyLock<[Finder<'static>; 3]> = LazyLock::new(|| {
    [ENFORCE_MOUNTABLE_SECRETS, "\"automountServiceAccountToken\"", "\"imagePullSecrets\""].map(Finder::new)
});

/// Whether an account can be read and mentions none of the words.
fn lacks(account: &CachedObject, words: &[Finder<'_>]) -> bool {
    let json = account.json();
    account.broken.is_none() && !json.is_empty() && words.iter().all(|word| word.find(&json).is_none())
}

/// What pods get from an account, if it can be read.
fn read(account: &CachedObject) -> Option<Value> {
    if lacks(account, &*WORDS) { Some(Value::object()) } else { parse(account) }
}

fn is_pod_create(request: Request<'_>) -> bool {
    request.operation == Operation::Create && request.is_for("", "pods")
}

/// Debuggers are added to pods that exist, and may not bring secrets that the pod could not have had.
fn is_for_ephemeral_containers(request: Request<'_>) -> bool {
    request.operation == Operation::Update
        && request.call.subresource == "ephemeralcontainers"
        && request.is_for_any_part("", "pods")
}

impl Plugin for ServiceAccount {
    fn admit<'a>(&'a self, request: Request<'a>, pod: &'a mut Value) -> Verdict<'a> {
        if !is_pod_create(request) {
            return Verdict::Idle;
        }
        if pod.meta().annotation(MIRROR).is_some() {
            return Verdict::Ready(check_mirror(request, pod));
        }
        if pod.str_at(&NAME).is_empty() {
            pod.set_at(&NAME, DEFAULT.into());
        }
        if let Some(account) = self.cached(request, pod) {
            return Verdict::Ready(complete(request, &account, &self.made_up, pod));
        }
        Verdict::pending(async move {
            let account = self.look_up(request, pod).await?;
            complete(request, &account, &self.made_up, pod)
        })
    }

    fn validate<'a>(&'a self, request: Request<'a>, pod: &'a Value) -> Verdict<'a> {
        let limit = match is_for_ephemeral_containers(request) {
            true => limit_ephemeral_secrets,
            false if is_pod_create(request) => limit_secrets,
            false => return Verdict::Idle,
        };
        if is_pod_create(request) && pod.meta().annotation(MIRROR).is_some() {
            return Verdict::Ready(check_mirror(request, pod));
        }
        if pod.str_at(&NAME).is_empty() {
            let (namespace, name) = (&request.call.namespace, pod.meta().name());
            let why = format!("no service account specified for pod {namespace}/{name}");
            return Verdict::Ready(Err(request.forbidden(pod, why)));
        }
        if let Some(account) = self.accounts.cached(&request.call.namespace, pod.str_at(&NAME)) {
            if lacks(&account, &WORDS[..1]) {
                return Verdict::PASSED;
            }
            if let Some(account) = parse(&account) {
                return Verdict::Ready(limit(request, &account, pod));
            }
        }
        Verdict::pending(async move {
            let account = self.look_up(request, pod).await?;
            limit(request, &account, pod)
        })
    }
}

/// Gives the pod what its account has for it.
fn complete(request: Request<'_>, account: &Value, made_up: &MadeUp, pod: &mut Value) -> Result<(), Status> {
    if automounts(account, pod) {
        mount_token(&request.call.namespace, made_up, pod);
    }
    let secrets = list(account, &["imagePullSecrets"]);
    if list(pod, &PULL_SECRETS).is_empty() && !secrets.is_empty() {
        pod.set_at(&PULL_SECRETS, Value::Array(secrets.to_vec()));
    }
    limit_secrets(request, account, pod)
}

fn limit_secrets(request: Request<'_>, account: &Value, pod: &Value) -> Result<(), Status> {
    if enforces_mountable_secrets(account) {
        secrets::limit(account, pod).map_err(|why| request.forbidden(pod, why))?;
    }
    Ok(())
}

fn limit_ephemeral_secrets(_: Request<'_>, account: &Value, pod: &Value) -> Result<(), Status> {
    if enforces_mountable_secrets(account) {
        // The reference has no kind of refusal for these: clients see an error of the server.
        secrets::limit_ephemeral(account, pod).map_err(Status::unknown)?;
    }
    Ok(())
}

/// A mirror pod only shows what a kubelet runs from a file: it has no account and no secrets.
fn check_mirror(request: Request<'_>, pod: &Value) -> Result<(), Status> {
    if !pod.str_at(&NAME).is_empty() {
        return Err(request.forbidden(pod, "a mirror pod may not reference service accounts"));
    }
    if secrets::any(pod) {
        return Err(request.forbidden(pod, "a mirror pod may not reference secrets"));
    }
    let sources = list(pod, &VOLUMES).iter().flat_map(|volume| list(volume, &["projected", "sources"]));
    if sources.into_iter().any(|source| source.get("serviceAccountToken").is_some()) {
        let why = "a mirror pod may not use ServiceAccountToken volume projections";
        return Err(request.forbidden(pod, why));
    }
    Ok(())
}

fn automounts(account: &Value, pod: &Value) -> bool {
    let of_pod = pod.at(&["spec", "automountServiceAccountToken"]).and_then(Value::as_bool);
    of_pod.or_else(|| account.get("automountServiceAccountToken").and_then(Value::as_bool)).unwrap_or(true)
}

fn enforces_mountable_secrets(account: &Value) -> bool {
    account.meta().annotation(ENFORCE_MOUNTABLE_SECRETS).and_then(parse_bool) == Some(true)
}

fn mount_token(namespace: &str, made_up: &MadeUp, pod: &mut Value) {
    let existing = list(pod, &VOLUMES).iter().map(|v| v.str_at(&["name"])).find(|n| n.starts_with(VOLUME_PREFIX));
    let existing = existing.map(Str::from);
    let new =
        || made_up.generate_name(VOLUME_PREFIX, &["volume", namespace, pod.meta().name(), pod.meta().generate_name()]);
    let name = existing.clone().unwrap_or_else(new);
    let mut needed = false;
    let mut mount = Map::with_capacity(3);
    mount.insert("mountPath", MOUNT_PATH);
    mount.insert("name", name.clone());
    mount.insert("readOnly", true);
    // All containers have the same one, which lacks nothing.
    mount.seal();
    for key in ["initContainers", "containers"] {
        let containers = pod.at_mut(&["spec", key]).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let mounts = list(container, &["volumeMounts"]);
            if mounts.iter().any(|mount| mount.str_at(&["mountPath"]) == MOUNT_PATH) {
                continue;
            }
            list_mut(container, &["volumeMounts"]).push(Value::Object(mount.clone()));
            needed = true;
        }
    }
    if existing.is_none() && needed {
        // Complete and canonical, and so it may be shared by all pods.
        static TOKEN: LazyLock<Map> = LazyLock::new(|| {
            let mut volume = std::mem::take(token_volume().make_object());
            volume.seal();
            volume
        });
        let mut volume = Map::with_capacity(2);
        volume.insert("name", name);
        volume.insert("projected", Value::Object(TOKEN.clone()));
        list_mut(pod, &VOLUMES).push(Value::Object(volume));
    }
}

/// The token, the authority to trust and the namespace, as client libraries expect them.
fn token_volume() -> Value {
    let mut token = Value::from([("path", "token")]);
    token.set_at(&["expirationSeconds"], Value::Int(TOKEN_SECONDS));
    let mut authority = Value::from([("name", "kube-root-ca.crt")]);
    authority.set_at(&["items"], Value::Array(vec![Value::from([("key", "ca.crt"), ("path", "ca.crt")])]));
    let mut namespace = Value::from([("path", "namespace")]);
    namespace.set_at(&["fieldRef"], Value::from([("apiVersion", "v1"), ("fieldPath", "metadata.namespace")]));
    let namespace = Value::from([("items", Value::Array(vec![namespace]))]);
    let sources = vec![
        Value::from([("serviceAccountToken", token)]),
        Value::from([("configMap", authority)]),
        Value::from([("downwardAPI", namespace)]),
    ];
    let mut volume = Value::from([("sources", Value::Array(sources))]);
    volume.set_at(&["defaultMode"], Value::Int(0o644));
    volume
}

/// Which secrets a pod refers to.
pub(super) mod secrets {
    use super::{PULL_SECRETS, VOLUMES, list};
    use kubelith_meta::Value;

    const CONTAINERS: [(&str, &str); 2] = [("init container", "initContainers"), ("container", "containers")];

    /// Secrets of volumes that name one in a field of their own.
    const VOLUME_SECRETS: [[&str; 3]; 8] = [
        ["azureFile", "secretName", ""],
        ["cephfs", "secretRef", "name"],
        ["cinder", "secretRef", "name"],
        ["flexVolume", "secretRef", "name"],
        ["rbd", "secretRef", "name"],
        ["scaleIO", "secretRef", "name"],
        ["iscsi", "secretRef", "name"],
        ["csi", "nodePublishSecretRef", "name"],
    ];

    pub fn any(pod: &Value) -> bool {
        let filled = |value: &Value, path: &[&str]| !value.str_at(path).is_empty();
        let of_volume = |volume: &Value| {
            volume.get("secret").is_some()
                || filled(volume, &["storageos", "secretRef", "name"])
                || list(volume, &["projected", "sources"]).iter().any(|source| source.get("secret").is_some())
                || VOLUME_SECRETS.iter().any(|[source, key, name]| {
                    let path = [*source, *key, *name];
                    filled(volume, if name.is_empty() { &path[..2] } else { &path })
                })
        };
        let of_container = |container: &Value| {
            list(container, &["envFrom"]).iter().any(|from| from.get("secretRef").is_some())
                || list(container, &["env"]).iter().any(|env| env.at(&["valueFrom", "secretKeyRef"]).is_some())
        };
        let kinds = ["initContainers", "containers", "ephemeralContainers"];
        !list(pod, &PULL_SECRETS).is_empty()
            || kinds.iter().any(|kind| list(pod, &["spec", kind]).iter().any(of_container))
            || list(pod, &VOLUMES).iter().any(of_volume)
    }

    /// Refuses secrets that the account does not list.
    pub fn limit(account: &Value, pod: &Value) -> Result<(), String> {
        let owner = account.meta().name();
        let lists = |key: &str, name: &str| list(account, &[key]).iter().any(|s| s.str_at(&["name"]) == name);
        for volume in list(pod, &VOLUMES).iter().filter(|volume| volume.get("secret").is_some()) {
            let name = volume.str_at(&["secret", "secretName"]);
            if !lists("secrets", name) {
                return Err(format!(
                    "volume with secret.secretName=\"{name}\" is not allowed because service account {owner} does not reference that secret"
                ));
            }
        }
        for (word, key) in CONTAINERS {
            limit_containers(account, word, list(pod, &["spec", key]))?;
        }
        for (i, secret) in list(pod, &PULL_SECRETS).iter().enumerate() {
            let name = secret.str_at(&["name"]);
            if !lists("imagePullSecrets", name) {
                return Err(format!(
                    "imagePullSecrets[{i}].name=\"{name}\" is not allowed because service account {owner} does not reference that imagePullSecret"
                ));
            }
        }
        Ok(())
    }

    /// The same for the containers that are added to a running pod.
    pub fn limit_ephemeral(account: &Value, pod: &Value) -> Result<(), String> {
        limit_containers(account, "ephemeral container", list(pod, &["spec", "ephemeralContainers"]))
    }

    fn limit_containers(account: &Value, word: &str, containers: &[Value]) -> Result<(), String> {
        let owner = account.meta().name();
        for container in containers {
            container_secrets(container, |name, how| {
                if list(account, &["secrets"]).iter().any(|secret| secret.str_at(&["name"]) == name) {
                    return Ok(());
                }
                let of = container.str_at(&["name"]);
                Err(format!(
                    "{word} {of} with {how} referencing secret.secretName=\"{name}\" is not allowed because service account {owner} does not reference that secret"
                ))
            })?;
        }
        Ok(())
    }

    fn container_secrets(
        container: &Value,
        mut check: impl FnMut(&str, &str) -> Result<(), String>,
    ) -> Result<(), String> {
        for env in list(container, &["env"]) {
            if let Some(secret) = env.at(&["valueFrom", "secretKeyRef"]) {
                check(secret.str_at(&["name"]), &format!("envVar {}", env.str_at(&["name"])))?;
            }
        }
        for from in list(container, &["envFrom"]) {
            if let Some(secret) = from.get("secretRef") {
                check(secret.str_at(&["name"]), "envFrom")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        kubelith_codec::json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn debuggers_bring_no_secrets_of_others() {
        let account = value(r#"{"metadata":{"name":"a"},"secrets":[{"name":"mine"}]}"#);
        let refused = |how: &str| {
            format!(
                "ephemeral container d with {how} referencing secret.secretName=\"theirs\" is not allowed because service \
                 account a does not reference that secret"
            )
        };
        let cases = [
            (r#"{"name":"d","envFrom":[{"secretRef":{"name":"mine"}}]}"#, Ok(())),
            (r#"{"name":"d","envFrom":[{"secretRef":{"name":"theirs"}}]}"#, Err(refused("envFrom"))),
            (
                r#"{"name":"d","env":[{"name":"E","valueFrom":{"secretKeyRef":{"name":"theirs"}}}]}"#,
                Err(refused("envVar E")),
            ),
        ];
        for (container, expected) in cases {
            let pod = value(&format!(r#"{{"spec":{{"ephemeralContainers":[{container}]}}}}"#));
            assert_eq!(secrets::limit_ephemeral(&account, &pod), expected, "{container}");
        }
    }
}
