//! PATCH in its four kinds. The patch is applied to the stored object as the client's version shows it; the
//! result is decoded like any body.

use super::body::{self, Decoded};
use super::context::Context;
use super::create::{Owners, dedup_owners};
use super::endpoint::Endpoint;
use super::fields::Ownership;
use super::options::{FieldValidation, Write, WriteOptions};
use super::output;
use super::patched_text::{self, Reached};
use super::update::{check_name, code_of};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use kubelith_codec::json::{self, PatchText, Strictness};
use kubelith_codec::yaml;
use kubelith_http::{RequestBody, Response};
use kubelith_merge::apply::Force;
use kubelith_merge::json_patch::{self, Checking, JsonPatch};
use kubelith_merge::{PatchError, merge_patch, strategic};
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::status::ForeignResponse;
use kubelith_meta::text::json_kind;
use kubelith_meta::{GroupKind, GroupResource, Status, Value};
use kubelith_registry::{Call, Change, IfAbsent, Judged, Working};
use std::sync::Arc;

pub const JSON_PATCH: &str = "application/json-patch+json";
pub const MERGE_PATCH: &str = "application/merge-patch+json";
pub const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";
pub const APPLY_PATCH: &str = "application/apply-patch+yaml";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

pub async fn patch(cx: Arc<Context>, request: RequestBody) -> Result<Response, Status> {
    let kind = kind_of(&cx)?;
    cx.ensure_named()?;
    let negotiated = cx.negotiate()?;
    let bytes = body::read(request, cx.endpoint.limits.body_bytes).await?;
    let write = if kind == PatchKind::Apply { Write::Apply } else { Write::Patch };
    let options = WriteOptions::parse(&cx.query, write)?;
    let call = cx.call(options.mode);
    if let Some(audit) = &cx.audit {
        audit.request_patch(|| patch_json(kind, &bytes));
    }

    let task = {
        let cx = cx.clone();
        async move {
            // A subresource is never the way to create an object.
            let creates = kind == PatchKind::Apply && call.subresource.is_empty();
            let if_absent = if creates { IfAbsent::Create } else { IfAbsent::Strategy };
            let ownership = Ownership::Kept;
            let mut change = Patch { cx: &cx, call: &call, kind, bytes, options: &options, ownership };
            let resource = &cx.endpoint.resource;
            let mut done = resource.update(&call, &mut change, if_absent, Some(&options.object)).await;
            // An apply is about ownership and cannot go without.
            if kind != PatchKind::Apply && done.as_ref().is_err_and(Ownership::is_too_much) {
                change.ownership = Ownership::Dropped;
                done = resource.update(&call, &mut change, if_absent, Some(&options.object)).await;
            }
            let updated = done?;
            Ok((cx.answer(updated.object).await?, updated.json, updated.outcome))
        }
    };
    let (object, json, outcome) = super::run_to_end(cx.late.clone(), task).await?;
    output::written(&cx, &negotiated, code_of(outcome), object, json)
}

/// A patch as JSON; an apply may come as YAML.
fn patch_json(kind: PatchKind, bytes: &Bytes) -> Bytes {
    match kind {
        PatchKind::Apply if json::validate(bytes).is_err() => {
            yaml::read(bytes).map_or_else(|_| Bytes::from_static(b"null"), |d| json::to_vec(&d.value).into())
        }
        _ if json::validate(bytes).is_err() => Bytes::from_static(b"null"),
        _ => bytes.clone(),
    }
}

fn kind_of(cx: &Context) -> Result<PatchKind, Status> {
    let content_type = cx.header(CONTENT_TYPE).split(';').next().unwrap_or("").trim();
    match content_type {
        JSON_PATCH => Ok(PatchKind::Json),
        MERGE_PATCH => Ok(PatchKind::Merge),
        STRATEGIC_MERGE_PATCH if cx.endpoint.strategic => Ok(PatchKind::Strategic),
        APPLY_PATCH if cx.endpoint.fields.is_some() => Ok(PatchKind::Apply),
        _ => Err(Status::unsupported_media_type(&patch_types(&cx.endpoint))),
    }
}

