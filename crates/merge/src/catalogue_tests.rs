//! The laws of merging, held against every built-in kind with a few generated objects each.

use crate::apply::{ConvertError, Force, Versions};
use crate::fieldset::{Filter, Mask, Set};
use crate::managers::FieldManager;
use crate::strategic::{self, three_way};
use crate::testing::{other_scalars, sparse_object, text};
use crate::typed::{Form, Type, fields_of_new};
use crate::{json_patch, merge_patch};
use kubelith_meta::{GroupVersionKind, Time, Value};
use kubelith_schema::TypedSchema;
use kubelith_schema::canonical::{Empties, canonicalize};

/// Objects of each kind; the laws are also tested with many more objects of one kind elsewhere.
const SEEDS: [u64; 3] = [1, 2, 3];

struct Kind {
    gvk: GroupVersionKind,
    schema: TypedSchema,
}

impl Versions for Kind {
    fn type_in(&self, version: &str) -> Option<Type<'_>> {
        (version == self.gvk.api_version()).then(|| Type::of(&self.schema))
    }

    fn convert(&self, object: &Value, _: &str) -> Result<Value, ConvertError> {
        Ok(object.clone())
    }
}

impl Kind {
    fn object(&self, seed: u64) -> Value {
        let mut object = sparse_object(&self.schema, seed);
        object.set_at(&["apiVersion"], self.gvk.api_version().into());
        object.set_at(&["kind"], self.gvk.kind.clone().into());
        object.set_at(&["metadata", "name"], "x".into());
        // An applier that owns nothing is forgotten, so each owns a label.
        object.set_at(&["metadata", "labels", &format!("l{seed}")], "x".into());
        object
    }

    fn apply(&self, live: Option<&Value>, config: &Value, manager: &str, force: Force) -> Option<Value> {
        let fields = FieldManager {
            versions: self,
            kind: self.gvk.clone(),
            subresource: "",
            reset: &[],
            outlines: None,
            creations: None,
        };
        let now = Time::parse("2026-01-01T00:00:00Z").unwrap();
        fields.apply(live, config, manager, force, now).ok().map(|outcome| outcome.object)
    }
}

fn for_each_kind(mut law: impl FnMut(&Kind)) {
    let catalog = kubelith_catalog::builtin();
    let mut seen = 0;
    for descriptor in catalog.descriptors.iter().filter(|d| d.storage.keeps_objects()) {
        for version in descriptor.versions.iter() {
            law(&Kind { gvk: descriptor.gvk(&version.name), schema: version.schema.clone() });
            seen += 1;
        }
    }
    assert!(seen > 60, "only {seen} kinds");
}

fn without_owners(object: &Value) -> Value {
    let mut object = object.clone();
    object.remove_at(&["metadata", "managedFields"]);
    object
}

/// Who owns what, by manager. One who changes nothing gets an entry without a time.
fn owners(object: &Value) -> Vec<Value> {
    let mut entries = object.at(&["metadata", "managedFields"]).and_then(Value::as_array).unwrap_or_default().to_vec();
    entries.iter_mut().for_each(|entry| drop(entry.remove_at(&["time"])));
    entries.sort_by_key(|entry| entry.str_at(&["manager"]).to_owned());
    entries
}

