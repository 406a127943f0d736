//! Objects of a request in the versions that webhooks and policies ask for.

use kubelith_catalog::builtin;
use kubelith_codec::json::Strictness;
use kubelith_codec::{json, typed};
use kubelith_meta::{GroupVersionKind, Status, Value};
use kubelith_registry::admission::{Operation, Request};
use kubelith_registry::{Resource, WorkingVersion};
use kubelith_schema::{Empties, canonicalize};
use std::borrow::Cow;

/// The part of the reference that knows built-in kinds, as it calls itself in errors.
const SCHEME: &str = "pkg/api/legacyscheme/scheme.go:30";

/// `object` as `kind` has it.
pub async fn convert(request: Request<'_>, object: Value, kind: &GroupVersionKind) -> Result<Value, Status> {
    if object.is_of(kind) {
        return Ok(object);
    }
    let converted = match request.resource {
        Some(resource) => resource.convert(object, kind).await.map_err(|status| status.message),
        None => {
            let from = object.gvk();
            kubelith_catalog::convert(object, &from, kind).map_err(|e| e.to_string())
        }
    };
    converted.map_err(Status::internal_error)
}

/// What a patch made of an object, read again by its type. The error is that of Go's decoder.
pub fn decode(
    request: Request<'_>,
    patched: Value,
    kind: &GroupVersionKind,
    strictness: Strictness,
) -> Result<Value, String> {
    if is_custom(request) {
        if patched.str_at(&["kind"]).is_empty() {
            return Err(format!("Object 'Kind' is missing in '{}'", json::to_string(&patched)));
        }
        return Ok(patched);
    }
    let text = kubelith_codec::object::object_json(&patched);
    let given = json::type_meta(&text).and_then(|m| m.with_defaults(kind)).map_err(|e| e.to_string())?;
    let Some(schema) = builtin().kind_schema(&given) else {
        let (name, version) = (&given.kind, given.group_version());
        return Err(format!("no kind \"{name}\" is registered for version \"{version}\" in scheme \"{SCHEME}\""));
    };
    let decoded = typed::decode(&text, &schema, strictness).map_err(|e| e.to_string())?;
    if !decoded.strict.is_empty() {
        let problems: Vec<String> = decoded.strict.iter().map(ToString::to_string).collect();
        return Err(format!("strict decoding error: {}", problems.join(", ")));
    }
    let mut object = decoded.value;
    let map = object.make_object();
    map.insert("apiVersion", given.api_version());
    map.insert("kind", given.kind.clone());
    canonicalize(&schema.table, &schema.root, &mut object, Empties::Distinct);
    Ok(object)
}

fn is_custom(request: Request<'_>) -> bool {
    request.resource.is_some_and(|resource| resource.working == WorkingVersion::Request)
        && request.call.kind.group == request.call.resource.group
}

/// Defaults and form of what was patched.
pub fn complete(request: Request<'_>, object: &mut Value) -> Result<(), String> {
    let Some(resource) = request.resource else { return Ok(()) };
    let kind = object.gvk();
    let descriptor = &resource.descriptor;
    if kind.kind == descriptor.kind {
        resource.strategy.default_object(&kind.version, object);
    }
    if is_custom(request) { resource.strategy.take_patched(object) } else { Ok(()) }
}

/// An object of a request as expressions see it: rules still see empty lists that are not printed.
pub fn printed(object: Option<&Value>) -> Option<Value> {
    let mut object = object.filter(|object| !object.is_null())?.clone();
    canonical(&mut object);
    Some(object)
}

/// As [`printed`], without a copy where the object has that form already: what validating admission sees of a stored kind is what
/// is about to be written.
pub fn shown<'a>(request: Request<'_>, object: &'a Value) -> Option<Cow<'a, Value>> {
    if object.is_null() || !is_settled(request, object) {
        return printed(Some(object)).map(Cow::Owned);
    }
    debug_assert_eq!(printed(Some(object)).as_ref(), Some(object), "what is about to be written has another form");
    Some(Cow::Borrowed(object))
}

/// Whether the registry has completed the object, or read it from the store.
pub fn is_settled(request: Request<'_>, object: &Value) -> bool {
    let is_written = matches!(request.operation, Operation::Create | Operation::Update);
    let is_of_kind = |resource: &Resource| matches!(&resource.working, WorkingVersion::One(kind) if object.is_of(kind));
    is_written && request.resource.is_some_and(is_of_kind)
}

