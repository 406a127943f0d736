//! Types for expressions out of OpenAPI: what a schema does not tell the type of, expressions cannot see.

use super::VersionedKind;
use kubelith_cel::declared::{Declared, Field, ListKind, MemberKind, Object};
use kubelith_cel::escape::escape;
use kubelith_cel::types::Type;
use kubelith_meta::Value;
use std::sync::Arc;

/// Costs are not looked at, and with them the sizes of values.
const SIZE: u64 = 1;
const REFERENCE: &str = "#/components/schemas/";

/// The type of a kind in the document of its group version; `None` without a schema, `Some(None)` if that says nothing.
pub fn declared(document: &Value, kind: &VersionedKind, name: &str) -> Option<Option<Declared>> {
    let schemas = document.at(&["components", "schemas"])?;
    let is = |found: &Value| {
        let text = |field: &str| found.str_at(&[field]);
        text("group") == kind.group && text("version") == kind.version && text("kind") == kind.kind
    };
    let (reference, schema) = schemas.as_object()?.iter().find(|(_, schema)| {
        let kinds = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
        kinds.is_some_and(|kinds| kinds.iter().any(is))
    })?;
    let mut reader = Reader { schemas, open: vec![reference] };
    Some(reader.root(schema, name))
}

struct Reader<'a> {
    schemas: &'a Value,
    /// The references that are being followed: a type within itself is an object without fields.
    open: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    fn root(&mut self, schema: &'a Value, name: &str) -> Option<Declared> {
        let mut declared = self.read(schema, name)?;
        // Every resource has these, whatever its schema says.
        if let MemberKind::Object(object) = &declared.kind
            && !self.has_object_meta(schema)
        {
            let string = |name: &str| field(name, scalar(Type::String, MemberKind::String), false);
            let metadata = object_of(&format!("{name}.metadata"), vec![string("name"), string("generateName")]);
            let added = [string("kind"), string("apiVersion"), field("metadata", metadata, false)];
            let mut fields: Vec<Field> =
                object.fields.iter().filter(|f| !added.iter().any(|a| a.name == f.name)).cloned().collect();
            fields.extend(added);
            declared = object_of(name, fields);
        }
        Some(declared)
    }

    fn has_object_meta(&self, schema: &Value) -> bool {
        let property = |schema: &Value, name: &str| schema.at(&["properties", name]).cloned().map(|p| self.resolved(p));
        let is = |schema: &Value, name: &str, kind: &str| {
            property(schema, name).is_some_and(|property| property.str_at(&["type"]) == kind)
        };
        let metadata = property(schema, "metadata");
        is(schema, "kind", "string")
            && is(schema, "apiVersion", "string")
            && metadata.is_some_and(|meta| {
                meta.str_at(&["type"]) == "object" && is(&meta, "name", "string") && is(&meta, "generateName", "string")
            })
    }

    fn resolved(&self, schema: Value) -> Value {
        let target = reference(&schema).and_then(|name| self.schemas.get(name)).cloned();
        target.unwrap_or(schema)
    }

    fn read(&mut self, schema: &'a Value, name: &str) -> Option<Declared> {
        let Some(target) = reference(schema) else { return self.plain(schema, name) };
        if self.open.contains(&target) {
            return Some(object_of(name, Vec::new()));
        }
        let schemas = self.schemas;
        let found = schemas.get(target)?;
        self.open.push(target);
        let declared = self.plain(found, name);
        self.open.pop();
        declared
    }

    fn plain(&mut self, schema: &'a Value, name: &str) -> Option<Declared> {
        let format = schema.str_at(&["format"]);
        let is = |extension: &str| schema.get(extension).and_then(Value::as_bool) == Some(true);
        if format == "int-or-string" || is("x-kubernetes-int-or-string") {
            return Some(scalar(Type::Dyn, MemberKind::IntOrString));
        }
        Some(match (schema.str_at(&["type"]), format) {
            ("array", _) => {
                let element = self.member(schema.get("items")?, &format!("{name}.@idx"))?;
                Declared::list(element, ListKind::Atomic, SIZE)
            }
            ("object", _) => match schema.get("additionalProperties").filter(|values| values.as_object().is_some()) {
                Some(values) => Declared::map(self.member(values, &format!("{name}.@elem"))?, SIZE),
                None => self.object(schema, name),
            },
            ("string", "byte") => scalar(Type::Bytes, MemberKind::Bytes),
            ("string", "duration") => scalar(Type::Duration, MemberKind::Duration),
            ("string", "date") => scalar(Type::Timestamp, MemberKind::Date),
            ("string", "date-time") => scalar(Type::Timestamp, MemberKind::DateTime),
            ("string", _) => scalar(Type::String, MemberKind::String),
            ("boolean", _) => scalar(Type::Bool, MemberKind::Bool),
            ("number", _) => scalar(Type::Double, MemberKind::Double),
            ("integer", _) => scalar(Type::Int, MemberKind::Int),
            _ => return None,
        })
    }

    /// What is inside of another may be a resource of its own.
    fn member(&mut self, schema: &'a Value, name: &str) -> Option<Declared> {
        match schema.get("x-kubernetes-embedded-resource").and_then(Value::as_bool) {
            Some(true) => self.root(schema, name),
            _ => self.read(schema, name),
        }
    }

    fn object(&mut self, schema: &'a Value, name: &str) -> Declared {
        let properties = schema.get("properties").and_then(Value::as_object);
        let required = schema.get("required").and_then(Value::as_array).unwrap_or_default();
        let mut fields = Vec::new();
        for (property, schema) in properties.into_iter().flat_map(|properties| properties.iter()) {
            let Some(escaped) = escape(property) else { continue };
            let Some(declared) = self.member(schema, &format!("{name}.{escaped}")) else { continue };
            let required = required.iter().any(|name| name.as_str() == Some(property));
            fields.push(Field { name: escaped.into(), property: property.into(), declared, required });
        }
        object_of(name, fields)
    }
}

/// The name of another schema that stands for this one, also where it is wrapped for the sake of a description.
fn reference(schema: &Value) -> Option<&str> {
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        return target.strip_prefix(REFERENCE);
    }
    schema.get("allOf").and_then(Value::as_array)?.iter().find_map(reference)
}

fn scalar(cel: Type, kind: MemberKind) -> Declared {
    Declared { cel, kind, nullable: false, min_size: SIZE, max_elements: 0 }
}

fn field(name: &str, declared: Declared, required: bool) -> Field {
    Field { name: name.into(), property: name.into(), declared, required }
}

fn object_of(name: &str, mut fields: Vec<Field>) -> Declared {
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    let object = Object { name: name.into(), fields, open: false, preserve_unknown: false, hidden: Vec::new() };
    Declared::object(Arc::new(object), SIZE)
}
