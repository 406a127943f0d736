//! Rules of roles.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::name_is_path_segment;
use kubelith_meta::object::Namespacing;
use kubelith_rules::common::{Fields, member, meta, meta_update};

pub fn with_update(mut errors: ErrorList, new: &Value, old: &Value) -> ErrorList {
    errors.extend(meta_update(new, old));
    errors
}

pub fn role_rules(role: &Value, namespaced: Namespacing) -> ErrorList {
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
