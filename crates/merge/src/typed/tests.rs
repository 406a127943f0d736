//! Tables for the walks over typed values.

use super::*;
use crate::fieldset::{Mask, Owned, Set};
use crate::json::tests::v;
use crate::testing::{deployment, other_scalars, random_object, text, types};
use proptest::prelude::*;

/// Every kind of container under `spec`.
fn widget() -> TypedSchema {
    types(
        "type Widget
           spec Spec
         type Spec
           n int32
           s string
           b bool
           any any
           raw raw
           set []string set
           map []Item map=name
           keys []Item map=name,port
           nokeys []Item map=value
           atoms []Item
           gran map<string>
           atomic map<string> atomic
           whole Whole
           free Free
           open Open
         type Item
           name string
           value string
           port int32 default=80
         type Whole atomic
           a string
         type Free
         type Open preserve
           a string",
    )
}

fn errors_of(spec: &str) -> String {
    let schema = widget();
    let value = v(&format!(r#"{{"spec":{spec}}}"#));
    Type::of(&schema).validate(&value, Duplicates::Refused).err().map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn validation() {
    let table = [
        (r#"{"n":1,"s":"x","b":true,"set":["a","b"],"map":[{"name":"a"}],"gran":{"k":"v"},"free":{"x":[1]}}"#, ""),
        (r#"{"n":1.5,"s":null,"any":[{}],"open":{"a":"x","zz":1},"raw":{"a":[{}]}}"#, ""),
        (r#"{"bogus":1}"#, ".spec.bogus: field not declared in schema"),
        (r#"{"map":[{"name":"a","bogus":1}]}"#, r#".spec.map[name="a"].bogus: field not declared in schema"#),
        (r#"{"n":"three"}"#, ".spec.n: expected numeric (int or float), got string"),
        (r#"{"n":{"a":1}}"#, ".spec.n: expected numeric (int or float), got map[string]interface {}"),
        (r#"{"s":5}"#, ".spec.s: expected string, got &value.valueUnstructured{Value:5}"),
        (r#"{"s":["x"]}"#, r#".spec.s: expected string, got &value.valueUnstructured{Value:[]interface {}{"x"}}"#),
        (r#"{"b":"x"}"#, ".spec.b: expected boolean, got &{x}"),
        (r#"{"map":"x"}"#, ".spec.map: expected list, got &{x}"),
        (r#"{"gran":["x"]}"#, ".spec.gran: expected map, got &{[x]}"),
        (r#"{"gran":{"a":1}}"#, ".spec.gran.a: expected string, got &value.valueUnstructured{Value:1}"),
        (r#"{"atoms":[{"name":1}]}"#, ".spec.atoms[0].name: expected string, got &value.valueUnstructured{Value:1}"),
        (r#"{"map":[{"name":"a"},{"name":"a"}]}"#, r#".spec.map: duplicate entries for key [name="a"]"#),
        (r#"{"set":["a","a"]}"#, r#".spec.set: duplicate entries for key [="a"]"#),
        (
            r#"{"set":[null]}"#,
            ".spec.set: element 0: associative list without keys has an element that's an explicit null",
        ),
        (r#"{"set":[{}]}"#, ".spec.set: element 0: associative list without keys has an element that's a map type"),
        (r#"{"set":[[]]}"#, ".spec.set: element 0: not supported: associative list with lists as elements"),
        (r#"{"map":[null]}"#, ".spec.map: element 0: associative list with keys may not have a null element"),
        (r#"{"map":["x"]}"#, ".spec.map: element 0: associative list with keys may not have non-map elements"),
        (
            r#"{"nokeys":[{"name":"x"}]}"#,
            r#".spec.nokeys: element 0: associative list with keys has an element that omits all key fields ["value"] (and doesn't have default values for any key fields)"#,
        ),
        (
            r#"{"b":1,"n":"x"}"#,
            "errors:\n  .spec.b: expected boolean, got &{1}\n  .spec.n: expected numeric (int or float), got string",
        ),
    ];
    for (spec, want) in table {
        assert_eq!(errors_of(spec), want, "{spec}");
    }
    let twice = v(r#"{"spec":{"map":[{"name":"a"},{"name":"a"}]}}"#);
    assert!(Type::of(&widget()).validate(&twice, Duplicates::Allowed).is_ok());
}

#[test]
fn field_sets() {
    let table = [
        (r#"{"n":1}"#, r#"{"f:n":{}}"#),
        (r#"{"n":null}"#, r#"{"f:n":{}}"#),
        (r#"{"gran":{"a":"1"},"atomic":{"a":"1"}}"#, r#"{"f:gran":{"f:a":{}},"f:atomic":{}}"#),
        (r#"{"gran":{}}"#, r#"{"f:gran":{}}"#),
        (r#"{"set":["x"]}"#, r#"{"f:set":{"v:\"x\"":{}}}"#),
        (r#"{"set":[],"map":null}"#, r#"{"f:map":{}}"#),
        (
            r#"{"map":[{"name":"a","value":"1"}]}"#,
            r#"{"f:map":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:value":{}}}}"#,
        ),
        // Defaults complete keys without being owned.
        (r#"{"keys":[{"name":"a"}]}"#, r#"{"f:keys":{"k:{\"name\":\"a\",\"port\":80}":{".":{},"f:name":{}}}}"#),
        (r#"{"map":[{"name":"a"},{"name":"a"}]}"#, r#"{"f:map":{"k:{\"name\":\"a\"}":{}}}"#),
        (r#"{"atoms":[{"name":"a"}],"whole":{"a":"x"}}"#, r#"{"f:atoms":{},"f:whole":{}}"#),
        (r#"{"free":{"x":{"y":1},"l":[1]}}"#, r#"{"f:free":{"f:l":{},"f:x":{".":{},"f:y":{}}}}"#),
        (r#"{"open":{"a":"x","z":{"y":1}}}"#, r#"{"f:open":{"f:a":{},"f:z":{".":{},"f:y":{}}}}"#),
        (r#"{"any":{"x":1},"raw":{"x":1}}"#, r#"{"f:any":{"f:x":{}},"f:raw":{}}"#),
    ];
    for (spec, want) in table {
        let value = v(&format!(r#"{{"spec":{spec}}}"#));
        let got = Type::of(&widget()).field_set(&value);
        assert_eq!(text(&got.to_fields()), text(&v(&format!(r#"{{"f:spec":{want}}}"#))), "{spec}");
    }
}

#[test]
fn named_fields_are_added() {
    let table = [
        (r#"{"f:spec":{"f:n":{}}}"#, r#"{"f:spec":{".":{},"f:n":{}}}"#),
        (r#"{"f:spec":{"f:gran":{"f:a":{}}}}"#, r#"{"f:spec":{".":{},"f:gran":{".":{},"f:a":{}}}}"#),
        (r#"{"f:spec":{"f:free":{"f:x":{"f:y":{}}}}}"#, r#"{"f:spec":{".":{},"f:free":{".":{},"f:x":{"f:y":{}}}}}"#),
        (
            r#"{"f:spec":{"f:map":{"k:{\"name\":\"a\"}":{"f:name":{}}}}}"#,
            r#"{"f:spec":{".":{},"f:map":{".":{},"k:{\"name\":\"a\"}":{"f:name":{}}}}}"#,
        ),
    ];
    for (set, want) in table {
        let set = Set::from_fields(&v(set)).unwrap();
        assert_eq!(text(&Type::of(&widget()).with_named_fields(&set).to_fields()), text(&v(want)));
    }
}

#[test]
fn comparisons() {
    // old, new, removed, modified, added
    let table = [
        (r#"{"n":1}"#, r#"{"n":2}"#, "{}", r#"{"f:n":{}}"#, "{}"),
        (r#"{"n":1}"#, r#"{"n":1.0}"#, "{}", "{}", "{}"),
        (r#"{"n":1}"#, r#"{"s":"x"}"#, r#"{"f:n":{}}"#, "{}", r#"{"f:s":{}}"#),
        (r#"{}"#, r#"{"gran":{"a":"1"}}"#, "{}", "{}", r#"{"f:gran":{".":{},"f:a":{}}}"#),
        // A container that was there as null is not added.
        (r#"{"gran":null}"#, r#"{"gran":{"a":"1"}}"#, "{}", "{}", r#"{"f:gran":{"f:a":{}}}"#),
        (r#"{"gran":null}"#, r#"{"gran":{}}"#, "{}", r#"{"f:gran":{}}"#, "{}"),
        (r#"{"atomic":{"a":"1"}}"#, r#"{"atomic":{"a":"2"}}"#, "{}", r#"{"f:atomic":{}}"#, "{}"),
        (
            r#"{"set":["a","b"]}"#,
            r#"{"set":["b","c"]}"#,
            r#"{"f:set":{"v:\"a\"":{}}}"#,
            "{}",
            r#"{"f:set":{"v:\"c\"":{}}}"#,
        ),
        (r#"{"set":["a","b"]}"#, r#"{"set":["b","a"]}"#, "{}", "{}", "{}"),
        (
            r#"{"map":[{"name":"a","value":"1"},{"name":"b"}]}"#,
            r#"{"map":[{"name":"a","value":"2"}]}"#,
            r#"{"f:map":{"k:{\"name\":\"b\"}":{".":{},"f:name":{}}}}"#,
            r#"{"f:map":{"k:{\"name\":\"a\"}":{"f:value":{}}}}"#,
            "{}",
        ),
        // Elements that are there twice count as one.
        (
            r#"{"map":[{"name":"a","value":"1"},{"name":"a","value":"2"}]}"#,
            r#"{"map":[{"name":"a","value":"1"},{"name":"a","value":"3"}]}"#,
            "{}",
            r#"{"f:map":{"k:{\"name\":\"a\"}":{}}}"#,
            "{}",
        ),
        (
            r#"{"map":[{"name":"a","value":"1"},{"name":"a","value":"2"}]}"#,
            r#"{"map":[{"name":"a"}]}"#,
            r#"{"f:map":{"k:{\"name\":\"a\"}":{}}}"#,
            "{}",
            r#"{"f:map":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}"#,
        ),
        (
            r#"{"map":[{"name":"a"}]}"#,
            r#"{"map":[{"name":"a"},{"name":"a"}]}"#,
            r#"{"f:map":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}"#,
            "{}",
            r#"{"f:map":{"k:{\"name\":\"a\"}":{}}}"#,
        ),
        // A value of another kind where anything goes.
        (r#"{"any":{"x":1}}"#, r#"{"any":5}"#, r#"{"f:any":{"f:x":{}}}"#, r#"{"f:any":{}}"#, "{}"),
    ];
    for (old, new, removed, modified, added) in table {
        let spec = |s: &str| v(&format!(r#"{{"spec":{s}}}"#));
        let got = Type::of(&widget()).compare(&spec(old), &spec(new)).unwrap();
        let fields = |s: &Set| s.nodes().first().map_or_else(|| "{}".to_owned(), |n| text(&n.children.to_fields()));
        let want = [removed, modified, added].map(|s| text(&v(s)));
        assert_eq!([fields(&got.removed), fields(&got.modified), fields(&got.added)], want, "{old} -> {new}");
    }
}

#[test]
fn merges() {
    let item = |names: &str| {
        let items: Vec<String> = names.split_whitespace().map(|n| format!(r#"{{"name":"{n}"}}"#)).collect();
        format!(r#"{{"map":[{}]}}"#, items.join(","))
    };
    let order = [
        ("a b c", "b", "a b c"),
        ("a b c", "d", "a b c d"),
        ("a b", "d a", "d a b"),
        ("a b c", "c x a", "b c x a"),
        ("a b c d", "d b", "a c d b"),
        ("1 2 3 4", "4 x 1", "2 3 4 x 1"),
        ("a", "", "a"),
    ];
    for (live, config, want) in order {
        assert_merged(&item(live), &item(config), &item(want));
    }
    let table = [
        (r#"{"n":1,"s":"x"}"#, r#"{"n":2}"#, r#"{"n":2,"s":"x"}"#),
        (r#"{"n":1}"#, r#"{"n":null}"#, r#"{"n":null}"#),
        (r#"{"gran":{"a":"1"}}"#, r#"{"gran":{"b":"2"}}"#, r#"{"gran":{"a":"1","b":"2"}}"#),
        (r#"{"gran":{"a":"1"}}"#, r#"{"gran":null}"#, r#"{"gran":{"a":"1"}}"#),
        (r#"{"atomic":{"a":"1"}}"#, r#"{"atomic":{"b":"2"}}"#, r#"{"atomic":{"b":"2"}}"#),
        (r#"{"atoms":[{"name":"a"}]}"#, r#"{"atoms":[]}"#, r#"{"atoms":[]}"#),
        (r#"{"set":["x"]}"#, r#"{"set":[]}"#, r#"{"set":["x"]}"#),
        (r#"{"set":["x","y"]}"#, r#"{"set":["z","x"]}"#, r#"{"set":["z","x","y"]}"#),
        (
            r#"{"map":[{"name":"a","value":"1"}]}"#,
            r#"{"map":[{"name":"a","port":5}]}"#,
            r#"{"map":[{"name":"a","port":5,"value":"1"}]}"#,
        ),
        // Of elements that are there twice nothing is merged.
        (
            r#"{"map":[{"name":"a","value":"1"},{"name":"a","value":"2"},{"name":"b"}]}"#,
            r#"{"map":[{"name":"a","port":5}]}"#,
            r#"{"map":[{"name":"a","port":5},{"name":"b"}]}"#,
        ),
        (r#"{"any":{"x":1}}"#, r#"{"any":[1]}"#, r#"{"any":[1]}"#),
    ];
    for (live, config, want) in table {
        assert_merged(live, config, want);
    }
}

fn assert_merged(live: &str, config: &str, want: &str) {
    let spec = |s: &str| v(&format!(r#"{{"spec":{s}}}"#));
    let got = Type::of(&widget()).merge(&spec(live), &spec(config)).unwrap();
    assert_eq!(text(&got), text(&spec(want)), "{live} + {config}");
}

#[test]
fn removal() {
    let table = [
        (r#"{"n":1,"s":"x"}"#, r#"{"f:n":{}}"#, r#"{"s":"x"}"#),
        (r#"{"gran":{"a":"1"}}"#, r#"{"f:gran":{"f:a":{}}}"#, r#"{"gran":null}"#),
        (r#"{"gran":{"a":"1"}}"#, r#"{"f:gran":{".":{},"f:a":{}}}"#, r#"null"#),
        (
            r#"{"map":[{"name":"a","value":"1"},{"name":"b"}]}"#,
            r#"{"f:map":{"k:{\"name\":\"a\"}":{"f:value":{}},"k:{\"name\":\"b\"}":{}}}"#,
            r#"{"map":[{"name":"a"}]}"#,
        ),
        (r#"{"set":["a"],"n":1}"#, r#"{"f:set":{"v:\"a\"":{}}}"#, r#"{"set":null,"n":1}"#),
        (r#"{"atomic":{"a":"1"},"n":1}"#, r#"{"f:atomic":{"f:a":{}}}"#, r#"{"atomic":null,"n":1}"#),
    ];
    for (value, items, want) in table {
        let mut value = v(&format!(r#"{{"spec":{value}}}"#));
        let items = Set::from_fields(&v(&format!(r#"{{"f:spec":{items}}}"#))).unwrap();
        Type::of(&widget()).remove_items(&mut value, &items);
        assert_eq!(text(&value), text(&v(&format!(r#"{{"spec":{want}}}"#))));
    }
}

#[test]
fn ownership_follows_what_became_atomic() {
    let table = [
        (r#"{"f:atomic":{"f:a":{}}}"#, Some(r#"{"f:atomic":{}}"#)),
        (r#"{"f:whole":{".":{},"f:a":{}},"f:n":{}}"#, Some(r#"{"f:whole":{},"f:n":{}}"#)),
        (r#"{"f:atoms":{"k:{\"name\":\"a\"}":{".":{},"f:name":{}}}}"#, Some(r#"{"f:atoms":{}}"#)),
        (r#"{"f:raw":{"f:a":{}}}"#, Some(r#"{"f:raw":{}}"#)),
        // Free-form objects and unknown fields are left alone.
        (r#"{"f:free":{"f:a":{"f:b":{}}},"f:gone":{"f:x":{}},"f:any":{"f:x":{}}}"#, None),
        (r#"{"f:atomic":{},"f:gran":{"f:a":{}},"f:map":{"k:{\"name\":\"a\"}":{"f:name":{}}}}"#, None),
    ];
    for (set, want) in table {
        let fields = |s: &str| Set::from_fields(&v(&format!(r#"{{"f:spec":{s}}}"#))).unwrap();
        assert_eq!(Type::of(&widget()).reconcile(&fields(set)), want.map(fields), "{set}");
    }
}

#[test]
fn empty_objects_have_the_fields_that_are_never_omitted() {
    let schema = types("type T\n a string\n b Inner value\n type Inner\n list []string");
    let schema = first_field_never_omitted(schema, 1);
    assert_eq!(text(&Type::of(&schema).zero()), r#"{"b":{"list":null}}"#);
    assert_eq!(text(&Type::Deduced.zero()), "{}");
}

/// What was found of one type holds for that alone.
#[test]
fn a_set_is_in_line_with_the_types_that_it_was_compared_with() {
    let (widget, other) = (widget(), types("type T\n spec Spec\n type Spec atomic\n gran map<string>"));
    let fields = Owned::read(Some(&Value::Raw(r#"{"f:spec":{"f:gran":{"f:a":{}}}}"#.into())), None).unwrap();
    for stays in [true, false, true] {
        assert_eq!(Type::of(&widget).reconcile_owned(&fields, stays), None);
        let whole = Type::of(&other).reconcile_owned(&fields, stays).expect("what is owned as a whole now");
        assert_eq!(whole.to_json(), r#"{"f:spec":{}}"#);
    }
    let outdated = Owned::read(Some(&Value::Raw(r#"{"f:spec":{"f:atomic":{"f:a":{}}}}"#.into())), None).unwrap();
    for _ in 0..2 {
        assert!(Type::of(&widget).reconcile_owned(&outdated, true).is_some());
    }
}

fn first_field_never_omitted(mut schema: TypedSchema, struct_type: usize) -> TypedSchema {
    let mut structs: Vec<StructType> = schema.table.iter().cloned().collect();
    let mut fields = Vec::from(std::mem::take(&mut structs[struct_type].fields));
    fields[0].presence.omit = kubelith_schema::Omit::Never;
    structs[struct_type].fields = fields.into();
    schema.table = std::sync::Arc::new(TypeTable::new(structs));
    schema
}

/// Twins, keys with a default or none, keys that need quoting, and what does not fit.
#[test]
fn fields_of_new_objects() {
    let schema = types(
        "type T
           l []I map=name,port
           s []string set
           d []D map=k
           n int32
         type I
           name string
           port int32
           x string
         type D
           k string default=\"a\"
           x string",
    );
    let ty = Type::of(&schema);
    let fits = [
        r#"{"l":[{"name":"b","port":443,"x":"1"},{"name":"b","port":80},{"name":"a","port":9}]}"#,
        r#"{"l":[{"name":"a","port":1,"x":"1"},{"name":"a","port":1,"x":"2"}],"s":["a","a","b"]}"#,
        r#"{"l":[{"name":"a"},{"port":1}],"s":[]}"#,
        r#"{"l":[{"name":"q\"<\\ü","port":1}],"s":["é\n"]}"#,
        r#"{"d":[{"x":"1"},{"k":"b"}],"n":1}"#,
        r#"{"l":null,"s":null,"n":null}"#,
    ];
    for object in fits {
        let object = v(object);
        let compared = ty.compare(&ty.zero(), &object).unwrap().changed();
        let compared = Some(compared.to_json()).filter(|_| !compared.is_empty());
        assert_eq!(fields_of_new(ty, &object, Mask::default()), Ok(compared), "{}", text(&object));
    }
    for object in [r#"{"n":"1"}"#, r#"{"l":{}}"#, r#"{"l":[1]}"#, r#"{"l":[{}]}"#, r#"{"z":1}"#, r#"{"s":[{}]}"#] {
        assert_eq!(fields_of_new(ty, &v(object), Mask::default()), Err(()), "{object}");
    }
}

/// Containers of each kind, and a struct that any object has.
fn containers() -> TypedSchema {
    types(
        "type T
           l []I map=name,port
           s []string set
           a []A
           m map<string>
           o A
           i any
           n int32
           z Z value
         type Z
           x string
         type I
           name string
           port int32
           x string
           o A
         type A
           x string
           y string",
    )
}

#[test]
fn written_field_sets() {
    let schema = containers();
    let ty = Type::of(&schema);
    let fits = [
        r#"{"l":[{"name":"b","port":443,"o":{"x":"1"}},{"name":"b","port":80,"o":{}},{"name":"a","port":9,"o":null}]}"#,
        r#"{"l":[{"name":"a"},{"port":1}],"s":["b","a"],"a":[{"x":"1"}]}"#,
        r#"{"m":{},"o":{},"l":[],"s":[],"a":[]}"#,
        r#"{"m":{"<é":"1","b":null},"l":null,"n":null,"o":{"x":"","y":null}}"#,
    ];
    for object in fits {
        let object = v(object);
        ty.validate(&object, Duplicates::Refused).unwrap();
        let expected = ty.field_set(&object).to_json();
        assert_eq!(ty.written_field_set(&object, Mask::default()), Some(expected), "{}", text(&object));
    }
    let unfit = [
        r#"{}"#,
        r#"[]"#,
        r#"{"n":"1"}"#,
        r#"{"z":1}"#,
        r#"{"o":{"z":1}}"#,
        r#"{"a":[{"z":1}]}"#,
        r#"{"s":["a","a"]}"#,
        r#"{"s":[{}]}"#,
        r#"{"l":[{"name":"a","port":1},{"name":"a","port":1}]}"#,
        r#"{"l":[{"name":"a"},{"name":"a"}]}"#,
        r#"{"l":[{}]}"#,
        r#"{"l":{}}"#,
    ];
    for object in unfit {
        assert_eq!(ty.written_field_set(&v(object), Mask::default()), None, "{object}");
    }
}

proptest! {
    #![proptest_config(crate::testing::cases(300))]

    #[test]
    fn written_field_sets_are_field_sets(seed: u64) {
        let schema = deployment();
        let ty = Type::of(&schema);
        let object = random_object(&schema, seed);
        let nobodys = Set::of_fields(&[&["metadata"], &["metadata", "name"], &["spec"], &["spec", "replicas"]]);
        let excluded = Set::of_fields(&[&["status"], &["spec", "strategy"], &["metadata", "labels"]]);
        let mut set = ty.field_set(&object);
        set.remove_recursively(&excluded);
        set.remove(&nobodys);
        let mask = Mask { nobodys: Some(&nobodys), excluded: Some(&excluded) };
        let expected = Some(set.to_json()).filter(|_| !set.is_empty());
        prop_assert_eq!(ty.written_field_set(&object, mask), expected);
    }

    #[test]
    fn creators_own_what_they_add(seed: u64) {
        let schema = deployment();
        let ty = Type::of(&schema);
        let object = random_object(&schema, seed);
        let compared = ty.compare(&ty.zero(), &object).unwrap().changed();
        let compared = Some(compared.to_json()).filter(|_| !compared.is_empty());
        prop_assert_eq!(fields_of_new(ty, &object, Mask::default()), Ok(compared));
    }

    #[test]
    fn objects_of_one_form_have_the_same_owners(seed: u64, other: u64) {
        let schema = deployment();
        let ty = Type::of(&schema);
        let object = random_object(&schema, seed);
        let form = Form::of(ty, &object).expect("it fits the type");
        prop_assert!(form.is_of(&object));
        for one in [random_object(&schema, other), other_scalars(&object, other)] {
            if form.is_of(&one) {
                let owned = |object| fields_of_new(ty, object, Mask::default());
                prop_assert_eq!(owned(&object), owned(&one), "{} and {}", text(&object), text(&one));
            }
        }
    }

    #[test]
    fn comparing_finds_the_difference(a: u64, b: u64) {
        let schema = deployment();
        let ty = Type::of(&schema);
        let (old, new) = (random_object(&schema, a), random_object(&schema, b));
        ty.validate(&old, Duplicates::Refused).unwrap();
        prop_assert_eq!(ty.compare(&old, &old).unwrap(), Comparison::default());
        let there = ty.compare(&old, &new).unwrap();
        let back = ty.compare(&new, &old).unwrap();
        prop_assert_eq!(&there.added, &back.removed);
        prop_assert_eq!(&there.modified, &back.modified);
        // What was added or changed is a field of the new object.
        let fields = ty.with_named_fields(&ty.field_set(&new));
        for path in there.changed().leaves().paths() {
            prop_assert!(fields.contains(&path) || is_empty_at(&new, &path), "{} in {}", path, text(&new));
        }
    }

    #[test]
    fn merging_keeps_everything_and_prefers_the_config(a: u64, b: u64) {
        let schema = deployment();
        let ty = Type::of(&schema);
        let (live, config) = (random_object(&schema, a), random_object(&schema, b));
        let merged = ty.merge(&live, &config).unwrap();
        prop_assert_eq!(ty.merge(&merged, &config).unwrap(), merged.clone(), "idempotent");
        let rebuilt = merge::merge(ty, Some(&live), Some(&config), &mut ValidationErrors::default());
        prop_assert_eq!(Some(merged.clone()), rebuilt);
        let changes = ty.compare(&config, &merged).unwrap();
        prop_assert!(changes.removed.is_empty() && changes.modified.leaves().paths().iter().all(|p| is_empty_at(&config, p)));
        let changes = ty.compare(&live, &merged).unwrap();
        prop_assert!(changes.removed.is_empty(), "{:?}", changes.removed.paths());
    }

    #[test]
    fn an_overlay_is_the_change_by_a_merge(a: u64, b: u64, part: bool) {
        let schema = deployment();
        let ty = Type::of(&schema);
        let live = random_object(&schema, a);
        // A config of the same values, or of others.
        let config = if part { random_part(&live, b) } else { random_object(&schema, b) };
        let merged = ty.merge(&live, &config).unwrap();
        let overlay = ty.overlay(&live, &config).unwrap();
        prop_assert_eq!(&overlay.changes, &ty.compare(&live, &merged).unwrap());
        prop_assert!(!overlay.is_empty() || merged == live, "{} + {}", text(&live), text(&config));
        prop_assert!(ty.overlay(&live, &live).unwrap().is_empty());
    }

    #[test]
    fn removing_all_items_of_a_set_removes_them(a: u64, b: u64) {
        let schema = deployment();
        let ty = Type::of(&schema);
        let (mut value, other) = (random_object(&schema, a), random_object(&schema, b));
        let items = ty.with_named_fields(&ty.field_set(&other));
        ty.remove_items(&mut value, &items);
        prop_assert!(ty.field_set(&value).leaves().is_disjoint(&items.leaves()) || value.is_null());
    }
}

/// Which values count, of objects that have the same members.
#[test]
fn forms() {
    let schema = first_field_never_omitted(containers(), 1);
    let ty = Type::of(&schema);
    let same = [
        (r#"{"l":[{"name":"a","port":1,"x":"1"}],"n":1}"#, r#"{"l":[{"name":"a","port":1,"x":"2"}],"n":2}"#),
        (r#"{"a":[{"x":"1"}],"m":{"k":"1"}}"#, r#"{"a":[{"x":"2"}],"m":{"k":"2"}}"#),
        (r#"{"i":{"k":[1]}}"#, r#"{"i":{"k":[2]}}"#),
    ];
    let others = [
        (r#"{"l":[{"name":"a","port":1}]}"#, r#"{"l":[{"name":"b","port":1}]}"#),
        (r#"{"l":[{"name":"a","port":1}]}"#, r#"{"l":[{"name":"a","port":2}]}"#),
        (r#"{"l":[{"name":"a"},{"name":"b"}]}"#, r#"{"l":[{"name":"a"}]}"#),
        (r#"{"s":["a"]}"#, r#"{"s":["b"]}"#),
        (r#"{"m":{"k":"1"}}"#, r#"{"m":{"l":"1"}}"#),
        (r#"{"m":{"k":"1"}}"#, r#"{"m":{"k":"1","l":"1"}}"#),
        (r#"{"m":{"k":"1"}}"#, r#"{"m":{"k":null}}"#),
        (r#"{"m":{}}"#, r#"{"m":null}"#),
        (r#"{"i":1}"#, r#"{"i":"1"}"#),
        (r#"{"i":{}}"#, r#"{"i":[]}"#),
        // What any new object has is nobody's.
        (r#"{"z":{"x":""}}"#, r#"{"z":{"x":"1"}}"#),
        (r#"{"n":1}"#, r#"{}"#),
    ];
    let form = |object: &str| Form::of(ty, &v(object)).expect("it fits the type");
    for (object, other) in same {
        assert!(form(object).is_of(&v(object)) && form(object).is_of(&v(other)), "{object} {other}");
    }
    for (object, other) in others {
        assert!(form(object).is_of(&v(object)) && form(other).is_of(&v(other)), "{object} {other}");
        assert!(!form(object).is_of(&v(other)) && !form(other).is_of(&v(object)), "{object} {other}");
    }
    for object in [r#"{"l":{}}"#, r#"{"q":1}"#, r#"{"n":[1]}"#] {
        assert!(Form::of(ty, &v(object)).is_none(), "{object}");
    }
    let long = Value::from([("m", Value::from([("k".repeat(70_000), Value::from("1"))]))]);
    assert!(Form::of(ty, &long).is_none());
}

/// Whether an empty list or map (or nothing) stands at `path`: those have no fields of their own.
fn is_empty_at(value: &Value, path: &crate::fieldset::Path) -> bool {
    use crate::fieldset::PathElement;
    let mut at = Some(value);
    for element in &path.0 {
        at = match (element, at) {
            (PathElement::Field(name), Some(v)) => v.get(name),
            (PathElement::Key(fields), Some(Value::Array(list))) => {
                list.iter().find(|e| fields.iter().all(|(k, v)| e.get(k) == Some(v)))
            }
            _ => None,
        };
    }
    at.is_none_or(Value::is_empty)
}

/// `value` without some of its members and elements; keys of list elements stay.
fn random_part(value: &Value, seed: u64) -> Value {
    let keep = |i: usize, name: &str| {
        matches!(name, "name" | "uid" | "type" | "containerPort" | "protocol") || (seed >> (i % 61)) & 1 == 1
    };
    match value {
        Value::Object(map) => {
            let kept = map.iter().enumerate().filter(|(i, (name, _))| keep(*i, name));
            Value::Object(kept.map(|(i, (name, v))| (name, random_part(v, seed.rotate_left(i as u32 + 7)))).collect())
        }
        Value::Array(list) if list.iter().all(|v| v.as_object().is_some_and(|m| m.contains_key("name"))) => {
            let kept = list.iter().enumerate().filter(|(i, _)| keep(*i, ""));
            Value::Array(kept.map(|(i, v)| random_part(v, seed.rotate_left(i as u32 + 3))).collect())
        }
        other => other.clone(),
    }
}
