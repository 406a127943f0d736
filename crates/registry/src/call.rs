//! One API call as the registry sees it: who wants what done to which object, and where warnings go.

use kubelith_meta::user::User;
use kubelith_meta::{GroupKind, GroupResource, GroupVersionKind, Str};
use std::sync::{Arc, Mutex, MutexGuard};

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

/// What a call has to say beside its answer: warnings for the client, in order, each once, and annotations for the audit
/// log. Cheap to clone; all clones collect into one list.
#[derive(Debug, Clone, Default)]
pub struct Warnings(Arc<Mutex<Said>>);

#[derive(Debug, Default)]
struct Said {
    warnings: Vec<String>,
    annotations: Vec<(String, String)>,
}

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

    /// For the request's event in the audit log. `key` is qualified: `validation.policy.admission.k8s.io/…`.
    pub fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        self.warnings.annotate(key, value);
    }
}

impl Warnings {
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let list = &mut self.said().warnings;
        if !text.is_empty() && !list.contains(&text) {
            list.push(text);
        }
    }

    /// Adds an annotation of the audit log; the first value of a key stays.
    pub fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        let key = key.into();
        let list = &mut self.said().annotations;
        if !list.iter().any(|(known, _)| *known == key) {
            list.push((key, value.into()));
        }
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.said().warnings)
    }

    pub fn take_annotations(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.said().annotations)
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.0.lock().expect("no panic under this lock")
    }
}
