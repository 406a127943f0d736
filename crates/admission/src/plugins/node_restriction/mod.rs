//! NodeRestriction: a kubelet changes its own node, the pods on it, and what belongs to these. Everybody else passes.

mod nodes;
mod pods;
mod tokens;

use super::certificate_subject::CertificateRequest;
use crate::plugin::{Plugin, Verdict};
use kubelith_auth::Authorizer;
use kubelith_meta::text::Quoted;
use kubelith_meta::user::User;
use kubelith_meta::{GroupResource, Status, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::{Operation, Request};
use kubelith_registry::objects::parse;
use std::sync::Arc;

const USER_PREFIX: &str = "system:node:";
const NODES: &str = "system:nodes";
const LEASES: &str = "kube-node-lease";
const KUBELET_SIGNERS: [&str; 2] = ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"];

/// Feature gates that change what is checked.
#[derive(Debug, Clone, Copy)]
pub struct Gates {
    pub recover_volume_expansion: bool,
    pub insecure_kubelet_requests: bool,
    pub audience_restriction: bool,
    pub pod_certificates: bool,
}

pub struct NodeRestriction {
    objects: Arc<Objects>,
    authorizer: Arc<dyn Authorizer>,
    gates: Gates,
}

impl NodeRestriction {
    pub fn new(objects: Arc<Objects>, authorizer: Arc<dyn Authorizer>, gates: Gates) -> NodeRestriction {
        NodeRestriction { objects, authorizer, gates }
    }
}

impl Plugin for NodeRestriction {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> Verdict<'a> {
        match node_of(&request.call.user) {
            None => Verdict::Idle,
            Some(name) => {
                let visit = Visit { plugin: self, request, object, node: name };
                Verdict::pending(async move { visit.check().await })
            }
        }
    }
}

/// The node that a user is.
fn node_of(user: &User) -> Option<&str> {
    let name = user.name.strip_prefix(USER_PREFIX)?;
    user.groups.iter().any(|group| group == NODES).then_some(name)
}

/// A request by a node.
struct Visit<'a> {
    plugin: &'a NodeRestriction,
    request: Request<'a>,
    /// Null for deletes.
    object: &'a Value,
    node: &'a str,
}

type Checked = Result<(), Status>;

impl<'a> Visit<'a> {
    async fn check(&self) -> Checked {
        if self.node.is_empty() {
            return self.refuse(format!("could not determine node from user {}", Quoted(&self.request.call.user.name)));
        }
        let call = self.request.call;
        match (call.resource.group.as_str(), call.resource.resource.as_str(), call.subresource.as_str()) {
            ("", "pods", "") => self.pod().await,
            ("", "pods", "status") => self.pod_status(),
            ("", "pods", "eviction") => self.eviction().await,
            ("", "pods", other) => self.refuse(format!(
                "unexpected pod subresource {}, only 'status' and 'eviction' are allowed",
                Quoted(other)
            )),
            ("", "nodes", _) => self.own_node(),
            ("", "persistentvolumeclaims", "status") => self.claim_status(),
            ("", "persistentvolumeclaims", _) => self.refuse("may only update PVC status"),
            ("", "serviceaccounts", "token") if self.request.operation == Operation::Create => self.token().await,
            ("certificates.k8s.io", "podcertificaterequests", _) => self.pod_certificate().await,
            ("coordination.k8s.io", "leases", _) => self.lease(),
            ("storage.k8s.io", "csinodes", _) => {
                self.named_as_the_node("can only access CSINode with the same name as the requesting node")
            }
            ("resource.k8s.io", "resourceslices", _) => self.slice(),
            ("certificates.k8s.io", "certificatesigningrequests", _) => self.signing_request(),
            _ => Ok(()),
        }
    }

    fn refuse(&self, why: impl std::fmt::Display) -> Checked {
        Err(self.request.forbidden(self.object, why))
    }

    /// The name in the URL, or of what is created.
    fn name(&self) -> &'a str {
        match self.request.call.name.as_str() {
            "" => self.object.meta().name(),
            name => name,
        }
    }

    fn old(&self) -> &'a Value {
        static NONE: Value = Value::Null;
        self.request.old.unwrap_or(&NONE)
    }

    fn operation(&self) -> &'static str {
        match self.request.operation {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }

    /// An object that must be there; `singular` is how the reference names what is missing.
    async fn find(&self, of: (&str, &str, &str), namespace: &str, name: &str) -> Result<Value, Status> {
        let (group, plural, singular) = of;
        // Of many that are deleted at once none is named, nor is the volume of a claim that has none.
        let found = match name {
            "" => None,
            name => self.plugin.objects.find(group, plural, namespace, name).await?,
        };
        let found = found.and_then(|object| parse(&object));
        found.ok_or_else(|| Status::not_found(&GroupResource::new(group, singular), name))
    }

    fn lease(&self) -> Checked {
        if self.request.call.namespace != LEASES {
            return self.refuse(format!("can only access leases in the {} system namespace", Quoted(LEASES)));
        }
        self.named_as_the_node("can only access node lease with the same name as the requesting node")
    }

    fn named_as_the_node(&self, why: &str) -> Checked {
        // On create the name is what the object says: a URL has none.
        let name = match self.request.operation {
            Operation::Create => self.object.meta().name(),
            _ => self.request.call.name.as_str(),
        };
        if name == self.node { Ok(()) } else { self.refuse(why) }
    }

    /// Other requests for slices are judged by the node authorizer, which does not see what is created, nor each of many
    /// that are deleted.
    fn slice(&self) -> Checked {
        let (slice, verb) = match self.request.operation {
            Operation::Create => (self.object, "create"),
            Operation::Delete => (self.old(), "delete"),
            _ => return Ok(()),
        };
        match slice.at(&["spec", "nodeName"]).and_then(Value::as_str) == Some(self.node) {
            true => Ok(()),
            false => {
                self.refuse(format!("can only {verb} ResourceSlice with the same NodeName as the requesting node"))
            }
        }
    }

    fn signing_request(&self) -> Checked {
        let is_kubelets = KUBELET_SIGNERS.contains(&self.object.str_at(&["spec", "signerName"]));
        let insecure = self.plugin.gates.insecure_kubelet_requests;
        if self.request.operation != Operation::Create || !is_kubelets || insecure {
            return Ok(());
        }
        let parsed = CertificateRequest::parse(self.object.str_at(&["spec", "request"]));
        match parsed {
            Err(why) => self.refuse(format!("unable to parse csr: {why}")),
            Ok(asked) if asked.common_name.strip_prefix(USER_PREFIX) == Some(self.node) => Ok(()),
            Ok(_) => self.refuse(format!("can only create a node CSR with CN={USER_PREFIX}{}", self.node)),
        }
    }
}
