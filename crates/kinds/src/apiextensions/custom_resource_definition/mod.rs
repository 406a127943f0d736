//! CustomResourceDefinitions, of which only the defaults are here: another crate looks after them.

use kubelith_meta::{Map, Str, Value};
use kubelith_rules::Kind;
use kubelith_rules::defaults::{Defaults, is_absent, is_zero, set_absent, text};

pub const CUSTOM_RESOURCE_DEFINITION: Kind =
    Kind { group: "apiextensions.k8s.io", plural: "customresourcedefinitions", defaults: DEFAULTS, ..Kind::PLAIN };

pub const DEFAULTS: Defaults = &[
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition", stored_versions),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec", spec),
];

/// Until something else is known, objects may be stored in the storage version.
fn stored_versions(definition: &mut Map) {
    if definition.get("status").and_then(|s| s.get("storedVersions")).is_some_and(|v| !v.is_empty()) {
        return;
    }
    let versions = definition.get("spec").and_then(|s| s.get("versions")).and_then(Value::as_array);
    let storage = versions.into_iter().flatten().find(|v| v.get("storage") == Some(&Value::Bool(true)));
    if let Some(name) = storage.map(|v| Str::from(v.str_at(&["name"]))) {
        definition.entry_or_null("status").make_object().insert("storedVersions", vec![name]);
    }
}

fn spec(spec: &mut Map) {
    let names = spec.entry_or_null("names").make_object();
    let kind = text(names, "kind");
    if !kind.is_empty() && (is_zero(names, "singular") || is_zero(names, "listKind")) {
        let (singular, list_kind) = (kind.to_lowercase(), format!("{kind}List"));
        if is_zero(names, "singular") {
            names.insert("singular", singular);
        }
        if is_zero(names, "listKind") {
            names.insert("listKind", list_kind);
        }
    }
    if is_absent(spec, "conversion") {
        set_absent(spec, "conversion", Value::from([("strategy", "None")]));
    }
}
