//! The rules for metadata, in the order in which the reference checks them. Maps are checked in the order of
//! their keys, which is random there.

use super::{FINALIZER_FOREGROUND, FINALIZER_KUBERNETES, FINALIZER_ORPHAN, ObjectMeta, OwnerReference};
use crate::field::{BadValue, Error, ErrorList, Path};
use crate::names::{Messages, NameUse};
use crate::selector::{validate_label_name, validate_labels};
use crate::{GroupVersion, Map, Time, Value, members, names, text};
use std::collections::BTreeSet;

/// All keys and values of an object's annotations together.
pub const ANNOTATIONS_MAX_BYTES: usize = 256 * 1024;
const FIELD_MANAGER_MAX_BYTES: usize = 128;
const SUBRESOURCE_MAX_BYTES: usize = 256;
const CONDITION_REASON_MAX_BYTES: usize = 1024;
const CONDITION_MESSAGE_MAX_BYTES: usize = 32 * 1024;

/// Whether objects of a resource live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespacing {
    Required,
    Forbidden,
}

/// What is wrong with the metadata of an object about to be created, after a name was generated for it.
pub fn validate_object_meta(
    meta: ObjectMeta<'_>,
    namespaced: Namespacing,
    name_rule: impl Fn(&str, NameUse) -> Messages,
    path: &Path<'_>,
) -> ErrorList {
    let mut errors = ErrorList::new();
    members!(in meta.0 =>
        prefix: "generateName",
        name: "name",
        namespace: "namespace",
        generation: "generation",
        finalizers: "finalizers",
        managed_fields: "managedFields",
    );
    let (prefix, name) = (prefix.or_empty(), name.or_empty());
    if !prefix.is_empty() {
        let path = path.child("generateName");
        errors.push_messages(name_rule(prefix, NameUse::Prefix), &path, prefix);
    }
    let name_path = path.child("name");
    if name.is_empty() {
        errors.push(Error::required(&name_path, "name or generateName is required"));
    } else {
        errors.push_messages(name_rule(name, NameUse::Full), &name_path, name);
    }
    check_namespace(namespace.or_empty(), namespaced, &path.child("namespace"), &mut errors);
    if generation.or_zero() < 0 {
        let detail = "must be greater than or equal to 0";
        errors.push(Error::invalid(&path.child("generation"), generation.or_zero(), detail));
    }
    check_maps_and_owners(meta, path, &mut errors);
    if !finalizers.is_null() {
        errors.extend(validate_finalizers(meta, &path.child("finalizers")));
    }
    errors.extend(validate_managed_fields(managed_fields.items(), &path.child("managedFields")));
    errors
}

fn check_namespace(namespace: &str, namespaced: Namespacing, path: &Path<'_>, errors: &mut ErrorList) {
    match namespaced {
        Namespacing::Required if namespace.is_empty() => errors.push(Error::required(path, "")),
        Namespacing::Required => {
            errors.push_messages(names::name_is_dns_label(namespace, NameUse::Full), path, namespace);
        }
        Namespacing::Forbidden if namespace.is_empty() => {}
        Namespacing::Forbidden => errors.push(Error::forbidden(path, "not allowed on this type")),
    }
}

fn check_maps_and_owners(meta: ObjectMeta<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    members!(in meta.0 => labels: "labels", annotations: "annotations", owners: "ownerReferences");
    if let Some(labels) = labels.as_object() {
        errors.extend(validate_labels(labels, &path.child("labels")));
    }
    if let Some(annotations) = annotations.as_object() {
        errors.extend(validate_annotations(annotations, &path.child("annotations")));
    }
    if !owners.is_null() {
        errors.extend(validate_owner_references(meta, &path.child("ownerReferences")));
    }
}

/// What is wrong with the metadata of an object about to replace `old`.
pub fn validate_object_meta_update(new: ObjectMeta<'_>, old: ObjectMeta<'_>, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if old.is_being_deleted() {
        errors.extend(check_no_new_finalizers(new, old, &path.child("finalizers")));
    }
    if new.resource_version().is_empty() {
        errors.push(Error::invalid(&path.child("resourceVersion"), "", "must be specified for an update"));
    }
    if new.generation() < old.generation() {
        errors.push(Error::invalid(&path.child("generation"), new.generation(), "must not be decremented"));
    }
    for key in ["name", "namespace"] {
        if new.text(key) != old.text(key) {
            errors.push(immutable(&path.child(key), new.text(key)));
        }
    }
    if new.uid() != old.uid() {
        errors.push(immutable(&path.child("uid"), BadValue::json(new.uid())));
    }
    for key in ["creationTimestamp", "deletionTimestamp"] {
        if !same_time(new.get(key), old.get(key)) {
            errors.push(immutable(&path.child(key), json_or_null(new.get(key))));
        }
    }
    let key = "deletionGracePeriodSeconds";
    if new.get(key) != old.get(key) {
        errors.push(immutable(&path.child(key), json_or_null(new.get(key))));
    }
    check_maps_and_owners(new, path, &mut errors);
    errors.extend(validate_managed_fields(new.managed_fields(), &path.child("managedFields")));
    errors
}

