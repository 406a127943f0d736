//! Ownership over sequences of applies and updates on one object.

use super::*;
use crate::fieldset::{Filter, Set};
use crate::json::tests::v;
use crate::testing::{deployment, random_object, text, types};
use crate::typed::Type;
use kubelith_meta::{Str, Value};
use kubelith_schema::TypedSchema;
use proptest::prelude::*;

/// A kind in `v1` only.
struct OneVersion(TypedSchema);

impl Versions for OneVersion {
    fn type_in(&self, version: &str) -> Option<Type<'_>> {
        (version == "v1").then(|| Type::of(&self.0))
    }

    fn convert(&self, _: &Value, _: &str) -> Result<Value, ConvertError> {
        Err(ConvertError::MissingVersion)
    }
}

/// A kind in `v1` and `v2`; `v2` calls the field `size` what `v1` calls `count`.
struct TwoVersions(TypedSchema, TypedSchema);

fn two_versions() -> TwoVersions {
    let schema = |field: &str| {
        types(&format!("type T\n apiVersion string\n {field} int32\n l []I map=name\n type I\n name string\n x string"))
    };
    TwoVersions(schema("count"), schema("size"))
}

impl Versions for TwoVersions {
    fn type_in(&self, version: &str) -> Option<Type<'_>> {
        match version {
            "v1" => Some(Type::of(&self.0)),
            "v2" => Some(Type::of(&self.1)),
            _ => None,
        }
    }

    fn convert(&self, object: &Value, version: &str) -> Result<Value, ConvertError> {
        let (from, to) = if version == "v2" { ("count", "size") } else { ("size", "count") };
        let mut object = object.clone();
        let map = object.make_object();
        if let Some(value) = map.remove(from) {
            map.insert(to, value);
        }
        map.insert("apiVersion", version);
        Ok(object)
    }
}

/// An object and its owners.
struct World<'a> {
    versions: &'a dyn Versions,
    reset: Vec<(Str, Filter)>,
    version: &'static str,
    object: Value,
    owners: Owners,
}

impl<'a> World<'a> {
    fn new(versions: &'a dyn Versions) -> World<'a> {
        World { versions, reset: Vec::new(), version: "v1", object: v("{}"), owners: Owners::new() }
    }

    fn updater(&self) -> Updater<'_> {
        let ty = self.versions.type_in(self.version).expect("a known version");
        Updater { versions: self.versions, version: self.version, ty, reset: &self.reset }
    }

    fn try_apply(&mut self, manager: &str, config: &Value, force: Force) -> Result<(), UpdateError> {
        let id = ManagerId::new(manager, Operation::Apply, self.version, "");
        let mut owners = self.owners.clone();
        let applied = {
            let set = self.updater().ty.field_set(config);
            self.updater().apply(&self.object, config, Wanted::Set(set), &mut owners, &id, force)?
        };
        if let Applied::Changed(object) = applied {
            self.object = object;
        }
        self.owners = owners;
        Ok(())
    }

    fn apply(&mut self, manager: &str, config: &str) -> &mut Self {
        self.try_apply(manager, &v(config), Force::No).unwrap_or_else(|e| panic!("{e}: {config}"));
        self
    }

    fn update(&mut self, manager: &str, object: &str) -> &mut Self {
        let new = v(object);
        let mut owners = self.owners.clone();
        let id = ManagerId::new(manager, Operation::Update, self.version, "");
        self.updater().update(&self.object, &new, &mut owners, id, &Set::new()).expect("an update");
        self.owners = owners;
        self.object = new;
        self
    }

    fn owned_by(&self, manager: &str) -> String {
        let sets = self.owners.iter().filter(|(id, _)| id.manager == manager).map(|(_, o)| text(&o.set().to_fields()));
        sets.collect::<Vec<_>>().join(" ")
    }

    fn object(&self) -> String {
        text(&self.object)
    }
}

fn widget() -> OneVersion {
    OneVersion(types(
        "type Widget
           n int32
           s string
           set []string set
           map []Item map=name
           gran map<string>
           spec Spec
         type Item
           name string
           value string
           note string
         type Spec
           a string
           b string",
    ))
}

