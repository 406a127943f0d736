//! A request as rules see it: which resource in which version, in which namespace, what is done to it; and in which other
//! versions it could have come.

use kubelith_meta::{GroupResource, GroupVersionKind, GroupVersionResource, Map, Str, Value};
use kubelith_registry::admission::{Operation, Request};
use kubelith_registry::{Objects, Resource};

/// Configurations of admission are judged by none: a wrong one could not be mended.
const EXEMPT: [&str; 6] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

pub fn is_exempt(request: Request<'_>) -> bool {
    let kind = &request.call.kind;
    kind.group == "admissionregistration.k8s.io" && EXEMPT.contains(&kind.kind.as_str())
}

/// As [`is_exempt`], for policies: webhooks' configurations are judged by these.
pub fn is_exempt_from_policies(request: Request<'_>) -> bool {
    const POLICIES: [&str; 4] = [
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    ];
    let resource = &request.call.resource;
    resource.group == "admissionregistration.k8s.io" && POLICIES.contains(&resource.resource.as_str())
}

/// Questions that the cluster cannot do without: no policy is asked about them.
pub fn is_review(request: Request<'_>) -> bool {
    let resource = &request.call.resource;
    match resource.group.as_str() {
        "authentication.k8s.io" => matches!(resource.resource.as_str(), "selfsubjectreviews" | "tokenreviews"),
        "authorization.k8s.io" => matches!(
            resource.resource.as_str(),
            "localsubjectaccessreviews"
                | "selfsubjectaccessreviews"
                | "selfsubjectrulesreviews"
                | "subjectaccessreviews"
        ),
        _ => false,
    }
}

/// The operation as rules and reviews name it.
pub const fn name_of(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Connect => "CONNECT",
    }
}

pub fn is_namespace(request: Request<'_>) -> bool {
    request.is_for_any_part("", "namespaces")
}

/// A namespace counts as being in itself.
pub fn namespace_of<'a>(request: Request<'a>) -> &'a str {
    let call = request.call;
    if is_namespace(request) && call.namespace.is_empty() { &call.name } else { &call.namespace }
}

pub fn resource_of(request: Request<'_>) -> GroupVersionResource {
    let GroupResource { group, resource } = &request.call.resource;
    GroupVersionResource::new(group.clone(), request.call.version.clone(), resource.clone())
}

pub fn labels(object: &Value) -> Option<&Map> {
    object.at(&["metadata", "labels"]).and_then(Value::as_object)
}

/// A resource that a rule may name, and the kind that its requests have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub resource: GroupVersionResource,
    pub kind: GroupVersionKind,
}

impl Seen {
    /// As the request came.
    pub fn as_sent(request: Request<'_>) -> Seen {
        Seen { resource: resource_of(request), kind: request.call.kind.clone() }
    }

    /// The other versions, and groups, in which the same objects are served, in the order in which they are known.
    pub fn equivalents(request: Request<'_>, objects: &Objects) -> Vec<Seen> {
        let Some(resource) = request.resource else { return Vec::new() };
        let own = resource_of(request);
        let subresource = &request.call.subresource;
        let mut found = Vec::new();
        of_resource(resource, subresource, &mut found);
        for twin in objects.twins(resource) {
            of_resource(&twin, subresource, &mut found);
        }
        // The core group is the first that is served.
        found.sort_by_key(|seen| !seen.resource.group.is_empty());
        found.retain(|seen| seen.resource != own);
        found
    }
}

fn of_resource(resource: &Resource, subresource: &Str, found: &mut Vec<Seen>) {
    let descriptor = &resource.descriptor;
    for version in descriptor.versions.iter().filter(|v| resource.served.contains(&v.name)) {
        let kind = match version.subresource(subresource) {
            _ if subresource.is_empty() => descriptor.gvk(&version.name),
            Some(part) => part.kind.clone(),
            None => continue,
        };
        let resource =
            GroupVersionResource::new(descriptor.group.clone(), version.name.clone(), descriptor.plural.clone());
        found.push(Seen { resource, kind });
    }
}
