//! What documents are made from: the types of the catalogue and the kinds that they stand for.

use super::schemas::Kinds;
use kubelith_catalog::Catalog;
use kubelith_meta::{GroupVersion, GroupVersionKind, Str};

/// The types that documents refer to, and the release they speak of.
#[derive(Clone)]
pub struct Library {
    pub catalog: &'static Catalog,
    /// `1.36`
    pub release: Str,
    /// Whether built-in fields list the values that they can have (OpenAPIEnums).
    pub enums: bool,
}

impl Library {
    /// The kinds of each type. Those that every group version has are listed for `scope` and the core group only if
    /// there is a scope, or else for all.
    pub(super) fn kinds(&self, scope: Option<&GroupVersion>) -> Kinds {
        let name = |id| self.catalog.table.get(id).name.clone();
        let mut kinds = Kinds::new();
        for (gvk, id) in self.catalog.kinds() {
            kinds.entry(name(id)).or_default().push(gvk.clone());
        }
        let core = GroupVersion::new("", "v1");
        for (kind, id) in self.catalog.kinds_everywhere() {
            let listed = kinds.entry(name(id)).or_default();
            for api in self.catalog.apis() {
                if scope.is_none_or(|gv| api.gv == *gv || api.gv == core) {
                    listed.push(GroupVersionKind::new(api.gv.group.clone(), api.gv.version.clone(), kind));
                }
            }
        }
        for listed in kinds.values_mut() {
            listed.sort_by(|a, b| (&a.group, &a.version, &a.kind).cmp(&(&b.group, &b.version, &b.kind)));
            listed.dedup();
        }
        kinds
    }
}