/// The shorter way to the fields of a creator gives what comparing with an empty object gives.
#[test]
fn creators_own_what_they_add() {
    let mut alike = 0;
    for_each_kind(|kind| {
        let ty = Type::of(&kind.schema);
        let nobodys = Set::of_fields(&[&["kind"], &["metadata"], &["metadata", "name"]]);
        let status = Filter::Exclude(Set::of_fields(&[&["status"], &["metadata", "annotations"]]));
        let Filter::Exclude(excluded) = &status else { unreachable!() };
        for seed in SEEDS {
            for object in [kind.object(seed), canonical(&kind.schema, kind.object(seed))] {
                let mut compared = ty.compare(&ty.zero(), &object).expect("a valid object");
                compared.filter(&status);
                let mut set = compared.changed();
                set.remove(&nobodys);
                let mask = Mask { nobodys: Some(&nobodys), excluded: Some(excluded) };
                let written = fields_of_new(ty, &object, mask).unwrap_or_else(|()| panic!("{}", text(&object)));
                assert_eq!(written.as_deref(), Some(set.to_json().as_str()), "{}: {}", kind.gvk, text(&object));
                let form = Form::of(ty, &object).unwrap_or_else(|| panic!("{}", text(&object)));
                assert!(form.is_of(&object), "{}: {}", kind.gvk, text(&object));
                for seed in 0..8_u64 {
                    let other = other_scalars(&object, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                    if form.is_of(&other) {
                        alike += usize::from(other != object);
                        assert_eq!(
                            fields_of_new(ty, &other, mask),
                            Ok(written.clone()),
                            "{}: {}",
                            kind.gvk,
                            text(&other)
                        );
                    }
                }
            }
        }
    });
    assert!(alike > 1000, "only {alike} objects had the form of another");
}

fn canonical(schema: &TypedSchema, mut object: Value) -> Value {
    canonicalize(&schema.table, &schema.root, &mut object, Empties::Distinct);
    object
}

#[test]
fn apply_is_idempotent() {
    for_each_kind(|kind| {
        for seed in SEEDS {
            let config = kind.object(seed);
            let once =
                kind.apply(None, &config, "m", Force::No).unwrap_or_else(|| panic!("{}: {}", kind.gvk, text(&config)));
            let twice = kind.apply(Some(&once), &config, "m", Force::No).expect("no conflict with oneself");
            assert_eq!(text(&twice), text(&once), "{}", kind.gvk);
        }
    });
}

#[test]
fn appliers_without_conflict_commute() {
    let mut commuted = 0;
    for_each_kind(|kind| {
        for seed in SEEDS {
            let (a, b) = (kind.object(seed), kind.object(seed + 100));
            let run = |first: (&str, &Value), second: (&str, &Value)| {
                let one = kind.apply(None, first.1, first.0, Force::No)?;
                kind.apply(Some(&one), second.1, second.0, Force::No)
            };
            let (Some(ab), Some(ba)) = (run(("a", &a), ("b", &b)), run(("b", &b), ("a", &a))) else { continue };
            // Only the order of list elements may depend on who came first.
            let ty = Type::of(&kind.schema);
            let difference = ty.compare(&without_owners(&ab), &without_owners(&ba)).unwrap().changed();
            assert!(difference.is_empty(), "{}: {}", kind.gvk, difference.to_json());
            assert_eq!(owners(&ab), owners(&ba), "{}", kind.gvk);
            commuted += 1;
        }
    });
    assert!(commuted > 20, "only {commuted} pairs had no conflict");
}

#[test]
fn empty_patches_change_nothing() {
    for_each_kind(|kind| {
        for seed in SEEDS {
            let object = kind.object(seed);
            let mut merged = object.clone();
            merge_patch::apply(&mut merged, Value::object()).unwrap();
            let mut patched = object.clone();
            let (empty, _) =
                json_patch::JsonPatch::decode(Value::Array(Vec::new()), json_patch::Checking::Checked).unwrap();
            empty.apply(&mut patched, json_patch::MAX_COPIED_BYTES).unwrap();
            let mut strategic = object.clone();
            strategic::apply(&mut strategic, Value::object(), &kind.schema).unwrap();
            for got in [merged, patched, strategic] {
                assert_eq!(got, object, "{}", kind.gvk);
            }
        }
    });
}

#[test]
fn three_way_patches_give_what_was_written() {
    for_each_kind(|kind| {
        for seed in SEEDS {
            let (applied, wanted) = (kind.object(seed), kind.object(seed + 100));
            let patch = three_way(&applied, &wanted, &applied, &kind.schema);
            let mut got = applied.clone();
            strategic::apply(&mut got, patch.clone(), &kind.schema).unwrap_or_else(|e| panic!("{}: {e}", kind.gvk));
            assert_eq!(text(&got), text(&wanted), "{}: {}", kind.gvk, text(&patch));
        }
    });
}
