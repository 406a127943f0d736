//! Kinds of the smaller groups whose only behaviour is a rule or two.

use super::{Kind, pod_warnings};
use kubelith_meta::field::{Error, Path};
use kubelith_meta::names::{NameUse, ip_warnings, name_is_dns_subdomain};
use kubelith_meta::text::Quoted;
use kubelith_meta::{Map, Status, Value};
use kubelith_registry::{Call, Deletion, Generation, Part, count_change};

/// The classes that the server itself makes cannot go.
pub const PRIORITY_CLASS: Kind = Kind {
    generation: Generation::One,
    // Who deletes all of them is not held up.
    before_delete: |call, _, by| match call.name.as_str() {
        _ if by == Deletion::OfCollection => Ok(()),
        "system-node-critical" | "system-cluster-critical" => {
            let why = "this is a system priority class and cannot be deleted";
            Err(Status::forbidden(&call.resource, &call.name, why))
        }
        _ => Ok(()),
    },
    ..Kind::PLAIN
};

pub const ENDPOINT_SLICE: Kind = Kind {
    generation: Generation::ContentAndLabels,
    counts_dropped: true,
    prepare_for_create: |_, call, slice| drop_topology(call, slice, None),
    prepare_for_update: |_, call, _, slice, old| drop_topology(call, slice, Some(old)),
    warnings_on_create: |_, slice| {
        let mut warnings = Vec::new();
        if slice.str_at(&["addressType"]) == "FQDN" {
            warnings.push("spec.addressType: FQDN endpoints are deprecated".into());
        }
        warnings.extend(address_warnings(slice));
        warnings
    },
    warnings_on_update: |_, _, slice, _| address_warnings(slice),
    ..Kind::PLAIN
};

pub const INGRESS: Kind = Kind {
    generation: Generation::Spec,
    warnings_on_create: |_, ingress| {
        const ANNOTATION: &str = "kubernetes.io/ingress.class";
        let annotated = ingress.meta().annotation(ANNOTATION).is_some();
        if !annotated || ingress.at(&["spec", "ingressClassName"]).is_some() {
            return Vec::new();
        }
        let name = Quoted(ANNOTATION);
        vec![format!("annotation {name} is deprecated, please use 'spec.ingressClassName' instead")]
    },
    warnings_on_update: |_, part, ingress, _| {
        let addresses = ingress.at(&["status", "loadBalancer", "ingress"]).and_then(Value::as_array);
        let addresses = if part == Part::Status { addresses.unwrap_or(&[]) } else { &[] };
        let named = addresses.iter().enumerate().map(|(i, a)| (format!("status.loadBalancer.ingress[{i}]"), a));
        named.flat_map(|(path, a)| ip_warnings(a.str_at(&["ip"]), &Path::new(&path))).collect()
    },
    ..Kind::PLAIN
};

pub const STORAGE_CLASS: Kind = Kind {
    delete_returns_object: true,
    warnings_on_create: |_, class| storage_class_warnings(class),
    warnings_on_update: |_, _, class, _| storage_class_warnings(class),
    ..Kind::PLAIN
};

pub const CSI_DRIVER: Kind = Kind {
    generation: Generation::SpecChanges,
    updates_unconditionally: false,
    delete_returns_object: true,
    warnings_on_create: |_, driver| token_warnings(driver, None),
    warnings_on_update: |_, _, driver, old| token_warnings(driver, Some(old)),
    ..Kind::PLAIN
};

pub const CSI_STORAGE_CAPACITY: Kind = Kind {
    updates_unconditionally: false,
    warnings_on_create: |_, capacity| capacity_warnings(capacity),
    warnings_on_update: |_, _, capacity, _| capacity_warnings(capacity),
    ..Kind::PLAIN
};

pub const RUNTIME_CLASS: Kind = Kind {
    creates_on_update: true,
    updates_unconditionally: false,
    warnings_on_create: |_, class| runtime_class_warnings(class),
    warnings_on_update: |_, _, class, _| runtime_class_warnings(class),
    ..Kind::PLAIN
};

