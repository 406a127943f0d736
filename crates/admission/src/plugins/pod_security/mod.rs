//! PodSecurity: the Pod Security Standards, as the labels of a namespace ask for them. Pods that break what is enforced
//! are refused; what is only to be warned of is, for pods and for all that makes pods.

mod checks;
mod config;
mod policy;
#[cfg(test)]
mod tests;

use super::list;
use crate::observe::{Decision, Evaluation, Observer, SecurityMode, Severity};
use crate::plugin::{Plugin, Verdict};
use config::Settings;
use kubelith_meta::field::ErrorList;
use kubelith_meta::text::{Quoted, aggregate};
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
const THIS_RELEASE: u64 = 36;

/// Keys of the audit log.
const ENFORCED: &str = "pod-security.kubernetes.io/enforce-policy";
const VIOLATIONS: &str = "pod-security.kubernetes.io/audit-violations";
const EXEMPT: &str = "pod-security.kubernetes.io/exempt";
const ERROR: &str = "pod-security.kubernetes.io/error";

pub struct PodSecurity {
    namespaces: Collection,
    pods: Collection,
    observer: Arc<dyn Observer>,
    settings: Settings,
    /// The one that this server behaves as.
    release: u64,
}

/// What is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Pod,
    /// It makes pods: nothing is enforced of it, since they are judged themselves.
    Template,
}

impl PodSecurity {
    /// `configuration` is a PodSecurityConfiguration.
    pub fn new(
        objects: &Arc<Objects>,
        observer: Arc<dyn Observer>,
        release: u32,
        configuration: Option<&[u8]>,
    ) -> Result<PodSecurity, String> {
        let (namespaces, pods) = (objects.of("", "namespaces"), objects.of("", "pods"));
        let settings = Settings::read(configuration)?;
        Ok(PodSecurity { namespaces, pods, observer, settings, release: release.into() })
    }

    /// Whether the namespace or the user is exempt; that is counted.
    fn is_exempt(&self, request: Request<'_>) -> bool {
        let call = request.call;
        let by = if self.settings.exempts_namespace(&call.namespace) {
            "namespace"
        } else if self.settings.exempts_user(&call.user.name) {
            "user"
        } else {
            return false;
        };
        self.exempted(request, by);
        true
    }

    fn exempted(&self, request: Request<'_>, by: &'static str) {
        self.observer.pod_security_exempted(request.operation, resource_of(request), &request.call.subresource);
        request.call.annotate(EXEMPT, by);
    }

    fn failed(&self, request: Request<'_>, severity: Severity, why: impl FnOnce() -> String) {
        let subresource = &request.call.subresource;
        self.observer.pod_security_failed(severity, request.operation, resource_of(request), subresource);
        if request.call.warnings.is_audited() {
            request.call.annotate(ERROR, why());
        }
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

    /// By the namespace that was found, or why there is none.
    fn policy_of(
        &self,
        namespace: &str,
        found: Result<Option<Arc<CachedObject>>, Status>,
    ) -> Result<(Policy, ErrorList), String> {
        let Some(found) = found.map_err(|why| why.message.to_string())?.filter(|found| found.broken.is_none()) else {
            return Err(format!("namespaces {} not found", Quoted(namespace)));
        };
        let label = |key: &str| found.labels.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str());
        Ok(Policy::of(label, &self.settings.defaults))
    }

    fn check_pod(
        &self,
        request: Request<'_>,
        policy: Result<(Policy, ErrorList), String>,
        pod: &Value,
    ) -> Result<(), Status> {
        let (policy, errors) = policy.map_err(|why| {
            let namespace = Quoted(&request.call.namespace);
            let status = Status::internal_error(format!("failed to lookup namespace {namespace}"));
            self.failed(request, Severity::Fatal, || format!("{}: {why}", status.message));
            status
        })?;
        if errors.is_empty() && policy.is_privileged() {
            self.count(request, policy.enforce, SecurityMode::Enforce, Decision::Allow);
            request.call.annotate(ENFORCED, "privileged:latest");
            return Ok(());
        }
        if request.old.is_some_and(|old| !changes_images(pod, old)) {
            return Ok(());
        }
        self.evaluate(request, policy, &errors, pod, Subject::Pod)
    }

    fn check_template(
        &self,
        request: Request<'_>,
        policy: Result<(Policy, ErrorList), String>,
        template: Option<&Value>,
    ) -> Result<(), Status> {
        let (policy, errors) = match policy {
            Ok(policy) => policy,
            Err(why) => {
                let namespace = Quoted(&request.call.namespace);
                self.failed(request, Severity::Fatal, || format!("failed to lookup namespace {namespace}: {why}"));
                return Ok(());
            }
        };
        let is_privileged = policy.warn.level == Level::Privileged && policy.audit.level == Level::Privileged;
        match template {
            Some(template) if !(errors.is_empty() && is_privileged) => {
                self.evaluate(request, policy, &errors, template, Subject::Template)
            }
            _ => Ok(()),
        }
    }

