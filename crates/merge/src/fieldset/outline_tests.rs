//! Outlines say what sets say.

use super::super::tests::arbitrary_set;
use super::*;
use kubelith_meta::Value;
use proptest::prelude::*;

fn outline(text: &str) -> Option<Outline> {
    Outline::of(&Arc::from(text))
}

fn read(text: &str) -> Set {
    Set::from_fields(&Value::Raw(text.into())).unwrap()
}

#[test]
fn plain_text_has_an_outline() {
    let table = [
        r#"{}"#,
        r#"{"f:spec":{"f:replicas":{}}}"#,
        r#"{"f:data":{".":{},"f:k":{},"f:k.a-b_c/d":{}},"f:e":{".":{}}}"#,
        r#"{"f:a":{},"f:b":{"k:{\"name\":\"x\"}":{".":{},"f:name":{}},"k:{\"name\":\"x-y\"}":{}},"f:c":{"v:\"a\"":{},"v:\"a b\"":{}},"f:d":{"i:0":{},"i:9":{},"i:10":{}}}"#,
        r#"{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{},"k:{\"containerPort\":80,\"protocol\":\"UDP\"}":{},"k:{\"containerPort\":443,\"protocol\":\"TCP\"}":{}}}"#,
        r#"{"f:set":{"v:2":{},"v:10":{},"v:11":{}}}"#,
    ];
    for text in table {
        let outline = outline(text).unwrap_or_else(|| panic!("{text}"));
        let set = read(text);
        assert!(outline.covers(&set), "{text}");
        assert_eq!((outline.is_empty(), outline.is_disjoint(&set)), (set.is_empty(), set.is_empty()), "{text}");
    }
}

