//! Evictions: a pod is deleted, if its disruption budget allows that.

use super::conditions::{condition, set_condition, set_pod_condition};
use super::{Deed, Pods};
use futures::future::BoxFuture;
use kubelith_handlers::api::{Action, ActionCall};
use kubelith_handlers::endpoint::By;
use kubelith_handlers::options::{IGNORE_READ_ERROR, typed_delete_options};
use kubelith_handlers::{Endpoint, run_to_end};
use kubelith_http::Response;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::status::Cause;
use kubelith_meta::{GroupResource, GroupVersionKind, LabelSelector, Status, Str, Time, Value};
use kubelith_registry::{Call, Change, DeleteBy, DeleteOptions, IfAbsent, Judged, Mode, ReadAt, Resource, Warnings};
use std::sync::Arc;

/// A budget with more evictions than this that its controller has not seen yet allows no other.
const MAX_DISRUPTED_PODS: usize = 2000;
/// How often an eviction is tried again when others write to the pod meanwhile.
const ATTEMPTS: usize = 20;

pub struct Evict {
    pub pods: Pods,
    pub budgets: Arc<Endpoint>,
}

impl Action for Evict {
    fn run(&self, mut request: ActionCall) -> BoxFuture<'static, Result<Response, Status>> {
        let (pods, budgets) = (self.pods.clone(), self.budgets.clone());
        Box::pin(async move {
            let kinds = ["v1", "v1beta1"].map(|version| GroupVersionKind::new("policy", version, "Eviction"));
            let deed = Deed::read(&mut request, &pods, &kinds).await?;
            let late = request.request.context().late.clone();
            run_to_end(late, async move {
                let status = evict(&pods, &budgets, &request, deed).await?;
                Ok(request.status(&status))
            })
            .await
        })
    }
}

async fn evict(pods: &Pods, budgets: &Endpoint, request: &ActionCall, mut deed: Deed) -> Result<Status, Status> {
    deed.admit(pods, request).await?;
    deed.check_name()?;
    check_unsafe(&deed)?;
    let (options, mode) = delete_options(&mut deed)?;
    deed.validate(pods, request).await?;
    let mut call = deed.call.clone();
    call.mode = mode;
    call.subresource = Str::default();
    Eviction { pods, budgets, call, options }.run().await
}

fn check_unsafe(deed: &Deed) -> Result<(), Status> {
    if deed.object.at(&["deleteOptions", IGNORE_READ_ERROR]).and_then(Value::as_bool) != Some(true) {
        return Ok(());
    }
    let path = Path::new("deleteOptions");
    let why = "can not be set for pod eviction, try after removing the option";
    let mut errors = ErrorList::default();
    errors.push(Error::invalid(&path.child(IGNORE_READ_ERROR), Value::Bool(true), why));
    let kind = GroupVersionKind::new("policy", "v1", "Eviction").group_kind();
    Err(Status::invalid(&kind, &deed.call.name, &errors))
}

/// dryRun may be said in the query or in the eviction's own options; said in both it must be the same.
fn delete_options(deed: &mut Deed) -> Result<(DeleteOptions, Mode), Status> {
    let list = |v: Option<&Value>| v.and_then(Value::as_array).unwrap_or_default().to_vec();
    let asked = list(deed.options.object.get("dryRun"));
    let own = list(deed.object.at(&["deleteOptions", "dryRun"]));
    if !asked.is_empty() && !own.is_empty() && asked != own {
        let words = |list: &[Value]| list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
        return Err(Status::unknown(format!(
            "Non-matching dry-run options in request and content: [{}] and [{}]",
            words(&asked),
            words(&own)
        )));
    }
    if deed.object.get("deleteOptions").is_some() && own.is_empty() && !asked.is_empty() {
        deed.object.set_at(&["deleteOptions", "dryRun"], Value::Array(asked.clone()));
    }
    let options = deed.object.get("deleteOptions").map(typed_delete_options).unwrap_or_default();
    let mode = if asked.is_empty() && own.is_empty() { Mode::Real } else { Mode::DryRun };
    Ok((options, mode))
}

struct Eviction<'a> {
    pods: &'a Resource,
    budgets: &'a Endpoint,
    call: Call,
    options: DeleteOptions,
}

