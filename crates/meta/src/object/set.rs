//! Changing an object's metadata. An empty value leaves no field behind, as on the wire.

use super::ObjectMeta;
use crate::{Map, Time, Value};

/// An object's `metadata`, to change.
#[derive(Debug)]
pub struct ObjectMetaMut<'a>(&'a mut Map);

impl<'a> ObjectMetaMut<'a> {
    pub fn new(metadata: &'a mut Map) -> ObjectMetaMut<'a> {
        ObjectMetaMut(metadata)
    }

    pub fn view(&self) -> ObjectMeta<'_> {
        ObjectMeta::new(self.0)
    }

    /// Sets a field, or removes it for an empty value.
    pub fn set(&mut self, key: &'static str, value: impl Into<Value>) -> &mut Self {
        let value = value.into();
        if value.is_empty() {
            self.0.remove(key);
        } else {
            self.0.insert(key, value);
        }
        self
    }

    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.0.remove(key)
    }

    pub fn set_name(&mut self, name: &str) -> &mut Self {
        self.set("name", name)
    }

    pub fn set_namespace(&mut self, namespace: &str) -> &mut Self {
        self.set("namespace", namespace)
    }

    pub fn set_resource_version(&mut self, version: &str) -> &mut Self {
        self.set("resourceVersion", version)
    }

    pub fn set_generation(&mut self, generation: i64) -> &mut Self {
        self.set("generation", generation)
    }

    pub fn set_creation_timestamp(&mut self, time: Option<Time>) -> &mut Self {
        self.set("creationTimestamp", time.map(Time::rfc3339))
    }

    /// Zero seconds are a value like others here: the field is optional, not empty.
    pub fn set_deletion_grace_period_seconds(&mut self, seconds: Option<i64>) -> &mut Self {
        match seconds {
            Some(seconds) => self.0.insert("deletionGracePeriodSeconds", seconds),
            None => self.0.remove("deletionGracePeriodSeconds"),
        };
        self
    }

    pub fn set_label(&mut self, key: &str, value: &str) -> &mut Self {
        self.set_entry("labels", key, value)
    }

    pub fn remove_label(&mut self, key: &str) -> Option<Value> {
        self.remove_entry("labels", key)
    }

    pub fn set_annotation(&mut self, key: &str, value: &str) -> &mut Self {
        self.set_entry("annotations", key, value)
    }

    pub fn remove_annotation(&mut self, key: &str) -> Option<Value> {
        self.remove_entry("annotations", key)
    }

    fn set_entry(&mut self, map: &'static str, key: &str, value: &str) -> &mut Self {
        self.0.entry_or_null(map).make_object().insert(key, value);
        self
    }

    fn remove_entry(&mut self, map: &'static str, key: &str) -> Option<Value> {
        let entries = self.0.get_mut(map)?.as_object_mut()?;
        let removed = entries.remove(key);
        if entries.is_empty() {
            self.0.remove(map);
        }
        removed
    }

    /// Appends a finalizer unless it is there.
    pub fn add_finalizer(&mut self, name: &str) -> &mut Self {
        if !self.view().has_finalizer(name) {
            let list = self.0.entry_or_null("finalizers");
            if !matches!(list, Value::Array(_)) {
                *list = Value::Array(Vec::new());
            }
            if let Value::Array(list) = list {
                list.push(name.into());
            }
        }
        self
    }

    /// Removes a finalizer, and says whether it was there.
    pub fn remove_finalizer(&mut self, name: &str) -> bool {
        let Some(list) = self.0.get_mut("finalizers").and_then(Value::as_array_mut) else {
            return false;
        };
        let before = list.len();
        list.retain(|f| f.as_str() != Some(name));
        let (after, removed) = (list.len(), list.len() != before);
        if after == 0 {
            self.0.remove("finalizers");
        }
        removed
    }

    pub fn set_managed_fields(&mut self, entries: Vec<Value>) -> &mut Self {
        self.set("managedFields", Value::Array(entries))
    }
}
