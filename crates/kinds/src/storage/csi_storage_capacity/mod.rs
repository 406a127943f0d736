//! CSIStorageCapacities.

use kubelith_meta::field::{ErrorList, Path};
use kubelith_meta::names::{NameUse, name_is_dns_subdomain};
use kubelith_meta::object::Namespacing;
use kubelith_meta::selector::{LabelSelectorRules, validate_label_selector};
use kubelith_meta::{Map, Value};
use kubelith_pods::warnings::{of_node_selector_term, old_node_label};
use kubelith_rules::common::{Fields, immutable_text, invalid_all, meta, meta_update, quantity_not_negative};
use kubelith_rules::{Kind, Rules, internal};

pub const CSI_STORAGE_CAPACITY: Kind = Kind {
    group: "storage.k8s.io",
    plural: "csistoragecapacities",
    rules: RULES,

    updates_unconditionally: false,
    warnings_on_create: |_, capacity| capacity_warnings(capacity),
    warnings_on_update: |_, _, capacity, _| capacity_warnings(capacity),
    ..Kind::PLAIN
};

pub const RULES: Rules = Rules {
    create: |_, capacity| self::capacity(capacity),
    update: |_, new, old| {
        let mut errors = self::capacity(new);
        errors.extend(meta_update(new, old));
        let [topology, before] = [new, old].map(|capacity| capacity.get("nodeTopology"));
        internal::immutable("*LabelSelector", topology, before, &Path::new("nodeTopology"), &mut errors);
        immutable_text(new, old, "storageClassName", &Path::ROOT, &mut errors);
        errors
    },
};

fn capacity(capacity: &Value) -> ErrorList {
    let mut errors = meta(capacity, Namespacing::Required, name_is_dns_subdomain);
    if let Some(selector) = capacity.some("nodeTopology") {
        let path = Path::new("nodeTopology");
        errors.extend(validate_label_selector(selector, LabelSelectorRules::default(), &path));
    }
    let class = capacity.text("storageClassName");
    invalid_all(name_is_dns_subdomain(class, NameUse::Full), &Path::new("storageClassName"), class, &mut errors);
    if let Some(amount) = capacity.some("capacity") {
        quantity_not_negative(amount, &Path::new("capacity"), &mut errors);
    }
    errors
}

fn capacity_warnings(capacity: &Value) -> Vec<String> {
    let Some(topology) = capacity.get("nodeTopology") else { return Vec::new() };
    let mut warnings = of_node_selector_term("nodeTopology", topology, false);
    for key in topology.get("matchLabels").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        warnings.extend(old_node_label(key).map(|why| format!("nodeTopology.matchLabels.{key}: {why}")));
    }
    warnings
}
