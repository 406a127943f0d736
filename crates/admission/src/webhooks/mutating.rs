//! MutatingAdmissionWebhook: webhooks that may change objects. They are asked one after another, each with what those before
//! it made of the object; some are asked again if it was changed after them.

use super::Webhooks;
use super::call::{Failure, Invocation, out_of_time, unreachable};
use super::hook::Hook;
use super::review::{Response, Texts};
use crate::attributes::Seen;
use crate::config::Config;
use crate::expression::FailurePolicy;
use crate::manifests::Manifests;
use crate::observe::Power;
use crate::plugin::{Memory, Plugin, Round, Verdict};
use crate::rules::Versions;
use crate::versioned::{self, Changing};
use kubelith_codec::json;
use kubelith_merge::json_patch::{Checking, JsonPatch, MAX_COPIED_BYTES};
use kubelith_merge::managers::Managed;
use kubelith_meta::text::quote;
use kubelith_meta::{Status, Value};
use kubelith_registry::admission::Request;
use std::sync::Arc;
use std::time::Instant;

/// Keys of the audit log begin so: what was patched, whether anything was, and what was passed over.
const PATCHED: &str = "patch.webhook.admission.k8s.io/";
const MUTATED: &str = "mutation.webhook.admission.k8s.io/";
const FAILED_OPEN: &str = "failed-open.mutation.webhook.admission.k8s.io/";
/// Of a patch. kube-apiserver has no bound, but each operation may move all that a list has.
const MAX_OPERATIONS: usize = 100_000;
const JSON_PATCH: &str = "JSONPatch";
const MANAGED_FIELDS: [&str; 2] = ["metadata", "managedFields"];

pub struct MutatingAdmissionWebhook(Webhooks);

impl MutatingAdmissionWebhook {
    pub fn new(config: &Config, plugin: Option<&[u8]>) -> Result<MutatingAdmissionWebhook, String> {
        let webhooks = Webhooks::new(config, plugin, Power::Mutating)?;
        Ok(MutatingAdmissionWebhook(webhooks))
    }
}

impl Plugin for MutatingAdmissionWebhook {
    fn manifests(&self) -> Option<Arc<Manifests>> {
        self.0.source.manifests.clone()
    }

    fn admit_in<'a>(&'a self, request: Request<'a>, object: &'a mut Value, round: &'a Round) -> Verdict<'a> {
        if self.0.source.is_empty() {
            return Verdict::Idle;
        }
        let set = self.0.source.current();
        let hooks: Vec<(usize, Arc<Hook>)> = set.candidates(request).map(|(n, hook)| (n, hook.clone())).collect();
        if hooks.is_empty() {
            return Verdict::Idle;
        }
        Verdict::pending(async move {
            let mut memory = round.webhooks().take().unwrap_or_default();
            if round.is_second() && memory.left.as_ref() != Some(&*object) {
                // Plugins that ran again have changed it.
                memory.changed();
            }
            let done = self.0.change(request, object, &hooks, round, &mut memory).await;
            if done.is_ok() && !round.is_second() && round.is_repeated() {
                memory.left = Some(object.clone());
            }
            *round.webhooks() = Some(memory);
            done
        })
    }
}

impl Webhooks {
    async fn change(
        &self,
        request: Request<'_>,
        object: &mut Value,
        hooks: &[(usize, Arc<Hook>)],
        round: &Round,
        memory: &mut Memory,
    ) -> Result<(), Status> {
        let owners = object.at(&MANAGED_FIELDS).cloned();
        let versions = Versions::of(request, &self.objects);
        let mut changing = Changing::new(request, object);
        for (place, hook) in hooks {
            let Some(seen) = self.is_meant(hook, request, &versions, changing.object()).await? else { continue };
            if hook.conditions().is_some() {
                changing.bring_to(&seen.kind).await?;
                if !self.holds(hook, request, seen, Some(changing.object()), changing.old())? {
                    continue;
                }
            }
            // The second round asks nobody for the first time.
            if round.is_second() && !memory.again.contains(&hook.uid) {
                continue;
            }
            changing.bring_to(&seen.kind).await?;
            let invocation = Invocation { hook, seen, place: *place };
            let changed = self.ask_for_change(request, &mut changing, &invocation, round).await;
            if matches!(changed, Ok(true)) {
                memory.changed();
                round.repeat();
            }
            if hook.is_reinvoked {
                memory.waiting.insert(hook.uid.clone());
            }
            changed?;
        }
        changing.settle().await?;
        keep_owners(request, object, owners);
        Ok(())
    }

