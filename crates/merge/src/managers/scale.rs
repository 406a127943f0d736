//! Ownership across a resource and its scale subresource: `spec.replicas` there is a field of the resource here.

use super::entries::{Managed, ManagedFieldsError};
use crate::apply::Owner;
use crate::fieldset::{Path, Set};
use kubelith_meta::{Str, Value};

const SCALE_VERSION: &str = "autoscaling/v1";

/// Maps the entries of a resource to those of its scale and back.
pub struct ScaleHandler<'a> {
    parent: Managed,
    /// The `apiVersion` that the request addresses the resource in.
    version: &'a str,
    /// By `apiVersion` of the resource: where the replicas are; `None` in versions without scale.
    replicas: &'a [(Str, Option<Path>)],
}

impl<'a> ScaleHandler<'a> {
    /// `parent` is the resource's object.
    pub fn new(
        parent: &Value,
        version: &'a str,
        replicas: &'a [(Str, Option<Path>)],
    ) -> Result<ScaleHandler<'a>, ManagedFieldsError> {
        Ok(ScaleHandler { parent: Managed::of(parent)?, version, replicas })
    }

    /// The entries of the scale: everybody who owns the replicas. Null if nobody does.
    pub fn to_subresource(&self) -> Value {
        let mut scale = Managed::default();
        for (id, owner) in &self.parent.owners {
            let Some(Some(path)) = self.replicas_in(&owner.version) else { continue };
            if owner.set().contains(path) {
                let mut mapped = Owner::new(Str::const_new(SCALE_VERSION), owner.operation, replicas_of_scale());
                mapped.time = owner.time.clone();
                scale.owners.insert(id.clone(), mapped);
            }
        }
        scale.encode()
    }

    /// The entries of the resource after a write to the scale, given those of the scale. Who lost the replicas there
    /// loses them here; who got them there has an entry here, without a time.
    pub fn to_parent(self, scale_entries: &Value) -> Result<Value, ManagedFieldsError> {
        let mut scale = Managed::decode(scale_entries)?;
        let mut result = Managed::default();
        let mut times = Vec::new();
        for (id, mut owner) in self.parent.owners.clone() {
            times.push((id.clone(), owner.time.clone()));
            // Entries of unknown versions are dropped.
            let Some(path) = self.replicas_in(&owner.version) else { continue };
            if let Some(path) = path.filter(|p| owner.set().contains(p))
                && scale.owners.remove(&id).is_none()
            {
                let mut stolen = Set::new();
                stolen.insert(path);
                owner.lose(&stolen);
                if owner.is_empty() {
                    continue;
                }
            }
            result.owners.insert(id, owner);
        }
        let replicas = self.replicas_in(self.version).flatten();
        for (id, owner) in scale.owners {
            if !owner.set().contains(&Path::fields(&["spec", "replicas"])) {
                continue;
            }
            let mut set = Set::new();
            replicas.iter().for_each(|path| set.insert(path));
            let mut mapped = Owner::new(Str::from(self.version), owner.operation, set);
            mapped.time = times.iter().find(|(t, _)| *t == id).and_then(|(_, time)| time.clone());
            result.owners.insert(id, mapped);
        }
        Ok(result.encode())
    }

    /// `None` for an unknown version, `Some(None)` for one without scale.
    fn replicas_in(&self, version: &str) -> Option<Option<&'a Path>> {
        self.replicas.iter().find(|(v, _)| v == version).map(|(_, path)| path.as_ref())
    }
}

fn replicas_of_scale() -> Set {
    Set::of_fields(&[&["spec", "replicas"]])
}
