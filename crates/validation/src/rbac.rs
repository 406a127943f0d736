//! Roles and bindings.

use crate::Rules;
use crate::common::{Fields, member, meta, meta_update, name_full, same_member};
use crate::internal;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{name_is_dns_subdomain, name_is_path_segment};
use kubelith_meta::object::Namespacing;
use kubelith_meta::selector::{LabelSelectorRules, has_invalid_label_value, validate_label_selector};

const GROUP: &str = "rbac.authorization.k8s.io";

pub fn rules(plural: &str) -> Option<Rules> {
    Some(match plural {
        "roles" => Rules {
            create: |_, role| role_rules(role, Namespacing::Required),
            update: |_, new, old| with_update(role_rules(new, Namespacing::Required), new, old),
        },
        "clusterroles" => Rules {
            create: |_, role| cluster_role(role, None),
            update: |_, new, old| with_update(cluster_role(new, Some(old)), new, old),
        },
        "rolebindings" => Rules {
            create: |_, binding| self::binding(binding, Namespacing::Required),
            update: |_, new, old| binding_update(new, old, Namespacing::Required),
        },
        "clusterrolebindings" => Rules {
            create: |_, binding| self::binding(binding, Namespacing::Forbidden),
            update: |_, new, old| binding_update(new, old, Namespacing::Forbidden),
        },
        _ => return None,
    })
}

fn with_update(mut errors: ErrorList, new: &Value, old: &Value) -> ErrorList {
    errors.extend(meta_update(new, old));
    errors
}

fn role_rules(role: &Value, namespaced: Namespacing) -> ErrorList {
    let mut errors = meta(role, namespaced, name_is_path_segment);
    for (i, rule) in role.list("rules").iter().enumerate() {
        check_rule(rule, namespaced, &Path::new("rules").index(i), &mut errors);
    }
    errors
}

fn check_rule(rule: &Value, namespaced: Namespacing, path: &Path<'_>, errors: &mut ErrorList) {
    if rule.list("verbs").is_empty() {
        errors.push(Error::required(&path.child("verbs"), "verbs must contain at least one value"));
    }
    if !rule.list("nonResourceURLs").is_empty() {
        let path = path.child("nonResourceURLs");
        let urls = member(rule, "nonResourceURLs");
        if namespaced == Namespacing::Required {
            errors.push(Error::invalid(&path, urls, "namespaced rules cannot apply to non-resource URLs"));
        }
        if ["apiGroups", "resources", "resourceNames"].iter().any(|key| !rule.list(key).is_empty()) {
            let detail = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(Error::invalid(&path, urls, detail));
        }
    } else {
        for (key, detail) in [
            ("apiGroups", "resource rules must supply at least one api group"),
            ("resources", "resource rules must supply at least one resource"),
        ] {
            if rule.list(key).is_empty() {
                errors.push(Error::required(&path.child(key), detail));
            }
        }
    }
}

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

fn binding(binding: &Value, namespaced: Namespacing) -> ErrorList {
    let mut errors = meta(binding, namespaced, name_is_path_segment);
    let role = member(binding, "roleRef");
    let path = Path::new("roleRef");
    if role.text("apiGroup") != GROUP {
        errors.push(Error::not_supported(&path.child("apiGroup"), role.text("apiGroup"), [GROUP]));
    }
    let kinds: &[&str] = match namespaced {
        Namespacing::Required => &["Role", "ClusterRole"],
        Namespacing::Forbidden => &["ClusterRole"],
    };
    if !kinds.contains(&role.text("kind")) {
        errors.push(Error::not_supported(&path.child("kind"), role.text("kind"), kinds));
    }
    if role.text("name").is_empty() {
        errors.push(Error::required(&path.child("name"), ""));
    } else {
        name_full(name_is_path_segment, role.text("name"), &path.child("name"), &mut errors);
    }
    for (i, subject) in binding.list("subjects").iter().enumerate() {
        check_subject(subject, namespaced, &Path::new("subjects").index(i), &mut errors);
    }
    errors
}

fn check_subject(subject: &Value, namespaced: Namespacing, path: &Path<'_>, errors: &mut ErrorList) {
    let (name, group) = (subject.text("name"), subject.text("apiGroup"));
    if name.is_empty() {
        errors.push(Error::required(&path.child("name"), ""));
    }
    match subject.text("kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                name_full(name_is_dns_subdomain, name, &path.child("name"), errors);
            }
            if !group.is_empty() {
                errors.push(Error::not_supported(&path.child("apiGroup"), group, [""]));
            }
            if namespaced == Namespacing::Forbidden && subject.text("namespace").is_empty() {
                errors.push(Error::required(&path.child("namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                errors.push(Error::not_supported(&path.child("apiGroup"), group, [GROUP]));
            }
        }
        kind => errors.push(Error::not_supported(&path.child("kind"), kind, ["ServiceAccount", "User", "Group"])),
    }
}

fn binding_update(new: &Value, old: &Value, namespaced: Namespacing) -> ErrorList {
    let mut errors = with_update(binding(new, namespaced), new, old);
    if !same_member(new, old, "roleRef") {
        let shown = internal::shown("RoleRef", new.get("roleRef"));
        errors.push(Error::invalid(&Path::new("roleRef"), shown, "cannot change roleRef"));
    }
    errors
}
