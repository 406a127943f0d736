//! The loaded catalogue and its lookups.

use crate::api::{Api, Serve};
use crate::decode::decode;
use kubelith_meta::{GroupResource, GroupVersion, GroupVersionKind, Str};
use kubelith_schema::{Descriptor, TypeId, TypeTable, TypedSchema};
use std::sync::{Arc, LazyLock};

/// Every built-in API: its types, its resources and the order in which discovery lists them.
#[derive(Debug)]
pub struct Catalog {
    pub table: Arc<TypeTable>,
    /// Every resource, in the order of discovery. `served` says what is served by default.
    pub descriptors: Vec<Arc<Descriptor>>,
    /// Every group version, in the order of discovery.
    pub(crate) apis: Vec<Api>,
    /// Sorted.
    pub(crate) kinds: Vec<(GroupVersionKind, TypeId)>,
    /// Sorted.
    pub(crate) everywhere: Vec<(Str, TypeId)>,
    pub(crate) gates: Vec<Gate>,
}

/// A version of a resource that needs a feature gate, whatever `--runtime-config` says.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    pub resource: GroupResource,
    pub version: Str,
    pub gate: Str,
}

static BUILTIN: LazyLock<Catalog> = LazyLock::new(|| decode(include_bytes!(concat!(env!("OUT_DIR"), "/catalog.bin"))));

/// The catalogue of this release, loaded on first use.
pub fn builtin() -> &'static Catalog {
    &BUILTIN
}

impl Catalog {
    /// A catalogue of these texts: names without `.api`, and contents. The error names file and line.
    #[cfg(any(test, feature = "texts"))]
    pub fn of_texts<'t>(texts: impl IntoIterator<Item = (&'t str, &'t str)>) -> Result<Catalog, String> {
        let files = texts.into_iter().map(|(stem, source)| crate::text::parse(stem, source).map_err(|e| e.to_string()));
        let model = crate::text::link(files.collect::<Result<_, _>>()?).map_err(|e| e.to_string())?;
        Ok(decode(&crate::encode::encode(&model)))
    }

    /// Every group version, the preferred ones first: by group priority, then by version priority.
    pub fn apis(&self) -> &[Api] {
        &self.apis
    }

    pub fn api(&self, gv: &GroupVersion) -> Option<&Api> {
        self.apis.iter().find(|a| a.gv == *gv)
    }

    /// The versions that need a feature gate.
    pub fn gates(&self) -> &[Gate] {
        &self.gates
    }

    /// The type of a kind: of objects, lists, reviews, options, Status.
    pub fn kind_type(&self, gvk: &GroupVersionKind) -> Option<TypeId> {
        if let Ok(i) = self.kinds.binary_search_by(|(k, _)| k.cmp(gvk)) {
            return Some(self.kinds[i].1);
        }
        let i = self.everywhere.binary_search_by(|(k, _)| k.cmp(&gvk.kind)).ok()?;
        self.api(&gvk.group_version())?;
        Some(self.everywhere[i].1)
    }

    /// The schema of a kind, as `kind_type` finds it.
    pub fn kind_schema(&self, gvk: &GroupVersionKind) -> Option<TypedSchema> {
        self.kind_type(gvk).map(|id| TypedSchema::named(self.table.clone(), id))
    }

    /// The schema of a type by its OpenAPI name.
    pub fn type_schema(&self, name: &str) -> Option<TypedSchema> {
        self.table.find(name).map(|id| TypedSchema::named(self.table.clone(), id))
    }

    /// Every kind but those that each group version has.
    pub fn kinds(&self) -> impl ExactSizeIterator<Item = (&GroupVersionKind, TypeId)> {
        self.kinds.iter().map(|(gvk, id)| (gvk, *id))
    }

    /// The kinds that each group version has: DeleteOptions, WatchEvent and their like.
    pub fn kinds_everywhere(&self) -> impl ExactSizeIterator<Item = (&str, TypeId)> {
        self.everywhere.iter().map(|(kind, id)| (kind.as_str(), *id))
    }

    pub fn descriptor(&self, group: &str, plural: &str) -> Option<&Arc<Descriptor>> {
        self.descriptors.iter().find(|d| d.group == group && d.plural == plural)
    }

    /// The resource whose objects are of this kind.
    pub fn descriptor_of_kind(&self, group: &str, kind: &str) -> Option<&Arc<Descriptor>> {
        self.descriptors.iter().find(|d| d.group == group && d.kind == kind)
    }

    /// The group versions that `--runtime-config` can switch.
    pub fn switchable(&self) -> impl Iterator<Item = &Api> {
        self.apis.iter().filter(|a| a.serve != Serve::Never)
    }
}
