//! Sets: wire forms, order, algebra.

use super::*;
use crate::json::tests::v;
use kubelith_meta::Value;
use proptest::prelude::*;

fn filtered(filter: &Filter, set: &Set) -> Set {
    let mut set = set.clone();
    filter.apply(&mut set);
    set
}

/// From a tree; from text it must be the same.
fn read(json: &str) -> Result<Set, FieldsError> {
    let set = Set::from_fields(&v(json));
    assert_eq!(Set::from_fields(&Value::Raw(json.into())), set, "{json}");
    set
}

fn set(json: &str) -> Set {
    read(json).unwrap()
}

#[test]
fn wire_form_round_trips() {
    let table = [
        r#"{}"#,
        r#"{"f:spec":{"f:replicas":{}}}"#,
        r#"{"f:data":{".":{},"f:k":{}}}"#,
        r#"{"f:a":{},"f:b":{"k:{\"name\":\"x\"}":{".":{},"f:name":{}}},"f:c":{"v:\"\\u003ca\\u003e\"":{},"v:true":{}},"f:d":{"i:0":{}}}"#,
        r#"{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}}"#,
    ];
    for text in table {
        let parsed = set(text);
        assert_eq!(parsed.to_json(), text);
    }
}

#[test]
fn json_is_in_the_order_of_path_elements() {
    let text = r#"{"i:2":{},"i:10":{},"v:\"b\"":{},"v:3":{},"k:{\"p\":443}":{},"k:{\"p\":80}":{},"f:z":{},"f:a":{}}"#;
    let want = r#"{"f:a":{},"f:z":{},"k:{\"p\":80}":{},"k:{\"p\":443}":{},"v:3":{},"v:\"b\"":{},"i:2":{},"i:10":{}}"#;
    assert_eq!(set(text).to_json(), want);
}

