//! AdmissionReview: what a webhook is told, and what it may answer.

use super::hook::ReviewVersion;
use super::shape;
use crate::attributes::{Seen, name_of, namespace_of};
use crate::expression::options_of;
use crate::observe::Power;
use crate::versioned;
use bytes::Bytes;
use kubelith_codec::object::object_json;
use kubelith_codec::{base64, json};
use kubelith_meta::status::Outcome;
use kubelith_meta::text::quote;
use kubelith_meta::user::User;
use kubelith_meta::{GroupVersionKind, Status, Str, Value};
use kubelith_registry::admission::{ObjectTexts, Request};
use std::borrow::Cow;

const GROUP: &str = "admission.k8s.io";
const KIND: &str = "AdmissionReview";
/// The kinds that the reference knows of webhooks, as it calls them in errors.
const SCHEME: &str = "k8s.io/apiserver/pkg/util/webhook/client.go:71";

/// The objects of a review as JSON: several webhooks may get the same.
pub struct Texts<'a> {
    object: Cow<'a, [u8]>,
    old: Cow<'a, [u8]>,
}

const NULL: Cow<'_, [u8]> = Cow::Borrowed(b"null");

impl<'a> Texts<'a> {
    pub fn new(object: Option<&Value>, old: Option<&Value>) -> Texts<'a> {
        // Rules still see empty lists that are not printed.
        let text = |object: Option<&Value>| match object {
            Some(object) if !object.is_null() => {
                let mut printed = object.clone();
                versioned::canonical(&mut printed);
                Cow::Owned(object_json(&printed))
            }
            _ => NULL,
        };
        Texts { object: text(object), old: text(old) }
    }

    /// As `new`, in validating admission, which mostly sees objects as they are printed. `converted` stands in place of the new and the
    /// old object of the request.
    pub fn of_written(request: Request<'a>, object: &Value, converted: [Option<&Value>; 2]) -> Texts<'a> {
        let [new, old] = converted;
        let known = request.texts.filter(|_| new.is_none() && versioned::is_settled(request, object));
        let known_old = request.texts.and_then(ObjectTexts::old);
        let known_old = known_old.filter(|_| old.is_none() && is_old_settled(request));
        Texts {
            object: match known {
                Some(texts) => Cow::Borrowed(texts.object(object)),
                None => text_of(request, Some(new.unwrap_or(object))),
            },
            old: match known_old {
                Some(text) => {
                    debug_assert_eq!(text, &*text_of(request, request.old), "the stored object has another text");
                    Cow::Borrowed(text)
                }
                None => text_of(request, old.or(request.old)),
            },
        }
    }
}

fn is_old_settled(request: Request<'_>) -> bool {
    request.old.is_some_and(|old| versioned::is_settled(request, old))
}

fn text_of<'a>(request: Request<'_>, object: Option<&Value>) -> Cow<'a, [u8]> {
    match object.and_then(|object| versioned::shown(request, object)) {
        Some(shown) => Cow::Owned(object_json(&shown)),
        None => NULL,
    }
}

/// The review to send, with the fields in the order of the type.
pub fn write(request: Request<'_>, seen: &Seen, version: ReviewVersion, uid: &str, texts: &Texts<'_>) -> Bytes {
    let call = request.call;
    let mut out = Vec::with_capacity(1024 + texts.object.len() + texts.old.len());
    let push = |out: &mut Vec<u8>, text: &str| out.extend_from_slice(text.as_bytes());
    push(&mut out, "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/");
    push(&mut out, version.name());
    push(&mut out, "\",\"request\":{\"uid\":");
    json::write_string(&mut out, uid);
    let asked = Seen::as_sent(request);
    push(&mut out, ",\"kind\":");
    write_kind(&mut out, &seen.kind);
    push(&mut out, ",\"resource\":");
    write_resource(&mut out, seen);
    write_text(&mut out, "subResource", &call.subresource);
    push(&mut out, ",\"requestKind\":");
    write_kind(&mut out, &asked.kind);
    push(&mut out, ",\"requestResource\":");
    write_resource(&mut out, &asked);
    write_text(&mut out, "requestSubResource", &call.subresource);
    write_text(&mut out, "name", &call.name);
    write_text(&mut out, "namespace", namespace_of(request));
    write_text(&mut out, "operation", name_of(request.operation));
    push(&mut out, ",\"userInfo\":");
    write_user(&mut out, &call.user);
    push(&mut out, ",\"object\":");
    out.extend_from_slice(&texts.object);
    push(&mut out, ",\"oldObject\":");
    out.extend_from_slice(&texts.old);
    push(&mut out, if call.dry_run() { ",\"dryRun\":true" } else { ",\"dryRun\":false" });
    push(&mut out, ",\"options\":");
    json::write(&mut out, &options_of(request));
    push(&mut out, "}}");
    out.into()
}