/// The patch types of an endpoint, in the order in which errors list them.
pub fn patch_types(endpoint: &Endpoint) -> Vec<&'static str> {
    let mut types = vec![JSON_PATCH, MERGE_PATCH];
    if endpoint.strategic {
        types.push(STRATEGIC_MERGE_PATCH);
    }
    if endpoint.fields.is_some() {
        types.push(APPLY_PATCH);
    }
    types
}

/// An object with a patch.
struct Patched {
    object: Value,
    /// What is dubious about the patch.
    strict: Vec<String>,
    /// The object can be decoded from text only.
    has_raw_numbers: bool,
}

struct Patch<'a> {
    cx: &'a Context,
    call: &'a Call,
    kind: PatchKind,
    bytes: Bytes,
    options: &'a WriteOptions,
    ownership: Ownership,
}

impl Change for Patch<'_> {
    fn apply<'a>(&'a mut self, existing: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(async move {
            let target = match existing {
                Some(existing) => Some(self.cx.write_target(existing).await?),
                None => None,
            };
            let mut object = match (target.as_ref().map(|m| &*m.live), self.kind) {
                (live, PatchKind::Apply) => self.apply_fields(live)?,
                (None, _) => return Err(Status::not_found(&self.call.resource, &self.call.name)),
                (Some(live), PatchKind::Strategic) => self.strategic(live)?,
                (Some(live), PatchKind::Json | PatchKind::Merge) => self.generic(live)?,
            };
            self.check_identity(existing, &mut object)?;
            let mut object = self.cx.admit(self.call, object, existing, target, &self.options.object).await?;
            dedup_owners(self.cx, &mut object, Owners::AsAdmitted);
            self.ownership.settle(&mut object);
            Ok(object)
        })
    }

    fn may_create(&mut self) -> BoxFuture<'_, Result<(), Status>> {
        Box::pin(self.cx.authorize_create())
    }

    fn judged(&self, object: &Value, old: &Value) -> Result<Judged, Status> {
        self.cx.judged(object, old)
    }
}

