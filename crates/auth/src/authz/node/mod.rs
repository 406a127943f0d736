//! Kubelets may touch what the pods bound to their node need, and little else.

mod graph;
mod references;

pub use graph::{NodeGraph, NodeGraphKind};
pub use references::{CLAIMS_OF_POD, READ_OF_POD};

use super::rbac::{PolicyRule, RbacKind};
use crate::bootstrap;
use crate::error::AuthError;
use crate::traits::{Answer, Attributes, Authorizer, Decision, Operator, UserRules};
use crate::user::{GROUP_NODES, NODE_PREFIX, User};
use graph::Target;
use kubelith_features::FeatureGates;
use kubelith_meta::Str;
use kubelith_meta::text::quote;
use std::sync::{Arc, LazyLock};

/// Mode `Node`.
pub struct NodeAuthorizer {
    graph: Arc<NodeGraph>,
    /// What every node may do, for resources without a rule of their own here.
    rules: NodeRules,
    pod_certificate_request: bool,
    /// Whether nodes may read the accounts of their pods.
    reads_accounts: bool,
}

/// Read when the first node asks: most servers in tests have none.
type NodeRules = LazyLock<Vec<PolicyRule>, Box<dyn FnOnce() -> Vec<PolicyRule> + Send>>;

/// The node that `user` is: `system:node:<name>` in the group system:nodes. An empty name is a node, too, but
/// an unknown one.
pub fn node_identity(user: &User) -> Option<&str> {
    user.name.strip_prefix(NODE_PREFIX).filter(|_| user.in_group(GROUP_NODES))
}

fn common_rules(gates: &FeatureGates) -> Vec<PolicyRule> {
    let is_role = |o: &bootstrap::BootstrapObject| {
        o.kind == RbacKind::ClusterRole && o.object.str_at(&["metadata", "name"]) == "system:node"
    };
    let role = bootstrap::policy(gates).into_iter().find(is_role);
    role.map(|o| PolicyRule::list_from(&o.object)).unwrap_or_default()
}

impl NodeAuthorizer {
    /// The common rules are those of the bootstrap cluster role system:node.
    pub fn new(graph: Arc<NodeGraph>, gates: &FeatureGates) -> NodeAuthorizer {
        let in_force = gates.clone();
        let rules = NodeRules::new(Box::new(move || common_rules(&in_force)));
        let pod_certificate_request = gates.enabled("PodCertificateRequest");
        let reads_accounts =
            pod_certificate_request || gates.enabled("KubeletServiceAccountTokenForCredentialProviders");
        NodeAuthorizer { graph, rules, pod_certificate_request, reads_accounts }
    }

    pub fn decide(&self, a: &Attributes) -> Decision {
        let Some(node) = node_identity(&a.user) else { return Decision::no_opinion("") };
        if node.is_empty() {
            return Decision::no_opinion(format!("unknown node for user {}", quote(&a.user.name)));
        }
        let request = Request { node, a, graph: &self.graph };
        if a.resource_request {
            let own = match (a.group.as_str(), a.resource.as_str()) {
                ("", "secrets") => Some(request.read_namespaced(Target::Secret)),
                ("", "configmaps") => Some(request.read_namespaced(Target::ConfigMap)),
                ("", "persistentvolumeclaims") if a.subresource == "status" => {
                    Some(request.update_status(Target::PersistentVolumeClaim))
                }
                ("", "persistentvolumeclaims") => Some(request.get(Target::PersistentVolumeClaim)),
                ("", "persistentvolumes") => Some(request.get(Target::PersistentVolume)),
                ("resource.k8s.io", "resourceclaims") => Some(request.get(Target::ResourceClaim)),
                ("storage.k8s.io", "volumeattachments") => Some(request.get(Target::VolumeAttachment)),
                ("", "serviceaccounts") => Some(request.service_account(self.reads_accounts)),
                ("coordination.k8s.io", "leases") => Some(request.lease()),
                ("storage.k8s.io", "csinodes") => Some(request.csi_node()),
                ("resource.k8s.io", "resourceslices") => Some(request.resource_slice()),
                ("", "nodes") => Some(request.node()),
                ("", "pods") => Some(request.pod()),
                ("certificates.k8s.io", "podcertificaterequests") => Some(match self.pod_certificate_request {
                    true => request.pod_certificate_request(),
                    false => Decision::no_opinion(""),
                }),
                _ => None,
            };
            if let Some(decision) = own {
                return decision;
            }
        }
        match self.rules.iter().any(|rule| rule.allows(a)) {
            true => Decision::allow(""),
            false => Decision::no_opinion(""),
        }
    }
}

impl Authorizer for NodeAuthorizer {
    fn authorize<'a>(&'a self, attributes: &'a Attributes) -> Answer<'a, Decision> {
        Answer::Ready(self.decide(attributes))
    }

    fn rules_for(&self, user: &User, _namespace: &str) -> UserRules {
        if node_identity(user).is_none() {
            return UserRules::default();
        }
        let error = AuthError::new("node authorizer does not support user rule resolution");
        UserRules { incomplete: true, error: Some(error), ..UserRules::default() }
    }
}

struct Request<'a> {
    node: &'a str,
    a: &'a Attributes,
    graph: &'a NodeGraph,
}

