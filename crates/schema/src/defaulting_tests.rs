use super::*;
use crate::{Omit, Presence};
use kubelith_meta::Str;

const POINTER: Presence = Presence { nilable: true, pointer: true, omit: Omit::Empty };
const PLAIN: Presence = Presence { nilable: false, pointer: false, omit: Omit::Empty };
const LIST: Presence = Presence { nilable: true, pointer: false, omit: Omit::Empty };

fn field(name: &str, shape: Shape, presence: Presence, default: impl Into<Value>) -> Field {
    let default = Some(default.into()).filter(|v| !v.is_null());
    Field { name: name.into(), schema: Schema { shape, default, ..Schema::default() }, required: false, presence }
}

fn struct_type(name: &str, mut fields: Vec<Field>) -> StructType {
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    StructType { name: name.into(), fields, ..StructType::default() }
}

/// Thing { spec Spec, children []Thing, free Free } and Spec { count *int = 3, mode = "A", zero = 0 } with a rule.
fn defaulting() -> (Defaulting, Schema) {
    let thing = struct_type(
        "Thing",
        vec![
            field("spec", Shape::Named(TypeId(1)), PLAIN, Value::Null),
            field("extra", Shape::Named(TypeId(1)), POINTER, Value::Null),
            field("children", Shape::List(Box::new(named(0))), LIST, Value::Null),
            field("named", Shape::Map(Box::new(named(0))), LIST, Value::Null),
            field("free", Shape::Named(TypeId(2)), PLAIN, Value::Null),
        ],
    );
    let spec = struct_type(
        "Spec",
        vec![
            field("count", Shape::Int32, POINTER, 3i64),
            field("mode", Shape::String, PLAIN, "A"),
            field("zero", Shape::Int32, PLAIN, 0i64),
            field("tags", Shape::List(Box::default()), LIST, vec!["t"]),
            field("same", Shape::String, PLAIN, Value::Null),
        ],
    );
    let free = struct_type("Free", vec![field("any", Shape::Any, POINTER, Value::Null)]);
    let table = Arc::new(TypeTable::new(vec![thing, spec, free]));
    let copy_mode: Rule = |spec| {
        if spec.get("mode").and_then(Value::as_str) == Some("copy") && !spec.contains_key("same") {
            spec.insert("same", Str::from("copied"));
        }
    };
    (Defaulting::new(table, [("Spec", copy_mode), ("Absent", copy_mode)]), named(0))
}

fn named(id: u32) -> Schema {
    Schema { shape: Shape::Named(TypeId(id)), ..Schema::default() }
}

fn value(text: &str) -> Value {
    fn convert(v: serde_json::Value) -> Value {
        match v {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(b) => b.into(),
            serde_json::Value::Number(n) => n.as_i64().unwrap().into(),
            serde_json::Value::String(s) => s.into(),
            serde_json::Value::Array(a) => Value::Array(a.into_iter().map(convert).collect()),
            serde_json::Value::Object(o) => Value::Object(o.into_iter().map(|(k, v)| (k, convert(v))).collect()),
        }
    }
    convert(serde_json::from_str(text).unwrap())
}

#[test]
fn fills_what_is_missing() {
    let full = r#"{"count":3,"mode":"A","tags":["t"]}"#;
    let cases = [
        ("{}", format!(r#"{{"spec":{full}}}"#)),
        (r#"{"spec":null}"#, format!(r#"{{"spec":{full}}}"#)),
        (r#"{"spec":{"count":0,"mode":"","tags":[]}}"#, r#"{"spec":{"count":0,"mode":"A","tags":["t"]}}"#.into()),
        (
            r#"{"spec":{"count":null,"mode":"B","zero":0}}"#,
            r#"{"spec":{"count":3,"mode":"B","tags":["t"],"zero":0}}"#.into(),
        ),
        (r#"{"spec":{"mode":"copy"}}"#, r#"{"spec":{"count":3,"mode":"copy","same":"copied","tags":["t"]}}"#.into()),
        (r#"{"extra":{}}"#, format!(r#"{{"extra":{full},"spec":{full}}}"#)),
        (r#"{"children":[{}],"spec":"?"}"#, format!(r#"{{"children":[{{"spec":{full}}}],"spec":"?"}}"#)),
        (r#"{"named":{"a":{}}}"#, format!(r#"{{"named":{{"a":{{"spec":{full}}}}},"spec":{full}}}"#)),
    ];
    let (defaulting, schema) = defaulting();
    for (given, expected) in cases {
        let mut object = value(given);
        defaulting.fill(&schema, &mut object);
        assert_eq!(object, value(&expected), "{given}");
        defaulting.fill(&schema, &mut object);
        assert_eq!(object, value(&expected), "{given}, again");
    }
}

#[test]
fn passes_by_types_without_defaults() {
    let (defaulting, schema) = defaulting();
    assert!(defaulting.concerns(&schema));
    assert!(!defaulting.concerns(&named(2)));
    assert!(!defaulting.concerns(&Schema::default()));
}
