//! Declared types of structural schemas. What a schema does not describe (any type, unknown fields) rules cannot see.

use super::{Declared, Field, ListKind, MAX_REQUEST, MemberKind, Object};
use crate::types::Type;
use kubelith_meta::{Str, Value};
use kubelith_schema::structural::{List, Structural, Type as Schema};
use std::sync::Arc;

/// The smallest and largest JSON texts of times, with their quotes.
const MAX_DURATION: u64 = 32;
const MAX_DATE_TIME: u64 = 32;
const MIN_DURATION: u64 = 3;
const DATE: u64 = 12;
const MIN_DATE_TIME: u64 = 21;
const MIN_STRING: u64 = 2;
const MIN_BOOL: u64 = 4;
const MIN_NUMBER: u64 = 1;

/// Whether kind, apiVersion, name and generateName can be seen even if the schema does not have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// A whole custom resource, or an embedded one.
    Resource,
    Value,
}

impl Root {
    pub fn of(schema: &Structural) -> Root {
        if schema.embedded { Root::Resource } else { Root::Value }
    }
}

impl Declared {
    /// The declared type of a schema; `None` if rules cannot see such values. `name` becomes the name of its type, if it
    /// is an object.
    pub fn of_schema(schema: &Structural, root: Root, name: &str) -> Option<Declared> {
        let mut declared = declare(schema, root, name)?;
        declared.nullable = schema.nullable;
        Some(declared)
    }
}

fn scalar(cel: Type, kind: MemberKind, min_size: u64, max_elements: u64) -> Declared {
    Declared { cel, kind, nullable: false, min_size, max_elements }
}

fn declare(schema: &Structural, root: Root, name: &str) -> Option<Declared> {
    let rules = schema.rules.as_deref();
    let bounded = |limit: Option<i64>| limit.map(|n| u64::try_from(n).unwrap_or(0));
    if schema.int_or_string {
        let max = rules.and_then(|r| bounded(r.max_length)).map_or(MAX_REQUEST - 2, |n| n.saturating_mul(4));
        return Some(scalar(Type::Dyn, MemberKind::IntOrString, MIN_NUMBER, max));
    }
    match schema.kind? {
        Schema::Array => {
            let items = schema.items.as_deref()?;
            let element = Declared::of_schema(items, Root::of(items), &format!("{name}.@idx"))?;
            let max = rules.and_then(|r| bounded(r.max_items));
            let max = max.unwrap_or((MAX_REQUEST - 2) / (element.min_size + 1));
            let kind = match &schema.list {
                Some(List::Set) => ListKind::Set,
                Some(List::Map(keys)) => ListKind::Map(keys.clone()),
                _ => ListKind::Atomic,
            };
            Some(Declared::list(element, kind, max))
        }
        Schema::Object => match schema.additional_schema() {
            Some(values) => {
                let value = Declared::of_schema(values, Root::of(values), &format!("{name}.@elem"))?;
                let max = rules.and_then(|r| bounded(r.max_properties));
                let max = max.unwrap_or((MAX_REQUEST - 2) / (value.min_size + 6));
                Some(Declared::map(value, max))
            }
            None => Some(object(schema, root, name)),
        },
        Schema::String => Some(string(schema)),
        Schema::Boolean => Some(scalar(Type::Bool, MemberKind::Bool, MIN_BOOL, 0)),
        Schema::Number => Some(scalar(Type::Double, MemberKind::Double, MIN_NUMBER, 0)),
        Schema::Integer => Some(scalar(Type::Int, MemberKind::Int, MIN_NUMBER, 0)),
    }
}

/// How a value is read that rules cannot see: it, or what it has in it, has no type.
fn untyped(schema: &Structural, name: &str) -> Declared {
    let of = |inner: &Structural, name: String| {
        Declared::of_schema(inner, Root::of(inner), &name).unwrap_or_else(|| untyped(inner, &name))
    };
    let mut declared = match (schema.kind, schema.items.as_deref(), schema.additional_schema()) {
        (Some(Schema::Array), Some(items), _) => {
            let kind = match &schema.list {
                Some(List::Set) => ListKind::Set,
                Some(List::Map(keys)) => ListKind::Map(keys.clone()),
                _ => ListKind::Atomic,
            };
            Declared::list(of(items, format!("{name}.@idx")), kind, 0)
        }
        (Some(Schema::Object), _, Some(values)) => Declared::map(of(values, format!("{name}.@elem")), 0),
        _ => Declared::dynamic(),
    };
    declared.nullable = schema.nullable;
    declared
}

fn string(schema: &Structural) -> Declared {
    let rules = schema.rules.as_deref();
    let max_length = rules.and_then(|r| r.max_length).map(|n| u64::try_from(n).unwrap_or(0));
    match rules.map_or("", |r| r.format.as_str()) {
        "byte" => scalar(Type::Bytes, MemberKind::Bytes, MIN_STRING, max_length.unwrap_or(MAX_REQUEST - 2)),
        "duration" => scalar(Type::Duration, MemberKind::Duration, MIN_DURATION, MAX_DURATION),
        "date" => scalar(Type::Timestamp, MemberKind::Date, DATE, DATE),
        "date-time" => scalar(Type::Timestamp, MemberKind::DateTime, MIN_DATE_TIME, MAX_DATE_TIME),
        _ => {
            // The limit is in characters, which have up to four bytes.
            let limit = max_length.map(|n| n.saturating_mul(4));
            let longest = || {
                let allowed = &rules?.enumeration;
                let strings = allowed.iter().filter_map(Value::as_str).map(|s| s.len() as u64);
                if allowed.is_empty() { None } else { Some(strings.max().unwrap_or(0)) }
            };
            let max = limit.or_else(longest).unwrap_or(MAX_REQUEST - 2);
            scalar(Type::String, MemberKind::String, MIN_STRING, max)
        }
    }
}