impl Patch<'_> {
    fn checked(&self) -> bool {
        self.options.field_validation != FieldValidation::Ignore
    }

    fn strictness(&self) -> Strictness {
        if self.checked() { Strictness::Report } else { Strictness::Lenient }
    }

    /// JSON patch and merge patch. The result is decoded like a body; only if that finds something wrong, it is decoded
    /// as text, which errors speak of.
    fn generic(&self, live: &Value) -> Result<Value, Status> {
        let Patched { object: patched, strict, has_raw_numbers } = self.patched(live, None)?;
        let same = |key: &str| patched.get(key) == live.get(key);
        if strict.is_empty()
            && !has_raw_numbers
            && same("apiVersion")
            && same("kind")
            && let Ok(taken) = self.cx.endpoint.decoder.take_exact(patched, self.strictness())
            && taken.strict.is_empty()
        {
            return Ok(self.finish(live, taken));
        }
        // Custom resources have no order of Go's.
        let schema = self.cx.endpoint.strategic.then(|| self.cx.endpoint.schema());
        let mut reached = Reached::default();
        let Patched { object: patched, mut strict, .. } = self.patched(live, schema.map(|_| &mut reached))?;
        let text = patched_text::write(&patched, &reached, schema);
        let decoded = self.cx.endpoint.decoder.decode_patched(&text, self.strictness());
        let shown = || String::from_utf8_lossy(&text).into_owned();
        let decoded = decoded.map_err(|why| invalid_patch(&shown(), why))?;
        strict.extend(decoded.strict.iter().cloned());
        self.report(&strict, shown)?;
        Ok(self.finish(live, decoded))
    }

    fn patched(&self, live: &Value, reached: Option<&mut Reached>) -> Result<Patched, Status> {
        let mut strict = Vec::new();
        let PatchText { value: body, has_raw_numbers, .. } = self.parse_patch(&mut strict)?;
        let mut patched = live.clone();
        // Paths and tests may reach into them. The patch is looked at as we would write it, for it may have escapes.
        if memchr::memmem::find(&json::to_vec(&body), b"managedFields").is_some() {
            json::unfold_fields(&mut patched);
        }
        if self.kind == PatchKind::Json {
            let checking = if self.checked() { Checking::Checked } else { Checking::Ignore };
            let (patch, unknown) = JsonPatch::decode(body, checking).map_err(patch_status)?;
            let patch = patch.at_most(json_patch::MAX_OPERATIONS).map_err(patch_status)?;
            strict = in_order(unknown, strict.iter().map(|problem| format!("json patch {problem}")).collect());
            if let Some(reached) = reached {
                *reached = Reached::by_pointers(patch.pointers());
            }
            patch.apply(&mut patched, json_patch::MAX_COPIED_BYTES).map_err(patch_status)?;
        } else {
            if let Some(reached) = reached {
                *reached = Reached::by_merge(live, &body);
            }
            merge_patch::apply(&mut patched, body).map_err(patch_status)?;
        }
        Ok(Patched { object: patched, strict, has_raw_numbers })
    }

    fn parse_patch(&self, strict: &mut Vec<String>) -> Result<PatchText, Status> {
        if !self.checked() {
            return json::parse_patch(&self.bytes, Strictness::Lenient).map_err(|_| match self.kind {
                PatchKind::Merge => Status::bad_request("Invalid JSON Patch"),
                _ => Status::bad_request("error decoding patch"),
            });
        }
        let decoded = json::parse_patch(&self.bytes, Strictness::Report)
            .map_err(|e| Status::bad_request(format!("error decoding patch: {e}")))?;
        strict.extend(decoded.strict.iter().map(ToString::to_string));
        if self.kind == PatchKind::Merge && !matches!(decoded.value, Value::Object(_) | Value::Null) {
            let kind = json_kind(&decoded.value);
            return Err(Status::bad_request(format!(
                "error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            )));
        }
        if let Some(number) = &decoded.bad_number {
            let place = if self.kind == PatchKind::Json { "struct field jsonPatchOp.value" } else { "value" };
            return Err(Status::bad_request(format!(
                "error decoding patch: json: cannot unmarshal number {number} into Go {place} of type float64"
            )));
        }
        Ok(decoded)
    }

    fn strategic(&self, live: &Value) -> Result<Value, Status> {
        let decoded =
            json::parse_document(&self.bytes, self.strictness()).map_err(|e| Status::bad_request(e.to_string()))?;
        let mut strict: Vec<String> = decoded.strict.iter().map(ToString::to_string).collect();
        let mut patched = live.clone();
        // Errors show the patch; it is printed only then.
        let shown = decoded.value.clone();
        let shown = || kubelith_merge::go_value(&shown);
        strategic::apply(&mut patched, decoded.value, self.cx.endpoint.schema()).map_err(patch_status)?;
        let taken = self.cx.endpoint.decoder.take(patched, self.strictness());
        let mut taken = taken.map_err(|why| invalid_patch(&shown(), why))?;
        // They are told in the order of their paths.
        let mut unknown = std::mem::take(&mut taken.strict);
        unknown.sort();
        strict.extend(unknown);
        self.report(&strict, shown)?;
        Ok(self.finish(live, taken))
    }

    /// Defaults, canonical form and field ownership of a patched object. What the patch did not reach is sealed and costs
    /// nothing.
    fn finish(&self, live: &Value, patched: Decoded) -> Value {
        let mut object = Working::new(patched.object, patched.form);
        self.complete(&mut object);
        self.cx.track(Some(live), object, self.options).value
    }

    fn complete(&self, object: &mut Working) {
        self.cx.complete(object);
        if self.cx.endpoint.is_as_stored() {
            object.seal();
        }
    }

    fn report(&self, problems: &[String], shown: impl FnOnce() -> String) -> Result<(), Status> {
        if problems.is_empty() {
            return Ok(());
        }
        match self.options.field_validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => problems.iter().for_each(|p| self.cx.warnings.add(p.as_str())),
            FieldValidation::Strict => {
                return Err(invalid_patch(&shown(), format!("strict decoding error: {}", problems.join(", "))));
            }
        }
        Ok(())
    }

    /// Server-side apply.
    fn apply_fields(&self, live: Option<&Value>) -> Result<Value, Status> {
        let Some(fields) = &self.cx.endpoint.fields else {
            return Err(Status::unsupported_media_type(&patch_types(&self.cx.endpoint)));
        };
        let bad = |why: &dyn std::fmt::Display| Status::bad_request(format!("error decoding YAML: {why}"));
        let decoded = yaml::read(&self.bytes).map_err(|e| bad(&format!("error converting YAML to JSON: {e}")))?;
        let strict = decoded.strict_error();
        let patch = match decoded.value {
            Value::Object(_) => decoded.value,
            // Nothing at all is an empty object.
            Value::Null => Value::object(),
            other => {
                let kind = json_kind(&other);
                return Err(bad(&format!(
                    "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go value of type \
                     map[string]interface {{}}"
                )));
            }
        };
        let force = if self.options.force == Some(true) { Force::Yes } else { Force::No };
        let by = self.cx.by(&self.options.field_manager);
        let merged = fields.apply(&by, live, &patch, force)?;
        // The merged object is decoded like any body, or nearly so: types are checked.
        let taken = self.cx.endpoint.decoder.take_applied(merged);
        let taken = taken.map_err(|why| {
            let (name, kind) = (kubelith_merge::managers::describe(&patch), &self.cx.endpoint.kind);
            Status::unknown(format!(
                "failed to convert new object ({name}) to proper version: unable to convert unstructured object to \
                     {kind}: {why}"
            ))
        })?;
        if let Some(problem) = strict {
            match self.options.field_validation {
                FieldValidation::Ignore => {}
                FieldValidation::Warn => problem.warnings().into_iter().for_each(|w| self.cx.warnings.add(w)),
                FieldValidation::Strict => {
                    return Err(Status::bad_request(format!(
                        "error strict decoding YAML: error converting YAML to JSON: {problem}"
                    )));
                }
            }
        }
        let mut object = Working::new(taken.object, taken.form);
        self.complete(&mut object);
        Ok(object.value)
    }

    /// A patch cannot turn an object into another one.
    fn check_identity(&self, existing: Option<&Value>, object: &mut Value) -> Result<(), Status> {
        let uid = object.str_at(&["metadata", "uid"]);
        if existing.is_none() && !uid.is_empty() {
            return Err(Status::conflict(
                &self.call.resource,
                &self.call.name,
                format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found"),
            ));
        }
        self.cx.endpoint.resource.ensure_namespace(self.call, object)?;
        check_name(self.call, object)
    }
}

fn patch_status(error: PatchError) -> Status {
    match error {
        PatchError::BadRequest(message) => Status::bad_request(message),
        PatchError::TooLarge(message) => Status::request_entity_too_large(message),
        PatchError::Unprocessable(text) => Status::from(ForeignResponse {
            code: 422,
            method: "",
            resource: GroupResource::default(),
            name: "",
            body: &text,
            retry_after_seconds: 0,
            unexpected: false,
        }),
        PatchError::Internal(message) => Status::unknown(message),
    }
}

/// Problems with the operations of a JSON patch, by operation.
fn in_order(unknown: Vec<String>, repeated: Vec<String>) -> Vec<String> {
    let operation = |problem: &String| {
        let number = problem.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(number, _)| number);
        number.and_then(|n| n.parse::<usize>().ok())
    };
    let mut problems = unknown;
    problems.extend(repeated);
    problems.sort_by_key(operation);
    problems
}

fn invalid_patch(shown: &str, why: String) -> Status {
    let mut errors = ErrorList::default();
    errors.push(Error::invalid(&Path::new("patch"), Value::from(shown), why));
    Status::invalid(&GroupKind::default(), "", &errors)
}
