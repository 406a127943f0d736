//! References to objects.

use kubelith_meta::Value;
use kubelith_meta::field::{ErrorList, Path};
use kubelith_rules::common::{Fields, dns_subdomain};
use kubelith_rules::values::kind_and_name;

/// A group, a kind and a name.
pub fn check_reference(reference: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if let Some(group) = reference.some("apiGroup").and_then(Value::as_str) {
        dns_subdomain(group, &path.child("apiGroup"), errors);
    }
    kind_and_name(reference, path, errors);
}
