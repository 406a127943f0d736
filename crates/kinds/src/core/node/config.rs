//! Where kubelets got their configuration from, once; the rules are still there.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{NameRule, is_config_map_key, name_is_dns_label, name_is_dns_subdomain};
use kubelith_rules::common::{Fields, SPEC, invalid_all, member, name_full};
use kubelith_rules::internal;

pub fn check(node: &Value, errors: &mut ErrorList) {
    if let Some(source) = member(node, "spec").some("configSource") {
        check_source(source, Place::Spec, &SPEC.child("configSource"), errors);
    }
    let status = member(member(node, "status"), "config");
    for key in ["assigned", "active", "lastKnownGood"] {
        if let Some(source) = status.some(key) {
            check_source(source, Place::Status, &Path::of(&["status", "config"]).child(key), errors);
        }
    }
}

/// Which config map it is to be stands in spec, which state of it is used in status.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Spec,
    Status,
}

pub fn check_source(source: &Value, place: Place, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(map) = source.some("configMap") else {
        let shown = internal::shown("NodeConfigSource", Some(source));
        return errors.push(Error::invalid(path, shown, "exactly one reference subfield must be non-nil"));
    };
    let path = path.child("configMap");
    for key in ["uid", "resourceVersion"] {
        match (place, map.text(key).is_empty()) {
            (Place::Spec, false) => {
                errors.push(Error::forbidden(&path.child(key), format!("{key} must not be set in spec")));
            }
            (Place::Status, true) => errors.push(Error::required(&path.child(key), "")),
            _ => {}
        }
    }
    let names: [(&str, NameRule); 2] = [("namespace", name_is_dns_label), ("name", name_is_dns_subdomain)];
    for (key, rule) in names {
        match map.text(key) {
            "" => errors.push(Error::required(&path.child(key), "")),
            name => name_full(rule, name, &path.child(key), errors),
        }
    }
    let at = path.child("kubeletConfigKey");
    match map.text("kubeletConfigKey") {
        "" => errors.push(Error::required(&at, "")),
        key => invalid_all(is_config_map_key(key), &at, key, errors),
    }
}
