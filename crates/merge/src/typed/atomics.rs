//! Which parts of a value are owned as a whole: setting one replaces all that is in it.

use super::{Type, TypeKind};
use crate::fieldset::PathElement;
use kubelith_meta::Value;
use kubelith_schema::ListKind;

impl Type<'_> {
    /// Paths of the atomic lists, maps and structs in a value.
    pub fn atomics(self, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        find(self, value, "", &mut found);
        found
    }
}

fn find(ty: Type<'_>, value: &Value, path: &str, found: &mut Vec<String>) {
    match (ty.kind(Some(value)), value) {
        (TypeKind::Map(map), Value::Object(members)) => {
            if map.atomic {
                found.push(path.to_owned());
            }
            for (name, member) in members.iter() {
                // Members that no field declares are not looked into.
                if let Some(ty) = map.field(name) {
                    find(ty, member, &format!("{path}{}", PathElement::field(name)), found);
                }
            }
        }
        (TypeKind::List(list), Value::Array(items)) => {
            if *list.kind == ListKind::Atomic {
                found.push(path.to_owned());
            }
            for (i, item) in items.iter().enumerate() {
                find(list.element, item, &format!("{path}[{i}]"), found);
            }
        }
        _ => {}
    }
}
