//! StorageClasses.

pub mod validate;

use kubelith_meta::Value;
use kubelith_pods::warnings::old_node_label;
use kubelith_rules::Kind;
use kubelith_rules::cells::{Cells, Row};

pub const STORAGE_CLASS: Kind = Kind {
    group: "storage.k8s.io",
    plural: "storageclasses",
    rules: validate::RULES,
    cells: CELLS,

    delete_returns_object: true,
    warnings_on_create: |_, class| storage_class_warnings(class),
    warnings_on_update: |_, _, class, _| storage_class_warnings(class),
    ..Kind::PLAIN
};

pub const CELLS: Cells = &[("default_class_name", default_class_name)];

/// The class that is taken where none is named is marked.
fn default_class_name(row: &Row<'_>) -> Option<Value> {
    let annotations: &[&str] = match row.text(&["kind"]) {
        "IngressClass" => &["ingressclass.kubernetes.io/is-default-class"],
        _ => &["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"],
    };
    let name = row.text(&["metadata", "name"]);
    let is_default = annotations.iter().any(|a| row.text(&["metadata", "annotations", a]) == "true");
    Some(if is_default { format!("{name} (default)").into() } else { name.into() })
}

fn storage_class_warnings(class: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for (i, term) in class.get("allowedTopologies").and_then(Value::as_array).unwrap_or(&[]).iter().enumerate() {
        let expressions = term.get("matchLabelExpressions").and_then(Value::as_array).unwrap_or(&[]);
        for (j, expression) in expressions.iter().enumerate() {
            if let Some(why) = old_node_label(expression.str_at(&["key"])) {
                warnings.push(format!("allowedTopologies[{i}].matchLabelExpressions[{j}].key: {why}"));
            }
        }
    }
    warnings
}
