//! PodSecurity: the Pod Security Standards, as the labels of a namespace ask for them. Pods that break what is enforced
//! are refused; what is only to be warned of is, for pods and for all that makes pods.

mod checks;
mod config;
mod policy;

use super::list;
use crate::observe::{Decision, Evaluation, Observer, SecurityMode};
use crate::plugin::{Plugin, Verdict};
use config::Settings;
use kubelith_meta::text::Quoted;
use kubelith_meta::{Status, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::{Operation, Request};
use kubelith_registry::objects::{CachedObject, Collection};
use policy::{Level, LevelVersion, Policy, Version};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Existing pods are looked at when a namespace gets stricter, but not more than this many.
const PODS_TO_CHECK: usize = 3000;

/// Parts of pods that cannot change what is looked at.
const IGNORED_PARTS: [&str; 8] = ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

/// The newest release that this server knows; later ones are `future` in metrics.
const THIS_RELEASE: u32 = 36;

pub struct PodSecurity {
    namespaces: Collection,
    pods: Collection,
    observer: Arc<dyn Observer>,
    settings: Settings,
}

impl PodSecurity {
    /// `configuration` is a PodSecurityConfiguration.
    pub fn new(
        objects: &Arc<Objects>,
        observer: Arc<dyn Observer>,
        configuration: Option<&[u8]>,
    ) -> Result<PodSecurity, String> {
        let (namespaces, pods) = (objects.of("", "namespaces"), objects.of("", "pods"));
        Ok(PodSecurity { namespaces, pods, observer, settings: Settings::read(configuration)? })
    }

    /// Whether the namespace or the user is exempt; that is counted.
    fn is_exempt(&self, request: Request<'_>) -> bool {
        let call = request.call;
        let exempt = self.settings.exempts_namespace(&call.namespace) || self.settings.exempts_user(&call.user.name);
        if exempt {
            self.exempted(request);
        }
        exempt
    }

    fn exempted(&self, request: Request<'_>) {
        self.observer.pod_security_exempted(request.operation, resource_of(request), &request.call.subresource);
    }

    fn count(&self, request: Request<'_>, policy: LevelVersion, mode: SecurityMode, decision: Decision) {
        let own;
        let version = match (policy.level, policy.version) {
            (Level::Privileged, _) | (_, Version::Latest) => "latest",
            (_, Version::Minor(minor)) if minor > THIS_RELEASE => "future",
            (_, Version::Minor(minor)) => {
                own = format!("v1.{minor}");
                &own
            }
        };
        self.observer.pod_security_evaluated(Evaluation {
            decision,
            mode,
            level: policy.level.name(),
            version,
            operation: request.operation,
            resource: resource_of(request),
            subresource: &request.call.subresource,
        });
    }

    fn policy_of(&self, namespace: &str, found: Option<Arc<CachedObject>>) -> Result<Policy, Status> {
        let Some(found) = found.filter(|found| found.broken.is_none()) else {
            let shown = Quoted(namespace);
            return Err(Status::internal_error(format!("failed to lookup namespace {shown}")));
        };
        let label = |key: &str| found.labels.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str());
        Ok(Policy::of(label, &self.settings.defaults).0)
    }

    fn check_pod(&self, request: Request<'_>, policy: Policy, pod: &Value) -> Result<(), Status> {
        if policy.is_privileged() {
            self.count(request, policy.enforce, SecurityMode::Enforce, Decision::Allow);
            return Ok(());
        }
        if request.old.is_some_and(|old| !changes_images(pod, old)) {
            return Ok(());
        }
        if self.settings.exempts_pod(pod) {
            self.exempted(request);
            return Ok(());
        }
        let problems = violations(policy.enforce, pod);
        let decision = if problems.is_some() { Decision::Deny } else { Decision::Allow };
        self.count(request, policy.enforce, SecurityMode::Enforce, decision);
        self.audit(request, policy, pod);
        if let Some(problems) = problems {
            let policy = policy.enforce.to_string();
            return Err(request.forbidden(pod, format!("violates PodSecurity {}: {problems}", Quoted(&policy))));
        }
        self.warn(request, policy, pod);
        Ok(())
    }

    fn check_template(&self, request: Request<'_>, policy: Policy, template: &Value) {
        if policy.warn.level == Level::Privileged && policy.audit.level == Level::Privileged {
            return;
        }
        if self.settings.exempts_pod(template) {
            self.exempted(request);
            return;
        }
        self.audit(request, policy, template);
        self.warn(request, policy, template);
    }

    fn audit(&self, request: Request<'_>, policy: Policy, pod: &Value) {
        if !checks::run(policy.audit, pod).is_empty() {
            self.count(request, policy.audit, SecurityMode::Audit, Decision::Deny);
        }
    }

    fn warn(&self, request: Request<'_>, policy: Policy, pod: &Value) {
        let Some(problems) = violations(policy.warn, pod) else { return };
        self.count(request, policy.warn, SecurityMode::Warn, Decision::Deny);
        let policy = policy.warn.to_string();
        request.call.warn(format!("would violate PodSecurity {}: {problems}", Quoted(&policy)));
    }

    fn check_namespace(&self, request: Request<'_>, namespace: &Value) -> Result<(), Status> {
        let (policy, errors) = Policy::of(|key| namespace.meta().label(key), &self.settings.defaults);
        let before = request.old.map(|old| Policy::of(|key| old.meta().label(key), &self.settings.defaults));
        let new_errors = before.as_ref().is_none_or(|(_, old)| *old != errors);
        if !errors.is_empty() && new_errors {
            return Err(Status::invalid(&request.call.group_kind(), namespace.meta().name(), &errors));
        }
        let stricter = before.as_ref().is_none_or(|(before, _)| policy.enforce.is_stricter_than(before.enforce));
        if stricter && self.settings.exempts_namespace(namespace.meta().name()) {
            if let Some(warning) = self.exempt_warning(namespace, policy) {
                request.call.warn(warning);
            }
        } else if stricter && before.is_some() {
            for warning in self.existing_violations(namespace.meta().name(), policy.enforce) {
                request.call.warn(warning);
            }
        }
        Ok(())
    }

    /// Labels of a namespace for which they mean nothing.
    fn exempt_warning(&self, namespace: &Value, policy: Policy) -> Option<String> {
        if policy.is_privileged() || policy == self.settings.defaults {
            return None;
        }
        let meta = namespace.meta();
        let shown = [("enforce", policy.enforce), ("audit", policy.audit), ("warn", policy.warn)]
            .into_iter()
            .filter(|(mode, asked)| asked.level != Level::Privileged && policy::has_label(meta, mode))
            .map(|(mode, asked)| format!("{mode}={asked}"))
            .collect::<Vec<_>>()
            .join(", ");
        let name = Quoted(meta.name());
        Some(format!("namespace {name} is exempt from Pod Security, and the policy ({shown}) will be ignored"))
    }

    /// What the pods that are there already would be refused for.
    fn existing_violations(&self, namespace: &str, enforce: LevelVersion) -> Vec<String> {
        let mut pods = self.pods.list(namespace);
        pods.retain(|pod| !self.settings.exempts_pod(pod));
        let pods = prioritize(pods);
        let mut found: BTreeMap<String, (String, usize)> = BTreeMap::new();
        for pod in pods.iter().take(PODS_TO_CHECK) {
            let reasons: Vec<String> = checks::run(enforce, pod).into_iter().map(|v| v.reason).collect();
            if reasons.is_empty() {
                continue;
            }
            let name = pod.meta().name();
            let (first, count) = found.entry(reasons.join(", ")).or_insert_with(|| (name.to_owned(), 0));
            *count += 1;
            if name < first.as_str() {
                *first = name.to_owned();
            }
        }
        let mut warnings = Vec::new();
        if pods.len() > PODS_TO_CHECK {
            let total = pods.len();
            warnings.push(format!(
                "new PodSecurity enforce level only checked against the first {PODS_TO_CHECK} of {total} existing pods"
            ));
        }
        if !found.is_empty() {
            let (namespace, policy) = (Quoted(namespace), enforce.to_string());
            let policy = Quoted(&policy);
            warnings.push(format!(
                "existing pods in namespace {namespace} violate the new PodSecurity enforce level {policy}"
            ));
        }
        let mut each: Vec<String> = found
            .into_iter()
            .map(|(reason, (pod, count))| match count {
                1 => format!("{pod}: {reason}"),
                2 => format!("{pod} (and 1 other pod): {reason}"),
                _ => format!("{pod} (and {} other pods): {reason}", count - 1),
            })
            .collect();
        each.sort();
        warnings.extend(each);
        warnings
    }
}

