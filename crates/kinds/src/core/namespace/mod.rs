//! Namespaces: they go in two steps.

pub mod defaults;
pub mod validate;

use kubelith_meta::call::Call;
use kubelith_meta::time::Time;
use kubelith_meta::{Str, Value};
use kubelith_rules::{Env, Kind};
use kubelith_schema::lifecycle::{DeleteOptions, DeleteStep, Part, Propagation};

pub const NAMESPACE: Kind = Kind {
    group: "",
    plural: "namespaces",
    defaults: defaults::RULES,
    rules: validate::RULES,

    prepare_for_create,
    prepare_for_update,
    deletes_in_steps: true,
    delete_step,
    may_vanish: |object| finalizers(object).next().is_none(),
    delete_returns_object: true,
    reset_fields: |part| match part {
        Part::Main => &[&["status"]],
        Part::Status => &[&["spec"]],
        Part::Other(_) => &[&["status"]],
    },
    ..Kind::PLAIN
};

/// The finalizer of the namespace controller.
const KUBERNETES: &str = "kubernetes";

fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let list = object.at(&["spec", "finalizers"]).and_then(Value::as_array).unwrap_or(&[]);
    list.iter().filter_map(Value::as_str)
}

fn prepare_for_create(_env: &Env, _call: &Call, object: &mut Value) {
    object.set_at(&["status"], Value::from([("phase", "Active")]));
    if !finalizers(object).any(|f| f == KUBERNETES) {
        let mut all: Vec<Str> = finalizers(object).map(Str::from).collect();
        all.push(KUBERNETES.into());
        object.set_at(&["spec", "finalizers"], all.into());
    }
}

fn prepare_for_update(_env: &Env, _call: &Call, part: Part<'_>, object: &mut Value, old: &Value) {
    match part {
        // Only /finalize writes spec.finalizers.
        Part::Main => object.copy_at(&["spec", "finalizers"], old),
        Part::Status => {}
        Part::Other(_) => object.copy_at(&["status"], old),
    }
}

/// The first delete marks the namespace, whatever its finalizers; later ones wait for the content to go.
fn delete_step(object: &mut Value, options: &DeleteOptions, now: Time) -> DeleteStep {
    if object.meta().is_being_deleted() {
        return if finalizers(object).next().is_some() { DeleteStep::Stay } else { DeleteStep::Generic };
    }
    object.set_at(&["metadata", "deletionTimestamp"], now.rfc3339().into());
    object.set_at(&["status", "phase"], "Terminating".into());
    for (name, wanted) in [
        ("orphan", options.orphan_dependents.or(options.propagation.map(|p| p == Propagation::Orphan))),
        (
            "foregroundDeletion",
            options.orphan_dependents.map(|o| !o).or(options.propagation.map(|p| p == Propagation::Foreground)),
        ),
    ] {
        match wanted {
            Some(true) => drop(object.meta_mut().add_finalizer(name)),
            Some(false) => drop(object.meta_mut().remove_finalizer(name)),
            None => {}
        }
    }
    DeleteStep::Mark
}
