use super::*;
use crate::{Omit, Presence};
use kubelith_meta::Str;

fn field(name: &str, shape: Shape, presence: Presence, default: Option<Value>) -> Field {
    Field {
        name: name.into(),
        schema: Schema { shape, default: default.map(Box::new), ..Schema::default() },
        required: false,
        presence,
    }
}

fn check(input: &str, want: &str) {
    let value = Presence { nilable: false, pointer: false, omit: Omit::Never };
    let pointer = Presence::default();
    let inner = StructType {
        name: "Inner".into(),
        fields: vec![field("protocol", Shape::String, value, Some("TCP".into()))].into(),
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
        ]
        .into(),
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

const POINTER: Presence = Presence { nilable: true, pointer: true, omit: Omit::Empty };
const PLAIN: Presence = Presence { nilable: false, pointer: false, omit: Omit::Empty };
const LIST: Presence = Presence { nilable: true, pointer: false, omit: Omit::Empty };

fn struct_type(name: &str, mut fields: Vec<Field>) -> StructType {
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    StructType { name: name.into(), fields: fields.into(), ..StructType::default() }
}

/// Thing { spec Spec, children []Thing, free Free } and Spec { count *int = 3, mode = "A", zero = 0 } with a rule.
fn defaulting() -> (Defaulting, Schema) {
    let thing = struct_type(
        "Thing",
        vec![
            field("spec", Shape::Named(TypeId(1)), PLAIN, None),
            field("extra", Shape::Named(TypeId(1)), POINTER, None),
            field("children", Shape::List(Box::new(named(0))), LIST, None),
            field("named", Shape::Map(Box::new(named(0))), LIST, None),
            field("free", Shape::Named(TypeId(2)), PLAIN, None),
        ],
    );
    let spec = struct_type(
        "Spec",
        vec![
            field("count", Shape::Int32, POINTER, Some(3i64.into())),
            field("mode", Shape::String, PLAIN, Some("A".into())),
            field("zero", Shape::Int32, PLAIN, Some(0i64.into())),
            field("tags", Shape::List(Box::default()), LIST, Some(vec!["t"].into())),
            field("same", Shape::String, PLAIN, None),
        ],
    );
    let free = struct_type("Free", vec![field("any", Shape::Any, POINTER, None)]);
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
    crate::canonical::tests::from_json(text)
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
