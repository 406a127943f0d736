use super::*;
use crate::{Presence, TypeId};
use kubelith_meta::Str;

const VALUE: Presence = Presence { nilable: false, pointer: false, omit: Omit::Empty };
const POINTER: Presence = Presence { nilable: true, pointer: true, omit: Omit::Empty };
const SLICE: Presence = Presence { nilable: true, pointer: false, omit: Omit::Empty };

fn always(presence: Presence) -> Presence {
    Presence { omit: Omit::Never, ..presence }
}

fn schema(shape: Shape) -> Schema {
    Schema { shape, ..Schema::default() }
}

fn list(shape: Shape) -> Shape {
    Shape::List(Box::new(schema(shape)))
}

fn map(shape: Shape) -> Shape {
    Shape::Map(Box::new(schema(shape)))
}

fn go_struct(name: &str, fields: Vec<(&str, Shape, Presence)>) -> StructType {
    let mut fields: Vec<Field> = fields
        .into_iter()
        .map(|(name, shape, presence)| Field { name: Str::new(name), schema: schema(shape), required: false, presence })
        .collect();
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    StructType { name: name.into(), fields: fields.into(), ..StructType::default() }
}

/// Type 0 has one field of each sort, type 1 is a struct inside of it, type 2 a schema of a CRD.
fn table() -> TypeTable {
    let sorts = vec![
        ("bool", Shape::Bool, VALUE),
        ("boolPtr", Shape::Bool, POINTER),
        ("boolAlways", Shape::Bool, always(VALUE)),
        ("text", Shape::String, VALUE),
        ("textPtr", Shape::String, POINTER),
        ("textPtrAlways", Shape::String, always(POINTER)),
        ("list", list(Shape::String), SLICE),
        ("listAlways", list(Shape::Named(TypeId(1))), always(SLICE)),
        ("map", map(Shape::String), SLICE),
        ("mapAlways", map(Shape::Bytes), always(SLICE)),
        ("inner", Shape::Named(TypeId(1)), VALUE),
        ("innerPtr", Shape::Named(TypeId(1)), POINTER),
        ("innerZero", Shape::Named(TypeId(1)), Presence { omit: Omit::Zero, ..VALUE }),
        ("time", Shape::Time, VALUE),
        ("timePtr", Shape::Time, POINTER),
        ("timeZero", Shape::Time, Presence { omit: Omit::Zero, ..VALUE }),
        ("quantity", Shape::Quantity, POINTER),
        ("port", Shape::IntOrString, POINTER),
        ("raw", Shape::RawExtension, VALUE),
        ("items", Shape::JsonSchemaOrArray(TypeId(2)), POINTER),
        ("extra", Shape::JsonSchemaOrBool(TypeId(2)), POINTER),
    ];
    let inner = vec![("a", Shape::String, VALUE), ("n", Shape::Int32, POINTER)];
    let props = vec![("type", Shape::String, VALUE), ("required", list(Shape::String), SLICE)];
    TypeTable::new(vec![go_struct("Sorts", sorts), go_struct("Inner", inner), go_struct("Props", props)])
}

pub fn from_json(text: &str) -> Value {
    fn convert(v: serde_json::Value) -> Value {
        match v {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(b) => b.into(),
            serde_json::Value::Number(n) => {
                n.as_i64().map(Value::Int).unwrap_or_else(|| Value::Float(n.as_f64().unwrap()))
            }
            serde_json::Value::String(s) => s.into(),
            serde_json::Value::Array(a) => Value::Array(a.into_iter().map(convert).collect()),
            serde_json::Value::Object(o) => Value::Object(o.into_iter().map(|(k, v)| (k, convert(v))).collect()),
        }
    }
    convert(serde_json::from_str(text).unwrap())
}

/// What is printed of an object whose fields all have their zero values.
const ZERO: &str =
    r#""boolAlways":false,"textPtrAlways":null,"listAlways":null,"mapAlways":null,"inner":{},"time":null,"raw":null"#;

fn check(empties: Empties, input: &str, want: &str) {
    let table = table();
    let mut got = from_json(&format!("{{{input}}}"));
    canonicalize(&table, &schema(Shape::Named(TypeId(0))), &mut got, empties);
    let mut expected = from_json(&format!("{{{ZERO}}}"));
    for (k, v) in from_json(&format!("{{{want}}}")).as_object().unwrap().iter() {
        expected.make_object().insert(k, v.clone());
    }
    assert_eq!(got, expected, "{input}");
}

