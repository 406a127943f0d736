//! ClusterRoles.

use crate::rbac::roles::{role_rules, with_update};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::object::Namespacing;
use kubelith_meta::selector::{LabelSelectorRules, has_invalid_label_value, validate_label_selector};
use kubelith_rules::common::Fields;
use kubelith_rules::{Kind, Rules};

pub const CLUSTER_ROLE: Kind =
    Kind { group: "rbac.authorization.k8s.io", plural: "clusterroles", rules: RULES, ..Kind::PLAIN }.upserts();

pub const RULES: Rules = Rules {
    create: |_, role| cluster_role(role, None),
    update: |_, new, old| with_update(cluster_role(new, Some(old)), new, old),
};

fn cluster_role(role: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = role_rules(role, Namespacing::Forbidden);
    let Some(aggregation) = role.some("aggregationRule") else { return errors };
    let path = Path::of(&["aggregationRule", "clusterRoleSelectors"]);
    let selectors = aggregation.list("clusterRoleSelectors");
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(Error::required(&path, detail));
    }
    let old_selectors = old.and_then(|o| o.some("aggregationRule")).map_or(&[][..], |a| a.list("clusterRoleSelectors"));
    let rules = LabelSelectorRules {
        allow_invalid_values: old_selectors.iter().any(has_invalid_label_value),
        ..LabelSelectorRules::default()
    };
    for (i, selector) in selectors.iter().enumerate() {
        errors.extend(validate_label_selector(selector, rules, &path.index(i)));
        if kubelith_meta::selector::LabelSelector::from_object(Some(selector)).is_err() {
            errors.push(Error::invalid(&path.index(i), Value::Null, "invalid label selector."));
        }
    }
    errors
}
