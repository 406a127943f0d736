//! Keys and sizes, and the promise not to change.

use crate::core::data::{MAX_BYTES, check_frozen, decoded_len};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{is_config_map_key, name_is_dns_subdomain};
use kubelith_meta::object::Namespacing;
use kubelith_rules::Rules;
use kubelith_rules::common::{Fields, invalid_all, meta, meta_update};

pub const RULES: Rules = Rules {
    create: |_, object| config_map(object),
    update: |_, new, old| {
        let mut errors = meta_update(new, old);
        check_frozen(new, old, &["data", "binaryData"], &mut errors);
        errors.extend(config_map(new));
        errors
    },
};

fn config_map(object: &Value) -> ErrorList {
    let mut errors = meta(object, Namespacing::Required, name_is_dns_subdomain);
    let mut size = 0;
    let binary = object.map("binaryData");
    for (key, value) in object.entries("data") {
        let path = Path::new("data");
        invalid_all(is_config_map_key(key), &path.key(key), key, &mut errors);
        if binary.is_some_and(|b| b.contains_key(key)) {
            errors.push(Error::invalid(&path.key(key), key, "duplicate of key present in binaryData"));
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in object.entries("binaryData") {
        invalid_all(is_config_map_key(key), &Path::new("binaryData").key(key), key, &mut errors);
        size += decoded_len(value);
    }
    if size > MAX_BYTES {
        errors.push(Error::too_long(&Path::new(""), MAX_BYTES));
    }
    errors
}
