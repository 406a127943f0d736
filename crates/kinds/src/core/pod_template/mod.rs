//! PodTemplates.

pub mod validate;

use kubelith_meta::Value;
use kubelith_meta::field::Path;
use kubelith_pods::gated::POD_FEATURES;
use kubelith_pods::warnings;
use kubelith_rules::Kind;
use kubelith_schema::lifecycle::Generation;

pub const POD_TEMPLATE: Kind = Kind {
    group: "",
    plural: "podtemplates",
    features: &[(&["template", "spec"], POD_FEATURES)],
    rules: validate::RULES,

    generation: Generation::Member("template"),
    delete_returns_object: true,
    warnings_on_create: |_, object| pod_template_warnings(object, None),
    warnings_on_update: |_, _, object, old| {
        let changed = object.meta().generation() != old.meta().generation();
        if changed { pod_template_warnings(object, Some(old)) } else { Vec::new() }
    },
    ..Kind::PLAIN
};

fn pod_template_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let template = object.get("template");
    let old = old.and_then(|o| o.get("template"));
    template.map_or_else(Vec::new, |t| warnings::of_template(&Path::new("template"), t, old))
}
