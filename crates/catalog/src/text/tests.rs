use super::{link, parse};
use crate::model::Model;
use kubelith_meta::Value;
use kubelith_schema::{Cell, ListKind, Omit, ProtoSlot, Shape};

const META: &str = "
api meta.k8s.io/v1
models meta
type ListMeta
  1 continue string
type ObjectMeta
  1 name string
";

fn model(source: &str) -> Result<Model, String> {
    let files = [parse("meta.v1", META), parse("x.v1", source)];
    let files = files.into_iter().collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
    link(files).map_err(|e| e.to_string())
}

#[test]
fn mistakes_are_told_with_their_place() {
    let cases = [
        ("api x/v1\nkind A\n  1 spec B", "api/x.v1.api:3: there is no type B"),
        ("api x/v1\ntype A\n  1 a string\n  1 b string", "api/x.v1.api:2: A uses number 1 twice"),
        ("api x/v1\ntype A\n  1 a string\n  2 a string", "api/x.v1.api:2: the field a stands twice"),
        ("api x/v1\ntype A\ntype A", "api/x.v1.api:3: A stands twice"),
        ("api x/v1\ntype A\n  1 a string sometimes", "api/x.v1.api:3: \"sometimes\" says nothing about this field"),
        ("api x/v1\ntype A\n  1 a [string", "api/x.v1.api:3: \"[string\" is no type"),
        ("api x/v1\ntype A\n  1 a []*string", "api/x.v1.api:3: a pointer can only stand first"),
        ("api x/v1\ntype A\n  1 a []A map(b)", "api/x.v1.api:3: A has no field b to be a key"),
        ("api x/v1\ntype A\n  1 a string map(b)", "api/x.v1.api:3: \"map(b)\" says nothing about this field"),
        ("api x/v1\ntype A\n  union - b=B", "api/x.v1.api:2: a union of A names b, which is no field"),
        ("  1 a string", "api/x.v1.api:1: this line is indented, but nothing stands above it"),
        ("serve default", "api/x.v1.api:1: this needs an `api` line above it"),
        ("api x/v1\nserve daily", "api/x.v1.api:2: \"daily\" is not one of default, request, never"),
        ("api x/v1\n\n# words\nthing", "api/x.v1.api:4: \"thing\" begins no statement"),
        ("api x/v1\nresource as A cluster", "api/x.v1.api:2: a version that is never served has no resources"),
        ("api x/v1\nserve default\nresource as A cluster", "api/x.v1.api:3: there is no type A"),
        (
            "api x/v1\nserve default\nresource as A planet",
            "api/x.v1.api:3: \"planet\" is neither namespaced nor cluster",
        ),
        (
            "api x/v1\nserve default\nkind A\nresource as A cluster\n  store as as v2",
            "api/x.v1.api:5: there is no x/v2, Kind=A to store",
        ),
        ("api x/v1\nlist L Pod", "api/x.v1.api:2: `of` and the type of the items are missing"),
    ];
    for (source, want) in cases {
        assert_eq!(model(source).err().as_deref(), Some(want), "{source}");
    }
}