impl Request<'_> {
    /// Allowed if the named object is related to the node.
    fn related(&self, target: Target) -> Decision {
        if self.a.name.is_empty() {
            return Decision::no_opinion("No Object name found");
        }
        if self.graph.is_related(self.node, target, &self.a.namespace, &self.a.name) {
            return Decision::allow("");
        }
        Decision::no_opinion(format!("no relationship found between node '{}' and this object", self.node))
    }

    fn read_namespaced(&self, target: Target) -> Decision {
        if !matches!(self.a.verb.as_str(), "get" | "list" | "watch") {
            return Decision::no_opinion("can only read resources of this type");
        }
        if !self.a.subresource.is_empty() {
            return Decision::no_opinion("cannot read subresource");
        }
        if self.a.namespace.is_empty() {
            return Decision::no_opinion("can only read namespaced object of this type");
        }
        self.related(target)
    }

    fn get(&self, target: Target) -> Decision {
        if self.a.verb != "get" {
            return Decision::no_opinion("can only get individual resources of this type");
        }
        if !self.a.subresource.is_empty() {
            return Decision::no_opinion("cannot get subresource");
        }
        self.related(target)
    }

    fn update_status(&self, target: Target) -> Decision {
        match self.a.verb.as_str() {
            "update" | "patch" => self.related(target),
            _ => Decision::no_opinion("can only get/update/patch this type"),
        }
    }

    fn service_account(&self, may_read: bool) -> Decision {
        if self.a.verb == "get" && self.a.subresource.is_empty() {
            return match may_read {
                true => self.read_namespaced(Target::ServiceAccount),
                false => Decision::no_opinion("not allowed to get service accounts"),
            };
        }
        if self.a.verb != "create" || self.a.name.is_empty() {
            return Decision::no_opinion("can only create tokens for individual service accounts");
        }
        if self.a.subresource != "token" {
            return Decision::no_opinion("can only create token subresource of serviceaccount");
        }
        self.related(Target::ServiceAccount)
    }

    fn lease(&self) -> Decision {
        if !self.is_single_object_verb() {
            return Decision::no_opinion("can only get, create, update, patch, or delete a node lease");
        }
        if self.a.namespace != "kube-node-lease" {
            return Decision::no_opinion("can only access leases in the \"kube-node-lease\" system namespace");
        }
        if self.a.verb != "create" && self.a.name != self.node {
            return Decision::no_opinion("can only access node lease with the same name as the requesting node");
        }
        Decision::allow("")
    }

    fn csi_node(&self) -> Decision {
        if !self.is_single_object_verb() {
            return Decision::no_opinion("can only get, create, update, patch, or delete a CSINode");
        }
        if !self.a.subresource.is_empty() {
            return Decision::no_opinion("cannot authorize CSINode subresources");
        }
        if self.a.verb != "create" && self.a.name != self.node {
            return Decision::no_opinion("can only access CSINode with the same name as the requesting node");
        }
        Decision::allow("")
    }

    fn is_single_object_verb(&self) -> bool {
        matches!(self.a.verb.as_str(), "get" | "create" | "update" | "patch" | "delete")
    }

    fn resource_slice(&self) -> Decision {
        if !self.a.subresource.is_empty() {
            return Decision::no_opinion("cannot authorize ResourceSlice subresources");
        }
        match self.a.verb.as_str() {
            "create" => Decision::allow(""),
            "get" | "update" | "patch" | "delete" => self.related(Target::ResourceSlice),
            "watch" | "list" | "deletecollection" if self.selects_own_node() => Decision::allow(""),
            "watch" | "list" | "deletecollection" => {
                Decision::no_opinion("can only list/watch/deletecollection resourceslices with nodeName field selector")
            }
            _ => Decision::no_opinion(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, deletecollection",
            ),
        }
    }

    fn pod_certificate_request(&self) -> Decision {
        if !self.a.subresource.is_empty() {
            return Decision::no_opinion("nodes may not access the status subresource of PodCertificateRequests");
        }
        match self.a.verb.as_str() {
            "create" => Decision::allow(""),
            "get" => self.related(Target::PodCertificateRequest),
            "list" | "watch" if self.selects_own_node() => Decision::allow(""),
            "list" | "watch" => {
                Decision::no_opinion("can only list/watch podcertificaterequests with nodeName field selector")
            }
            verb => Decision::no_opinion(format!("nodes may not {verb} podcertificaterequests")),
        }
    }

    fn node(&self) -> Decision {
        let node = self.node;
        match (self.a.subresource.as_str(), self.a.verb.as_str()) {
            ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Decision::allow(""),
            ("", "get" | "list" | "watch") => match self.a.name.as_str() {
                name if name == node => Decision::allow(""),
                "" => Decision::no_opinion(format!("node '{node}' cannot read all nodes, only its own Node object")),
                name => Decision::no_opinion(format!("node '{node}' cannot read '{name}', only its own Node object")),
            },
            _ => Decision::no_opinion(""),
        }
    }

    fn pod(&self) -> Decision {
        match (self.a.subresource.as_str(), self.a.verb.as_str()) {
            ("", "get") => self.get(Target::Pod),
            ("", "list" | "watch") if self.selects_own_node() => Decision::allow(""),
            ("", "list" | "watch") if !self.a.name.is_empty() => self.related(Target::Pod),
            ("", "list" | "watch") => {
                Decision::no_opinion("can only list/watch pods with spec.nodeName field selector")
            }
            // Which pods, and with what in them, is for the admission plugin NodeRestriction to say.
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => Decision::allow(""),
            _ => Decision::no_opinion(""),
        }
    }

    /// Whether the request narrows itself to objects of this node.
    fn selects_own_node(&self) -> bool {
        let is_own = |values: &[Str]| matches!(values, [one] if one == self.node);
        let requirements = &self.a.field_selector.requirements;
        requirements.iter().any(|r| r.key == "spec.nodeName" && r.operator == Operator::In && is_own(&r.values))
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
