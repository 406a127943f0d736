//! Fills in what the schema has defaults for, and removes nulls that mean nothing.

use super::{Additional, Structural, prune};
use kubelith_meta::Value;

impl Structural {
    /// Removes from every default what the schema that it stands in does not know. What resources within have by nature is
    /// left alone: it is known without a schema.
    pub fn prune_defaults(&mut self) {
        if let Some(mut default) = self.default.take() {
            prune::prune_part(self, &mut default);
            self.default = Some(default);
        }
        let is_resource = self.embedded;
        for (name, property) in &mut self.properties {
            if !(is_resource && prune::META.contains(&name.as_str())) {
                property.prune_defaults();
            }
        }
        if let Some(items) = &mut self.items {
            items.prune_defaults();
        }
        if let Some(Additional::Of(schema)) = self.additional.as_deref_mut() {
            schema.prune_defaults();
        }
    }
}

/// Fills in defaults below `value`.
pub fn apply_defaults(schema: &Structural, value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, property) in &schema.properties {
                let Some(default) = &property.default else { continue };
                if map.get(name).is_none_or(|v| v.is_null() && !property.nullable) {
                    map.insert(name.clone(), Value::clone(default));
                }
            }
            for (key, member) in map.iter_mut() {
                if let Some(property) = schema.property(key) {
                    apply_defaults(property, member);
                } else if let Some(additional) = schema.additional_schema() {
                    fill_null(additional, member);
                    apply_defaults(additional, member);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items.as_deref() else { return };
            for item in items {
                fill_null(schema, item);
                apply_defaults(schema, item);
            }
        }
        _ => {}
    }
}

fn fill_null(schema: &Structural, value: &mut Value) {
    if value.is_null() && !schema.nullable {
        *value = schema.default.as_deref().cloned().unwrap_or_default();
    }
}

/// Removes members that are null where null is no value and no default takes its place.
pub fn drop_nulls(schema: &Structural, value: &mut Value) {
    match value {
        Value::Object(map) => map.retain(|key, member| {
            let Some(schema) = schema.member(key) else { return true };
            if member.is_null() && !schema.nullable && schema.default.is_none() {
                return false;
            }
            drop_nulls(schema, member);
            true
        }),
        Value::Array(items) => {
            if let Some(schema) = schema.items.as_deref() {
                items.iter_mut().for_each(|item| drop_nulls(schema, item));
            }
        }
        _ => {}
    }
}