#[test]
fn odd_wire_forms() {
    // Unknown kinds are ignored; what remains empty is a member.
    assert_eq!(set(r#"{"f:a":{"x:new":{}},"z:y":{}}"#), set(r#"{"f:a":{}}"#));
    assert_eq!(set(r#"{"f:a":null}"#), set(r#"{"f:a":{}}"#));
    // Numbers count by amount.
    assert_eq!(set(r#"{"k:{\"p\":80}":{}}"#), set(r#"{"k:{\"p\":80.0}":{}}"#));
    let table = [
        (r#"{"f":{}}"#, "parsing key as path element: key must be 2 characters long:"),
        (r#"{"foo":{}}"#, "parsing key as path element: missing colon: foo"),
        (r#"{"i:x":{}}"#, r#"parsing key as path element: strconv.Atoi: parsing "x": invalid syntax"#),
        (r#"{"f:a":5}"#, "ReadMapCB: expect { or n, but found 5"),
        (r#""str""#, "ReadMapCB: expect { or n, but found \""),
    ];
    for (text, want) in table {
        assert_eq!(read(text).unwrap_err().to_string(), want);
    }
    assert!(read(r#"{"k:{":{}}"#).is_err());
    assert!(read(r#"{"k:5":{}}"#).is_err());
    assert!(read(r#"{"v:":{}}"#).is_err());
}

#[test]
fn paths_print() {
    let text =
        r#"{"f:spec":{"f:l":{"k:{\"name\":\"a\",\"p\":80}":{"f:x":{}}},"f:s":{"v:\"q\"":{},"i:3":{}},"f:r":{}}}"#;
    let paths: Vec<String> = set(text).paths().iter().map(Path::to_string).collect();
    assert_eq!(paths, [".spec.r", r#".spec.l[name="a",p=80].x"#, r#".spec.s[="q"]"#, ".spec.s[3]"]);
}

#[test]
fn differences() {
    let a = r#"{"f:a":{".":{},"f:b":{},"f:c":{"f:d":{}}},"f:e":{}}"#;
    let table = [
        (a, r#"{"f:a":{}}"#, r#"{"f:a":{"f:b":{},"f:c":{"f:d":{}}},"f:e":{}}"#, r#"{"f:e":{}}"#),
        (a, r#"{"f:a":{"f:c":{}}}"#, a, r#"{"f:a":{".":{},"f:b":{}},"f:e":{}}"#),
        (a, r#"{"f:a":{"f:c":{"f:d":{}}},"f:e":{}}"#, r#"{"f:a":{".":{},"f:b":{}}}"#, r#"{"f:a":{".":{},"f:b":{}}}"#),
        (a, "{}", a, a),
        ("{}", a, "{}", "{}"),
    ];
    for (a, b, plain, recursive) in table {
        assert_eq!(set(a).difference(&set(b)), set(plain), "{b}");
        let mut left = set(a);
        left.remove_recursively(&set(b));
        assert_eq!(left, set(recursive), "{b}");
    }
    assert_eq!(set(a).leaves(), set(r#"{"f:a":{"f:b":{},"f:c":{"f:d":{}}},"f:e":{}}"#));
    assert_eq!(set(a).len(), 4);
}

#[test]
fn membership() {
    let mut s = Set::of_fields(&[&["a", "b"], &["a"], &["c", "d"]]);
    assert!(s.contains(&Path::fields(&["a"])));
    assert!(!s.contains(&Path::fields(&["c"])));
    assert!(!s.contains(&Path::default()));
    s.insert(&Path(vec![
        PathElement::field("l"),
        PathElement::key([("z", Value::from(1i64)), ("a", Value::from("x"))]),
    ]));
    assert_eq!(s.to_json(), r#"{"f:a":{".":{},"f:b":{}},"f:c":{"f:d":{}},"f:l":{"k:{\"a\":\"x\",\"z\":1}":{}}}"#);
}

#[test]
fn filters() {
    let s = set(
        r#"{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{},"f:resources":{"f:limits":{}}}},"f:x":{}},"f:status":{}}"#,
    );
    let resources = |list| {
        Matcher::prefix([Pattern::field("spec"), Pattern::field(list), Pattern::Any, Pattern::field("resources")])
    };
    let include = Filter::Include(resources("containers").or(resources("initContainers")));
    // Elements on the way stay members, as in the reference.
    assert_eq!(
        filtered(&include, &s),
        set(r#"{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:resources":{"f:limits":{}}}}}}"#)
    );
    let exclude = Filter::Exclude(Set::of_fields(&[&["spec"]]));
    assert_eq!(filtered(&exclude, &s), set(r#"{"f:status":{}}"#));
}

/// Few names, so that sets overlap.
pub(super) fn arbitrary_set() -> impl Strategy<Value = Set> {
    let element = prop_oneof![
        "[a-c]".prop_map(PathElement::field),
        "[a-c]".prop_map(|n| PathElement::key([("name", Value::from(n))])),
        (0i64..3).prop_map(|i| PathElement::Value(Value::Int(i))),
    ];
    let path = prop::collection::vec(element, 1..4).prop_map(Path);
    prop::collection::vec(path, 0..12).prop_map(|paths| {
        let mut set = Set::new();
        paths.iter().for_each(|p| set.insert(p));
        set
    })
}

proptest! {
    #![proptest_config(crate::testing::cases(256))]

    #[test]
    fn algebra(a in arbitrary_set(), b in arbitrary_set()) {
        let (union, common) = (a.union(&b), a.intersection(&b));
        for path in union.paths() {
            let (in_a, in_b) = (a.contains(&path), b.contains(&path));
            prop_assert!(in_a || in_b);
            prop_assert_eq!(common.contains(&path), in_a && in_b);
            prop_assert_eq!(a.difference(&b).contains(&path), in_a && !in_b);
        }
        prop_assert_eq!(common.len() + union.len(), a.len() + b.len());
        prop_assert_eq!(a.is_subset(&b), a.difference(&b).is_empty());
        prop_assert_eq!(union.difference(&b), a.difference(&b));
        prop_assert_eq!(Set::from_fields(&a.to_fields()).unwrap(), a);
    }
}
