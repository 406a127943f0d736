//! Ways through a schema in its OpenAPI form.

use kubelith_meta::Value;

/// Whether a schema or any schema in it fulfils `wanted`.
pub fn any(schema: &Value, wanted: &mut dyn FnMut(&Value) -> bool) -> bool {
    if schema.as_object().is_none() {
        return false;
    }
    if wanted(schema) {
        return true;
    }
    let single = ["items", "not", "additionalProperties", "additionalItems"];
    let lists = ["items", "allOf", "anyOf", "oneOf"];
    let maps = ["properties", "patternProperties", "definitions", "dependencies"];
    let list = |key: &&str| schema.get(key).and_then(Value::as_array).unwrap_or(&[]).iter();
    lists.iter().flat_map(list).any(|s| any(s, wanted))
        || single.iter().filter_map(|key| schema.get(key)).any(|s| any(s, wanted))
        || maps
            .iter()
            .filter_map(|key| schema.get(key).and_then(Value::as_object))
            .flat_map(|m| m.values())
            .any(|s| any(s, wanted))
}

pub fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// Present, and not null.
pub fn has(schema: &Value, key: &str) -> bool {
    schema.get(key).is_some_and(|v| !v.is_null())
}

/// Present, and neither null nor empty.
pub fn has_some(schema: &Value, key: &str) -> bool {
    schema.get(key).is_some_and(|v| !v.is_empty())
}

pub fn list<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema.get(key).and_then(Value::as_array).unwrap_or(&[])
}

/// The members of an object of schemas.
pub fn members<'a>(schema: &'a Value, key: &str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    schema.get(key).and_then(Value::as_object).into_iter().flat_map(|m| m.iter())
}

/// All schemas of a definition in its stored form: the common one, then those of versions.
pub fn schemas(object: &Value) -> impl Iterator<Item = &Value> {
    let common = object.at(&["spec", "validation", "openAPIV3Schema"]);
    let versions = object.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or(&[]);
    common.into_iter().chain(versions.iter().filter_map(|v| v.at(&["schema", "openAPIV3Schema"])))
}

/// Why a schema has no structural form at all; `None` if it has one, be it a bad one.
pub fn unsupported(schema: &Value) -> Option<String> {
    let mut problem = None;
    any(schema, &mut |s| {
        let key = ["id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"];
        problem = match key.iter().find(|key| has_some(s, key)) {
            Some(key) => {
                Some(format!("OpenAPIV3Schema '{}' is not supported", if *key == "$schema" { "schema" } else { key }))
            }
            None if s.get("items").is_some_and(|i| i.as_array().is_some()) => {
                Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned())
            }
            None if s.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) => {
                Some("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined".to_owned())
            }
            None => None,
        };
        problem.is_some()
    });
    problem
}
