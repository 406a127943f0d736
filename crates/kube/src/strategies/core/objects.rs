//! The smaller kinds of the core group.

use crate::strategies::Kind;
use crate::strategies::apps::{named_template_warnings, template_update_warnings};
use kubelith_meta::field::Path;
use kubelith_meta::names::{cidr_warnings, ip_warnings};
use kubelith_meta::quantity::Quantity;
use kubelith_meta::{Value, random};
use kubelith_registry::{Call, GarbageCollection, Generation, Part};

/// A node reports its status with its creation; afterwards only /status writes it.
pub const NODE: Kind = Kind {
    keeps_status_on_create: true,
    prepare_for_create: |_, _, node| {
        node.remove_at(&["spec", "configSource"]);
        node.remove_at(&["status", "config"]);
    },
    prepare_for_update: |_, _, part, node, old| match part {
        Part::Status if old.at(&["status", "config"]).is_none() => drop(node.remove_at(&["status", "config"])),
        Part::Main if old.at(&["spec", "configSource"]).is_none() => drop(node.remove_at(&["spec", "configSource"])),
        _ => {}
    },
    warnings_on_create: |_, node| node_warnings(node),
    warnings_on_update: |_, part, node, _| if part == Part::Main { node_warnings(node) } else { Vec::new() },
    ..Kind::PLAIN
};

pub const SECRET: Kind = Kind {
    prepare_for_update: |_, _, _, secret, old| {
        if secret.str_at(&["type"]).is_empty()
            && let Some(kept) = old.get("type")
        {
            secret.set_at(&["type"], kept.clone());
        }
    },
    warnings_on_create: |_, secret| super::tls::warnings(secret),
    warnings_on_update: |_, _, secret, _| super::tls::warnings(secret),
    ..Kind::PLAIN
};

pub const SERVICE_ACCOUNT: Kind = Kind {
    delete_returns_object: true,
    prepare_for_create: |_, _, account| clean_secrets(account),
    prepare_for_update: |_, _, _, account, _| clean_secrets(account),
    warnings_on_create: |_, account| mountable_secrets_warning(account),
    warnings_on_update: |_, _, account, old| {
        let known = old.meta().annotation(ENFORCE_MOUNTABLE_SECRETS).is_some();
        if known { Vec::new() } else { mountable_secrets_warning(account) }
    },
    ..Kind::PLAIN
};

pub const RESOURCE_QUOTA: Kind =
    Kind { delete_returns_object: true, warnings_on_create: |_, quota| quota_warnings(quota), ..Kind::PLAIN };

/// One without a name gets one that nobody would guess.
pub const LIMIT_RANGE: Kind = Kind {
    creates_on_update: true,
    prepare_for_create: |_, _, range| {
        if range.meta().name().is_empty() {
            range.meta_mut().set_name(&random::uid(random::random_bits));
        }
    },
    ..Kind::PLAIN
};

pub const ENDPOINTS: Kind = Kind {
    creates_on_update: true,
    warnings_on_create: |_, endpoints| endpoints_warnings(endpoints),
    warnings_on_update: |_, _, endpoints, _| endpoints_warnings(endpoints),
    ..Kind::PLAIN
};

pub const POD_TEMPLATE: Kind = Kind {
    generation: Generation::Member("template"),
    delete_returns_object: true,
    warnings_on_create: |_, object| pod_template_warnings(object, None),
    warnings_on_update: |_, _, object, old| {
        let changed = object.meta().generation() != old.meta().generation();
        if changed { pod_template_warnings(object, Some(old)) } else { Vec::new() }
    },
    ..Kind::PLAIN
};

pub const REPLICATION_CONTROLLER: Kind = Kind {
    generation: Generation::Spec,
    garbage_collection: GarbageCollection::OrphanDependents,
    warnings_on_create: |_, controller| named_template_warnings(controller),
    // The reference takes the two for each other here: what warns is the template that goes.
    warnings_on_update: |call: &Call, part, controller, old| template_update_warnings(call, part, old, controller),
    ..Kind::PLAIN
};

const ENFORCE_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

fn node_warnings(node: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if node.at(&["spec", "configSource"]).is_some() {
        warnings.push("spec.configSource: the feature is removed".into());
    }
    if !node.str_at(&["spec", "externalID"]).is_empty() {
        warnings.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".into());
    }
    for (i, cidr) in node.at(&["spec", "podCIDRs"]).and_then(Value::as_array).unwrap_or(&[]).iter().enumerate() {
        let path = format!("spec.podCIDRs[{i}]");
        warnings.extend(cidr_warnings(cidr.as_str().unwrap_or(""), &Path::new(&path)));
    }
    warnings
}

/// References to secrets are names, nothing else.
fn clean_secrets(account: &mut Value) {
    for secret in account.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten() {
        secret.make_object().retain(|key, _| key == "name");
    }
}

fn mountable_secrets_warning(account: &Value) -> Vec<String> {
    if account.meta().annotation(ENFORCE_MOUNTABLE_SECRETS).is_none() {
        return Vec::new();
    }
    vec![format!(
        "metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate namespaces to isolate \
         access to mounted secrets"
    )]
}

/// Requests that are allowed more than limits are.
fn quota_warnings(quota: &Value) -> Vec<String> {
    let hard = |name: &str| quota.at(&["spec", "hard", name]).and_then(|v| Quantity::from_value(v).ok());
    let mut warnings = Vec::new();
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let mut name = format!("requests.{resource}");
        let mut request = hard(&name);
        if request.is_none() && matches!(resource, "cpu" | "memory") {
            request = hard(resource);
            if request.is_some() {
                name = resource.to_owned();
            }
        }
        let limit_name = format!("limits.{resource}");
        if let (Some(request), Some(limit)) = (request, hard(&limit_name))
            && request > limit
        {
            let (request, limit) = (request.canonical(), limit.canonical());
            warnings.push(format!("ResourceQuota {name} ({request}) should be less than {limit_name} ({limit})"));
        }
    }
    warnings
}

fn endpoints_warnings(endpoints: &Value) -> Vec<String> {
    if endpoints.meta().label("endpoints.kubernetes.io/managed-by") == Some("endpoint-controller") {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    for (i, subset) in endpoints.get("subsets").and_then(Value::as_array).unwrap_or(&[]).iter().enumerate() {
        for key in ["addresses", "notReadyAddresses"] {
            for (j, address) in subset.get(key).and_then(Value::as_array).unwrap_or(&[]).iter().enumerate() {
                let path = format!("subsets[{i}].{key}[{j}].ip");
                warnings.extend(ip_warnings(address.str_at(&["ip"]), &Path::new(&path)));
            }
        }
    }
    warnings
}

fn pod_template_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let template = object.get("template");
    let old = old.and_then(|o| o.get("template"));
    template.map_or_else(Vec::new, |t| crate::strategies::pod_warnings::of_template(&Path::new("template"), t, old))
}
