//! Types that are written as one JSON value and have a name in OpenAPI all the same.

use super::Dialect;
use kubelith_meta::{Map, Str, Value};
use kubelith_schema::{Shape, TypeTable};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const JSON: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON";

/// The name of the type behind a shape; `None` for shapes that are spelled out where they stand.
pub fn name(shape: &Shape, table: &TypeTable) -> Option<Str> {
    let beside = |id, suffix| Str::from(format!("{}{suffix}", table.get(id).name));
    Some(match shape {
        Shape::Time => Str::from(format!("{META}Time")),
        Shape::MicroTime => Str::from(format!("{META}MicroTime")),
        Shape::Duration => Str::from(format!("{META}Duration")),
        Shape::FieldsV1 => Str::from(format!("{META}FieldsV1")),
        Shape::Quantity => Str::const_new("io.k8s.apimachinery.pkg.api.resource.Quantity"),
        Shape::IntOrString => Str::const_new("io.k8s.apimachinery.pkg.util.intstr.IntOrString"),
        Shape::RawExtension => Str::const_new("io.k8s.apimachinery.pkg.runtime.RawExtension"),
        Shape::Json => Str::const_new(JSON),
        Shape::JsonSchemaOrBool(id) => beside(*id, "OrBool"),
        Shape::JsonSchemaOrArray(id) => beside(*id, "OrArray"),
        Shape::JsonSchemaOrStrings(id) => beside(*id, "OrStringArray"),
        _ => return None,
    })
}

/// The schema of such a type but for its description.
pub fn schema(name: &str, dialect: Dialect) -> Option<Map> {
    let is = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| (*k, Value::from(*v))).collect::<Map>();
    let either = |first: &str, second: &str| {
        let types = [first, second].map(|t| Value::Object(is(&[("type", t)])));
        Map::from_iter([("oneOf", Value::Array(types.into()))])
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    Some(match (last, dialect) {
        ("Time" | "MicroTime", _) => is(&[("format", "date-time"), ("type", "string")]),
        ("Duration", _) => is(&[("type", "string")]),
        ("FieldsV1" | "RawExtension" | "Patch", _) => is(&[("type", "object")]),
        ("Quantity", Dialect::V2) => is(&[("type", "string")]),
        ("Quantity", Dialect::V3) => either("string", "number"),
        ("IntOrString", Dialect::V2) => is(&[("format", "int-or-string"), ("type", "string")]),
        ("IntOrString", Dialect::V3) => {
            let mut schema = either("integer", "string");
            schema.insert("format", "int-or-string");
            schema
        }
        ("JSON", _) => Map::new(),
        (sum, _) if sum.starts_with("JSONSchemaPropsOr") => Map::new(),
        _ => return None,
    })
}
