//! Templates of pods, in the kinds that make pods.

use crate::validate::annotations::{self, check_match};
use crate::validate::volumes::PodName;
use crate::validate::{self, Owner};
use crate::warnings;
use kubelith_meta::Value;
use kubelith_meta::call::Call;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::is_dns1123_label;
use kubelith_meta::object::validate_annotations;
use kubelith_meta::selector::validate_labels;
use kubelith_rules::Env;
use kubelith_rules::common::{Fields, member};
use kubelith_schema::lifecycle::Part;

/// A pod template.
pub fn template(env: &Env, template: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let metadata = member(template, "metadata");
    if let Some(labels) = metadata.map("labels") {
        errors.extend(validate_labels(labels, &path.child("labels")));
    }
    if let Some(annotations) = metadata.map("annotations") {
        errors.extend(validate_annotations(annotations, &path.child("annotations")));
    }
    let spec = member(template, "spec");
    annotations::check(env, metadata, spec, &path.child("annotations"), errors);
    validate::spec(env, spec, PodName(""), Owner::Template, &path.child("spec"), errors);
    check_match(metadata, spec, &path.child("spec"), errors);
    if !spec.list("ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(Error::forbidden(&path.children(&["spec", "ephemeralContainers"]), detail));
    }
}

/// Warnings about spec.template, if it has changed.
pub fn template_warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let path = Path::new("spec");
    let template = object.at(&TEMPLATE);
    template
        .map_or_else(Vec::new, |t| warnings::of_template(&path.child("template"), t, old.and_then(|o| o.at(&TEMPLATE))))
}

/// Of kinds whose names become part of the names of pods.
pub fn named_template_warnings(object: &Value) -> Vec<String> {
    let mut warnings = name_warnings(object, IN_POD_NAMES);
    warnings.extend(template_warnings(object, None));
    warnings
}

/// Where the names of most controllers show up.
pub const IN_POD_NAMES: &str = "Pod names and hostnames";

/// A name that is used in `place` had better be a DNS label.
pub fn name_warnings(object: &Value, place: &str) -> Vec<String> {
    let problems = is_dns1123_label(object.meta().name());
    if problems.is_empty() {
        return Vec::new();
    }
    let problems: Vec<&str> = problems.iter().map(AsRef::as_ref).collect();
    vec![format!(
        "metadata.name: this is used in {place}, which can result in surprising behavior; a DNS label is \
         recommended: [{}]",
        problems.join(" ")
    )]
}

/// Warnings about spec.template after an update that counts in metadata.generation.
pub fn template_update_warnings(_: &Call, part: Part<'_>, object: &Value, old: &Value) -> Vec<String> {
    let changed = object.meta().generation() != old.meta().generation();
    if part == Part::Main && changed { template_warnings(object, Some(old)) } else { Vec::new() }
}

pub const TEMPLATE: [&str; 2] = ["spec", "template"];
