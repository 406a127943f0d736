//! Go's names of messages and fields, for errors about malformed input.

use kubelith_schema::{Field, StructType};

pub(super) fn message(ty: &StructType) -> String {
    ty.name.rsplit('.').next().unwrap_or_default().to_owned()
}

/// The Go field behind a JSON name: mostly the name with a capital.
pub(super) fn field(ty: &StructType, field: &Field) -> String {
    if field.name == "metadata" {
        return if ty.name.ends_with("List") { "ListMeta" } else { "ObjectMeta" }.to_owned();
    }
    let mut chars = field.name.chars();
    match chars.next() {
        Some(first) => first.to_ascii_uppercase().to_string() + chars.as_str(),
        None => String::new(),
    }
}