impl Plugin for PodSecurity {
    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> Verdict<'a> {
        if !matches!(request.operation, Operation::Create | Operation::Update) {
            return Verdict::PASSED;
        }
        if request.is_for("", "namespaces") {
            return Verdict::Ready(self.check_namespace(request, object));
        }
        let is_pod = request.is_for_any_part("", "pods");
        let template = template_of(request, object);
        let is_ignored = is_pod && IGNORED_PARTS.contains(&request.call.subresource.as_str());
        if is_ignored || !(is_pod || template.is_some()) || self.is_exempt(request) {
            return Verdict::PASSED;
        }
        let namespace = &request.call.namespace;
        let judge = move |found: Result<Option<Arc<CachedObject>>, Status>| {
            let policy = found.and_then(|found| self.policy_of(namespace, found));
            match (template, policy) {
                (None, policy) => self.check_pod(request, policy?, object),
                (Some(template), policy) => {
                    let _ = policy.map(|policy| self.check_template(request, policy, template));
                    Ok(())
                }
            }
        };
        match self.namespaces.cached("", namespace) {
            Some(found) => Verdict::Ready(judge(Ok(Some(found)))),
            None => Verdict::pending(async move { judge(self.namespaces.live("", namespace).await) }),
        }
    }
}

/// The template of the pods that a controller makes.
fn template_of<'a>(request: Request<'_>, object: &'a Value) -> Option<&'a Value> {
    let resource = &request.call.resource;
    let path: &[&str] = match (resource.group.as_str(), resource.resource.as_str()) {
        ("", "podtemplates") => &["template"],
        ("", "replicationcontrollers")
        | ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => &["spec", "template"],
        ("batch", "cronjobs") => &["spec", "jobTemplate", "spec", "template"],
        _ => return None,
    };
    object.at(path).filter(|_| request.call.subresource.is_empty())
}

