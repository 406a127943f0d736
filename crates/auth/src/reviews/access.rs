//! SubjectAccessReview, LocalSubjectAccessReview, SelfSubjectAccessReview: may somebody do something?

use super::{extra, strings};
use crate::error::AuthError;
use crate::traits::{Attributes, Authorizer, Decision, Operator, Requirement, Selector, Verdict};
use crate::user::User;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::selector::{self, LabelSelectorRules, validate_field_requirement, validate_label_requirement};
use kubelith_meta::text::quote;
use kubelith_meta::{GroupKind, LabelSelector, Map, Status, Str, Value};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessReviewKind {
    Subject,
    LocalSubject,
    SelfSubject,
}

/// What is wrong with the request. `namespace` is that of the URL.
pub fn validate(kind: AccessReviewKind, review: &Value, namespace: &str) -> Result<(), Status> {
    let mut errors = validate_spec(kind, review);
    validate_metadata(kind, review, &mut errors);
    if kind == AccessReviewKind::LocalSubject {
        validate_local(review, &mut errors);
    }
    if !errors.is_empty() {
        // The reference has lost the kind by here.
        return Err(Status::invalid(
            &GroupKind { group: "authorization.k8s.io".into(), kind: Str::default() },
            "",
            &errors,
        ));
    }
    if kind == AccessReviewKind::LocalSubject {
        if namespace.is_empty() {
            return Err(Status::bad_request("namespace is required on this type: "));
        }
        if review.str_at(&["metadata", "namespace"]) != namespace {
            let message = format!("spec.resourceAttributes.namespace must match namespace: {namespace}");
            return Err(Status::bad_request(message));
        }
    }
    Ok(())
}

/// Answers the review: fills in its status. `requestor` is whom a SelfSubjectAccessReview is about.
pub async fn evaluate(kind: AccessReviewKind, review: &mut Value, requestor: &Arc<User>, authorizer: &dyn Authorizer) {
    let spec = review.get("spec").cloned().unwrap_or_default();
    let user = match kind {
        AccessReviewKind::SelfSubject => requestor.clone(),
        AccessReviewKind::Subject | AccessReviewKind::LocalSubject => Arc::new(User {
            name: spec.str_at(&["user"]).into(),
            uid: spec.str_at(&["uid"]).into(),
            groups: strings(spec.get("groups")),
            extra: extra(spec.get("extra")),
        }),
    };
    let attributes = attributes_of(&spec, user);
    let decision = authorizer.authorize(&attributes).await;
    review.set_at(&["status"], status(&decision, &attributes));
}

/// The attributes that a review's spec asks about.
pub fn attributes_of(spec: &Value, user: Arc<User>) -> Attributes {
    if let Some(resource) = present(spec, "resourceAttributes") {
        let text = |key: &str| Str::from(resource.str_at(&[key]));
        let version = text("version");
        return Attributes {
            user,
            verb: text("verb"),
            namespace: text("namespace"),
            group: text("group"),
            version: if version.is_empty() { "*".into() } else { version },
            resource: text("resource"),
            subresource: text("subresource"),
            name: text("name"),
            path: Str::default(),
            resource_request: true,
            field_selector: selector_of(resource, "fieldSelector", Selector::parse_fields, field_requirement),
            label_selector: selector_of(resource, "labelSelector", Selector::parse_labels, label_requirement),
        };
    }
    let text = |key: &str| Str::from(spec.str_at(&["nonResourceAttributes", key]));
    Attributes { user, verb: text("verb"), path: text("path"), ..Attributes::default() }
}

fn present<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.get(key).filter(|v| !v.is_null())
}

fn selector_of(
    resource: &Value,
    key: &str,
    parse: fn(&str) -> Selector,
    read: fn(&Value) -> Result<Requirement, AuthError>,
) -> Selector {
    let Some(selector) = present(resource, key) else { return Selector::default() };
    let listed = selector.get("requirements").and_then(Value::as_array).unwrap_or_default();
    if listed.is_empty() {
        let raw = selector.str_at(&["rawSelector"]);
        return if raw.is_empty() { Selector::default() } else { parse(raw) };
    }
    let (mut requirements, mut errors) = (Vec::new(), Vec::new());
    for requirement in listed {
        match read(requirement) {
            Ok(requirement) => requirements.push(requirement),
            Err(e) => errors.push(e),
        }
    }
    let error = AuthError::aggregate(errors).map(|e| e.to_string().into());
    Selector { requirements: requirements.into(), error }
}

