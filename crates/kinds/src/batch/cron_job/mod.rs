//! CronJobs.

mod schedule;
pub mod validate;

use crate::batch::job::{generation_differs, job_warnings};
use kubelith_meta::Value;
use kubelith_meta::call::Call;
use kubelith_meta::field::Path;
use kubelith_pods::gated::POD_FEATURES;
use kubelith_pods::template::{IN_POD_NAMES, name_warnings};
use kubelith_rules::Kind;
use kubelith_schema::lifecycle::{Generation, Part};

pub const CRON_JOB: Kind = Kind {
    group: "batch",
    plural: "cronjobs",
    features: &[(&["spec", "jobTemplate", "spec", "template", "spec"], POD_FEATURES)],
    rules: validate::RULES,

    generation: Generation::Spec,
    warnings_on_create: |_, job| {
        let mut warnings = name_warnings(job, IN_POD_NAMES);
        warnings.extend(cron_job_warnings(job, None));
        warnings
    },
    warnings_on_update: cron_job_update_warnings,
    ..Kind::PLAIN
};

const JOB_SPEC: [&str; 3] = ["spec", "jobTemplate", "spec"];

fn cron_job_warnings(job: &Value, old: Option<&Value>) -> Vec<String> {
    let path = Path::new("spec");
    let path = path.child("jobTemplate");
    job_warnings(&path.child("spec"), job.at(&JOB_SPEC), old.and_then(|o| o.at(&JOB_SPEC)))
}

fn cron_job_update_warnings(_: &Call, part: Part<'_>, job: &Value, old: &Value) -> Vec<String> {
    if part != Part::Main {
        return Vec::new();
    }
    let mut warnings = if generation_differs(job, old) { cron_job_warnings(job, Some(old)) } else { Vec::new() };
    if job.str_at(&["spec", "schedule"]).contains("TZ") {
        warnings.push(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                .into(),
        );
    }
    warnings
}
