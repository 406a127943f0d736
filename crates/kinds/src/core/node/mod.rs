//! Nodes.

pub mod cells;
mod config;
pub mod defaults;
pub mod validate;

use kubelith_meta::Value;
use kubelith_meta::field::Path;
use kubelith_meta::names::cidr_warnings;
use kubelith_rules::Kind;
use kubelith_rules::gated::{Feature, Kept, feature};
use kubelith_schema::lifecycle::Part;

/// A node reports its status with its creation; afterwards only /status writes it.
pub const NODE: Kind = Kind {
    group: "",
    plural: "nodes",
    defaults: defaults::RULES,
    features: &[(&[], FEATURES)],
    rules: validate::RULES,
    cells: cells::CELLS,

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

const FEATURES: &[Feature] = &[
    feature(&["RecursiveReadOnlyMounts", "UserNamespacesSupport"], &["status.runtimeHandlers"]).any().kept(Kept::Never),
    feature(&["SupplementalGroupsPolicy"], &["status.features"]),
    feature(&["NodeDeclaredFeatures"], &["status.declaredFeatures"]),
];

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