impl Eviction<'_> {
    async fn run(&self) -> Result<Status, Status> {
        let client_guards = self.options.preconditions.resource_version.is_some();
        for attempt in 1.. {
            let pod = self.pod().await?;
            if !needs_no_budget(&pod) {
                return self.within_budget(pod).await;
            }
            let mut options = self.options.clone();
            if must_not_change(&pod) && !client_guards {
                // It must not become ready, and with that count for a budget, before it is deleted.
                options.preconditions.resource_version = Some(version_of(&pod));
            }
            match self.delete(options).await {
                Err(status) if status.is_conflict() && !client_guards && attempt < ATTEMPTS => {}
                done => return done.map(|()| Status::success(201)),
            }
        }
        unreachable!("the last attempt returns")
    }

    async fn pod(&self) -> Result<Value, Status> {
        let found = self.pods.get(&self.call, ReadAt::Latest).await?;
        let found = found.ok_or_else(|| Status::not_found(&self.call.resource, &self.call.name))?;
        kubelith_codec::json::parse(&found.json()).map_err(Status::internal_error)
    }

    /// Asks the pod's budget, then deletes the pod.
    async fn within_budget(&self, pod: Value) -> Result<Status, Status> {
        let budgets = self.budgets_of(&pod).await?;
        let (mut guard, mut budget_name) = (false, Str::default());
        match &budgets[..] {
            [] => {}
            [budget] => {
                budget_name = budget.str_at(&["metadata", "name"]).into();
                guard = !is_ready(&pod) && allows_unhealthy(budget);
                if !guard {
                    self.take_from(&budget_name).await?;
                }
            }
            _ => {
                let mut status = Status::unknown(
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                );
                status.code = 500;
                return Ok(status);
            }
        }
        let mut options = self.options.clone();
        if guard {
            options.preconditions.resource_version = Some(version_of(&pod));
        }
        match self.delete(options).await {
            Err(status) if status.is_conflict() && guard && self.options.preconditions.resource_version.is_none() => {
                Err(still_processed(&budget_name))
            }
            done => done.map(|()| Status::success(201)),
        }
    }

    async fn budgets_of(&self, pod: &Value) -> Result<Vec<Value>, Status> {
        let snapshot = self.budgets.resource.snapshot(ReadAt::Latest).await?;
        let prefix = format!("{}/", self.call.namespace);
        let labels = pod.at(&["metadata", "labels"]).and_then(Value::as_object).cloned().unwrap_or_default();
        let mut found = Vec::new();
        for cached in snapshot.range(&prefix, None) {
            let Ok(budget) = kubelith_codec::json::parse(&cached.json()) else { continue };
            let selector = LabelSelector::from_object(budget.at(&["spec", "selector"]));
            if selector.is_ok_and(|s| s.matches(&labels)) {
                found.push(budget);
            }
        }
        Ok(found)
    }

    /// Takes one disruption from a budget, if it has one left.
    async fn take_from(&self, name: &str) -> Result<(), Status> {
        let resource = &self.budgets.resource;
        let call = Call {
            verb: Str::default(),
            user: self.call.user.clone(),
            resource: resource.descriptor.group_resource(),
            version: self.budgets.kind.version.clone(),
            kind: self.budgets.kind.clone(),
            namespace: self.call.namespace.clone(),
            name: name.into(),
            subresource: "status".into(),
            mode: self.call.mode,
            deadline: self.call.deadline,
            warnings: Warnings::default(),
        };
        let now = resource.clock.now();
        let mut change = Disruption { budgets: self.budgets, pod: self.call.name.clone(), now };
        resource.update(&call, &mut change, IfAbsent::Strategy, None).await.map(drop)
    }

    /// Marks the pod as evicted and deletes it. Admission judged the eviction, not this.
    async fn delete(&self, mut options: DeleteOptions) -> Result<(), Status> {
        if !self.call.dry_run() {
            let call = Call { subresource: "status".into(), ..self.call.clone() };
            let mut change = Marked { options: &options, now: self.pods.clock.now() };
            let updated = self.pods.update(&call, &mut change, IfAbsent::Strategy, None).await?;
            if options.preconditions.resource_version.is_some() {
                options.preconditions.resource_version = Some(version_of(&updated.object));
            }
        }
        self.pods.delete(&self.call, &options, DeleteBy::Server).await.map(drop)
    }
}

/// Pods that do not run, or not for long: their end disrupts nothing.
fn needs_no_budget(pod: &Value) -> bool {
    pod.str_at(&["status", "phase"]) == "Pending" || !must_not_change(pod)
}

fn must_not_change(pod: &Value) -> bool {
    !matches!(pod.str_at(&["status", "phase"]), "Succeeded" | "Failed") && !pod.meta().is_being_deleted()
}

fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some_and(|c| c.str_at(&["status"]) == "True")
}

/// Whether a pod that is not ready may go without being counted.
fn allows_unhealthy(budget: &Value) -> bool {
    if budget.str_at(&["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow" {
        return true;
    }
    let desired = number(budget, "desiredHealthy");
    number(budget, "currentHealthy") >= desired && desired > 0
}

fn number(budget: &Value, key: &str) -> i64 {
    budget.at(&["status", key]).and_then(Value::as_i64).unwrap_or(0)
}

fn version_of(object: &Value) -> Str {
    object.str_at(&["metadata", "resourceVersion"]).into()
}

fn violates(retry_after_seconds: i32, why: String) -> Status {
    let mut status = Status::too_many_requests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        retry_after_seconds,
    );
    status.details_mut().causes.push(Cause::new("DisruptionBudget", why, ""));
    status
}

fn still_processed(budget: &str) -> Status {
    violates(10, format!("The disruption budget {budget} is still being processed by the server."))
}

/// Notes in a budget that one pod more is disrupted.
struct Disruption<'a> {
    budgets: &'a Endpoint,
    pod: Str,
    now: Time,
}

