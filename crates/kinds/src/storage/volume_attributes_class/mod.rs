//! VolumeAttributesClasses.

use crate::storage::storage_class::validate::{parameters, provisioner};
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_meta::{Map, Value};
use kubelith_rules::common::{Fields, meta, meta_update, same_member};
use kubelith_rules::{Kind, Rules};

pub const VOLUME_ATTRIBUTES_CLASS: Kind =
    Kind { group: "storage.k8s.io", plural: "volumeattributesclasses", rules: RULES, ..Kind::PLAIN }.returned();

pub const RULES: Rules = Rules {
    create: |_, class| attributes_class(class),
    update: |_, new, old| {
        let mut errors = meta_update(new, old);
        for key in ["driverName", "parameters"] {
            if !same_member(new, old, key) {
                errors.push(Error::forbidden(&Path::new(key), format!("updates to {key} are forbidden.")));
            }
        }
        errors.extend(attributes_class(new));
        errors
    },
};

fn attributes_class(class: &Value) -> ErrorList {
    let mut errors = meta(class, Namespacing::Forbidden, name_is_dns_subdomain);
    provisioner(class, "driverName", &mut errors);
    parameters(class.map("parameters"), &mut errors);
    if class.map("parameters").is_none_or(Map::is_empty) {
        errors.push(Error::required(&Path::new("parameters"), "must contain at least one key/value pair"));
    }
    errors
}
