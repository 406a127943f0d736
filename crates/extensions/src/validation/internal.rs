//! Values as errors show them: in the reference they are printed as its internal types, which have Go's names.

use kubelith_meta::field::BadValue;
use kubelith_meta::{Value, text};

/// `spec.versions`.
pub fn versions(versions: &Value) -> BadValue {
    let Some(list) = versions.as_array() else { return BadValue::text("null") };
    let shown: Vec<String> = list.iter().map(version).collect();
    BadValue::text(format!("[{}]", shown.join(",")))
}

fn version(version: &Value) -> String {
    let flag = |key: &str| super::walk::flag(version, key);
    let raw = |key: &str| version.get(key).map_or_else(|| "null".to_owned(), text::json);
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{},\
         \"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
        text::json(&Value::from(version.str_at(&["name"]))),
        flag("served"),
        flag("storage"),
        flag("deprecated"),
        raw("deprecationWarning"),
        raw("schema"),
        raw("subresources"),
        raw("additionalPrinterColumns"),
        raw("selectableFields"),
    )
}