fn write_members<const N: usize>(out: &mut Vec<u8>, members: [(&str, &str); N]) {
    for (i, (key, text)) in members.into_iter().enumerate() {
        out.push(if i == 0 { b'{' } else { b',' });
        json::write_string(out, key);
        out.push(b':');
        json::write_string(out, text);
    }
    out.push(b'}');
}

/// As `user_info` says it, with its members in the order of their names.
fn write_user(out: &mut Vec<u8>, user: &User) {
    let start = out.len();
    let key = |out: &mut Vec<u8>, key: &str| {
        out.push(if out.len() == start { b'{' } else { b',' });
        json::write_string(out, key);
        out.push(b':');
    };
    if !user.extra.is_empty() {
        key(out, "extra");
        for (i, (key, values)) in user.extra.iter().enumerate() {
            out.push(if i == 0 { b'{' } else { b',' });
            json::write_string(out, key);
            out.push(b':');
            write_texts(out, values);
        }
        out.push(b'}');
    }
    if !user.groups.is_empty() {
        key(out, "groups");
        write_texts(out, &user.groups);
    }
    for (name, text) in [("uid", &user.uid), ("username", &user.name)] {
        if !text.is_empty() {
            key(out, name);
            json::write_string(out, text);
        }
    }
    out.extend_from_slice(if out.len() == start { b"{}" } else { b"}" });
}

fn write_texts(out: &mut Vec<u8>, texts: &[Str]) {
    for (i, text) in texts.iter().enumerate() {
        out.push(if i == 0 { b'[' } else { b',' });
        json::write_string(out, text);
    }
    out.extend_from_slice(if texts.is_empty() { b"[]" } else { b"]" });
}

fn write_kind(out: &mut Vec<u8>, kind: &GroupVersionKind) {
    write_members(out, [("group", &kind.group), ("version", &kind.version), ("kind", &kind.kind)]);
}

fn write_resource(out: &mut Vec<u8>, seen: &Seen) {
    let of = &seen.resource;
    write_members(out, [("group", &of.group), ("version", &of.version), ("resource", &of.resource)]);
}

fn write_text(out: &mut Vec<u8>, key: &str, text: &str) {
    if !text.is_empty() {
        out.push(b',');
        json::write_string(out, key);
        out.push(b':');
        json::write_string(out, text);
    }
}

/// What a webhook decided.
#[derive(Debug, Default)]
pub struct Response {
    pub allowed: bool,
    /// A patch, with its type.
    pub patch: Option<(Vec<u8>, String)>,
    pub status: Option<Status>,
    pub warnings: Vec<String>,
    pub annotations: Vec<(String, String)>,
}

/// Whether a document can be read as a review. The error is that of Go's decoder.
pub fn decode(answer: &Value, version: ReviewVersion) -> Result<(), String> {
    let (own, other) = match version {
        ReviewVersion::V1 => ("v1", "v1beta1"),
        ReviewVersion::V1beta1 => ("v1beta1", "v1"),
    };
    let (kind, api_version) = (answer.str_at(&["kind"]), answer.str_at(&["apiVersion"]));
    let kind = if kind.is_empty() { KIND } else { kind };
    let given = match api_version {
        "" => Some(own),
        said => said.strip_prefix(GROUP).and_then(|rest| rest.strip_prefix('/')),
    };
    match given {
        Some(given) if kind == KIND && given == other => {
            return Err(format!("converting ({other}.{KIND}) to ({own}.{KIND}): unknown conversion"));
        }
        Some(given) if kind == KIND && given == own => {}
        None if (kind, api_version) == ("Status", "v1") => {
            return Err(format!("converting (v1.Status) to ({own}.{KIND}): unknown conversion"));
        }
        _ => {
            let api_version = if api_version.is_empty() { format!("{GROUP}/{own}") } else { api_version.to_owned() };
            return Err(format!(
                "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"{SCHEME}\""
            ));
        }
    }
    shape::check(answer)
}