#[test]
fn other_text_has_none() {
    let table = [
        "",
        "{",
        "null",
        "[]",
        r#"{"f:a":{}"#,
        r#"{"f:a":{}} "#,
        r#"{"f:a":{}}}"#,
        r#"{"f:a":{},}"#,
        r#"{"f:a":null}"#,
        r#"{"f:a" :{}}"#,
        // Twice, or in another order.
        r#"{"f:a":{},"f:a":{}}"#,
        r#"{"f:b":{},"f:a":{}}"#,
        r#"{"f:b":{},".":{}}"#,
        r#"{"k:{\"name\":\"x\"}":{},"f:a":{}}"#,
        r#"{"k:{\"port\":443}":{},"k:{\"port\":80}":{}}"#,
        r#"{"k:{\"name\":\"a-b\"}":{},"k:{\"name\":\"a\"}":{}}"#,
        // What could be written in several ways.
        r#"{"f:a<b":{}}"#,
        r#"{"f:a\u003cb":{}}"#,
        r#"{"f:é":{}}"#,
        r#"{"k:{ \"name\":\"x\"}":{}}"#,
        r#"{"k:{\"b\":1,\"a\":1}":{}}"#,
        r#"{"k:{\"port\":80.0}":{}}"#,
        r#"{"k:{\"port\":080}":{}}"#,
        r#"{"k:{\"port\":-1}":{}}"#,
        r#"{"k:{\"port\":9007199254740993}":{}}"#,
        r#"{"k:{\"on\":true}":{}}"#,
        r#"{"k:{\"name\":\"a\\\\b\"}":{}}"#,
        r#"{"v:true":{}}"#,
        r#"{"i:a":{}}"#,
        // Nonsense.
        r#"{"x:a":{}}"#,
        r#"{"f":{}}"#,
        r#"{".":{"f:a":{}}}"#,
    ];
    for text in table {
        assert!(outline(text).is_none(), "{text}");
    }
    let deep = format!("{}{{}}{}", r#"{"f:a":"#.repeat(10_000), "}".repeat(10_000));
    assert!(outline(&deep).is_none());
}

#[test]
fn levels() {
    let outline = outline(r#"{"f:a":{"k:{\"name\":\"x\"}":{"f:b":{}},"v:1":{}},"f:c":{}}"#).unwrap();
    let names: Vec<_> = outline.root().iter().map(|(name, below)| (name, below.is_empty())).collect();
    assert_eq!(names, [(Some("a"), false), (Some("c"), true)]);
    let (_, below) = outline.root().iter().next().unwrap();
    let names: Vec<_> = below.iter().map(|(name, below)| (name, below.is_empty())).collect();
    assert_eq!(names, [(None, false), (None, true)]);
}

#[test]
fn paths_are_put_into_the_text() {
    let table = [
        (r#"{}"#, r#"{"f:a":{}}"#),
        (r#"{"f:b":{}}"#, r#"{"f:a":{},"f:aa":{},"f:c":{},"f:d":{}}"#),
        (r#"{"f:a":{"f:b":{}}}"#, r#"{"f:a":{".":{},"f:a":{},"f:c":{"f:d":{}}}}"#),
        (r#"{"f:a":{}}"#, r#"{"f:a":{"f:b":{},"f:c":{}},"f:b":{}}"#),
        (r#"{"f:a":{".":{},"f:c":{}}}"#, r#"{"f:a":{"f:b":{},"f:d":{}}}"#),
        (r#"{"f:a":{".":{}},"f:c":{}}"#, r#"{"f:a":{"f:b":{}},"f:b":{}}"#),
        (
            r#"{"f:a":{"k:{\"port\":80}":{},"k:{\"port\":443}":{}}}"#,
            r#"{"f:a":{"k:{\"port\":90}":{"f:b":{}},"v:1":{}}}"#,
        ),
    ];
    for (text, more) in table {
        let expected = read(text).union(&read(more)).to_json();
        assert_eq!(outline(text).unwrap().with(&read(more)), Some(expected), "{text} {more}");
    }
    let unlike = r#"{"f:é":{}}"#;
    assert_eq!(outline(r#"{"f:a":{}}"#).unwrap().with(&read(unlike)), None);
}

/// Keys of lists with names and numbers that are easily confused.
fn keyed_set() -> impl Strategy<Value = Set> {
    let name = prop_oneof!["[ab]{0,2}(-[ab])?", "[ab]:[0-9]{1,3}", "[<é\\\\]"];
    let number = prop_oneof![0i64..20, 98i64..102];
    let element = prop_oneof![
        name.clone().prop_map(PathElement::field),
        name.clone().prop_map(|n| PathElement::key([("name", Value::from(n))])),
        number.clone().prop_map(|n| PathElement::key([("port", Value::Int(n))])),
        (number.clone(), name.clone())
            .prop_map(|(p, n)| PathElement::key([("port", Value::Int(p)), ("protocol", Value::from(n))])),
        name.prop_map(|n| PathElement::Value(Value::from(n))),
        number.clone().prop_map(|n| PathElement::Value(Value::Float(n as f64))),
        number.prop_map(PathElement::Index),
    ];
    let path = prop::collection::vec(element, 1..4).prop_map(super::super::Path);
    prop::collection::vec(path, 0..12).prop_map(|paths| {
        let mut set = Set::new();
        paths.iter().for_each(|p| set.insert(p));
        set
    })
}

proptest! {
    #![proptest_config(crate::testing::cases(512))]

    #[test]
    fn outlines_answer_as_sets_do(a in arbitrary_set(), b in arbitrary_set()) {
        let outline = outline(&a.to_json()).unwrap();
        prop_assert_eq!(outline.is_disjoint(&b), a.is_disjoint(&b));
        prop_assert_eq!(outline.covers(&b), b.is_subset(&a));
        prop_assert!(outline.covers(&a.intersection(&b)));
        if let Some(both) = outline.with(&b) {
            prop_assert_eq!(both, a.union(&b).to_json());
        }
    }

    #[test]
    fn outlines_of_keys_answer_as_sets_do(a in keyed_set(), b in keyed_set()) {
        if let Some(outline) = outline(&a.to_json()) {
            prop_assert_eq!(outline.is_disjoint(&b), a.is_disjoint(&b));
            prop_assert_eq!(outline.covers(&b), b.is_subset(&a));
            prop_assert!(outline.covers(&a.intersection(&b)));
            if let Some(both) = outline.with(&b) {
                prop_assert_eq!(both, a.union(&b).to_json());
            }
        }
    }

    /// Where keys are as usual, there is an outline.
    #[test]
    fn usual_keys_have_outlines(ports in prop::collection::btree_set((0i64..70_000, "[A-Z]{0,3}"), 0..8), names in prop::collection::btree_set("[a-z0-9:./-]{1,8}", 0..8)) {
        let mut set = Set::new();
        for (port, protocol) in ports {
            let key = PathElement::key([("port", Value::Int(port)), ("protocol", Value::from(protocol))]);
            set.insert(&super::super::Path(vec![PathElement::field("ports"), key]));
        }
        for name in names {
            set.insert(&super::super::Path(vec![PathElement::field("names"), PathElement::Value(Value::from(name.clone()))]));
            set.insert(&super::super::Path(vec![PathElement::field("keys"), PathElement::key([("name", Value::from(name))])]));
        }
        prop_assert!(outline(&set.to_json()).is_some(), "{}", set.to_json());
    }
}
