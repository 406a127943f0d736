//! ResourceQuotas.

pub mod cells;
pub mod validate;

use kubelith_meta::Value;
use kubelith_meta::quantity::Quantity;
use kubelith_rules::Kind;
use kubelith_rules::defaults::Defaults;
use kubelith_rules::defaults::amounts::round_up;

pub const RESOURCE_QUOTA: Kind = Kind {
    group: "",
    plural: "resourcequotas",
    defaults: DEFAULTS,
    rules: validate::RULES,
    cells: cells::CELLS,
    delete_returns_object: true,
    warnings_on_create: |_, quota| quota_warnings(quota),
    ..Kind::PLAIN
};

pub const DEFAULTS: Defaults = &[
    ("io.k8s.api.core.v1.ResourceQuotaSpec", |m| round_up(m, &["hard"])),
    ("io.k8s.api.core.v1.ResourceQuotaStatus", |m| round_up(m, &["hard", "used"])),
];

/// Requests that are allowed more than limits are.
fn quota_warnings(quota: &Value) -> Vec<String> {
    let hard = |name: &str| quota.at(&["spec", "hard", name]).and_then(|v| Quantity::from_value(v).ok());
    let mut warnings = Vec::new();
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let mut name = format!("requests.{resource}");
        let mut request = hard(&name);
        if request.is_none() && matches!(resource, "cpu" | "memory") {
            request = hard(resource);
            if request.is_some() {
                name = resource.to_owned();
            }
        }
        let limit_name = format!("limits.{resource}");
        if let (Some(request), Some(limit)) = (request, hard(&limit_name))
            && request > limit
        {
            let (request, limit) = (request.canonical(), limit.canonical());
            warnings.push(format!("ResourceQuota {name} ({request}) should be less than {limit_name} ({limit})"));
        }
    }
    warnings
}