fn object(schema: &Structural, root: Root, name: &str) -> Declared {
    let required = schema.rules.as_deref().map_or(&[][..], |r| &r.required);
    let mut fields = Vec::with_capacity(schema.properties.len());
    let mut hidden = Vec::new();
    // `{}`, and each required member with its quotes, colon and comma.
    let mut min_size = 2;
    let mut add = |property: &str, schema: &Structural| {
        let Some(escaped) = crate::escape::escape(property) else { return };
        let Some(declared) = Declared::of_schema(schema, Root::of(schema), &format!("{name}.{escaped}")) else {
            let declared = untyped(schema, &format!("{name}.{escaped}"));
            hidden.push(Field { name: escaped.into(), property: property.into(), declared, required: false });
            return;
        };
        let is_required = required.iter().any(|r| r == property);
        // Defaults are filled in by the server.
        if is_required && schema.default.is_none() {
            min_size += property.len() as u64 + declared.min_size + 4;
        }
        fields.push(Field { name: escaped.into(), property: property.into(), declared, required: is_required });
    };
    let added = root == Root::Resource && !has_object_meta(schema);
    for (property, schema) in &schema.properties {
        if !(added && matches!(property.as_str(), "kind" | "apiVersion" | "metadata")) {
            add(property, schema);
        }
    }
    if added {
        let text = Structural { kind: Some(Schema::String), ..Structural::default() };
        let properties = ["generateName", "name"].map(|name| (Str::from(name), text.clone()));
        let metadata =
            Structural { kind: Some(Schema::Object), properties: properties.into(), ..Structural::default() };
        add("kind", &text);
        add("apiVersion", &text);
        add("metadata", &metadata);
    }
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    let preserve_unknown = schema.preserve_unknown;
    Declared::object(Arc::new(Object { name: name.into(), fields, open: false, preserve_unknown, hidden }), min_size)
}

/// Whether a schema has what every resource has.
fn has_object_meta(schema: &Structural) -> bool {
    let is = |schema: &Structural, name: &str, kind| schema.property(name).is_some_and(|p| p.kind == Some(kind));
    is(schema, "kind", Schema::String)
        && is(schema, "apiVersion", Schema::String)
        && is(schema, "metadata", Schema::Object)
        && schema
            .property("metadata")
            .is_some_and(|meta| is(meta, "name", Schema::String) && is(meta, "generateName", Schema::String))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Env, Program, Val};

    fn convert(json: &serde_json::Value) -> Value {
        use serde_json::Value as Json;
        match json {
            Json::Null => Value::Null,
            Json::Bool(b) => (*b).into(),
            Json::Number(n) => n.as_i64().unwrap_or_default().into(),
            Json::String(s) => s.as_str().into(),
            Json::Array(list) => Value::Array(list.iter().map(convert).collect()),
            Json::Object(map) => Value::Object(map.iter().map(|(k, v)| (Str::from(k.as_str()), convert(v))).collect()),
        }
    }

    fn value(text: &str) -> Value {
        convert(&serde_json::from_str(text).expect("JSON"))
    }

    /// Rules see no property whose schema has no type, unless they look at an object as at anything.
    #[test]
    fn what_has_no_type_is_hidden_and_there() {
        let any = r#"{"x-kubernetes-preserve-unknown-fields":true}"#;
        let schema = format!(
            r#"{{"type":"object","properties":{{"s":{{"type":"string"}},"any":{any},"other":{any},
                "a-b":{any},"l":{{"type":"array","items":{any}}},"m":{{"type":"object","additionalProperties":{any}}}}}}}"#
        );
        let declared = Declared::of_schema(&Structural::parse(&value(&schema)), Root::Value, "t").expect("a type");
        let env = Env::base().types(vec![declared.clone()]);
        let env = env.declare("self", declared.clone()).declare("oldSelf", declared.clone());
        let [new, old] = [
            r#"{"s":"x","any":{"k":1},"a-b":true,"l":[1,2],"m":{"k":{"deep":1}}}"#,
            r#"{"s":"x","any":{"k":1},"a-b":null,"l":[1,2],"other":1}"#,
        ]
        .map(value);
        let variables = [&new, &old].map(|object| Val::typed(object, &declared).expect("an object"));
        assert!(env.compile("self.any == oldSelf.any").is_err());
        for (expression, want) in [
            ("has(dyn(self).any) && !has(dyn(self).nothing)", "true"),
            ("dyn(self).any == dyn(oldSelf).any", "true"),
            ("dyn(self).a__dash__b == true", "true"),
            ("has(dyn(oldSelf).a__dash__b)", "false"),
            ("dyn(self).l == dyn(oldSelf).l && dyn(self).l.size() == 2", "true"),
            ("'k' in dyn(self).m", "true"),
            ("'any' in dyn(self)", "true"),
            // As many members, of which one is another.
            ("self == oldSelf", "false"),
        ] {
            let checked = env.compile(expression).unwrap_or_else(|issues| panic!("{expression}: {issues}"));
            let program = Program::new(&env, &checked).expect("a program");
            let (result, _) = program.eval_within(&variables, u64::MAX);
            let shown = result.map_or_else(|e| e.to_string(), |value| value.to_string());
            assert_eq!(shown, want, "{expression}");
        }
    }
}
