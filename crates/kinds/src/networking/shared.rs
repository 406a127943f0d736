//! References to objects.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::name_is_path_segment;
use kubelith_rules::common::{Fields, dns_subdomain, name_full};

/// A group, a kind and a name.
pub fn check_reference(reference: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(group) = reference.some("apiGroup").and_then(Value::as_str) {
        dns_subdomain(group, &path.child("apiGroup"), errors);
    }
    for key in ["kind", "name"] {
        let value = reference.text(key);
        if value.is_empty() {
            errors.push(Error::required(&path.child(key), ""));
        } else {
            name_full(name_is_path_segment, value, &path.child(key), errors);
        }
    }
}