pub const RESOURCE_SLICE: Kind = Kind {
    counts_dropped: true,
    generation: Generation::Spec,
    delete_returns_object: true,
    warnings_on_create: |_, slice| slice_warnings(slice),
    warnings_on_update: |_, _, slice, _| slice_warnings(slice),
    ..Kind::PLAIN
};

fn slice_warnings(slice: &Value) -> Vec<String> {
    let driver = slice.str_at(&["spec", "driver"]);
    if driver == driver.to_lowercase() {
        return Vec::new();
    }
    let name = Quoted(driver);
    vec![format!("spec.driver: driver names should be lowercase; {name} contains uppercase characters")]
}

/// Updates of /status leave metadata alone.
pub const fn sealed(mut kind: Kind) -> Kind {
    kind.prepare_for_update = |_, _, part, object, old| {
        if part == Part::Status {
            keep_metadata(object, old);
        }
    };
    kind.reset_fields = |part| match part {
        Part::Main => &[&["status"]],
        Part::Status => &[&["metadata"], &["spec"]],
        Part::Other(_) => &[],
    };
    kind
}

/// With the status that clients write, as releases before 1.36 took it.
pub const SERVICE_CIDR: Kind = {
    let mut kind = sealed(Kind::PLAIN);
    kind.owns_status = false;
    kind.keeps_status_on_create = true;
    kind.reset_fields = |part| match part {
        Part::Status => &[&["metadata"], &["spec"]],
        Part::Main | Part::Other(_) => &[],
    };
    kind
};

/// Names that look like those of configuration in files are taken with a warning.
pub const fn unlike_static(mut kind: Kind) -> Kind {
    kind.warnings_on_create = |_, object| static_name_warnings(object);
    kind.warnings_on_update = |_, _, object, _| static_name_warnings(object);
    kind
}

/// Where there is configuration in files, its names are refused.
pub fn without_static(mut kind: Kind) -> Kind {
    kind.validate = |_, object| {
        let path = Path::new("metadata");
        let error = |why| Error::invalid(&path.child("name"), object.meta().name(), why);
        reserved_for_files(object).map(error).into_iter().collect()
    };
    kind.warnings_on_create = |_, _| Vec::new();
    kind.warnings_on_update = |_, _, _, _| Vec::new();
    kind
}

fn static_name_warnings(object: &Value) -> Vec<String> {
    reserved_for_files(object).map(|why| format!("metadata.name: {why}")).into_iter().collect()
}

fn reserved_for_files(object: &Value) -> Option<String> {
    const SUFFIX: &str = ".static.k8s.io";
    object.meta().name().ends_with(SUFFIX).then(|| {
        format!(
            "names ending with {} are reserved for static manifest-based configurations and cannot be managed via the API",
            Quoted(SUFFIX)
        )
    })
}

/// As [`sealed`], and not even the name of the object is looked at: all metadata is the stored object's, but for who owns
/// what in its status.
pub const fn status_only(kind: Kind) -> Kind {
    let mut kind = sealed(kind);
    kind.prepare_for_update = |_, _, part, object, old| {
        if part == Part::Status {
            let managed = object.remove_at(&["metadata", "managedFields"]);
            object.copy_at(&["metadata"], old);
            object.put_at(&["metadata", "managedFields"], managed);
        }
    };
    kind
}

/// As [`sealed`], though the fields that cannot be changed by way of the status are owned by whoever tries.
pub const POD_CERTIFICATE_REQUEST: Kind = {
    let mut kind = sealed(Kind::PLAIN.guarded());
    kind.reset_fields = |part| match part {
        Part::Status => &[&["spec"]],
        Part::Main | Part::Other(_) => &[],
    };
    kind
};

pub fn keep_metadata(object: &mut Value, old: &Value) {
    let kept =
        ["deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences"];
    for key in kept {
        object.copy_at(&["metadata", key], old);
    }
}