fn field_requirement(requirement: &Value) -> Result<Requirement, AuthError> {
    let values = strings(requirement.get("values"));
    if values.len() > 1 {
        return Err("fieldSelectors do not yet support multiple values".into());
    }
    let operator = match requirement.str_at(&["operator"]) {
        "In" if values.is_empty() => return Err("fieldSelectors in must have one value".into()),
        "NotIn" if values.is_empty() => return Err("fieldSelectors not in must have one value".into()),
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        known @ ("Exists" | "DoesNotExist") => {
            return Err(format!("fieldSelectors do not yet support {known}").into());
        }
        other => return Err(format!("{} is not a valid field selector operator", quote(other)).into()),
    };
    Ok(Requirement { key: requirement.str_at(&["key"]).into(), operator, values })
}

fn label_requirement(requirement: &Value) -> Result<Requirement, AuthError> {
    let operator = match requirement.str_at(&["operator"]) {
        "In" => selector::Operator::In,
        "NotIn" => selector::Operator::NotIn,
        "Exists" => selector::Operator::Exists,
        "DoesNotExist" => selector::Operator::DoesNotExist,
        other => return Err(format!("{} is not a valid label selector operator", quote(other)).into()),
    };
    let key = requirement.str_at(&["key"]).into();
    let checked = selector::Requirement::new(key, operator, strings(requirement.get("values")), &Path::ROOT);
    let checked = checked.map_err(|e| AuthError::new(e.to_string()))?;
    let one = LabelSelector::new(vec![checked]);
    Ok(Requirement::from_label(&one.requirements()[0]))
}

fn status(decision: &Decision, attributes: &Attributes) -> Value {
    let mut status = Map::new();
    status.insert("allowed", decision.allowed());
    if decision.verdict == Verdict::Deny {
        status.insert("denied", true);
    }
    let errors = evaluation_error(decision, attributes);
    if !errors.is_empty() {
        status.insert("evaluationError", errors);
    }
    if !decision.reason.is_empty() {
        status.insert("reason", decision.reason.as_ref());
    }
    Value::Object(status)
}

fn evaluation_error(decision: &Decision, attributes: &Attributes) -> String {
    let mut errors: Vec<String> = decision.error.iter().map(AuthError::to_string).collect();
    for (name, selector) in
        [("fieldSelector", &attributes.field_selector), ("labelSelector", &attributes.label_selector)]
    {
        if selector.error.is_some() {
            let how = if selector.requirements.is_empty() { "ignored" } else { "partially ignored" };
            errors.push(format!("spec.resourceAttributes.{name} {how} due to parse error"));
        }
    }
    errors.join("; ")
}

fn validate_spec(kind: AccessReviewKind, review: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let null = Value::Null;
    let spec = review.get("spec").unwrap_or(&null);
    let path = Path::new("spec");
    let (resource, other) = (present(spec, "resourceAttributes"), present(spec, "nonResourceAttributes"));
    match (resource, other) {
        (Some(_), Some(other)) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            errors.push(Error::invalid(&path.child("nonResourceAttributes"), internal_form(other), detail));
        }
        (None, None) => {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            errors.push(Error::invalid(&path.child("resourceAttributes"), BadValue::text("null"), detail));
        }
        _ => {}
    }
    let nobody = spec.str_at(&["user"]).is_empty() && strings(spec.get("groups")).is_empty();
    if kind != AccessReviewKind::SelfSubject && nobody {
        errors.push(Error::invalid(&path.child("user"), "", "at least one of user or group must be specified"));
    }
    if let Some(resource) = resource {
        let path = path.child("resourceAttributes");
        validate_selector(resource, &path, "fieldSelector", validate_field_requirement, &mut errors);
        validate_selector(resource, &path, "labelSelector", validate_label_requirement, &mut errors);
    }
    errors
}

