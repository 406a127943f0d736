//! Updates, and types of claims.

use kubelith_meta::Map;
use kubelith_rules::defaults::{Defaults, elements_mut, is_zero, object_mut, set_absent, text};

pub const RULES: Defaults = &[
    ("io.k8s.api.apps.v1.StatefulSetSpec", type_claim_templates),
    ("io.k8s.api.apps.v1.StatefulSetUpdateStrategy", stateful_set_strategy),
];

/// Of stateful sets, whose updates may take several pods down at once.
pub const MAX_UNAVAILABLE: Defaults = &[("io.k8s.api.apps.v1.StatefulSetUpdateStrategy", |strategy| {
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = object_mut(strategy, "rollingUpdate")
    {
        set_absent(rolling, "maxUnavailable", 1i64);
    }
})];

/// Claims in a template have their type written out (apps/v1/conversion.go).
fn type_claim_templates(spec: &mut Map) {
    for claim in elements_mut(spec, "volumeClaimTemplates") {
        for (key, value) in [("apiVersion", "v1"), ("kind", "PersistentVolumeClaim")] {
            if text(claim, key) != value {
                claim.insert(key, value);
            }
        }
    }
}

fn stateful_set_strategy(strategy: &mut Map) {
    if is_zero(strategy, "type") {
        strategy.insert("type", "RollingUpdate");
        set_absent(strategy, "rollingUpdate", Map::new());
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = object_mut(strategy, "rollingUpdate")
    {
        set_absent(rolling, "partition", 0i64);
    }
}