#[test]
fn appliers_share_and_conflict() {
    let versions = widget();
    let mut w = World::new(&versions);
    w.apply("m1", r#"{"n":1,"s":"x"}"#).apply("m2", r#"{"n":1}"#);
    assert_eq!(w.owned_by("m2"), r#"{"f:n":{}}"#);
    let err = w.try_apply("m2", &v(r#"{"n":2}"#), Force::No).unwrap_err();
    assert_eq!(err.to_string(), r#"Apply failed with 1 conflict: conflict with "m1": .n"#);
    w.try_apply("m2", &v(r#"{"n":2}"#), Force::Yes).unwrap();
    assert_eq!((w.owned_by("m1").as_str(), w.object().as_str()), (r#"{"f:s":{}}"#, r#"{"n":2,"s":"x"}"#));
}

#[test]
fn updaters_take_what_they_change() {
    let versions = widget();
    let mut w = World::new(&versions);
    w.apply("m1", r#"{"n":1,"gran":{"a":"1"}}"#).update("u", r#"{"n":2,"gran":{"a":"1","b":"2"}}"#);
    assert_eq!(w.owned_by("u"), r#"{"f:gran":{"f:b":{}},"f:n":{}}"#);
    assert_eq!(w.owned_by("m1"), r#"{"f:gran":{"f:a":{}}}"#);
    let err = w.try_apply("m1", &v(r#"{"n":1,"gran":{"b":"9"}}"#), Force::No).unwrap_err();
    let UpdateError::Conflicts(conflicts) = err else { panic!("{err}") };
    assert_eq!(conflicts.to_string(), "Apply failed with 2 conflicts: conflicts with \"u\" using v1:\n- .n\n- .gran.b");
    let causes: Vec<String> =
        conflicts.causes().iter().map(|c| format!("{}|{}|{}", c.reason, c.message, c.field)).collect();
    assert_eq!(causes[0], r#"FieldManagerConflict|conflict with "u" using v1|.n"#);
    assert_eq!(text(&conflicts.fields().to_fields()), r#"{"f:gran":{"f:b":{}},"f:n":{}}"#);
}

#[test]
fn removal_by_omission() {
    let versions = widget();
    // What was applied, what is applied next, what remains.
    let table = [
        (r#"{"n":1,"s":"x"}"#, r#"{"s":"x"}"#, r#"{"s":"x"}"#),
        (r#"{"gran":{"a":"1","b":"2"}}"#, r#"{"gran":{"a":"1"}}"#, r#"{"gran":{"a":"1"}}"#),
        (r#"{"gran":{"a":"1"},"n":1}"#, r#"{"n":1}"#, r#"{"n":1}"#),
        (r#"{"set":["a","b"]}"#, r#"{"set":["b"]}"#, r#"{"set":["b"]}"#),
        (
            r#"{"map":[{"name":"a"},{"name":"b","value":"1"}]}"#,
            r#"{"map":[{"name":"b"}]}"#,
            r#"{"map":[{"name":"b"}]}"#,
        ),
        (r#"{"spec":{"a":"1","b":"2"}}"#, r#"{"spec":{}}"#, r#"{"spec":null}"#),
    ];
    for (first, second, want) in table {
        let mut w = World::new(&versions);
        w.apply("m1", first).apply("m1", second);
        assert_eq!(w.object(), text(&v(want)), "{first} then {second}");
    }
}

#[test]
fn what_others_own_stays() {
    let versions = widget();
    let mut w = World::new(&versions);
    // Another applier of the same element.
    w.apply("m1", r#"{"map":[{"name":"a","value":"1"}]}"#).apply("m2", r#"{"map":[{"name":"a","note":"n"}]}"#);
    w.apply("m1", r#"{"s":"x"}"#);
    assert_eq!(w.object(), r#"{"map":[{"name":"a","note":"n"}],"s":"x"}"#);

    // An updater's field inside the element keeps the element.
    let mut w = World::new(&versions);
    w.apply("m1", r#"{"gran":{"a":"1"}}"#).update("u", r#"{"gran":{"a":"1","b":"2"}}"#).apply("m1", r#"{"s":"x"}"#);
    assert_eq!(w.object(), r#"{"gran":{"b":"2"},"s":"x"}"#);

    // So does nobody's: a default in an element goes with it, one in a struct that goes does not.
    let mut w = World::new(&versions);
    w.apply("m1", r#"{"map":[{"name":"a"}],"spec":{"a":"1"}}"#);
    w.object = v(r#"{"map":[{"name":"a","note":"default"}],"spec":{"a":"1","b":"default"}}"#);
    w.apply("m1", r#"{"s":"x"}"#);
    assert_eq!(w.object(), r#"{"s":"x"}"#);
}

#[test]
fn applying_again_changes_nothing() {
    let versions = widget();
    let mut w = World::new(&versions);
    let config = v(r#"{"n":1,"set":["a"],"map":[{"name":"a"}],"gran":{"a":"1"}}"#);
    w.try_apply("m1", &config, Force::No).unwrap();
    let id = ManagerId::new("m1", Operation::Apply, "v1", "");
    let applied = w
        .updater()
        .apply(
            &w.object,
            &config,
            Wanted::Set(w.updater().ty.field_set(&config)),
            &mut w.owners.clone(),
            &id,
            Force::No,
        )
        .unwrap();
    assert!(matches!(applied, Applied::Unchanged));
}

#[test]
fn ownership_across_versions() {
    let versions = two_versions();
    let mut w = World::new(&versions);
    w.apply("m1", r#"{"apiVersion":"v1","count":1}"#);
    // A conflict in another version is named in the owner's terms.
    w.version = "v2";
    w.object = versions.convert(&w.object, "v2").unwrap();
    let err = w.try_apply("m2", &v(r#"{"apiVersion":"v2","size":2}"#), Force::No).unwrap_err();
    assert_eq!(err.to_string(), r#"Apply failed with 1 conflict: conflict with "m1": .count"#);
    // The same manager in the other version prunes what it applied in the first.
    w.apply("m1", r#"{"apiVersion":"v2","l":[{"name":"a"}]}"#);
    assert_eq!(w.object(), r#"{"apiVersion":"v2","l":[{"name":"a"}]}"#);
    // An updater of v1 keeps what it owns there when a v2 applier drops it.
    let mut w = World::new(&versions);
    w.update("u", r#"{"apiVersion":"v1","count":3}"#);
    w.version = "v2";
    w.object = versions.convert(&w.object, "v2").unwrap();
    w.apply("m1", r#"{"apiVersion":"v2","size":3,"l":[{"name":"a"}]}"#)
        .apply("m1", r#"{"apiVersion":"v2","l":[{"name":"a"}]}"#);
    assert_eq!(w.object(), r#"{"apiVersion":"v2","l":[{"name":"a"}],"size":3}"#);
}

#[test]
fn unknown_versions_are_forgotten() {
    let versions = widget();
    let mut w = World::new(&versions);
    w.apply("m1", r#"{"n":1}"#);
    let id = ManagerId::new("old", Operation::Update, "v0", "");
    w.owners.insert(id, Owner::new("v0".into(), Operation::Update, Set::of_fields(&[&["n"]])));
    w.apply("m1", r#"{"n":2}"#);
    assert_eq!(w.owned_by("old"), "");
}

#[test]
fn reset_fields_are_never_owned() {
    let versions = widget();
    let mut w = World::new(&versions);
    w.reset = vec![("v1".into(), Filter::Exclude(Set::of_fields(&[&["spec"]])))];
    w.apply("m1", r#"{"n":1,"spec":{"a":"1"}}"#).update("u", r#"{"n":1,"s":"x","spec":{"a":"2"}}"#);
    assert_eq!((w.owned_by("m1").as_str(), w.owned_by("u").as_str()), (r#"{"f:n":{}}"#, r#"{"f:s":{}}"#));
}

#[test]
fn manager_order_is_that_of_identifiers() {
    let id = |m: &str, o, v: &str, s: &str| ManagerId::new(m, o, v, s);
    use Operation::{Apply, Update};
    let sorted = [
        id("a b", Apply, "", ""),
        id("a", Apply, "", "status"),
        id("a", Apply, "", ""),
        id("a", Update, "apps/v1", ""),
        id("a", Update, "v1", "scale"),
        id("a", Update, "v1", ""),
        id("ab", Apply, "", ""),
    ];
    assert!(sorted.is_sorted());
    assert_eq!(sorted[1].to_string(), r#""a" with subresource "status""#);
    assert_eq!(sorted[4].to_string(), r#""a" with subresource "scale" using v1"#);
}

proptest! {
    #![proptest_config(crate::testing::cases(200))]

    #[test]
    fn apply_is_idempotent(live: u64, config: u64) {
        let schema = deployment();
        let versions = OneVersion(schema.clone());
        let mut w = World::new(&versions);
        w.object = random_object(&schema, live);
        let config = random_object(&schema, config);
        w.try_apply("m1", &config, Force::Yes).unwrap();
        let (object, owners) = (w.object.clone(), w.owned_by("m1"));
        w.try_apply("m1", &config, Force::No).unwrap();
        prop_assert_eq!((w.object.clone(), w.owned_by("m1")), (object, owners));
    }

    /// Two managers that do not want the same field to be different may come in any order.
    #[test]
    fn appliers_without_conflict_commute(live: u64, a: u64, b: u64) {
        let schema = deployment();
        let versions = OneVersion(schema.clone());
        let run = |first: (&str, &Value), second: (&str, &Value)| {
            let mut w = World::new(&versions);
            w.object = random_object(&schema, live);
            w.try_apply(first.0, first.1, Force::Yes).unwrap();
            w.try_apply(second.0, second.1, Force::No).ok()?;
            Some((w.object.clone(), w.owned_by("a"), w.owned_by("b")))
        };
        let (a, b) = (random_object(&schema, a), random_object(&schema, b));
        if let (Some(ab), Some(ba)) = (run(("a", &a), ("b", &b)), run(("b", &b), ("a", &a))) {
            // Only the order of list elements may depend on who came first.
            prop_assert_eq!(Type::of(&schema).compare(&ab.0, &ba.0).unwrap().changed(), Set::new());
            prop_assert_eq!((ab.1, ab.2), (ba.1, ba.2));
        }
    }

    /// After an applier drops everything, nothing is left that only it owned.
    #[test]
    fn omission_removes_what_nobody_else_owns(first: u64, second: u64) {
        let schema = deployment();
        let ty = Type::of(&schema);
        let versions = OneVersion(schema.clone());
        let mut w = World::new(&versions);
        // An empty list is no field: it comes and goes with what else is around it.
        let object = |seed| without_empty_lists(random_object(&schema, seed));
        let (first, second) = (object(first), object(second));
        w.try_apply("m1", &first, Force::Yes).unwrap();
        w.try_apply("m1", &second, Force::Yes).unwrap();
        // All that is there now is wanted now; emptied containers may remain.
        let wanted = ty.with_named_fields(&ty.field_set(&second));
        for path in ty.field_set(&w.object).leaves().paths() {
            prop_assert!(wanted.contains(&path) || is_empty(&w.object, &path), "{}", path);
        }
        // And all that is wanted is there.
        let missing = ty.field_set(&second).difference(&ty.field_set(&w.object));
        prop_assert!(missing.is_empty(), "{} of {} in {}", missing.to_json(), text(&second), text(&w.object));
    }
}

/// Whether nothing, null or an empty container stands at `path`.
fn is_empty(object: &Value, path: &crate::fieldset::Path) -> bool {
    use crate::fieldset::PathElement;
    let mut at = Some(object);
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

fn without_empty_lists(mut value: Value) -> Value {
    match &mut value {
        Value::Object(map) => map.retain(|_, v| {
            *v = without_empty_lists(std::mem::take(v));
            v.as_array().is_none_or(|list| !list.is_empty())
        }),
        Value::Array(list) => list.iter_mut().for_each(|v| *v = without_empty_lists(std::mem::take(v))),
        _ => {}
    }
    value
}