/// Whether a review answers the one that was sent, and what it says.
pub fn verify(answer: &Value, version: ReviewVersion, uid: &str, power: Power) -> Result<Response, String> {
    let Some(response) = answer.get("response").filter(|r| !r.is_null()) else {
        return Err("webhook response was absent".to_owned());
    };
    let patch = base64::decode(response.str_at(&["patch"])).unwrap_or_default();
    let patch_type = response.get("patchType").filter(|t| !t.is_null()).and_then(Value::as_str);
    let patch = match version {
        ReviewVersion::V1 => {
            let given = response.str_at(&["uid"]);
            if given != uid {
                return Err(format!("expected response.uid={}, got {}", quote(uid), quote(given)));
            }
            let (wanted, got) = (GroupVersionKind::new(GROUP, "v1", KIND), answer.gvk());
            if got != wanted {
                return Err(format!("expected webhook response of {wanted}, got {got}"));
            }
            typed_patch(power, patch, patch_type)?
        }
        // Neither version nor uid were ever looked at in reviews of v1beta1, nor the type of patches.
        ReviewVersion::V1beta1 if power == Power::Mutating && !patch.is_empty() => {
            Some((patch, "JSONPatch".to_owned()))
        }
        ReviewVersion::V1beta1 => None,
    };
    let texts = response.get("warnings").and_then(Value::as_array).unwrap_or(&[]);
    let notes = response.get("auditAnnotations").and_then(Value::as_object).into_iter().flat_map(|m| m.iter());
    Ok(Response {
        allowed: response.get("allowed").and_then(Value::as_bool).unwrap_or(false),
        patch,
        status: response.get("status").filter(|s| !s.is_null()).map(Status::from_value),
        warnings: texts.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        annotations: notes.filter_map(|(k, v)| Some((k.to_owned(), v.as_str()?.to_owned()))).collect(),
    })
}

fn typed_patch(power: Power, patch: Vec<u8>, kind: Option<&str>) -> Result<Option<(Vec<u8>, String)>, String> {
    let why = match (power, patch.is_empty(), kind) {
        (Power::Mutating, false, None) => "webhook returned response.patch but not response.patchType",
        (Power::Mutating, true, Some(_)) => "webhook returned response.patchType but not response.patch",
        (Power::Mutating, false, Some("")) => "webhook returned invalid response.patchType of \"\"",
        (Power::Mutating, false, Some(kind)) => return Ok(Some((patch, kind.to_owned()))),
        (Power::Mutating, true, None) => return Ok(None),
        (Power::Validating, false, _) => "validating webhook may not return response.patch",
        (Power::Validating, true, Some(_)) => "validating webhook may not return response.patchType",
        (Power::Validating, true, None) => return Ok(None),
    };
    Err(why.to_owned())
}

/// The refusal that a webhook's Status means.
pub fn denial(hook: &str, status: Option<Status>) -> Status {
    let denied = format!("admission webhook {} denied the request", quote(hook));
    let mut status = status.unwrap_or_default();
    status.code = status.code.max(400);
    if status.outcome == Outcome::Success {
        status.outcome = Outcome::Failure;
    }
    status.message = match (status.message.as_str(), status.reason.as_str()) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::user_info;

    #[test]
    fn users_are_written_as_expressions_see_them() {
        let nobody = User::default();
        let alice = User { name: "al\"ice".into(), groups: vec!["a".into(), "b".into()], ..User::default() };
        let mut all = User { uid: "u".into(), ..alice.clone() };
        all.extra.insert("k/x".into(), vec!["1".into(), "2".into()]);
        all.extra.insert("none".into(), Vec::new());
        for user in [nobody, alice, all] {
            let (mut found, mut want) = (Vec::new(), Vec::new());
            write_user(&mut found, &user);
            json::write(&mut want, &user_info(&user));
            assert_eq!(String::from_utf8(found).unwrap(), String::from_utf8(want).unwrap());
        }
    }
}
