//! Merge strategies by field, from the type table.

use super::StrategicError;
use kubelith_meta::Str;
use kubelith_schema::{Schema, Shape, StructType, TypeTable, TypedSchema};

/// The type of the value that is being merged.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    table: &'a TypeTable,
    schema: &'a Schema,
    /// Whether Go has a pointer to it; some messages name the kind.
    pointer: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    /// Objects merge, lists are replaced.
    Default,
    Merge,
    Replace,
}

/// A field's type and how it merges. For lists `node` is the type of an element.
pub(super) struct FieldMerge<'a> {
    pub(super) node: Node<'a>,
    pub(super) strategy: Strategy,
    pub(super) merge_key: Option<&'a Str>,
}

impl<'a> Node<'a> {
    pub(super) fn root(schema: &'a TypedSchema) -> Node<'a> {
        Node { table: &schema.table, schema: &schema.root, pointer: false }
    }

    /// The field `key` of a struct.
    pub(super) fn member(&self, key: &str) -> Result<FieldMerge<'a>, StrategicError> {
        let unknown = |name: &str| StrategicError::UnknownField { struct_name: Str::from(name), field: Str::from(key) };
        let Some(struct_type) = self.table.resolve(self.schema) else {
            return Err(match opaque_struct(&self.schema.shape) {
                Some(name) => unknown(name),
                None => StrategicError::NotAStruct(self.kind()),
            });
        };
        let field = find_field(struct_type, key)
            .ok_or_else(|| unknown(struct_type.name.rsplit('.').next().unwrap_or_default()))?;
        let node = Node { table: self.table, schema: &field.schema, pointer: field.presence.pointer };
        let (strategy, merge_key) = match &field.schema.patch {
            None => (Strategy::Default, None),
            Some(hint) if hint.merge => (Strategy::Merge, hint.merge_key.as_ref()),
            Some(hint) if hint.retain_keys || hint.merge_key.is_some() => (Strategy::Default, hint.merge_key.as_ref()),
            Some(_) => (Strategy::Replace, None),
        };
        Ok(FieldMerge { node, strategy, merge_key })
    }

    /// The field `key` of a struct, which must be a list: `node` of the answer is its element.
    pub(super) fn list_member(&self, key: &str) -> Result<FieldMerge<'a>, StrategicError> {
        let mut field = self.member(key)?;
        match &field.node.schema.shape {
            Shape::List(element) => {
                if matches!(element.shape, Shape::List(_) | Shape::Bytes) {
                    return Err(StrategicError::SliceOfSlice);
                }
                field.node = Node { table: self.table, schema: element, pointer: false };
                Ok(field)
            }
            _ => Err(StrategicError::NotAList(self.kind())),
        }
    }

    #[cfg(test)]
    pub(super) fn retains_keys(&self, key: &str) -> bool {
        let field = self.table.resolve(self.schema).and_then(|s| s.field(key));
        field.and_then(|f| f.schema.patch.as_ref()).is_some_and(|hint| hint.retain_keys)
    }

    /// Go's name for the kind of type this is.
    pub(super) fn kind(&self) -> &'static str {
        match &self.schema.shape {
            Shape::Named(_) | Shape::Struct(_) if self.pointer => "ptr",
            Shape::Any => "interface",
            Shape::Bool => "bool",
            Shape::Int32 => "int32",
            Shape::Int64 => "int64",
            Shape::Float => "float64",
            Shape::String => "string",
            Shape::Map(_) => "map",
            Shape::List(_) | Shape::Bytes => "slice",
            _ => "struct",
        }
    }
}

/// Types that are structs in Go without JSON fields of their own.
fn opaque_struct(shape: &Shape) -> Option<&'static str> {
    Some(match shape {
        Shape::Time => "Time",
        Shape::MicroTime => "MicroTime",
        Shape::Duration => "Duration",
        Shape::Quantity => "Quantity",
        Shape::IntOrString => "IntOrString",
        Shape::RawExtension => "RawExtension",
        Shape::FieldsV1 => "FieldsV1",
        Shape::Json => "JSON",
        Shape::JsonSchemaOrBool(_) => "JSONSchemaPropsOrBool",
        Shape::JsonSchemaOrArray(_) => "JSONSchemaPropsOrArray",
        Shape::JsonSchemaOrStrings(_) => "JSONSchemaPropsOrStringArray",
        _ => return None,
    })
}

/// By name, or else by name in any case: the reference looks fields up as Go's decoder does.
fn find_field<'a>(struct_type: &'a StructType, key: &str) -> Option<&'a kubelith_schema::Field> {
    struct_type.field(key).or_else(|| struct_type.fields.iter().find(|f| f.name.eq_ignore_ascii_case(key)))
}
