//! Values as JSON: what mutations hand on.

use super::{ObjectVal, Val};
use base64::Engine;
use kubelith_meta::text::quote;
use kubelith_meta::{Map, Str, Value};

impl Val<'_> {
    /// The value as JSON, as the reference's plain values are written. The error is its message.
    pub fn to_json(&self) -> Result<Value, String> {
        Ok(match self {
            Val::Null => Value::Null,
            Val::Bool(b) => Value::Bool(*b),
            Val::Int(i) => Value::Int(*i),
            Val::Uint(u) => i64::try_from(*u).map_or(Value::Float(*u as f64), Value::Int),
            Val::Double(d) => Value::Float(*d),
            Val::Duration(nanos) => Value::Int(*nanos),
            Val::Timestamp(t) => Value::from(t.rfc3339()),
            Val::Type(name) => Value::String(Str::from(&**name)),
            Val::Json(value, _) | Val::Preserved(value) => (*value).clone(),
            Val::Optional(None) => Value::Null,
            Val::Optional(Some(of)) => of.to_json()?,
            Val::Opaque(opaque) => Value::from(opaque.to_string()),
            Val::Object(object) => object.to_json()?,
            Val::Patch(_) => return Err("a patch is no value".into()),
            _ => {
                if let Some(text) = self.as_str() {
                    return Ok(Value::String(Str::from(text)));
                }
                if let Some(bytes) = self.as_bytes() {
                    return Ok(Value::from(base64::engine::general_purpose::STANDARD.encode(bytes)));
                }
                if let Some(list) = self.as_list() {
                    let items = list.iter().map(|item| item.map_err(|e| e.to_string())?.to_json());
                    return Ok(Value::Array(items.collect::<Result<_, _>>()?));
                }
                let mut members = Map::new();
                for (key, value) in self.as_map().map(|m| m.entries()).unwrap_or_default() {
                    let Some(name) = key.as_str() else {
                        let shown = quote(&key.to_string());
                        return Err(format!("map key {shown} is of type {}, not string", key.go_type()));
                    };
                    members.insert(name, value.map_err(|e| e.to_string())?.to_json()?);
                }
                Value::Object(members)
            }
        })
    }
}

impl ObjectVal<'_> {
    pub fn to_json(&self) -> Result<Value, String> {
        let mut members = Map::new();
        for (name, value) in &self.fields {
            let json = value.to_json().map_err(|why| format!("fail to convert field {}: {why}", quote(name)))?;
            members.insert(&**name, json);
        }
        Ok(Value::Object(members))
    }

    /// Whether the types of the objects in it are those of the fields they are in: one message for each that is not.
    pub fn misplaced_types(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.check_types(&self.type_name, &mut found);
        found
    }

    fn check_types(&self, path: &str, found: &mut Vec<String>) {
        if *self.type_name != *path {
            found.push(format!(
                "unexpected type name {}, expected {}, which matches field name path from root Object type",
                quote(&self.type_name),
                quote(path)
            ));
        }
        for (name, value) in &self.fields {
            check_types(value, &format!("{path}.{name}"), found);
        }
    }
}

fn check_types(value: &Val<'_>, path: &str, found: &mut Vec<String>) {
    match value {
        Val::Object(object) => object.check_types(path, found),
        Val::List(list) => list.items.iter().for_each(|item| check_types(item, path, found)),
        Val::Map(map) => map.entries().iter().for_each(|(_, value)| check_types(value, path, found)),
        _ => {}
    }
}