fn check_no_new_finalizers(new: ObjectMeta<'_>, old: ObjectMeta<'_>, path: &Path<'_>) -> Option<Error> {
    let old: BTreeSet<&str> = old.finalizers().collect();
    let extra: BTreeSet<String> = new.finalizers().filter(|f| !old.contains(f)).map(text::quote).collect();
    if extra.is_empty() {
        return None;
    }
    let extra: Vec<String> = extra.into_iter().collect();
    Some(Error::forbidden(
        path,
        format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            extra.join(", ")
        ),
    ))
}

/// Times are the same if they mean the same instant, however written.
fn same_time(a: Option<&Value>, b: Option<&Value>) -> bool {
    let time = |v: Option<&Value>| v.and_then(Value::as_str).and_then(|s| Time::parse(s).ok());
    match (time(a), time(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

fn json_or_null(value: Option<&Value>) -> BadValue {
    BadValue::json(value.cloned().unwrap_or(Value::Null))
}

fn immutable(path: &Path<'_>, new: impl Into<BadValue>) -> Error {
    Error::invalid(path, new, "field is immutable")
}

/// An error if a field changed that must not.
pub fn validate_immutable(new: Option<&Value>, old: Option<&Value>, path: &Path<'_>) -> Option<Error> {
    let is_set = |v: &&Value| !v.is_null();
    let (new, old) = (new.filter(is_set), old.filter(is_set));
    (new != old).then(|| immutable(path, new.cloned().unwrap_or(Value::Null)))
}

/// What is wrong with annotations: their keys, whatever their case, and their size.
pub fn validate_annotations(annotations: &Map, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut size = 0;
    for (key, value) in annotations.iter() {
        size += key.len() + value.as_str().map_or(0, str::len);
        // Nearly all keys are in lower case already.
        let messages = if key.bytes().all(|b| b.is_ascii() && !b.is_ascii_uppercase()) {
            names::is_qualified_name(key)
        } else {
            names::is_qualified_name(&key.to_lowercase())
        };
        errors.push_messages(messages, path, key);
    }
    if size > ANNOTATIONS_MAX_BYTES {
        errors.push(Error::too_long(path, ANNOTATIONS_MAX_BYTES));
    }
    errors
}

/// What is wrong with owner references. Errors name the list, not its entries.
pub fn validate_owner_references(meta: ObjectMeta<'_>, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut controller: Option<String> = None;
    for owner in meta.owner_references() {
        check_owner_reference(owner, path, &mut errors);
        if !owner.is_controller() {
            continue;
        }
        let name = format!("{}/{}", owner.kind(), owner.name());
        let Some(first) = &controller else {
            controller = Some(name);
            continue;
        };
        let all: Vec<String> = meta.owner_references().map(owner_reference_json).collect();
        let shown = BadValue::text(format!("[{}]", all.join(",")));
        let detail = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
        );
        errors.push(Error::invalid(path, shown, detail));
    }
    errors
}

fn check_owner_reference(owner: OwnerReference<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let gv = GroupVersion::parse(owner.api_version()).unwrap_or_default();
    if gv.version.is_empty() {
        errors.push(Error::invalid(&path.child("apiVersion"), owner.api_version(), "version must not be empty"));
    }
    for (key, value) in [("kind", owner.kind()), ("name", owner.name()), ("uid", owner.uid())] {
        if value.is_empty() {
            errors.push(Error::invalid(&path.child(key), value, "must not be empty"));
        }
    }
    if gv.group.is_empty() && gv.version == "v1" && owner.kind() == "Event" {
        let detail = format!("{} is disallowed from being an owner", gv.with_kind("Event"));
        errors.push(Error::invalid(path, BadValue::text(owner_reference_json(owner)), detail));
    }
}

/// An owner reference as the reference prints it, in the order of its type's fields.
fn owner_reference_json(owner: OwnerReference<'_>) -> String {
    let mut out = String::from("{");
    for key in ["apiVersion", "kind", "name", "uid"] {
        text::push_json_string(&mut out, key);
        out.push(':');
        text::push_json_string(&mut out, owner.value().str_at(&[key]));
        out.push(',');
    }
    out.pop();
    for key in ["controller", "blockOwnerDeletion"] {
        if let Some(flag) = owner.value().get(key).and_then(Value::as_bool) {
            out.push_str(&format!(",\"{key}\":{flag}"));
        }
    }
    out.push('}');
    out
}

pub fn validate_finalizer_name(name: &str, path: &Path<'_>) -> ErrorList {
    validate_label_name(name, path)
}

/// What is wrong with finalizers: their names, and the two ways to treat dependents at once.
pub fn validate_finalizers(meta: ObjectMeta<'_>, path: &Path<'_>) -> ErrorList {
    let mut errors: ErrorList = meta.finalizers().flat_map(|name| validate_finalizer_name(name, path)).collect();
    if meta.has_finalizer(FINALIZER_ORPHAN) && meta.has_finalizer(FINALIZER_FOREGROUND) {
        let all: Vec<&str> = meta.finalizers().collect();
        let detail = format!("finalizer {FINALIZER_ORPHAN} and {FINALIZER_FOREGROUND} cannot be both set");
        errors.push(Error::invalid(path, all, detail));
    }
    errors
}

/// What built-in resources ask of finalizers on top: those without a domain must be well-known.
pub fn validate_kube_finalizers(meta: ObjectMeta<'_>, path: &Path<'_>) -> ErrorList {
    meta.finalizers().enumerate().filter_map(|(i, name)| validate_kube_finalizer(name, &path.index(i))).collect()
}

/// What is wrong with one finalizer of a built-in resource besides its form.
pub fn validate_kube_finalizer(name: &str, path: &Path<'_>) -> Option<Error> {
    const KNOWN: [&str; 3] = [FINALIZER_KUBERNETES, FINALIZER_ORPHAN, FINALIZER_FOREGROUND];
    let is_fine = name.contains('/') || KNOWN.contains(&name);
    (!is_fine)
        .then(|| Error::invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified"))
}

/// What is wrong with a field manager's name: its length, and characters that cannot be printed.
pub fn validate_field_manager(manager: &str, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if manager.len() > FIELD_MANAGER_MAX_BYTES {
        errors.push(Error::too_long(path, FIELD_MANAGER_MAX_BYTES));
    }
    for (i, c) in manager.char_indices().filter(|(_, c)| !text::is_printable(*c)) {
        let detail = format!("invalid character {} (at position {i})", text::rune(c));
        errors.push(Error::invalid(path, manager, detail));
    }
    errors
}

/// What is wrong with entries of `managedFields`.
pub fn validate_managed_fields(entries: &[Value], path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for (i, entry) in entries.iter().enumerate() {
        let path = path.index(i);
        members!(entry =>
            operation: "operation",
            fields_type: "fieldsType",
            manager: "manager",
            subresource: "subresource",
        );
        let operation = operation.or_empty();
        if !matches!(operation, "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            errors.push(Error::invalid(&path.child("operation"), BadValue::json(operation), detail));
        }
        let fields_type = fields_type.or_empty();
        if !matches!(fields_type, "" | "FieldsV1") {
            errors.push(Error::invalid(&path.child("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        errors.extend(validate_field_manager(manager.or_empty(), &path.child("manager")));
        if subresource.or_empty().len() > SUBRESOURCE_MAX_BYTES {
            errors.push(Error::too_long(&path.child("subresource"), SUBRESOURCE_MAX_BYTES));
        }
    }
    errors
}

/// What is wrong with a list of conditions as newer kinds have them.
pub fn validate_conditions(conditions: &[Value], path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut types = BTreeSet::new();
    for (i, condition) in conditions.iter().enumerate() {
        let path = path.index(i);
        let condition_type = condition.str_at(&["type"]);
        if !types.insert(condition_type) {
            errors.push(Error::duplicate(&path.child("type"), condition_type));
        }
        check_condition(condition, &path, &mut errors);
    }
    errors
}

fn check_condition(condition: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    errors.extend(validate_label_name(condition.str_at(&["type"]), &path.child("type")));
    let status = condition.str_at(&["status"]);
    if !matches!(status, "True" | "False" | "Unknown") {
        let known = ["False", "True", "Unknown"];
        errors.push(Error::not_supported(&path.child("status"), BadValue::json(status), known));
    }
    let generation = condition.get("observedGeneration").and_then(Value::as_i64).unwrap_or(0);
    if generation < 0 {
        let detail = "must be greater than or equal to zero";
        errors.push(Error::invalid(&path.child("observedGeneration"), generation, detail));
    }
    let changed = Time::parse(condition.str_at(&["lastTransitionTime"])).unwrap_or(Time::ZERO);
    if changed.is_zero() {
        errors.push(Error::required(&path.child("lastTransitionTime"), ""));
    }
    check_condition_reason(condition.str_at(&["reason"]), &path.child("reason"), errors);
    if condition.str_at(&["message"]).len() > CONDITION_MESSAGE_MAX_BYTES {
        errors.push(Error::too_long(&path.child("message"), CONDITION_MESSAGE_MAX_BYTES));
    }
}

fn check_condition_reason(reason: &str, path: &Path<'_>, errors: &mut ErrorList) {
    const RULE: &str = "a condition reason must start with alphabetic character, optionally followed by a string of \
         alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'";
    const PATTERN: &str = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?";
    const EXAMPLES: [&str; 5] = ["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"];
    if reason.is_empty() {
        errors.push(Error::required(path, ""));
        return;
    }
    let shaped = reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && reason.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && reason.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b',' | b':'));
    if !shaped {
        errors.push(Error::invalid(path, reason, names::pattern_message(RULE, PATTERN, &EXAMPLES)));
    }
    if reason.len() > CONDITION_REASON_MAX_BYTES {
        errors.push(Error::too_long(path, CONDITION_REASON_MAX_BYTES));
    }
}
