//! ValidatingAdmissionWebhook: webhooks that may refuse what is about to be stored. All are asked at once, and the first
//! refusal to come is the answer.

use super::Webhooks;
use super::call::{Failure, Invocation, out_of_time, unreachable};
use super::hook::Hook;
use super::review::Texts;
use crate::attributes::Seen;
use crate::config::Config;
use crate::expression::FailurePolicy;
use crate::manifests::Manifests;
use crate::observe::Power;
use crate::plugin::{Plugin, Verdict};
use crate::rules::Versions;
use crate::versioned;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kubelith_meta::{GroupVersionKind, Status, Value};
use kubelith_registry::admission::Request;
use std::sync::Arc;
use std::time::Instant;

/// How failures that are passed over are marked in the audit log.
const FAILED_OPEN: &str = "failed-open.validating.webhook.admission.k8s.io/";

pub struct ValidatingAdmissionWebhook(Webhooks);

impl ValidatingAdmissionWebhook {
    pub fn new(config: &Config, plugin: Option<&[u8]>) -> Result<ValidatingAdmissionWebhook, String> {
        let webhooks = Webhooks::new(config, plugin, Power::Validating)?;
        Ok(ValidatingAdmissionWebhook(webhooks))
    }
}

impl Plugin for ValidatingAdmissionWebhook {
    fn manifests(&self) -> Option<Arc<Manifests>> {
        self.0.source.manifests.clone()
    }

    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> Verdict<'a> {
        if self.0.source.is_empty() {
            return Verdict::Idle;
        }
        let set = self.0.source.current();
        let hooks: Vec<Arc<Hook>> = set.candidates(request).map(|(_, hook)| hook.clone()).collect();
        if hooks.is_empty() {
            return Verdict::Idle;
        }
        Verdict::pending(async move { self.0.dispatch(request, object, &hooks).await })
    }
}

/// Both objects in one version.
struct Pair {
    kind: GroupVersionKind,
    object: Option<Value>,
    old: Option<Value>,
}

impl Webhooks {
    async fn dispatch(&self, request: Request<'_>, object: &Value, hooks: &[Arc<Hook>]) -> Result<(), Status> {
        let versions = Versions::of(request, &self.objects);
        let mut pairs: Vec<Pair> = Vec::new();
        let mut asked: Vec<(&Hook, &Seen)> = Vec::new();
        for hook in hooks {
            let Some(seen) = self.is_meant(hook, request, &versions, object).await? else { continue };
            if !pairs.iter().any(|pair| pair.kind == seen.kind) {
                pairs.push(pair(request, object, &seen.kind).await?);
            }
            let Some(pair) = pairs.iter().find(|pair| pair.kind == seen.kind) else { continue };
            let new = pair.object.as_ref().or((!object.is_null()).then_some(object));
            if self.holds(hook, request, seen, new, pair.old.as_ref().or(request.old))? {
                asked.push((hook, seen));
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        if let Some(status) = out_of_time(request).await {
            return Err(status);
        }
        let texts: Vec<(&GroupVersionKind, Texts<'_>)> = pairs
            .iter()
            .map(|pair| {
                let converted = [pair.object.as_ref(), pair.old.as_ref()];
                (&pair.kind, Texts::of_written(request, object, converted))
            })
            .collect();
        let mut calls = asked.iter().enumerate().filter_map(|(place, (hook, seen))| {
            let (_, texts) = texts.iter().find(|(kind, _)| **kind == seen.kind)?;
            Some(self.judge(request, Invocation { hook, seen, place }, texts))
        });
        // Mostly it is one, which needs nobody who tells several apart.
        if asked.len() == 1
            && let Some(only) = calls.next()
        {
            return only.await;
        }
        let mut calls: FuturesUnordered<_> = calls.collect();
        let mut first = Ok(());
        while let Some(judged) = calls.next().await {
            if first.is_ok() {
                first = judged;
            }
        }
        first
    }

    async fn judge(&self, request: Request<'_>, invocation: Invocation<'_>, texts: &Texts<'_>) -> Result<(), Status> {
        let hook = invocation.hook;
        let (caller, began) = (self.caller(), Instant::now());
        let asked = caller.ask(request, &invocation, texts).await;
        let ignores = hook.failure_policy == FailurePolicy::Ignore;
        caller.observe(request, hook, asked.as_ref().err(), ignores, began);
        match asked {
            Ok(_) => Ok(()),
            Err(Failure::Denied(status) | Failure::Other(status)) => Err(status),
            Err(Failure::Calling { why, .. }) if ignores => {
                tracing::warn!(webhook = %hook.name, "failed calling webhook, failing open: {why}");
                self.observer.webhook_failed_open(&hook.name, self.power);
                let key = format!("{FAILED_OPEN}round_0_index_{}", invocation.place);
                request.call.annotate(key, hook.name.as_str());
                out_of_time(request).await.map_or(Ok(()), Err)
            }
            Err(Failure::Calling { why, .. }) => {
                tracing::warn!(webhook = %hook.name, "failed calling webhook, failing closed: {why}");
                Err(out_of_time(request).await.unwrap_or_else(|| unreachable(hook, &why)))
            }
        }
    }
}

/// What has to be converted; the rest is as the request has it.
async fn pair(request: Request<'_>, object: &Value, kind: &GroupVersionKind) -> Result<Pair, Status> {
    let mut converted = [None, None];
    for (place, value) in [(0, Some(object).filter(|o| !o.is_null())), (1, request.old)] {
        if let Some(value) = value.filter(|value| !value.is_of(kind)) {
            let mut made = versioned::convert(request, value.clone(), kind).await?;
            versioned::canonical(&mut made);
            converted[place] = Some(made);
        }
    }
    let [object, old] = converted;
    Ok(Pair { kind: kind.clone(), object, old })
}
