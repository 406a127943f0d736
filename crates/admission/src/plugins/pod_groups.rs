//! What the gate GenericWorkload brings: groups of pods that are scheduled together. A group stays while pods belong to
//! it, is made from a template that exists, and its job does not change its width.

use super::list;
use crate::plugin::{Plugin, Verdict};
use kubelith_meta::Value;
use kubelith_meta::text::Quoted;
use kubelith_registry::Objects;
use kubelith_registry::admission::Request;
use kubelith_registry::objects::{Collection, parse};
use std::sync::Arc;

const GROUP: &str = "scheduling.k8s.io";
const FINALIZER: &str = "scheduling.k8s.io/podgroup-protection";

pub struct PodGroupProtection;

impl Plugin for PodGroupProtection {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> Verdict<'a> {
        if request.is_for(GROUP, "podgroups") && !object.meta().has_finalizer(FINALIZER) {
            object.meta_mut().add_finalizer(FINALIZER);
        }
        Verdict::PASSED
    }
}

pub struct PodGroupWorkloadExists {
    workloads: Collection,
}

impl PodGroupWorkloadExists {
    pub fn new(objects: &Arc<Objects>) -> PodGroupWorkloadExists {
        PodGroupWorkloadExists { workloads: objects.of(GROUP, "workloads") }
    }
}

impl Plugin for PodGroupWorkloadExists {
    fn validate<'a>(&'a self, request: Request<'a>, group: &'a Value) -> Verdict<'a> {
        let template = group.at(&["spec", "podGroupTemplateRef", "workload"]).filter(|workload| !workload.is_null());
        let Some(template) = template.filter(|_| request.is_for(GROUP, "podgroups")) else { return Verdict::Idle };
        Verdict::pending(async move {
            let (name, wanted) = (template.str_at(&["workloadName"]), template.str_at(&["podGroupTemplateName"]));
            let refused = |why: String| Err(request.forbidden(group, format!("PodGroup rejected: {why}")));
            let Some(workload) = self.workloads.find(&request.call.namespace, name).await? else {
                return refused(format!("Workload {} not found", Quoted(name)));
            };
            let workload = parse(&workload).unwrap_or_default();
            if workload.meta().is_being_deleted() {
                return refused(format!("Workload {} is being deleted", Quoted(name)));
            }
            match list(&workload, &["spec", "podGroupTemplates"]).iter().any(|t| t.str_at(&["name"]) == wanted) {
                true => Ok(()),
                false => refused(format!("PodGroupTemplate {} not found in Workload {}", Quoted(wanted), Quoted(name))),
            }
        })
    }
}

pub struct JobValidation {
    groups: Collection,
}

impl JobValidation {
    pub fn new(objects: &Arc<Objects>) -> JobValidation {
        JobValidation { groups: objects.of(GROUP, "podgroups") }
    }

    /// The group whose pods must all run at once that the job's pods belong to.
    fn gang(&self, job: &Value) -> Option<Value> {
        let meta = job.meta();
        let is_gang =
            |group: &Value| group.at(&["spec", "schedulingPolicy", "gang"]).is_some_and(|gang| !gang.is_null());
        let named = job.at(&["spec", "template", "spec", "schedulingGroup", "podGroupName"]).and_then(Value::as_str);
        if let Some(name) = named {
            let group = self.groups.cached(meta.namespace(), name).and_then(|group| parse(&group));
            return group.filter(is_gang);
        }
        let owned = |group: &Value| group.meta().controller().is_some_and(|owner| owner.uid() == meta.uid());
        self.groups.list(meta.namespace()).into_iter().find(|group| owned(group) && is_gang(group))
    }
}

impl Plugin for JobValidation {
    fn validate<'a>(&'a self, request: Request<'a>, job: &'a Value) -> Verdict<'a> {
        let Some(old) = request.old.filter(|_| request.is_for("batch", "jobs")) else { return Verdict::Idle };
        let width = |job: &Value| job.at(&["spec", "parallelism"]).and_then(Value::as_i64);
        if width(job) == width(old) {
            return Verdict::Idle;
        }
        let Some(group) = self.gang(old) else { return Verdict::Idle };
        let name = Quoted(group.meta().name());
        let why = format!("cannot change parallelism for a Job referencing gang-scheduled PodGroup {name}");
        Verdict::Ready(Err(request.forbidden(job, why)))
    }
}
