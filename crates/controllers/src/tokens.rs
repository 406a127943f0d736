//! Tokens of the old kind: a Secret of type `kubernetes.io/service-account-token` that names an account gets its token, and
//! goes with the account.

use crate::{Context, caches, manager_client};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use kubelith_meta::{GroupVersionResource, Status, Str, Value};
use kubelith_server::controller::{Change, Controller, Next};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use kubelith_store::cache::ResourceCache;
use std::sync::Arc;

const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";
const WORKERS: usize = 5;

/// Signs tokens that do not expire.
pub trait LegacyTokens: Send + Sync {
    /// `None` if the keys are not ours to use.
    fn sign<'a>(&'a self, account: &'a Value, secret: &'a str) -> BoxFuture<'a, Result<Option<String>, String>>;
}

struct Secrets {
    client: LoopbackClient,
    secrets: Arc<ResourceCache>,
    accounts: Arc<ResourceCache>,
    tokens: Arc<dyn LegacyTokens>,
    root_ca: Option<String>,
}

pub fn start(context: &Context) {
    let (Some(secrets), Some(accounts)) =
        (context.world.cache("", "secrets"), context.world.cache("", "serviceaccounts"))
    else {
        return;
    };
    let this = Arc::new(Secrets {
        client: manager_client(&context.client),
        secrets: secrets.clone(),
        accounts: accounts.clone(),
        tokens: context.tokens.clone(),
        root_ca: context.settings.root_ca.clone(),
    });
    let (reconcile, of_accounts) = (this.clone(), this);
    Controller::new("serviceaccount_tokens_service", move |key: Str| {
        let this = reconcile.clone();
        async move { this.reconcile(&key).await }
    })
    .watches(&secrets, keys_of_secret)
    .watches(&accounts, move |change| match change.is_deletion() {
        true => of_accounts.secrets_beside(change),
        false => Vec::new(),
    })
    .workers(WORKERS)
    .metrics(&context.metrics)
    .start(&context.tasks);
}

/// Its own key; of one that is gone, also the account that may still name it: `namespace/secret/account`.
fn keys_of_secret(change: &Change) -> Vec<Str> {
    if !caches::mentions(change.object(), TYPE) {
        return Vec::new();
    }
    if !change.is_deletion() {
        return vec![change.key()];
    }
    let account = caches::value(change.object()).and_then(|s| s.meta().annotation(NAME).map(str::to_owned));
    account.map(|account| format!("{}/{account}", change.key()).into()).into_iter().collect()
}

impl Secrets {
    /// Secrets with tokens in the namespace of an account.
    fn secrets_beside(&self, change: &Change) -> Vec<Str> {
        let Some((namespace, _)) = change.object().key.split_once('/') else { return Vec::new() };
        let (prefix, snapshot) = (format!("{namespace}/"), self.secrets.snapshot());
        let secrets = snapshot.range(&prefix, None).filter(|secret| caches::mentions(secret, TYPE));
        secrets.map(|secret| Str::from(&*secret.key)).collect()
    }

    async fn reconcile(&self, key: &str) -> Result<Next, String> {
        let parts: Vec<&str> = key.split('/').collect();
        if let [namespace, secret, account] = parts[..] {
            return self.forget(namespace, secret, account).await.map_err(|status| status.message);
        }
        let Some(secret) = self.secrets.get(key).and_then(|s| caches::value(&s)) else { return Ok(Next::Done) };
        let (name, uid) = (secret.meta().annotation(NAME).unwrap_or_default(), secret.meta().annotation(UID));
        if secret.str_at(&["type"]) != TYPE || name.is_empty() {
            return Ok(Next::Done);
        }
        let account = self.account(secret.meta().namespace(), name, uid).await.map_err(|status| status.message)?;
        match account {
            None => self.delete(&secret).await.map_err(|status| status.message),
            Some(account) => self.fill(secret, &account).await,
        }
    }

