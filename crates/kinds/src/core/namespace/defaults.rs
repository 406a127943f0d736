//! The label with the name.

use kubelith_meta::{Map, Str, Value};
use kubelith_rules::defaults::{Defaults, text};

pub const RULES: Defaults = &[("io.k8s.api.core.v1.Namespace", name_label)];

/// Every namespace has its name as a label, so that selectors can name it.
fn name_label(namespace: &mut Map) {
    const LABEL: &str = "kubernetes.io/metadata.name";
    let Some(Value::Object(metadata)) = namespace.get_mut("metadata") else { return };
    let name = text(metadata, "name");
    if name.is_empty() || metadata.get("labels").and_then(|l| l.get(LABEL)).and_then(Value::as_str) == Some(name) {
        return;
    }
    let name = Str::from(name);
    metadata.entry_or_null("labels").make_object().insert(LABEL, name);
}
