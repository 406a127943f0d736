//! One API call as the registry sees it: who wants what done to which object, and where warnings go.

use crate::user::User;
use crate::{GroupKind, GroupResource, GroupVersionKind, Str};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The facts of a request that reach strategies, admission and error messages.
#[derive(Debug, Clone)]
pub struct Call {
    pub user: Arc<User>,
    /// As authorizers call what is done; empty where this server does it by itself.
    pub verb: Str,
    /// The resource in the URL.
    pub resource: GroupResource,
    /// The version in the URL.
    pub version: Str,
    /// The kind the client speaks: the version in the URL decides, but for subresources that have a kind of their own.
    pub kind: GroupVersionKind,
    /// Empty for cluster-scoped resources.
    pub namespace: Str,
    /// Empty on create (unless the URL names the object) and for collections.
    pub name: Str,
    /// Empty for the resource itself.
    pub subresource: Str,
    pub mode: Mode,
    /// By when the client must have its answer.
    pub deadline: Option<Instant>,
    pub warnings: Warnings,
}

/// Whether the effects of a call are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Real,
    /// Everything but the write: `dryRun=All`.
    DryRun,
}

/// What a call waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// One after another.
    MutatingWebhooks,
    /// Side by side: the longest counts.
    ValidatingWebhooks,
    /// Expressions of policies.
    Policies,
    Store,
}

/// How long, by [`Wait`].
pub type Waited = [Duration; 4];

/// What a call has to say beside its answer: warnings for the client, in order, each once, and annotations for the audit
/// log. Cheap to clone; all clones collect into one list.
#[derive(Debug, Clone, Default)]
pub struct Warnings {
    said: Arc<Mutex<Said>>,
    unaudited: bool,
}

#[derive(Debug, Default)]
struct Said {
    warnings: Vec<String>,
    annotations: Vec<(String, String)>,
    /// Those that show contents of the request.
    revealing: Vec<(String, String)>,
    waited: Waited,
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

    /// Takes note that the call waited.
    pub fn waited(&self, what: Wait, time: Duration) {
        let known = &mut self.warnings.said().waited[what as usize];
        *known = if what == Wait::ValidatingWebhooks { time.max(*known) } else { *known + time };
    }

    /// As `annotate`, for what only a log that keeps requests may show.
    pub fn annotate_revealing(&self, key: impl Into<String>, value: impl Into<String>) {
        self.warnings.annotate_revealing(key, value);
    }
}

impl Warnings {
    /// Of a request that the audit log does not keep: its annotations need not be made.
    pub fn unaudited() -> Warnings {
        Warnings { unaudited: true, ..Warnings::default() }
    }

    /// Whether somebody will see annotations.
    pub fn is_audited(&self) -> bool {
        !self.unaudited
    }

    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        // What no header can carry, no client gets.
        if text.is_empty() || text.chars().any(char::is_control) {
            return;
        }
        let list = &mut self.said().warnings;
        if !list.contains(&text) {
            list.push(text);
        }
    }

    /// Adds an annotation of the audit log; the first value of a key stays.
    pub fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        if self.is_audited() {
            put(&mut self.said().annotations, key.into(), value.into());
        }
    }

    /// As `annotate`, for what shows contents of the request.
    pub fn annotate_revealing(&self, key: impl Into<String>, value: impl Into<String>) {
        if self.is_audited() {
            put(&mut self.said().revealing, key.into(), value.into());
        }
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.said().warnings)
    }

    /// What was waited for so far.
    pub fn waited(&self) -> Waited {
        self.said().waited
    }

    pub fn take_annotations(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.said().annotations)
    }

    pub fn take_revealing_annotations(&self) -> Vec<(String, String)> {
        std::mem::take(&mut self.said().revealing)
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().expect("no panic under this lock")
    }
}

fn put(list: &mut Vec<(String, String)>, key: String, value: String) {
    if !list.iter().any(|(known, _)| *known == key) {
        list.push((key, value));
    }
}