/// All problems in one text; `None` if there are none.
fn violations(policy: LevelVersion, pod: &Value) -> Option<String> {
    let found = checks::run(policy, pod);
    let shown: Vec<String> = found.into_iter().map(|v| format!("{} ({})", v.reason, v.detail)).collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

fn resource_of(request: Request<'_>) -> &'static str {
    if request.is_for_any_part("", "pods") { "pod" } else { "controller" }
}

/// Updates of pods can change little; only another image, or another container, makes them worth a look.
fn changes_images(pod: &Value, old: &Value) -> bool {
    let differ = |kind: &str| {
        let (new, old) = (list(pod, &["spec", kind]), list(old, &["spec", kind]));
        new.len() != old.len() || new.iter().zip(old).any(|(a, b)| a.str_at(&["image"]) != b.str_at(&["image"]))
    };
    let old_ephemeral = list(old, &["spec", "ephemeralContainers"]);
    let is_old = |new: &Value| {
        old_ephemeral
            .iter()
            .any(|o| o.str_at(&["name"]) == new.str_at(&["name"]) && o.str_at(&["image"]) == new.str_at(&["image"]))
    };
    differ("containers")
        || differ("initContainers")
        || list(pod, &["spec", "ephemeralContainers"]).iter().any(|new| !is_old(new))
}

/// Pods of controllers that were not seen yet come first: the others are likely to be like them.
fn prioritize(pods: Vec<Value>) -> Vec<Value> {
    let mut seen = HashSet::new();
    let is_first = |pod: &Value| match pod.meta().controller() {
        Some(owner) => seen.insert(owner.uid().to_owned()),
        None => true,
    };
    let (mut first, others): (Vec<Value>, Vec<Value>) = pods.into_iter().partition(is_first);
    first.extend(others);
    first
}

impl LevelVersion {
    /// Whether a namespace that had `before` may now have pods that it would not take any more.
    fn is_stricter_than(self, before: LevelVersion) -> bool {
        self != before
            && self.level != Level::Privileged
            && !(self.version == before.version && self.level <= before.level)
    }
}
