//! The status of ValidatingAdmissionPolicies: what is wrong with their expressions, were the objects that they look at of the
//! types that their rules name. It is a help for authors; what a policy does is not changed by it.

mod check;
mod kinds;
mod schema;

use crate::world::World;
use crate::{Context, caches};
use check::{Policy, Types};
use kubelith_cel::declared::Declared;
use kubelith_codec::json;
use kubelith_meta::time::Clock;
use kubelith_meta::{GroupVersion, GroupVersionResource, Status, Str, Value};
use kubelith_server::controller::{Controller, Next};
use kubelith_server::loopback::{LoopbackClient, PatchType, ResourceRef};
use kubelith_store::cache::ResourceCache;
use std::collections::BTreeMap;
use std::sync::Arc;

const WORKERS: usize = 5;
const MANAGER: &str = "validatingadmissionpolicy-status";
const GROUP: &str = "admissionregistration.k8s.io";
const PLURAL: &str = "validatingadmissionpolicies";

struct Policies {
    client: LoopbackClient,
    policies: Arc<ResourceCache>,
    world: Arc<dyn World>,
    clock: Arc<dyn Clock>,
}

/// A kind in one version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct VersionedKind {
    group: Str,
    version: Str,
    kind: Str,
}

impl std::fmt::Display for VersionedKind {
    /// As Go prints it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

pub fn start(context: &Context) {
    let Some(policies) = context.world.cache(GROUP, PLURAL) else { return };
    let this = Arc::new(Policies {
        client: context.client("validatingadmissionpolicy-status-controller"),
        policies: policies.clone(),
        world: context.world.clone(),
        clock: context.clock.clone(),
    });
    Controller::new(MANAGER, move |name: Str| {
        let this = this.clone();
        async move { this.reconcile(&name).await.map_err(|status| status.message) }
    })
    .watches(&policies, |change| if change.is_deletion() { Vec::new() } else { vec![change.key()] })
    .workers(WORKERS)
    .metrics(&context.metrics)
    .start(&context.tasks);
}

impl Policies {
    async fn reconcile(&self, name: &str) -> Result<Next, Status> {
        let Some(policy) = self.policies.get(name).and_then(|p| caches::value(&p)) else { return Ok(Next::Done) };
        let generation = policy.meta().generation();
        let observed = policy.at(&["status", "observedGeneration"]).and_then(Value::as_i64).unwrap_or(0);
        if generation <= observed {
            return Ok(Next::Done);
        }
        let warnings = self.check(&policy).await;
        let warnings = warnings
            .into_iter()
            .map(|(field, warning)| Value::from([("fieldRef", Value::from(field)), ("warning", Value::from(warning))]));
        let warnings: Vec<Value> = warnings.collect();
        let mut checked = Value::object();
        if !warnings.is_empty() {
            checked.set_at(&["expressionWarnings"], Value::Array(warnings));
        }
        let mut applied =
            Value::from([("kind", "ValidatingAdmissionPolicy"), ("apiVersion", "admissionregistration.k8s.io/v1")]);
        applied.meta_mut().set_name(name);
        applied.set_at(&["status", "observedGeneration"], Value::Int(generation));
        applied.set_at(&["status", "typeChecking"], checked);
        let resource = GroupVersionResource::new(GROUP, "v1", PLURAL);
        let target = ResourceRef::new(&resource).name(name).subresource("status");
        let target = target.with("fieldManager", MANAGER).with("force", "true");
        match self.client.patch(&target, PatchType::Apply, &applied).await {
            Err(status) if !status.is_not_found() => Err(status),
            _ => Ok(Next::Done),
        }
    }

    /// What is wrong, by the paths of fields.
    async fn check(&self, policy: &Value) -> Vec<(String, String)> {
        let discovered = self.world.discover();
        let mut documents = Documents { client: &self.client, read: BTreeMap::new() };
        // Names of types are shown, and are to differ from all others.
        let unique = self.clock.now().subsec_nanos();
        let mut types = Types { objects: Vec::new(), params: None };
        for kind in kinds::to_check(policy, &discovered.resources) {
            if let Some(found) = documents.declared(&kind, unique).await {
                types.objects.push((kind, found));
            }
        }
        if let Some(kind) = kinds::of_params(policy) {
            types.params = Some(documents.declared(&kind, unique).await.flatten());
        }
        Policy::new(policy).check(&types)
    }
}

/// OpenAPI documents of group versions, each read once.
struct Documents<'a> {
    client: &'a LoopbackClient,
    read: BTreeMap<GroupVersion, Option<Value>>,
}

impl Documents<'_> {
    /// The type of a kind, if it has a schema: `Some(None)` for a schema that says nothing.
    async fn declared(&mut self, kind: &VersionedKind, unique: u32) -> Option<Option<Declared>> {
        let version = GroupVersion::new(kind.group.clone(), kind.version.clone());
        if !self.read.contains_key(&version) {
            let document = self.document(&version).await;
            self.read.insert(version.clone(), document);
        }
        let document = self.read.get(&version)?.as_ref()?;
        schema::declared(document, kind, &format!("{}{unique}", kind.kind))
    }

    async fn document(&self, version: &GroupVersion) -> Option<Value> {
        use http_body_util::BodyExt;
        let path = match version.group.as_str() {
            "" => format!("/openapi/v3/api/{}", version.version),
            group => format!("/openapi/v3/apis/{group}/{}", version.version),
        };
        let answer = self.client.get_path(&path).await.ok().filter(|answer| answer.status().is_success())?;
        let body = answer.into_body().collect().await.ok()?.to_bytes();
        json::parse(&body).ok()
    }
}
