//! Where admission enters the life of a write. The plugins are a layer above; this is their seam.

use crate::resource::Resource;
use bytes::Bytes;
use futures::future::BoxFuture;
use kubelith_codec::object::ObjectText;
use kubelith_meta::Value;
use kubelith_meta::call::Call;
use kubelith_meta::status::Status;
use std::sync::OnceLock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// What is asked for. Objects are at the resource's working version.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub call: &'a Call,
    pub operation: Operation,
    /// The stored object, for updates and deletes.
    pub old: Option<&'a Value>,
    /// The options object of the request (CreateOptions, UpdateOptions, PatchOptions, DeleteOptions).
    pub options: Option<&'a Value>,
    /// What the request is about, or about a part of; `None` if nothing of it is stored.
    pub resource: Option<&'a Resource>,
    /// What is known of the objects' JSON.
    pub texts: Option<&'a ObjectTexts>,
}

/// JSON of the objects of a write, which validating admission may need before the store does: it is written once.
#[derive(Debug, Default)]
pub struct ObjectTexts {
    /// Of the object that is about to be stored, made by the first who needs it.
    object: OnceLock<ObjectText>,
    /// Of the stored one, as readers get it.
    old: Option<Bytes>,
}

impl ObjectTexts {
    pub(crate) fn new(old: Option<Bytes>) -> ObjectTexts {
        ObjectTexts { object: OnceLock::new(), old }
    }

    /// The JSON of `object`, which is the one that is about to be stored.
    pub fn object(&self, object: &Value) -> &[u8] {
        let text = self.object.get_or_init(|| ObjectText::new(object));
        debug_assert_eq!(text.json(), ObjectText::new(object).json(), "the text is of another object");
        text.json()
    }

    pub fn old(&self) -> Option<&[u8]> {
        self.old.as_deref()
    }

    pub(crate) fn into_object(self) -> Option<ObjectText> {
        self.object.into_inner()
    }
}

impl<'a> Request<'a> {
    /// Of what is not stored, and before anything else is known of it.
    pub fn new(call: &'a Call, operation: Operation) -> Request<'a> {
        Request { call, operation, old: None, options: None, resource: None, texts: None }
    }

    pub(crate) fn with_texts(self, texts: &'a ObjectTexts) -> Request<'a> {
        Request { texts: Some(texts), ..self }
    }
}

impl Request<'_> {
    /// Whether the request is for this resource itself, not for one of its subresources.
    pub fn is_for(&self, group: &str, plural: &str) -> bool {
        self.is_for_any_part(group, plural) && self.call.subresource.is_empty()
    }

    pub fn is_for_any_part(&self, group: &str, plural: &str) -> bool {
        self.call.resource.group == group && self.call.resource.resource == plural
    }

    /// The refusal that admission answers with. `object` gives a name to what has none yet.
    pub fn forbidden(&self, object: &Value, why: impl std::fmt::Display) -> Status {
        let meta = object.meta();
        let name = [self.call.name.as_str(), meta.name(), meta.generate_name(), "Unknown"];
        let name = name.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        Status::forbidden(&self.call.resource, name, why)
    }
}

pub trait Admission: Send + Sync + 'static {
    /// May change `object` or refuse it. `object` is null for deletes.
    fn admit<'a>(&'a self, _request: Request<'a>, _object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// May refuse what is about to be stored.
    fn validate<'a>(&'a self, _request: Request<'a>, _object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Admits everything.
#[derive(Debug, Default, Clone, Copy)]
pub struct AdmitAll;

impl Admission for AdmitAll {}