#[test]
fn fields_are_printed_as_go_prints_them() {
    let cases = [
        ("", ""),
        (r#""unknown":1,"zz":{}"#, ""),
        (r#""bool":false,"boolPtr":false,"boolAlways":true"#, r#""boolPtr":false,"boolAlways":true"#),
        (r#""bool":null,"boolPtr":null,"boolAlways":null"#, ""),
        (r#""text":"","textPtr":"","textPtrAlways":"""#, r#""textPtr":"","textPtrAlways":"""#),
        (r#""list":[],"listAlways":[]"#, r#""listAlways":[]"#),
        (r#""list":[null,"a"],"listAlways":[null,{"a":"","n":0}]"#, r#""list":["","a"],"listAlways":[{},{"n":0}]"#),
        (r#""map":{},"mapAlways":{}"#, r#""mapAlways":{}"#),
        (r#""map":{"k":null},"mapAlways":{"k":null}"#, r#""map":{"k":""},"mapAlways":{"k":null}"#),
        (r#""inner":{"a":"","x":1},"innerPtr":{"a":""},"innerZero":{"a":""}"#, r#""innerPtr":{}"#),
        (r#""inner":{"a":"x"},"innerZero":{"n":1}"#, r#""inner":{"a":"x"},"innerZero":{"n":1}"#),
        (r#""time":"2020-01-01T00:00:00Z","timeZero":null"#, r#""time":"2020-01-01T00:00:00Z""#),
        (r#""time":"0001-01-01T00:00:00Z","timeZero":"0001-01-01T00:00:00Z""#, ""),
        (r#""timePtr":"0001-01-01T00:00:00Z""#, r#""timePtr":null"#),
        (r#""quantity":5,"port":0"#, r#""quantity":"5","port":0"#),
        (r#""raw":{"a":null,"b":""}"#, r#""raw":{"a":null,"b":""}"#),
        (r#""items":[],"extra":true"#, r#""items":null,"extra":true"#),
        (r#""items":[{"type":""},null],"extra":{"required":[]}"#, r#""items":[{},{}],"extra":{}"#),
        (r#""items":{"type":"object","x":1}"#, r#""items":{"type":"object"}"#),
    ];
    for (input, want) in cases {
        check(Empties::Distinct, input, want);
    }
}

#[test]
fn the_store_does_not_tell_empty_from_absent() {
    check(Empties::Absent, r#""listAlways":[],"mapAlways":{}"#, "");
    check(Empties::Absent, r#""mapAlways":{"k":null}"#, r#""mapAlways":{"k":""}"#);
    check(Empties::Absent, r#""textPtr":"","innerPtr":{}"#, r#""textPtr":"","innerPtr":{}"#);
}

#[test]
fn rules_see_what_was_given() {
    let given = r#""list":[],"map":{},"listAlways":[],"mapAlways":{}"#;
    check(Empties::Given, given, given);
    check(Empties::Given, r#""list":null,"text":"","bool":false"#, "");
    let mut value = from_json(r#"{"list":[]}"#);
    let root = schema(Shape::Named(TypeId(0)));
    assert_eq!(canonicalize(&table(), &root, &mut value, Empties::Given), Form::Given);
    assert_eq!(canonicalize(&table(), &root, &mut value, Empties::Distinct), Form::Canonical, "nothing is left of it");
}

#[test]
fn custom_structs_stay_as_they_are() {
    let table = table();
    let custom = go_struct("", vec![("metadata", Shape::Named(TypeId(1)), POINTER), ("spec", Shape::String, POINTER)]);
    let mut value = from_json(r#"{"metadata":{"a":"","x":1},"spec":"","more":null,"list":[]}"#);
    canonicalize(&table, &schema(Shape::Struct(Box::new(custom))), &mut value, Empties::Distinct);
    assert_eq!(value, from_json(r#"{"metadata":{},"spec":"","more":null,"list":[]}"#));
}

#[test]
fn a_value_of_another_shape_is_left_to_validation() {
    let table = table();
    for text in [r#""text""#, "[]", "null", "5"] {
        let mut value = from_json(text);
        canonicalize(&table, &schema(Shape::Named(TypeId(0))), &mut value, Empties::Distinct);
        assert_eq!(value, from_json(text));
    }
}
