//! One API call as the registry sees it: who wants what done to which object, and where warnings go.

use kubelith_meta::user::User;
use kubelith_meta::{GroupKind, GroupResource, GroupVersionKind, Str};
use std::sync::{Arc, Mutex};

/// The facts of a request that reach strategies, admission and error messages.
#[derive(Debug, Clone)]
pub struct Call {
    pub user: Arc<User>,
    /// The resource in the URL.
    pub resource: GroupResource,
    /// The kind the client speaks: the version in the URL decides.
    pub kind: GroupVersionKind,
    /// Empty for cluster-scoped resources.
    pub namespace: Str,
    /// Empty on create (unless the URL names the object) and for collections.
    pub name: Str,
    /// Empty for the resource itself.
    pub subresource: Str,
    pub mode: Mode,
    pub warnings: Warnings,
}

/// Whether the effects of a call are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Real,
    /// Everything but the write: `dryRun=All`.
    DryRun,
}

/// Warnings for the client, in order, each once. Cheap to clone; all clones collect into one list.
#[derive(Debug, Clone, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

impl Call {
    pub fn group_kind(&self) -> GroupKind {
        self.kind.group_kind()
    }

    pub fn dry_run(&self) -> bool {
        self.mode == Mode::DryRun
    }

    pub fn warn(&self, text: impl Into<String>) {
        self.warnings.add(text);
    }
}

impl Warnings {
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut list = self.0.lock().expect("no panic under this lock");
        if !text.is_empty() && !list.contains(&text) {
            list.push(text);
        }
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("no panic under this lock"))
    }
}
