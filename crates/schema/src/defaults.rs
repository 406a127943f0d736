//! Fills in what a client left out, as far as the schema alone says what to fill in.
//!
//! Built-in objects are to be canonical first: a struct that Go would have is then there to be filled, and empty
//! strings and zeros that mean "not given" are gone or stand where `omitempty` is missing. They stay canonical.

use crate::{Field, Schema, Shape, StructType, TypeTable};
use kubelith_meta::{Map, Value};

/// Fills in the defaults of `schema` below `value`.
pub fn apply_defaults(table: &TypeTable, schema: &Schema, value: &mut Value) {
    match (&schema.shape, value) {
        (Shape::Named(id), Value::Object(map)) => struct_defaults(table, table.get(*id), map),
        (Shape::Struct(t), Value::Object(map)) => struct_defaults(table, t, map),
        (Shape::List(item), Value::Array(items)) if has_structs(item) => {
            items.iter_mut().for_each(|v| apply_defaults(table, item, v));
        }
        (Shape::Map(item), Value::Object(map)) if has_structs(item) => {
            map.iter_mut().for_each(|(_, v)| apply_defaults(table, item, v));
        }
        _ => {}
    }
}

fn struct_defaults(table: &TypeTable, t: &StructType, map: &mut Map) {
    for field in &t.fields {
        // A zero value that is no pointer is the same as none.
        let default = field.schema.default.as_ref().filter(|d| field.presence.nilable || !d.is_empty());
        if let Some(default) = default
            && map.get(&field.name).is_none_or(|v| is_absent(field, v))
        {
            map.insert(field.name.clone(), default.clone());
        }
        if has_structs(&field.schema)
            && let Some(value) = map.get_mut(&field.name)
        {
            apply_defaults(table, &field.schema, value);
        }
    }
}

/// A value that means that none was given: null, and the zero value of a Go field that is no pointer.
fn is_absent(field: &Field, value: &Value) -> bool {
    match value {
        Value::Null => !field.schema.nullable,
        value => !field.presence.nilable && value.is_empty(),
    }
}

/// Whether there can be anything to fill in below.
fn has_structs(schema: &Schema) -> bool {
    match &schema.shape {
        Shape::Named(_) | Shape::Struct(_) => true,
        Shape::List(item) | Shape::Map(item) => has_structs(item),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Omit, Presence, TypeId};

    fn field(name: &str, shape: Shape, presence: Presence, default: Option<Value>) -> Field {
        Field { name: name.into(), schema: Schema { shape, default, ..Schema::default() }, required: false, presence }
    }

    fn check(input: &str, want: &str) {
        let value = Presence { nilable: false, pointer: false, omit: Omit::Never };
        let pointer = Presence::default();
        let inner = StructType {
            name: "Inner".into(),
            fields: vec![field("protocol", Shape::String, value, Some("TCP".into()))],
            ..StructType::default()
        };
        let inners = |shape: fn(Box<Schema>) -> Shape| {
            shape(Box::new(Schema { shape: Shape::Named(TypeId(0)), ..Schema::default() }))
        };
        let outer = StructType {
            name: "Outer".into(),
            fields: vec![
                field("context", Shape::Named(TypeId(0)), pointer, Some(Value::object())),
                field("free", Shape::Named(TypeId(0)), pointer, None),
                field("list", inners(Shape::List), pointer, None),
                field("map", inners(Shape::Map), pointer, None),
                field("replicas", Shape::Int32, pointer, Some(1i64.into())),
            ],
            ..StructType::default()
        };
        let table = TypeTable::new(vec![inner, outer]);
        let from_json = |text: &str| -> Value { crate::canonical::tests::from_json(text) };
        let mut got = from_json(input);
        apply_defaults(&table, &Schema { shape: Shape::Named(TypeId(1)), ..Schema::default() }, &mut got);
        assert_eq!(got, from_json(want), "{input}");
    }

    #[test]
    fn what_is_absent_is_filled_in_all_the_way_down() {
        let filled = r#""context":{"protocol":"TCP"},"replicas":1"#;
        check("{}", &format!("{{{filled}}}"));
        check(r#"{"replicas":null,"context":null}"#, &format!("{{{filled}}}"));
        check(r#"{"replicas":0,"context":{"protocol":"UDP"}}"#, r#"{"replicas":0,"context":{"protocol":"UDP"}}"#);
        check(
            r#"{"free":{"protocol":""},"list":[{},{"protocol":"SCTP"}],"map":{"a":{}}}"#,
            &format!(
                r#"{{{filled},"free":{{"protocol":"TCP"}},"list":[{{"protocol":"TCP"}},{{"protocol":"SCTP"}}],"map":{{"a":{{"protocol":"TCP"}}}}}}"#
            ),
        );
    }

    #[test]
    fn a_value_of_another_shape_is_left_alone() {
        for text in ["5", "[]", r#""text""#] {
            check(text, text);
        }
        check(
            r#"{"list":5,"map":[],"free":"x"}"#,
            r#"{"list":5,"map":[],"free":"x","context":{"protocol":"TCP"},"replicas":1}"#,
        );
    }
}
