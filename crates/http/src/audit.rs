//! What is gathered about a request while it is handled.

use bytes::Bytes;
use kubelith_auth::User;
use kubelith_codec::json;
use kubelith_meta::{Str, Value};
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

impl Level {
    pub const ALL: [Level; 4] = [Level::None, Level::Metadata, Level::Request, Level::RequestResponse];

    pub fn name(self) -> &'static str {
        match self {
            Level::None => "None",
            Level::Metadata => "Metadata",
            Level::Request => "Request",
            Level::RequestResponse => "RequestResponse",
        }
    }
}

/// The record of one request. Cheap to hold; handlers find it with the request.
#[derive(Debug, Default)]
pub struct AuditContext {
    pub level: Level,
    /// Objects lose their managedFields.
    pub omit_managed_fields: bool,
    gathered: Mutex<Gathered>,
}

/// What handlers and filters have added.
#[derive(Debug, Clone, Default)]
pub struct Gathered {
    pub annotations: Vec<(Cow<'static, str>, String)>,
    /// As whom the request goes on, and the verb that allowed it.
    pub impersonated: Option<(Arc<User>, &'static str)>,
    /// What the object that was sent says of itself.
    pub names: ObjectNames,
    /// JSON.
    pub request_object: Option<Bytes>,
    /// JSON.
    pub response_object: Option<Bytes>,
}

/// Fills in what the URL of the request does not say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectNames {
    pub namespace: Str,
    pub name: Str,
    pub uid: Str,
    pub resource_version: Str,
}

/// Annotations beyond this many are dropped; admission plugins add a handful.
const MAX_ANNOTATIONS: usize = 256;

impl AuditContext {
    pub fn new(level: Level, omit_managed_fields: bool) -> AuditContext {
        AuditContext { level, omit_managed_fields, gathered: Mutex::default() }
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

    /// As `annotate`, for what shows contents of the request: only a log that keeps those has it.
    pub fn annotate_revealing(&self, key: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        if self.level >= Level::Request {
            self.annotate(key, value);
        }
    }

    /// Notes the object that was sent, as decoded.
    pub fn request_object(&self, object: &Value) {
        let meta = |key: &str| Str::from(object.str_at(&["metadata", key]));
        let names = ObjectNames {
            namespace: meta("namespace"),
            name: meta("name"),
            uid: meta("uid"),
            resource_version: meta("resourceVersion"),
        };
        let kept = (self.level >= Level::Request).then(|| {
            let has_managers = object.at(&["metadata", "managedFields"]).is_some();
            if !(self.omit_managed_fields && has_managers) {
                return Bytes::from(json::to_vec(object));
            }
            let mut object = object.clone();
            object.remove_at(&["metadata", "managedFields"]);
            Bytes::from(json::to_vec(&object))
        });
        let mut gathered = self.gathered();
        gathered.names = names;
        gathered.request_object = kept.or(gathered.request_object.take());
    }

    /// Notes a patch, which is JSON.
    pub fn request_patch(&self, patch: impl FnOnce() -> Bytes) {
        if self.level >= Level::Request {
            self.gathered().request_object = Some(patch());
        }
    }

    pub fn impersonated(&self, user: &Arc<User>, constraint: &'static str) {
        self.gathered().impersonated = Some((user.clone(), constraint));
    }

    pub fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(|e| e.into_inner())
    }
}
