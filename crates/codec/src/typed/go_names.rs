//! Go's names of types and fields, for error messages only.

use kubelith_schema::{Schema, Shape, StructType, TypeTable};

/// What Go calls a field's type, and the embedded structs between the struct and the field.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GoField<'t> {
    pub type_name: Option<&'t str>,
    pub embedded: &'t str,
}

pub(super) fn field<'t>(ty: &'t StructType, name: &str) -> GoField<'t> {
    if matches!(name, "kind" | "apiVersion") && ty.field("metadata").is_some() {
        return GoField { type_name: None, embedded: "TypeMeta" };
    }
    let known = ty.go.iter().find(|field| field.name == name);
    known.map_or_else(GoField::default, |field| GoField {
        type_name: Some(field.type_name.as_str()).filter(|name| !name.is_empty()),
        embedded: &field.embedded,
    })
}

/// The type's own name: `PodSpec`.
pub(super) fn struct_name(ty: &StructType) -> &str {
    ty.name.rsplit('.').next().unwrap_or("")
}

/// The name with its package: `v1.PodSpec`.
pub(super) fn qualified(ty: &StructType) -> String {
    let mut parts = ty.name.rsplit('.');
    let name = parts.next().unwrap_or("");
    match parts.next() {
        Some(package) => format!("{package}.{name}"),
        None => name.to_owned(),
    }
}

/// What Go calls the type of a schema that has no named type of its own.
pub(super) fn of_schema(table: &TypeTable, schema: &Schema) -> String {
    match &schema.shape {
        Shape::Any => "interface {}".into(),
        Shape::Bool => "bool".into(),
        Shape::Int32 => "int32".into(),
        Shape::Int64 => "int64".into(),
        Shape::Float => "float64".into(),
        Shape::String => "string".into(),
        Shape::Bytes => "[]uint8".into(),
        Shape::Time => "v1.Time".into(),
        Shape::MicroTime => "v1.MicroTime".into(),
        Shape::Duration => "v1.Duration".into(),
        Shape::Quantity => "resource.Quantity".into(),
        Shape::IntOrString => "intstr.IntOrString".into(),
        Shape::RawExtension => "runtime.RawExtension".into(),
        Shape::FieldsV1 => "v1.FieldsV1".into(),
        Shape::Json => "v1.JSON".into(),
        Shape::JsonSchemaOrBool(_) => "v1.JSONSchemaPropsOrBool".into(),
        Shape::JsonSchemaOrArray(_) => "v1.JSONSchemaPropsOrArray".into(),
        Shape::JsonSchemaOrStrings(_) => "v1.JSONSchemaPropsOrStringArray".into(),
        Shape::Named(id) => qualified(table.get(*id)),
        Shape::Struct(ty) => qualified(ty),
        Shape::Map(value) => format!("map[string]{}", of_schema(table, value)),
        Shape::List(item) => format!("[]{}", of_schema(table, item)),
    }
}

/// The type of the elements of a list or map type, if its name says so.
pub(super) fn element(type_name: &str) -> Option<&str> {
    if let Some(element) = type_name.strip_prefix("[]") {
        return Some(element.trim_start_matches('*'));
    }
    let (_, element) = type_name.strip_prefix("map[")?.split_once(']')?;
    Some(element.trim_start_matches('*'))
}