/// A built-in object in the form in which it is printed.
pub fn canonical(object: &mut Value) {
    if let Some(schema) = builtin().kind_schema(&object.gvk()) {
        canonicalize(&schema.table, &schema.root, object, Empties::Distinct);
    }
}

/// The object of a request while it is changed, in the version that was asked for last.
pub struct Changing<'a> {
    request: Request<'a>,
    /// At the working version. While `other` is newer, what it was before.
    working: &'a mut Value,
    /// What `working` is; null for deletes.
    kind: GroupVersionKind,
    other: Option<Other>,
    /// The old object in the version of `other`.
    old: Option<(GroupVersionKind, Value)>,
    /// Whether a patch was applied to it.
    is_patched: bool,
}

struct Other {
    object: Value,
    kind: GroupVersionKind,
    is_changed: bool,
}

impl<'a> Changing<'a> {
    pub fn new(request: Request<'a>, working: &'a mut Value) -> Changing<'a> {
        let kind = working.gvk();
        Changing { request, working, kind, other: None, old: None, is_patched: false }
    }

    /// As it is now, in whichever version.
    pub fn object(&self) -> &Value {
        self.other.as_ref().map_or(&*self.working, |other| &other.object)
    }

    pub fn old(&self) -> Option<&Value> {
        match (&self.old, self.request.old) {
            (Some((_, old)), Some(_)) => Some(old),
            (_, old) => old,
        }
    }

    /// Brings both objects to `kind`.
    pub async fn bring_to(&mut self, kind: &GroupVersionKind) -> Result<(), Status> {
        if let Some(old) = self.request.old {
            let is_there = self.old.as_ref().map_or_else(|| old.is_of(kind), |(known, _)| known == kind);
            if !is_there {
                let mut converted = convert(self.request, old.clone(), kind).await?;
                canonical(&mut converted);
                self.old = Some((kind.clone(), converted));
            }
        }
        if self.working.is_null() || self.other.as_ref().map_or(self.kind == *kind, |other| other.kind == *kind) {
            return Ok(());
        }
        self.settle().await?;
        if self.kind != *kind {
            let mut object = convert(self.request, self.working.clone(), kind).await?;
            canonical(&mut object);
            self.other = Some(Other { object, kind: kind.clone(), is_changed: false });
        }
        Ok(())
    }

    /// Whether it has a time of this very request, which knows parts of a second until it is written down for the first
    /// time. kube-apiserver compares objects with and without these parts, and so any patch of a built-in object that this
    /// request gave a new entry of `managedFields` is a change to it.
    pub fn has_new_time(&self) -> bool {
        if self.is_patched || is_custom(self.request) {
            return false;
        }
        let entries = |object: &Value| object.at(&["metadata", "managedFields"]).cloned();
        let known = self.request.old.and_then(entries).unwrap_or_default();
        let known = known.as_array().unwrap_or(&[]);
        let entries = entries(self.object()).unwrap_or_default();
        entries.as_array().unwrap_or(&[]).iter().any(|entry| !known.contains(entry))
    }

    /// Puts in the place of the object what it was changed to, in the version it has now.
    pub fn replace(&mut self, object: Value) {
        self.is_patched = true;
        match &mut self.other {
            Some(other) => *other = Other { object, kind: other.kind.clone(), is_changed: true },
            None => *self.working = object,
        }
    }

    /// Brings what was changed back to the working version.
    pub async fn settle(&mut self) -> Result<(), Status> {
        let object = match self.other.take() {
            Some(Other { object, is_changed: true, .. }) => object,
            _ if self.working.is_null() || self.working.is_of(&self.kind) => return Ok(()),
            _ => std::mem::take(self.working),
        };
        let given = object.gvk();
        if given.kind != self.kind.kind {
            let to = match self.kind.group.split('.').next() {
                Some("") | None => "core",
                Some(package) => package,
            };
            let (version, name, wanted) = (&given.version, &given.kind, &self.kind.kind);
            let why = format!("converting ({version}.{name}) to ({to}.{wanted}): unknown conversion");
            return Err(Status::unknown(why));
        }
        *self.working = convert(self.request, object, &self.kind).await?;
        Ok(())
    }
}