impl Change for Disruption<'_> {
    fn apply<'a>(&'a mut self, existing: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(std::future::ready(self.taken(existing.unwrap_or(&Value::Null))))
    }
}

impl Disruption<'_> {
    fn taken(&self, old: &Value) -> Result<Value, Status> {
        check_allowed(old)?;
        let mut budget = old.clone();
        let left = number(old, "disruptionsAllowed") - 1;
        budget.set_at(&["status", "disruptionsAllowed"], Value::Int(left));
        if left == 0 {
            let insufficient = Value::from([
                ("type", Value::from("DisruptionAllowed")),
                ("status", Value::from("False")),
                ("observedGeneration", Value::Int(number(old, "observedGeneration"))),
                ("reason", Value::from("InsufficientPods")),
                ("message", Value::from("")),
            ]);
            set_condition(&mut budget, insufficient, self.now);
        }
        budget.set_at(&["status", "disruptedPods", &self.pod], self.now.rfc3339().into());
        Ok(match &self.budgets.fields {
            Some(fields) => {
                let by = By { manager: "kube-apiserver", subresource: "status", now: self.now };
                fields.update(&by, Some(old), budget)
            }
            None => budget,
        })
    }
}

fn check_allowed(budget: &Value) -> Result<(), Status> {
    let name = budget.str_at(&["metadata", "name"]);
    if number(budget, "observedGeneration") < budget.meta().generation() {
        return Err(still_processed(name));
    }
    let refuse = |why| Err(Status::forbidden(&GroupResource::new("policy", "poddisruptionbudget"), name, why));
    let allowed = number(budget, "disruptionsAllowed");
    if allowed < 0 {
        return refuse("pdb disruptions allowed is negative");
    }
    let disrupted = budget.at(&["status", "disruptedPods"]).and_then(Value::as_object).map_or(0, |pods| pods.len());
    if disrupted > MAX_DISRUPTED_PODS {
        return refuse("DisruptedPods map too big - too many evictions not confirmed by PDB controller");
    }
    if allowed == 0 { Err(violates(0, why_none_is_allowed(budget, name))) } else { Ok(()) }
}

fn why_none_is_allowed(budget: &Value, name: &str) -> String {
    let told = condition(budget, "DisruptionAllowed")
        .filter(|c| c.str_at(&["status"]) == "False" && !c.str_at(&["message"]).is_empty())
        .map(|c| (c.str_at(&["reason"]), c.str_at(&["message"])));
    let (healthy, desired) = (number(budget, "currentHealthy"), number(budget, "desiredHealthy"));
    let budget = format!("The disruption budget {name}");
    match told {
        // The numbers mean nothing if the controller failed.
        Some(("SyncFailed", why)) => {
            format!("{budget} does not allow evicting pods currently because it failed sync: {why}")
        }
        _ if healthy <= desired => format!("{budget} needs {desired} healthy pods and has {healthy} currently"),
        Some((reason, why)) => format!("{budget} does not allow evicting pods currently ({reason}): {why}"),
        None => format!("{budget} does not allow evicting pods currently"),
    }
}

/// Tells in the pod's status why it goes.
struct Marked<'a> {
    options: &'a DeleteOptions,
    now: Time,
}

impl Change for Marked<'_> {
    fn apply<'a>(&'a mut self, existing: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        Box::pin(std::future::ready(self.marked(existing.unwrap_or(&Value::Null))))
    }

    fn judged(&self, _: &Value, _: &Value) -> Result<Judged, Status> {
        Ok(Judged::Nothing)
    }
}

impl Marked<'_> {
    fn marked(&self, old: &Value) -> Result<Value, Status> {
        // The kind stands where the resource should.
        let conflict =
            |why: String| Status::conflict(&GroupResource::new("", "Pod"), old.str_at(&["metadata", "name"]), why);
        let given = |text: &Option<Str>| text.clone().filter(|t| !t.is_empty());
        let (uid, version) = (old.str_at(&["metadata", "uid"]), version_of(old));
        if let Some(wanted) = given(&self.options.preconditions.uid).filter(|wanted| *wanted != uid) {
            return Err(conflict(format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have \
                 been deleted and then recreated"
            )));
        }
        if let Some(wanted) = given(&self.options.preconditions.resource_version).filter(|w| *w != version) {
            return Err(conflict(format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
                 ({version}). The object might have been modified"
            )));
        }
        let mut pod = old.clone();
        let evicted = Value::from([
            ("type", "DisruptionTarget"),
            ("status", "True"),
            ("reason", "EvictionByEvictionAPI"),
            ("message", "Eviction API: evicting"),
        ]);
        set_pod_condition(&mut pod, evicted, self.now);
        Ok(pod)
    }
}
