//! Kubelets that may have a client certificate get it without anybody's help: they are asked for by an access review.

use super::{ACCOUNT, KUBELET_CLIENT, RETRY, WORKERS, asked, check_kubelet, has_condition, resource, usages};
use crate::{Context, caches};
use kubelith_meta::{GroupVersionResource, Str, Value};
use kubelith_server::controller::{Controller, Next};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use kubelith_store::cache::ResourceCache;
use std::sync::Arc;

struct Approver {
    client: LoopbackClient,
    requests: Arc<ResourceCache>,
}

/// The right that a kubelet needs, and what is said when it has it.
const OWN: (&str, &str) =
    ("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.");
const ANY: (&str, &str) = ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.");

pub fn approve(context: &Context) {
    let Some(requests) = context.world.cache("certificates.k8s.io", "certificatesigningrequests") else { return };
    let this = Arc::new(Approver { client: context.client(ACCOUNT), requests: requests.clone() });
    Controller::new("certificate", move |name: Str| {
        let this = this.clone();
        async move { this.reconcile(&name).await }
    })
    .watches(&requests, |change| match &change.new {
        Some(new) if caches::mentions(new, KUBELET_CLIENT) => vec![change.key()],
        _ => Vec::new(),
    })
    .workers(WORKERS)
    .backoff(RETRY)
    .metrics(&context.metrics)
    .start(&context.tasks);
}

impl Approver {
    async fn reconcile(&self, name: &str) -> Result<Next, String> {
        let Some(request) = self.requests.get(name).and_then(|r| caches::value(&r)) else { return Ok(Next::Done) };
        let answered = !request.str_at(&["status", "certificate"]).is_empty()
            || has_condition(&request, "Approved")
            || has_condition(&request, "Denied");
        if answered || request.str_at(&["spec", "signerName"]) != KUBELET_CLIENT {
            return Ok(Next::Done);
        }
        let asked = asked(&request)?;
        if check_kubelet(KUBELET_CLIENT, &asked, &usages(&request)).is_err() {
            return Ok(Next::Done);
        }
        let own = asked.common_name == request.str_at(&["spec", "username"]);
        let rights: &[(&str, &str)] = if own { &[OWN, ANY] } else { &[ANY] };
        for (right, message) in rights {
            if self.may(&request, right).await? {
                return self.approve(name, request, message).await;
            }
        }
        let tried: Vec<&str> = rights.iter().map(|(right, _)| *right).collect();
        let tried = tried.join(" ");
        Err(format!("recognized csr \"{name}\" as [{tried}] but subject access review was not approved"))
    }

    async fn may(&self, request: &Value, right: &str) -> Result<bool, String> {
        let mut spec = Value::from([(
            "resourceAttributes",
            Value::from([
                ("group", "certificates.k8s.io"),
                ("resource", "certificatesigningrequests"),
                ("verb", "create"),
                ("subresource", right),
                ("version", "*"),
            ]),
        )]);
        for (from, to) in [("username", "user"), ("uid", "uid"), ("groups", "groups"), ("extra", "extra")] {
            if let Some(value) = request.at(&["spec", from]) {
                spec.set_at(&[to], value.clone());
            }
        }
        let reviews = GroupVersionResource::new("authorization.k8s.io", "v1", "subjectaccessreviews");
        let review = Value::from([("spec", spec)]);
        let answer = self.client.create(&ResourceRef::new(&reviews), &review).await.map_err(|status| status.message)?;
        Ok(answer.at(&["status", "allowed"]).and_then(Value::as_bool) == Some(true))
    }

    async fn approve(&self, name: &str, mut request: Value, message: &str) -> Result<Next, String> {
        let condition =
            Value::from([("type", "Approved"), ("status", "True"), ("reason", "AutoApproved"), ("message", message)]);
        let mut conditions =
            request.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default().to_vec();
        conditions.push(condition);
        request.set_at(&["status", "conditions"], conditions.into());
        let resource = resource();
        let target = ResourceRef::new(&resource).name(name).subresource("approval");
        match self.client.update(&target, &request).await {
            Ok(_) => Ok(Next::Done),
            Err(status) => Err(format!("error updating approval for csr: {}", status.message)),
        }
    }
}
