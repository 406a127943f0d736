//! DefaultStorageClass and DefaultIngressClass: claims and ingresses that name no class get the default one, the newest
//! if several say that they are.

use crate::plugin::{Plugin, Verdict};
use kubelith_meta::{Str, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::{Operation, Request};
use std::cmp::Reverse;
use std::sync::Arc;

const DEFAULT_STORAGE_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
const DEFAULT_INGRESS_CLASS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];

pub struct DefaultStorageClass {
    objects: Arc<Objects>,
}

pub struct DefaultIngressClass {
    objects: Arc<Objects>,
}

impl DefaultStorageClass {
    pub fn new(objects: Arc<Objects>) -> DefaultStorageClass {
        DefaultStorageClass { objects }
    }
}

impl DefaultIngressClass {
    pub fn new(objects: Arc<Objects>) -> DefaultIngressClass {
        DefaultIngressClass { objects }
    }
}

impl Plugin for DefaultStorageClass {
    fn admit<'a>(&'a self, request: Request<'a>, claim: &'a mut Value) -> Verdict<'a> {
        if request.operation != Operation::Create || !request.is_for("", "persistentvolumeclaims") {
            return Verdict::Idle;
        }
        let annotated = claim.meta().annotation("volume.beta.kubernetes.io/storage-class").is_some();
        if !annotated && claim.at(&["spec", "storageClassName"]).is_none() {
            let classes = self.objects.list("storage.k8s.io", "storageclasses", "");
            if let Some(name) = default_of(&classes, &DEFAULT_STORAGE_CLASS) {
                claim.set_at(&["spec", "storageClassName"], Value::String(name));
            }
        }
        Verdict::PASSED
    }
}

impl Plugin for DefaultIngressClass {
    fn admit<'a>(&'a self, request: Request<'a>, ingress: &'a mut Value) -> Verdict<'a> {
        if request.operation != Operation::Create || !request.is_for("networking.k8s.io", "ingresses") {
            return Verdict::Idle;
        }
        let annotated = ingress.meta().annotation("kubernetes.io/ingress.class").is_some();
        if !annotated && ingress.at(&["spec", "ingressClassName"]).is_none() {
            let classes = self.objects.list("networking.k8s.io", "ingressclasses", "");
            if let Some(name) = default_of(&classes, &DEFAULT_INGRESS_CLASS) {
                ingress.set_at(&["spec", "ingressClassName"], Value::String(name));
            }
        }
        Verdict::PASSED
    }
}

/// The newest class that an annotation makes the default; of two equally new ones, the first by name.
fn default_of(classes: &[Value], annotations: &[&str]) -> Option<Str> {
    let is_default = |class: &&Value| annotations.iter().any(|key| class.meta().annotation(key) == Some("true"));
    let age = |class: &&Value| (Reverse(class.meta().creation_timestamp()), Str::from(class.meta().name()));
    classes.iter().filter(is_default).min_by_key(age).map(|class| class.meta().name().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(name: &str, created: &str, default: &str) -> Value {
        let mut class = Value::object();
        class.meta_mut().set("name", name).set("creationTimestamp", created);
        class.meta_mut().set_annotation(DEFAULT_INGRESS_CLASS[0], default);
        class
    }

    #[test]
    fn the_newest_default_wins() {
        let old = class("old", "2024-01-01T00:00:00Z", "true");
        let newer = class("newer", "2025-01-01T00:00:00Z", "true");
        let twin = class("a-twin", "2025-01-01T00:00:00Z", "true");
        let other = class("other", "2026-01-01T00:00:00Z", "false");
        let pick = |classes: &[&Value]| {
            let classes: Vec<Value> = classes.iter().map(|c| (*c).clone()).collect();
            default_of(&classes, &DEFAULT_INGRESS_CLASS)
        };
        assert_eq!(pick(&[&other]), None);
        assert_eq!(pick(&[&old, &newer, &other]).as_deref(), Some("newer"));
        assert_eq!(pick(&[&newer, &twin]).as_deref(), Some("a-twin"));
    }
}
