//! Bindings: a pod is given to a node. `pods/binding` names the pod in the URL, `bindings` in the object.

use super::conditions::set_pod_condition;
use super::{Deed, Pods};
use futures::future::BoxFuture;
use kubelith_handlers::api::{Action, ActionCall};
use kubelith_handlers::run_to_end;
use kubelith_http::Response;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::{GroupResource, GroupVersionKind, Map, Status, Str, Time, Value};
use kubelith_registry::Preconditions;
use kubelith_rules::Env;
use std::sync::Arc;

pub struct Bind {
    pub pods: Pods,
    pub env: Arc<Env>,
}

impl Action for Bind {
    fn run(&self, mut request: ActionCall) -> BoxFuture<'static, Result<Response, Status>> {
        let (pods, env) = (self.pods.clone(), self.env.clone());
        Box::pin(async move {
            let kind = GroupVersionKind::new("", "v1", "Binding");
            let mut deed = Deed::read(&mut request, &pods, std::slice::from_ref(&kind)).await?;
            if request.info.subresource.is_empty() {
                crate::actions::wipe_system_fields(&mut deed.object);
            }
            let late = request.request.context().late.clone();
            run_to_end(late, async move {
                bind(&pods, &env, &request, deed).await?;
                Ok(request.status(&Status::success(201)))
            })
            .await
        })
    }
}

async fn bind(pods: &Pods, env: &Env, request: &ActionCall, mut deed: Deed) -> Result<(), Status> {
    deed.admit(pods, request).await?;
    deed.check_name()?;
    let errors = validate(&deed.object);
    if !errors.is_empty() {
        return Err(Status::unknown(errors.to_string()));
    }
    deed.validate(pods, request).await?;
    let text = |key: &str| Some(deed.object.str_at(&["metadata", key])).filter(|t| !t.is_empty()).map(Str::from);
    let preconditions = Preconditions { uid: text("uid"), resource_version: text("resourceVersion") };
    let binding = &deed.object;
    let now = pods.clock.now();
    let mut change = |pod: &mut Value| assign(env, pod, binding, now);
    pods.rewrite(&deed.call, &preconditions, &mut change).await.map(drop)
}

fn validate(binding: &Value) -> ErrorList {
    let mut errors = ErrorList::default();
    let target = Path::new("target");
    let kind = binding.str_at(&["target", "kind"]);
    if !matches!(kind, "" | "Node") {
        errors.push(Error::not_supported(&target.child("kind"), kind, ["Node", "<empty>"]));
    }
    if binding.str_at(&["target", "name"]).is_empty() {
        errors.push(Error::required(&target.child("name"), ""));
    }
    errors
}

/// Gives `pod` to the node of `binding`, with the binding's labels and annotations.
fn assign(env: &Env, pod: &mut Value, binding: &Value, now: Time) -> Result<(), Status> {
    let name = pod.str_at(&["metadata", "name"]);
    let refuse = |why: String| Err(Status::conflict(&GroupResource::new("", "pods/binding"), name, why));
    if pod.meta().is_being_deleted() {
        return refuse(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let node = pod.str_at(&["spec", "nodeName"]);
    if !node.is_empty() {
        return refuse(format!("pod {name} is already assigned to node {}", kubelith_meta::text::quote(node)));
    }
    if pod.at(&["spec", "schedulingGates"]).is_some_and(|gates| !gates.is_empty()) {
        return refuse(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    pod.set_at(&["spec", "nodeName"], binding.str_at(&["target", "name"]).into());
    if env.features.clears_nomination {
        pod.remove_at(&["status", "nominatedNodeName"]);
    }
    for key in ["annotations", "labels"] {
        let added = binding.at(&["metadata", key]).and_then(Value::as_object);
        for (name, value) in added.into_iter().flat_map(Map::iter) {
            pod.set_at(&["metadata", key, name], value.clone());
        }
    }
    set_pod_condition(pod, Value::from([("type", "PodScheduled"), ("status", "True")]), now);
    Ok(())
}
