//! What definitions do in the generic life cycles.

use crate::CLEANUP_FINALIZER;
use crate::controllers::conditions::{Condition, set};
use kubelith_meta::field::ErrorList;
use kubelith_meta::time::Time;
use kubelith_meta::{Str, Value};
use kubelith_registry::{Call, DeleteOptions, DeleteStep, Generation, Part, Strategy};
use std::sync::Arc;

/// `defaults` is the strategy that the catalogue's kinds have: it fills in what clients left out.
pub struct DefinitionStrategy {
    pub defaults: Arc<dyn Strategy>,
}

impl Strategy for DefinitionStrategy {
    fn default_object(&self, version: &str, object: &mut Value) {
        self.defaults.default_object(version, object);
    }

    fn prepare_for_create(&self, _call: &Call, object: &mut Value) {
        let stored = storage_versions(object);
        object.set_at(&["status"], Value::from([("storedVersions", stored)]));
    }

    fn prepare_for_update(&self, _call: &Call, part: Part<'_>, object: &mut Value, _old: &Value) {
        if part != Part::Main {
            return;
        }
        // What objects may be stored as grows with the storage version; it shrinks only through the status.
        let now = storage_versions(object);
        let mut stored: Vec<Value> =
            object.at(&["status", "storedVersions"]).and_then(Value::as_array).unwrap_or(&[]).to_vec();
        for version in now.into_iter().map(Value::String) {
            if !stored.contains(&version) {
                stored.push(version);
                object.set_at(&["status", "storedVersions"], Value::Array(stored.clone()));
            }
        }
    }

    fn validate(&self, _call: &Call, _object: &Value) -> ErrorList {
        ErrorList::default()
    }

    fn generation(&self) -> Generation {
        Generation::Spec
    }

    fn updates_unconditionally(&self) -> bool {
        false
    }

    /// The first deletion marks the definition; its instances are deleted before it goes.
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
            Part::Status => vec![vec!["metadata".into()], vec!["spec".into()]],
            Part::Other(_) => Vec::new(),
        }
    }
}

fn storage_versions(object: &Value) -> Vec<Str> {
    let versions = object.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or(&[]);
    let stored = versions.iter().filter(|v| v.get("storage") == Some(&Value::Bool(true)));
    stored.map(|v| Str::from(v.str_at(&["name"]))).collect()
}