fn address_warnings(slice: &Value) -> Vec<String> {
    if is_by_controller(slice) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    for (i, endpoint) in slice.get("endpoints").and_then(Value::as_array).unwrap_or(&[]).iter().enumerate() {
        for (j, address) in endpoint.get("addresses").and_then(Value::as_array).unwrap_or(&[]).iter().enumerate() {
            let path = format!("endpoints[{i}].addresses[{j}]");
            warnings.extend(ip_warnings(address.as_str().unwrap_or(""), &Path::new(&path)));
        }
    }
    warnings
}

/// Slices of the controllers of Kubernetes itself repeat addresses that somebody was warned about already.
fn is_by_controller(slice: &Value) -> bool {
    let by = slice.meta().label("endpointslice.kubernetes.io/managed-by");
    matches!(by, Some("endpointslice-controller.k8s.io" | "endpointslicemirroring-controller.k8s.io"))
}

/// The old way to say where an endpoint is can be written by way of v1beta1 only. What it said of the node is kept.
fn drop_topology(call: &Call, slice: &mut Value, old: Option<&Value>) {
    const HOSTNAME: [&str; 2] = ["deprecatedTopology", "kubernetes.io/hostname"];
    let is_same = old.is_some_and(|old| old.get("endpoints") == slice.get("endpoints"));
    if call.kind.version == "v1beta1" || is_same {
        return;
    }
    let before = old.and_then(|old| old.get("endpoints")).and_then(Value::as_array).unwrap_or(&[]);
    let known: Vec<&str> = before.iter().map(|e| e.str_at(&HOSTNAME)).filter(|name| !name.is_empty()).collect();
    let mut is_changed = false;
    for endpoint in slice.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten() {
        let node = endpoint.str_at(&HOSTNAME).to_owned();
        let is_name = name_is_dns_subdomain(&node, NameUse::Full).is_empty();
        if endpoint.get("nodeName").is_none() && known.contains(&node.as_str()) && is_name {
            endpoint.set_at(&["nodeName"], node.into());
        }
        is_changed |= endpoint.remove_at(&HOSTNAME[..1]).is_some_and(|topology| !topology.is_empty());
    }
    if let Some(old) = old.filter(|_| is_changed) {
        count_change(slice, old);
    }
}

fn storage_class_warnings(class: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for (i, term) in class.get("allowedTopologies").and_then(Value::as_array).unwrap_or(&[]).iter().enumerate() {
        let expressions = term.get("matchLabelExpressions").and_then(Value::as_array).unwrap_or(&[]);
        for (j, expression) in expressions.iter().enumerate() {
            if let Some(why) = pod_warnings::old_node_label(expression.str_at(&["key"])) {
                warnings.push(format!("allowedTopologies[{i}].matchLabelExpressions[{j}].key: {why}"));
            }
        }
    }
    warnings
}

/// Tokens that are not among the secrets of a volume are among its attributes, which end up in logs.
fn token_warnings(driver: &Value, old: Option<&Value>) -> Vec<String> {
    const TOKENS: [&str; 2] = ["spec", "tokenRequests"];
    let tokens = driver.at(&TOKENS).filter(|tokens| !tokens.is_empty());
    let is_same = old.is_some_and(|old| old.at(&TOKENS) == tokens);
    if tokens.is_none() || is_same || driver.at(&["spec", "serviceAccountTokenInSecrets"]).is_some() {
        return Vec::new();
    }
    vec![
        "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible \
         logging of tokens in volume attributes"
            .into(),
    ]
}

fn capacity_warnings(capacity: &Value) -> Vec<String> {
    let Some(topology) = capacity.get("nodeTopology") else { return Vec::new() };
    let mut warnings = pod_warnings::of_node_selector_term("nodeTopology", topology, false);
    for key in topology.get("matchLabels").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        warnings.extend(pod_warnings::old_node_label(key).map(|why| format!("nodeTopology.matchLabels.{key}: {why}")));
    }
    warnings
}

fn runtime_class_warnings(class: &Value) -> Vec<String> {
    let selector = class.at(&["scheduling", "nodeSelector"]).and_then(Value::as_object);
    let keys = selector.into_iter().flat_map(Map::keys);
    keys.filter_map(pod_warnings::old_node_label).map(|why| format!("scheduling.nodeSelector: {why}")).collect()
}