    fn evaluate(
        &self,
        request: Request<'_>,
        policy: Policy,
        errors: &ErrorList,
        pod: &Value,
        subject: Subject,
    ) -> Result<(), Status> {
        if self.settings.exempts_pod(pod) {
            self.exempted(request, "runtimeClass");
            return Ok(());
        }
        if !errors.is_empty() {
            let all = || aggregate(errors.0.iter().map(ToString::to_string));
            self.failed(request, Severity::Passed, || format!("Failed to parse policy: {}", all()));
        }
        let mut judged = Judged { pod, release: self.release, known: Vec::new() };
        let mut refused = None;
        if subject == Subject::Pod {
            if request.call.warnings.is_audited() {
                request.call.annotate(ENFORCED, policy.enforce.to_string());
            }
            refused = judged.violates(policy.enforce).map(|problems| {
                let policy = policy.enforce.to_string();
                request.forbidden(pod, format!("violates PodSecurity {}: {problems}", Quoted(&policy)))
            });
            let decision = if refused.is_some() { Decision::Deny } else { Decision::Allow };
            self.count(request, policy.enforce, SecurityMode::Enforce, decision);
        }
        if let Some(problems) = judged.violates(policy.audit) {
            if request.call.warnings.is_audited() {
                request.call.annotate(VIOLATIONS, would_violate(policy.audit, problems));
            }
            self.count(request, policy.audit, SecurityMode::Audit, Decision::Deny);
        }
        if let Some(refused) = refused {
            return Err(refused);
        }
        if let Some(problems) = judged.violates(policy.warn) {
            request.call.warn(would_violate(policy.warn, problems));
            self.count(request, policy.warn, SecurityMode::Warn, Decision::Deny);
        }
        Ok(())
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
        if policy.is_privileged() || policy.is_equivalent(&self.settings.defaults) {
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
            let reasons: Vec<String> = checks::run(enforce, pod, self.release).into_iter().map(|v| v.reason).collect();
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
            return Verdict::Idle;
        }
        if request.is_for("", "namespaces") {
            return Verdict::Ready(self.check_namespace(request, object));
        }
        let is_pod = request.is_for_any_part("", "pods");
        let is_ignored = is_pod && IGNORED_PARTS.contains(&request.call.subresource.as_str());
        let path = if is_pod { None } else { template_path(request) };
        if is_ignored || !(is_pod || path.is_some()) || self.is_exempt(request) {
            return Verdict::Idle;
        }
        let namespace = &request.call.namespace;
        let judge = move |found: Result<Option<Arc<CachedObject>>, Status>| {
            let policy = self.policy_of(namespace, found);
            match path {
                None => self.check_pod(request, policy, object),
                Some(path) => self.check_template(request, policy, object.at(path)),
            }
        };
        match self.namespaces.cached("", namespace) {
            Some(found) => Verdict::Ready(judge(Ok(Some(found)))),
            None => Verdict::pending(async move { judge(self.namespaces.live("", namespace).await) }),
        }
    }
}

/// Where a controller has the template of the pods that it makes.
fn template_path(request: Request<'_>) -> Option<&'static [&'static str]> {
    let resource = &request.call.resource;
    let path: &[&str] = match (resource.group.as_str(), resource.resource.as_str()) {
        ("", "podtemplates") => &["template"],
        ("", "replicationcontrollers")
        | ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => &["spec", "template"],
        ("batch", "cronjobs") => &["spec", "jobTemplate", "spec", "template"],
        _ => return None,
    };
    request.call.subresource.is_empty().then_some(path)
}

/// A pod or a template, with what was found out about it: policies of several modes are often the same.
struct Judged<'a> {
    pod: &'a Value,
    release: u64,
    known: Vec<(LevelVersion, Option<String>)>,
}

impl Judged<'_> {
    /// All problems in one text; `None` if there are none.
    fn violates(&mut self, policy: LevelVersion) -> Option<&str> {
        let known = self.known.iter().position(|(known, _)| *known == policy);
        let at = known.unwrap_or_else(|| {
            let found = checks::run(policy, self.pod, self.release);
            let shown: Vec<String> = found.into_iter().map(|v| format!("{} ({})", v.reason, v.detail)).collect();
            self.known.push((policy, (!shown.is_empty()).then(|| shown.join(", "))));
            self.known.len() - 1
        });
        self.known[at].1.as_deref()
    }
}

fn would_violate(policy: LevelVersion, problems: &str) -> String {
    let policy = policy.to_string();
    format!("would violate PodSecurity {}: {problems}", Quoted(&policy))
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