type RequirementCheck = fn(&Value, LabelSelectorRules, &Path<'_>) -> ErrorList;

fn validate_selector(resource: &Value, path: &Path<'_>, key: &str, check: RequirementCheck, errors: &mut ErrorList) {
    let Some(selector) = present(resource, key) else { return };
    let path = path.child(key);
    let raw = selector.str_at(&["rawSelector"]);
    let listed = selector.get("requirements").and_then(Value::as_array).unwrap_or_default();
    if !raw.is_empty() && !listed.is_empty() {
        let detail = "may not specified at the same time as requirements";
        errors.push(Error::invalid(&path.child("rawSelector"), raw, detail));
    }
    if raw.is_empty() && listed.is_empty() {
        let detail = format!("when {path} is specified, requirements or rawSelector is required");
        errors.push(Error::required(&path.child("requirements"), detail));
    }
    let rules = LabelSelectorRules { allow_unknown_operators: true, ..LabelSelectorRules::default() };
    for (i, requirement) in listed.iter().enumerate() {
        errors.extend(check(requirement, rules, &path.item("requirements", i)));
    }
}

fn validate_metadata(kind: AccessReviewKind, review: &Value, errors: &mut ErrorList) {
    let Some(metadata) = review.get("metadata").and_then(Value::as_object) else { return };
    let ignored = |key: &str| key == "managedFields" || (key == "namespace" && kind == AccessReviewKind::LocalSubject);
    if metadata.iter().all(|(key, value)| ignored(key) || value.is_empty()) {
        return;
    }
    let detail = match kind {
        AccessReviewKind::LocalSubject => "must be empty except for namespace",
        AccessReviewKind::Subject | AccessReviewKind::SelfSubject => "must be empty",
    };
    errors.push(Error::invalid(&Path::new("metadata"), BadValue::text(metadata_json(metadata)), detail));
}

fn validate_local(review: &Value, errors: &mut ErrorList) {
    let null = Value::Null;
    let spec = review.get("spec").unwrap_or(&null);
    let namespace = review.str_at(&["metadata", "namespace"]);
    if let Some(resource) = present(spec, "resourceAttributes") {
        let asked = resource.str_at(&["namespace"]);
        if asked != namespace {
            let path = Path::new("spec.resourceAttributes.namespace");
            errors.push(Error::invalid(&path, asked, "must match metadata.namespace"));
        }
    }
    if let Some(other) = present(spec, "nonResourceAttributes") {
        let path = Path::new("spec.nonResourceAttributes");
        errors.push(Error::invalid(&path, internal_form(other), "disallowed on this kind of request"));
    }
}

/// Errors print the internal form, whose members have capitals.
fn internal_form(non_resource: &Value) -> BadValue {
    let text = |key: &str| crate::json::write(&non_resource.str_at(&[key]).into());
    BadValue::text(format!(r#"{{"Path":{},"Verb":{}}}"#, text("path"), text("verb")))
}

/// Object metadata with its members in the order in which the reference prints them.
fn metadata_json(metadata: &Map) -> String {
    const ORDER: [&str; 15] = [
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
    ];
    const MANAGER: [&str; 7] = ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];
    const OWNER: [&str; 6] = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    ordered(metadata, &ORDER, |key, value| match (key, value) {
        ("managedFields", Value::Array(entries)) => Some(ordered_list(entries, &MANAGER)),
        ("ownerReferences", Value::Array(entries)) => Some(ordered_list(entries, &OWNER)),
        _ => None,
    })
}

fn ordered_list(entries: &[Value], order: &[&str]) -> String {
    let empty = Map::new();
    let entries = entries.iter().map(|e| ordered(e.as_object().unwrap_or(&empty), order, |_, _| None));
    format!("[{}]", entries.collect::<Vec<_>>().join(","))
}

fn ordered(map: &Map, order: &[&str], nested: impl Fn(&str, &Value) -> Option<String>) -> String {
    let members = order.iter().filter_map(|key| {
        let value = map.get(key).filter(|v| !v.is_empty())?;
        let text = nested(key, value).unwrap_or_else(|| crate::json::write(value));
        Some(format!("\"{key}\":{text}"))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}
