//! Labels and selector of the template.

use crate::workload::{labels_from_template, template_labels};
use kubelith_meta::Map;
use kubelith_rules::defaults::{Defaults, is_zero};

pub const RULES: Defaults = &[("io.k8s.api.core.v1.ReplicationController", replication_controller)];

fn replication_controller(controller: &mut Map) {
    labels_from_template(controller);
    let spec = controller.entry_or_null("spec").make_object();
    if is_zero(spec, "selector")
        && let Some(labels) = template_labels(spec).cloned()
    {
        spec.insert("selector", labels);
    }
}
