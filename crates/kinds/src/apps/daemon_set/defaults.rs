//! Updates, and the count of changes.

use crate::workload::rolling_update;
use kubelith_meta::Map;
use kubelith_rules::annotations::TEMPLATE_GENERATION;
use kubelith_rules::defaults::{Defaults, set_absent};

pub const RULES: Defaults = &[
    ("io.k8s.api.apps.v1.DaemonSet", template_generation),
    ("io.k8s.api.apps.v1.DaemonSetUpdateStrategy", |m| rolling_update(m, 1i64.into(), 0i64.into())),
];

/// The annotation stands for a field of the internal form, which is always there (apps/v1/conversion.go).
fn template_generation(daemon_set: &mut Map) {
    let metadata = daemon_set.entry_or_null("metadata").make_object();
    set_absent(metadata.entry_or_null("annotations").make_object(), TEMPLATE_GENERATION, "0");
}
