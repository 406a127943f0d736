//! What definitions do in the generic life cycles.

use crate::controllers::conditions::{Condition, set};
use crate::{CLEANUP_FINALIZER, validation};
use kubelith_meta::field::ErrorList;
use kubelith_meta::time::Time;
use kubelith_meta::{Str, Value};
use kubelith_registry::{Call, DeleteOptions, DeleteStep, Generation, Part, Strategy};
use kubelith_rules::expression::Expressions;
use std::sync::Arc;

/// `defaults` is the strategy that the catalogue's kinds have: it fills in what clients left out.
pub struct DefinitionStrategy {
    pub defaults: Arc<dyn Strategy>,
    /// What rules in CEL are compiled with.
    pub expressions: Arc<Expressions>,
}

impl Strategy for DefinitionStrategy {
    /// They are stored as v1beta1, in which nobody asks for them.
    fn working_version(&self) -> Option<&'static str> {
        Some("v1")
    }

    fn default_object(&self, version: &str, object: &mut Value) {
        self.defaults.default_object(version, object);
    }

    fn prepare_for_create(&self, _call: &Call, object: &mut Value) {
        validation::tidy_defaults(object);
        let stored: Vec<Str> = storage_version(object).into_iter().collect();
        object.set_at(&["status"], Value::from([("storedVersions", stored)]));
    }

    fn prepare_for_update(&self, _call: &Call, part: Part<'_>, object: &mut Value, _old: &Value) {
        if part != Part::Main {
            return;
        }
        validation::tidy_defaults(object);
        // What objects may be stored as grows with the storage version; it shrinks only through the status.
        let Some(now) = storage_version(object).map(Value::String) else { return };
        let stored = object.at(&["status", "storedVersions"]).and_then(Value::as_array).unwrap_or(&[]);
        if !stored.contains(&now) {
            let stored = stored.iter().cloned().chain([now]).collect();
            object.set_at(&["status", "storedVersions"], Value::Array(stored));
        }
    }

    fn validate(&self, _call: &Call, object: &Value) -> ErrorList {
        validation::create(&as_stored(object), &self.expressions)
    }

    fn validate_update(&self, _call: &Call, part: Part<'_>, object: &Value, old: &Value) -> ErrorList {
        match part {
            Part::Status => validation::status(object),
            _ => validation::update(&as_stored(object), &as_stored(old), &self.expressions),
        }
    }

    fn warnings_on_create(&self, _call: &Call, object: &Value) -> Vec<String> {
        validation::unrecognized_formats(object).iter().map(|f| format_warning(f)).collect()
    }

    fn warnings_on_update(&self, _call: &Call, part: Part<'_>, object: &Value, old: &Value) -> Vec<String> {
        if part != Part::Main {
            return Vec::new();
        }
        let before = validation::unrecognized_formats(old);
        let new = validation::unrecognized_formats(object).into_iter().filter(|f| !before.contains(f));
        new.map(|f| format_warning(&f)).collect()
    }

    fn generation(&self) -> Generation {
        Generation::Spec
    }

    fn updates_unconditionally(&self) -> bool {
        false
    }

    /// The first deletion marks the definition; its instances are deleted before it goes.
    fn deletes_in_steps(&self) -> bool {
        true
    }

    fn delete_step(&self, object: &mut Value, _options: &DeleteOptions, now: Time) -> DeleteStep {
        if object.meta().is_being_deleted() {
            return DeleteStep::Generic;
        }
        object.set_at(&["metadata", "deletionTimestamp"], now.rfc3339().into());
        if !object.meta().has_finalizer(CLEANUP_FINALIZER) {
            let mut finalizers: Vec<Str> = object.meta().finalizers().map(Str::from).collect();
            finalizers.push(CLEANUP_FINALIZER.into());
            object.set_at(&["metadata", "finalizers"], finalizers.into());
        }
        let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
        set(object, &Condition::new("Terminating", "True", "InstanceDeletionPending", message), now);
        DeleteStep::Mark
    }

    fn reset_fields(&self, part: Part<'_>) -> Vec<Vec<Str>> {
        match part {
            Part::Main => vec![vec!["status".into()]],
            Part::Status => vec![vec!["spec".into()]],
            Part::Other(_) => Vec::new(),
        }
    }
}

/// The form in which definitions are judged.
fn as_stored(object: &Value) -> Value {
    let mut object = object.clone();
    kubelith_catalog::definition_from_v1(&mut object);
    object
}

fn format_warning(format: &str) -> String {
    format!("unrecognized format {}", kubelith_meta::text::quote(format))
}

fn storage_version(object: &Value) -> Option<Str> {
    let versions = object.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or(&[]);
    let stored = versions.iter().find(|v| v.get("storage") == Some(&Value::Bool(true)));
    stored.map(|v| Str::from(v.str_at(&["name"])))
}