    /// The account that a secret names, if it is still the same one.
    async fn account(&self, namespace: &str, name: &str, uid: Option<&str>) -> Result<Option<Value>, Status> {
        let same = |account: &Value| uid.is_none_or(|uid| uid.is_empty() || uid == account.meta().uid());
        let cached = self.accounts.get(&format!("{namespace}/{name}")).and_then(|a| caches::value(&a));
        if let Some(account) = cached.filter(same) {
            return Ok(Some(account));
        }
        match self.client.get(&ResourceRef::new(&accounts()).namespace(namespace).name(name)).await {
            Ok(account) => Ok(Some(account).filter(same)),
            Err(status) if status.is_not_found() => Ok(None),
            Err(status) => Err(status),
        }
    }

    async fn delete(&self, secret: &Value) -> Result<Next, Status> {
        let meta = secret.meta();
        let options = Value::from([
            ("kind", Value::from("DeleteOptions")),
            ("apiVersion", "v1".into()),
            ("preconditions", Value::from([("uid", meta.uid())])),
        ]);
        let resource = secrets();
        let target = ResourceRef::new(&resource).namespace(meta.namespace()).name(meta.name());
        match self.client.delete_unseen(&target, &options).await {
            Err(status) if !status.is_not_found() && !status.is_conflict() => Err(status),
            _ => Ok(Next::Done),
        }
    }

    async fn fill(&self, mut secret: Value, account: &Value) -> Result<Next, String> {
        let (namespace, name) = (secret.meta().namespace().to_owned(), secret.meta().name().to_owned());
        let ca = self.root_ca.as_ref().map(|pem| STANDARD.encode(pem));
        let needs_ca = ca.as_ref().is_some_and(|ca| secret.str_at(&["data", "ca.crt"]) != ca);
        let needs_namespace = secret.str_at(&["data", "namespace"]).is_empty();
        let needs_token = secret.str_at(&["data", "token"]).is_empty();
        if !needs_ca && !needs_namespace && !needs_token {
            return Ok(Next::Done);
        }
        if needs_token {
            let Some(token) = self.tokens.sign(account, &name).await? else { return Ok(Next::Done) };
            secret.set_at(&["data", "token"], STANDARD.encode(token).into());
        }
        if let Some(ca) = ca.filter(|_| needs_ca) {
            secret.set_at(&["data", "ca.crt"], ca.into());
        }
        if needs_namespace {
            secret.set_at(&["data", "namespace"], STANDARD.encode(&namespace).into());
        }
        secret.meta_mut().set_annotation(NAME, account.meta().name()).set_annotation(UID, account.meta().uid());
        let resource = secrets();
        let target = ResourceRef::new(&resource).namespace(&namespace).name(&name);
        match self.client.update(&target, &secret).await {
            // Somebody changed it, which brings us here again.
            Err(status) if !status.is_conflict() && !status.is_not_found() => Err(status.message),
            _ => Ok(Next::Done),
        }
    }

    /// An account does not name a secret that is gone.
    async fn forget(&self, namespace: &str, secret: &str, account: &str) -> Result<Next, Status> {
        let cached = self.accounts.get(&format!("{namespace}/{account}")).and_then(|a| caches::value(&a));
        let Some(mut object) = cached else { return Ok(Next::Done) };
        let Some(named) = object.get_mut("secrets").and_then(Value::as_array_mut) else { return Ok(Next::Done) };
        let before = named.len();
        named.retain(|reference| reference.str_at(&["name"]) != secret);
        if named.len() == before || self.secrets.get(&format!("{namespace}/{secret}")).is_some() {
            return Ok(Next::Done);
        }
        let resource = accounts();
        let target = ResourceRef::new(&resource).namespace(namespace).name(account);
        match self.client.update(&target, &object).await {
            Err(status) if !status.is_not_found() => Err(status),
            _ => Ok(Next::Done),
        }
    }
}

fn secrets() -> GroupVersionResource {
    GroupVersionResource::new("", "v1", "secrets")
}

fn accounts() -> GroupVersionResource {
    GroupVersionResource::new("", "v1", "serviceaccounts")
}