#[test]
fn a_type_reads_as_it_is_written() {
    let model = model(
        r#"
api x/v1
models io.x
enum Color Blue Green
kind A atomic
  7 inline   B
  1 metadata meta.v1.ObjectMeta
  2 replicas *int32 = 1
  3 bs!      []B map(name) merge(name)
  4 color    Color := "Blue"
  5 extra    map[string]box([]string) granular
  - note     string always
  union color name=Name
type B
  1 name string required
"#,
    )
    .unwrap();
    let a = model.types.iter().find(|t| t.name == "io.x.A").unwrap();
    let names: Vec<&str> = a.fields.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["apiVersion", "bs", "color", "extra", "kind", "metadata", "name", "note", "replicas"]);
    assert!(a.atomic && a.embedded);
    let field = |name: &str| a.field(name).unwrap();
    assert_eq!(field("replicas").schema.default.as_deref(), Some(&Value::Int(1)));
    assert!(field("replicas").presence.pointer && field("replicas").presence.nilable);
    assert!(field("bs").required && field("bs").presence.omit == Omit::Never && !field("bs").presence.pointer);
    assert_eq!(field("bs").schema.list, ListKind::Map(Box::new(["name".into()])));
    assert_eq!(field("bs").schema.patch.as_ref().unwrap().merge_key.as_deref(), Some("name"));
    assert!(field("color").schema.default_hidden);
    assert_eq!(field("color").schema.rules.as_ref().unwrap().enumeration, ["Blue".into(), "Green".into()]);
    assert!(field("name").required && field("name").presence.omit == Omit::Empty);
    assert!(field("note").presence.omit == Omit::Never && !field("note").required);
    let Shape::Map(extra) = &field("extra").schema.shape else { panic!("a map") };
    assert!(extra.boxed && matches!(extra.shape, Shape::List(_)) && field("extra").schema.granular);
    assert_eq!(a.unions[0].members, [("name".into(), "Name".into())]);
    let slots: Vec<(u32, &str)> = a
        .proto
        .iter()
        .map(|slot| match slot {
            ProtoSlot::Field { number, field } => (*number, a.fields[*field as usize].name.as_str()),
            ProtoSlot::Inline { number, slots } => match slots[..] {
                [ProtoSlot::Field { number: 1, field }] => (*number, a.fields[field as usize].name.as_str()),
                _ => panic!("B has one field"),
            },
        })
        .collect();
    assert_eq!(slots, [(1, "metadata"), (2, "replicas"), (3, "bs"), (4, "color"), (5, "extra"), (7, "name")]);
}

#[test]
fn a_resource_reads_as_it_is_written() {
    let model = model(
        r#"
api x/v1
serve default
priority 10 2
kind A
kind B
resource as A namespaced
  singular ay
  short a aa
  categories all
  verbs get list
  gate Letters
  sub status get
  sub b B create
  accepts b B
  store letters/as json
  select spec.on .spec.on or false
  select source .a else .b
  select gone none
  select no metadata.namespace
  select error "no {}"
  deprecated 1.3 removed 1.9 use y/v1 A
  column "A name" string:name fraction(.a, .b) or "none"
  column Age string wide age(.metadata.creationTimestamp)
  column "" integer .c
"#,
    )
    .unwrap();
    let r = &model.resources[0];
    assert_eq!((r.singular.as_str(), r.list_kind.as_str(), r.short_names.len()), ("ay", "AList", 2));
    assert_eq!(r.storage.prefix, "letters/as");
    assert_eq!(r.storage.kind.to_string(), "x/v1, Kind=A");
    let v = &r.versions[0];
    assert_eq!(v.gate.as_deref(), Some("Letters"));
    assert_eq!((v.verbs.join(" ").as_str(), v.subresources[0].verbs.len()), ("get list", 1));
    assert!(v.subresources[0].schema.is_none() && v.subresources[1].schema.is_some());
    assert_eq!(v.subresources[1].accepted[0].kind, "B");
    assert_eq!((v.selectable[0].path.as_str(), v.selectable[0].absent.as_str()), (".spec.on", "false"));
    assert_eq!(v.selectable[1].fallback.as_deref(), Some(".b"));
    assert_eq!(v.selectable[2].path, "");
    assert!(v.unselectable.namespace && v.unselectable.message_for("l") == "no l");
    assert_eq!(
        v.deprecation.as_ref().unwrap().warning,
        "x/v1 A is deprecated in v1.3+, unavailable in v1.9+; use y/v1 A"
    );
    assert_eq!(v.columns[0].cell, Cell::Function("fraction".into()));
    assert_eq!((v.columns[0].arguments.join(" ").as_str(), &v.columns[0].absent), (".a .b", &"none".into()));
    assert_eq!((v.columns[1].priority, &v.columns[1].absent), (1, &"<unknown>".into()));
    assert_eq!((&v.columns[2].cell, &v.columns[2].absent), (&Cell::Path(".c".into()), &Value::Int(0)));
}
