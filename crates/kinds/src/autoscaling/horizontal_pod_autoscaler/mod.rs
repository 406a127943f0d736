//! HorizontalPodAutoscalers.

pub mod cells;
pub mod defaults;
pub mod validate;

use kubelith_rules::Kind;
use kubelith_rules::gated::{Feature, feature};

pub const HORIZONTAL_POD_AUTOSCALER: Kind = Kind {
    group: "autoscaling",
    plural: "horizontalpodautoscalers",
    defaults: defaults::RULES,
    features: &[(&[], FEATURES)],
    rules: validate::RULES,
    cells: cells::CELLS,
    ..Kind::PLAIN
};

const FEATURES: &[Feature] = &[feature(
    &["HPAConfigurableTolerance"],
    &["spec.behavior.scaleDown.tolerance", "spec.behavior.scaleUp.tolerance"],
)];
