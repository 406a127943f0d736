//! Endpoints: addresses and ports of a service.

pub mod cells;
pub mod validate;

use kubelith_meta::Value;
use kubelith_meta::field::Path;
use kubelith_meta::names::ip_warnings;
use kubelith_rules::Kind;

pub const ENDPOINTS: Kind = Kind {
    group: "",
    plural: "endpoints",
    rules: validate::RULES,
    cells: cells::CELLS,

    creates_on_update: true,
    warnings_on_create: |_, endpoints| endpoints_warnings(endpoints),
    warnings_on_update: |_, _, endpoints, _| endpoints_warnings(endpoints),
    ..Kind::PLAIN
};

fn endpoints_warnings(endpoints: &Value) -> Vec<String> {
    if endpoints.meta().label("endpoints.kubernetes.io/managed-by") == Some("endpoint-controller") {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    for (i, subset) in endpoints.get("subsets").and_then(Value::as_array).unwrap_or(&[]).iter().enumerate() {
        for key in ["addresses", "notReadyAddresses"] {
            for (j, address) in subset.get(key).and_then(Value::as_array).unwrap_or(&[]).iter().enumerate() {
                let path = format!("subsets[{i}].{key}[{j}].ip");
                warnings.extend(ip_warnings(address.str_at(&["ip"]), &Path::new(&path)));
            }
        }
    }
    warnings
}
