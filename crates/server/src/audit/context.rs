//! What is gathered about a request while it is handled.

use bytes::Bytes;
use http::Extensions;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard};

/// How much of a request is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    #[default]
    None,
    /// Who, what, when, and how it ended.
    Metadata,
    /// And what was sent.
    Request,
    /// And what was answered.
    RequestResponse,
}

/// The record of one request. Cheap to hold; handlers find it in the request's extensions.
#[derive(Debug, Default)]
pub struct AuditContext {
    pub level: Level,
    /// Objects lose their managedFields.
    pub omit_managed_fields: bool,
    gathered: Mutex<Gathered>,
}

/// What handlers and filters have added.
#[derive(Debug, Default)]
pub struct Gathered {
    pub annotations: Vec<(Cow<'static, str>, String)>,
    /// JSON.
    pub request_object: Option<Bytes>,
    /// JSON.
    pub response_object: Option<Bytes>,
}

/// Annotations beyond this many are dropped; admission plugins add a handful.
const MAX_ANNOTATIONS: usize = 256;

impl AuditContext {
    pub fn new(level: Level, omit_managed_fields: bool) -> AuditContext {
        AuditContext { level, omit_managed_fields, gathered: Mutex::default() }
    }

    /// The record of a request, if it is kept.
    pub fn of(extensions: &Extensions) -> Option<&Arc<AuditContext>> {
        extensions.get()
    }

    /// Adds an annotation; the first value of a key stays.
    pub fn annotate(&self, key: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        let (key, value) = (key.into(), value.into());
        let mut gathered = self.gathered();
        match gathered.annotations.iter().find(|(k, _)| *k == key) {
            Some((key, old)) if *old != value => {
                tracing::warn!(key = %key, "an audit annotation is set already and stays as it is");
            }
            Some(_) => {}
            None if gathered.annotations.len() < MAX_ANNOTATIONS => gathered.annotations.push((key, value)),
            None => tracing::warn!(key = %key, "too many audit annotations"),
        }
    }

    pub fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(|e| e.into_inner())
    }
}