    /// Asks one webhook. Whether it changed the object.
    async fn ask_for_change(
        &self,
        request: Request<'_>,
        changing: &mut Changing<'_>,
        invocation: &Invocation<'_>,
        round: &Round,
    ) -> Result<bool, Status> {
        let hook = invocation.hook;
        let place = format!("round_{}_index_{}", u8::from(round.is_second()), invocation.place);
        let (caller, began) = (self.caller(), Instant::now());
        let texts = Texts::new(Some(changing.object()), changing.old());
        let asked = match caller.ask(request, invocation, &texts).await {
            Ok(response) => apply(request, changing, invocation.seen, hook, response),
            Err(failure) => Err(failure),
        };
        drop(texts);
        let ignores = hook.failure_policy == FailurePolicy::Ignore;
        caller.observe(request, hook, asked.as_ref().err(), ignores, began);
        let mutated = matches!(asked, Ok(Some(Patched { changed: true, .. })));
        request.call.annotate(format!("{MUTATED}{place}"), annotation(hook, &format!("\"mutated\":{mutated}")));
        match asked {
            Ok(None) => Ok(false),
            Ok(Some(Patched { changed, patch })) => {
                let said = format!("\"patch\":{patch},\"patchType\":\"{JSON_PATCH}\"");
                request.call.annotate_revealing(format!("{PATCHED}{place}"), annotation(hook, &said));
                Ok(changed)
            }
            Err(Failure::Denied(status) | Failure::Other(status)) => Err(status),
            Err(Failure::Calling { why, .. }) if ignores => {
                tracing::warn!(webhook = %hook.name, "failed calling webhook, failing open: {why}");
                self.observer.webhook_failed_open(&hook.name, self.power);
                request.call.annotate(format!("{FAILED_OPEN}{place}"), hook.name.as_str());
                match out_of_time(request).await {
                    Some(status) => Err(status),
                    None => Ok(false),
                }
            }
            Err(Failure::Calling { why, .. }) => {
                tracing::warn!(webhook = %hook.name, "failed calling webhook, failing closed: {why}");
                Err(out_of_time(request).await.unwrap_or_else(|| unreachable(hook, &why)))
            }
        }
    }
}

/// What a patch did.
struct Patched {
    changed: bool,
    /// The patch as JSON.
    patch: String,
}

/// `{"configuration":…,"webhook":…,` and the rest.
fn annotation(hook: &Hook, rest: &str) -> String {
    let mut out = b"{\"configuration\":".to_vec();
    json::write_string(&mut out, &hook.configuration);
    out.extend_from_slice(b",\"webhook\":");
    json::write_string(&mut out, &hook.name);
    format!("{},{rest}}}", String::from_utf8_lossy(&out))
}

/// Applies the patch of a response, if it has one.
fn apply(
    request: Request<'_>,
    changing: &mut Changing<'_>,
    seen: &Seen,
    hook: &Hook,
    response: Response,
) -> Result<Option<Patched>, Failure> {
    let Some((text, kind)) = response.patch else { return Ok(None) };
    let internal = |why: &dyn std::fmt::Display| Failure::Other(Status::internal_error(why));
    let body = json::parse_patch(&text, json::Strictness::Lenient);
    let body = body.map_err(|e| Failure::undecodable_patch(&e.to_string()))?.value;
    let shown = json::to_string(&body);
    let decoded = JsonPatch::decode(body, Checking::Ignore);
    let patch = decoded.and_then(|(patch, _)| patch.at_most(MAX_OPERATIONS));
    let patch = patch.map_err(|e| Failure::undecodable_patch(&e.to_string()))?;
    if patch.is_empty() {
        return Ok(None);
    }
    if changing.object().is_null() {
        let name = quote(&hook.name);
        let why = format!(
            "admission webhook {name} attempted to modify the object, which is not supported for this operation"
        );
        return Err(internal(&why));
    }
    if kind != JSON_PATCH {
        return Err(Failure::unsupported_patch(&kind));
    }
    let before = versioned::printed(Some(changing.object())).unwrap_or_default();
    let mut patched = before.clone();
    patched.unseal();
    // Paths may reach into what is kept as text.
    json::unfold_fields(&mut patched);
    patch.apply(&mut patched, MAX_COPIED_BYTES).map_err(|e| internal(&e))?;
    let mut patched =
        versioned::decode(request, patched, &seen.kind, json::Strictness::Lenient).map_err(|why| internal(&why))?;
    let changed = changing.has_new_time() || !is_same(&before, &patched);
    versioned::complete(request, &mut patched).map_err(|why| Failure::Other(Status::unknown(why)))?;
    changing.replace(patched);
    Ok(Some(Patched { changed, patch: shown }))
}

/// Whether both are the same, with fields of managers as text or not.
fn is_same(before: &Value, after: &Value) -> bool {
    if before == after {
        return true;
    }
    let mut unfolded = [before.clone(), after.clone()];
    for object in &mut unfolded {
        object.unseal();
        json::unfold_fields(object);
    }
    unfolded[0] == unfolded[1]
}

/// Owners that cannot be read are nobody's: those from before admission stay.
pub(crate) fn keep_owners(request: Request<'_>, object: &mut Value, before: Option<Value>) {
    if object.is_null() || object.at(&MANAGED_FIELDS) == before.as_ref() {
        return;
    }
    if let Err(why) = Managed::of(object) {
        object.put_at(&MANAGED_FIELDS, before);
        request.call.warn(format!(
            ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating \
             admission controller; please fix your requests: {why}"
        ));
    }
}
