//! Whatever the schema and whatever the object: every walk ends, changes nothing the second time, and never panics.

use kubelith_meta::{Map, Str, Value};
use kubelith_schema::structural::{
    Structural, apply_defaults, drop_nulls, object_schema, prune, prune_reporting, validate, validate_lists,
    validate_update,
};
use kubelith_schema::{TypeTable, go_regexp};
use std::sync::Arc;

const ROUNDS: usize = 1_500;
const NAMES: [&str; 6] = ["a", "b", "metadata", "kind", "spec", ""];

/// The same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 8 } else { 11 }) {
            0 => Value::Null,
            1 => Value::Bool(true),
            2 => Value::Int(self.below(7) as i64 - 3),
            3 => Value::Int([i64::MIN, i64::MAX][self.below(2)]),
            4 => Value::Float([0.5, -1e300, f64::MAX, 3.0][self.below(4)]),
            5..=7 => Value::from(self.pick(&["", "a", "äöü", "2026-01-02", "10.0.0.0/8", "zz zz", "\u{0}"])),
            8 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect::<Vec<_>>().into(),
            _ => (0..self.below(4))
                .map(|_| (Str::from(self.pick(&NAMES)), self.value(depth - 1)))
                .collect::<Map>()
                .into(),
        }
    }

    fn schema(&mut self, depth: usize) -> Value {
        let mut schema = Value::object();
        let kinds = ["object", "array", "string", "integer", "number", "boolean", "null", "", "bogus"];
        schema.set_at(&["type"], self.pick(&kinds).into());
        for _ in 0..self.below(5) {
            let (key, value) = match self.below(18) {
                0 => ("default", self.value(2)),
                1 => ("nullable", true.into()),
                2 => ("x-kubernetes-preserve-unknown-fields", true.into()),
                3 => ("x-kubernetes-embedded-resource", true.into()),
                4 => ("x-kubernetes-int-or-string", true.into()),
                5 => ("x-kubernetes-list-type", self.pick(&["set", "map", "atomic", "x"]).into()),
                6 => ("x-kubernetes-list-map-keys", vec![self.pick(&NAMES)].into()),
                7 => (
                    "format",
                    self.pick(&["date", "date-time", "int32", "ipv4", "cidr", "byte", "uri", "duration"]).into(),
                ),
                8 => ("pattern", self.pick(&["^a+$", "(", "[[:alpha:]]", "\\d{1001}", "", "a{,3}"]).into()),
                9 => ("enum", Value::Array(vec![self.value(1), self.value(1)])),
                10 => (self.pick(&["minimum", "maximum", "multipleOf"]), self.value(0)),
                11 => (self.pick(&["minLength", "maxItems", "minProperties", "maxLength"]), self.value(0)),
                12 => ("required", vec![self.pick(&NAMES)].into()),
                13 if depth > 0 => ("items", self.schema(depth - 1)),
                14 if depth > 0 => ("additionalProperties", self.schema(depth - 1)),
                15 if depth > 0 => {
                    (self.pick(&["allOf", "anyOf", "oneOf"]), Value::Array(vec![self.schema(depth - 1)]))
                }
                16 if depth > 0 => ("not", self.schema(depth - 1)),
                // What is no schema at all must not be worse than none.
                _ => (self.pick(&["properties", "items", "enum", "allOf", "required", "pattern"]), self.value(2)),
            };
            schema.set_at(&[key], value);
        }
        if depth > 0 && self.below(3) > 0 {
            let members = (0..self.below(4)).map(|_| (Str::from(self.pick(&NAMES)), self.schema(depth - 1)));
            schema.set_at(&["properties"], members.collect::<Map>().into());
        }
        schema
    }
}

#[test]
fn every_walk_ends_and_is_done_once() {
    let mut numbers = Numbers(7);
    let table = Arc::new(TypeTable::default());
    for round in 0..ROUNDS {
        let mut schema = Structural::parse(&numbers.schema(3));
        schema.prune_defaults();
        let (mut object, old) = (numbers.value(4), numbers.value(4));
        let shape = object_schema(table.clone(), &schema);
        assert!(shape.root_struct().is_some(), "round {round}");

        let mut pruned = object.clone();
        prune(&schema, &mut pruned);
        prune_reporting(&schema, &mut object);
        assert_eq!(object, pruned, "round {round}: reporting changes nothing");
        assert!(prune_reporting(&schema, &mut pruned).is_empty(), "round {round}: pruned is pruned");

        drop_nulls(&schema, &mut object);
        apply_defaults(&schema, &mut object);
        let mut again = object.clone();
        apply_defaults(&schema, &mut again);
        // A default may be null where null is none; nothing else is filled in twice.
        if !schema.any(&|s| s.nullable) {
            assert_eq!(object, again, "round {round}: defaults are filled in once");
        }
        let errors = validate(&schema, &object, None);
        let _ = validate_lists(&schema, &object);
        assert!(validate_update(&schema, &object, Some(&old), None).len() <= errors.len(), "round {round}");
        errors.iter().for_each(|e| assert!(!e.to_string().is_empty()));
    }
}

#[test]
fn what_does_not_change_is_not_judged_again() {
    let mut numbers = Numbers(11);
    let mut judged = 0;
    for round in 0..ROUNDS {
        let schema = numbers.schema(3);
        let parsed = Structural::parse(&schema);
        let mut object = numbers.value(4);
        prune(&parsed, &mut object);
        judged += usize::from(!validate(&parsed, &object, None).is_empty());
        // Members without a schema count as changed, as in the reference: those are the ones that preserving keeps.
        let preserves = parsed.any(&|s| s.preserve_unknown || s.embedded || s.list.is_some()) || has_meta(&object);
        if !preserves {
            let errors = validate_update(&parsed, &object, Some(&object), None);
            assert!(errors.is_empty(), "round {round}: {errors}");
        }
    }
    assert!(judged > ROUNDS / 4, "most objects are wrong");
}

/// apiVersion, kind and metadata are kept whatever the schema says.
fn has_meta(object: &Value) -> bool {
    ["apiVersion", "kind", "metadata"].iter().any(|key| object.get(key).is_some())
}

#[test]
fn any_pattern_answers() {
    let pieces = [
        "a",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        "{2,3}",
        "{1001}",
        "*",
        "+",
        "?",
        "|",
        "^",
        "$",
        ".",
        "\\",
        "\\d",
        "\\Q",
        "\\E",
        "-",
        "[:alpha:]",
        "&&",
        "(?i)",
        "(?P<n>",
        "\\x{",
        "é",
        "\\p{L}",
        "\\8",
        ",",
        "1",
    ];
    let mut numbers = Numbers(13);
    for _ in 0..ROUNDS {
        let pattern: String = (0..numbers.below(8)).map(|_| numbers.pick(&pieces)).collect();
        if let Ok(regex) = go_regexp::compile(&pattern) {
            let _ = regex.is_match("aaé-1");
        }
    }
}
