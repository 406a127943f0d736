//! Controllers of pods.

use super::{CellFn, Row, condition, holds, joined};
use kubelith_meta::time::{Time, human_duration};
use kubelith_meta::{GroupVersion, LabelSelector, Value};

pub fn find(name: &str) -> Option<CellFn> {
    Some(match name {
        "container_names" => |row| Some(of_containers(row, "name")),
        "container_images" => |row| Some(of_containers(row, "image")),
        "deployment_selector" => deployment_selector,
        "job_status" => |row| Some(job_status(row).into()),
        "job_completions" => job_completions,
        "job_duration" => job_duration,
        "controller_name" => controller_name,
        "pod_group_policy" => pod_group_policy,
        "pod_group_status" => pod_group_status,
        _ => return None,
    })
}

fn of_containers(row: &Row<'_>, member: &str) -> Value {
    let containers = row.first().and_then(Value::as_array).unwrap_or(&[]);
    joined(containers.iter().map(|c| c.str_at(&[member])), ",").into()
}

/// Unlike other selectors, an empty one is an empty text.
fn deployment_selector(row: &Row<'_>) -> Option<Value> {
    let selector = LabelSelector::from_object(row.at(&["spec", "selector"]));
    Some(selector.map_or_else(|_| "<invalid>".to_owned(), |s| s.to_string()).into())
}

fn job_status(row: &Row<'_>) -> &'static str {
    let has = |kind| condition(row.conditions(), kind).is_some_and(holds);
    match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if row.is_deleted() => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn job_completions(row: &Row<'_>) -> Option<Value> {
    let succeeded = row.int(&["status", "succeeded"]);
    let wanted = row.at(&["spec", "completions"]).and_then(Value::as_i64);
    Some(match (wanted, row.int(&["spec", "parallelism"])) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}").into(),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}").into(),
        (None, _) => format!("{succeeded}/1").into(),
    })
}

fn job_duration(row: &Row<'_>) -> Option<Value> {
    let time = |name| row.at(&["status", name]).and_then(Value::as_str).and_then(|t| Time::parse(t).ok());
    let start = time("startTime")?;
    Some(human_duration(time("completionTime").unwrap_or(row.now).since(start)).into())
}

/// `deployment.apps/web`.
fn controller_name(row: &Row<'_>) -> Option<Value> {
    let owners = row.list(&["metadata", "ownerReferences"]);
    let Some(owner) = owners.iter().find(|o| o.get("controller") == Some(&Value::Bool(true))) else {
        return Some("<none>".into());
    };
    let group = GroupVersion::parse(owner.str_at(&["apiVersion"])).unwrap_or_default().group;
    let (kind, name) = (owner.str_at(&["kind"]).to_lowercase(), owner.str_at(&["name"]));
    Some(match (kind.as_str(), group.to_lowercase().as_str()) {
        ("", "") => name.into(),
        (kind, "") => format!("{kind}/{name}").into(),
        (kind, group) => format!("{kind}.{group}/{name}").into(),
    })
}

fn pod_group_policy(row: &Row<'_>) -> Option<Value> {
    let is_gang = row.at(&["spec", "schedulingPolicy", "gang"]).is_some();
    Some(if is_gang { "Gang" } else { "Basic" }.into())
}

fn pod_group_status(row: &Row<'_>) -> Option<Value> {
    // The last condition of a type counts.
    let last = |kind| row.conditions().iter().rfind(|c| c.str_at(&["type"]) == kind);
    let status = match (last("DisruptionTarget"), last("PodGroupScheduled")) {
        (Some(disrupted), _) => disrupted.str_at(&["reason"]),
        (None, Some(scheduled)) if holds(scheduled) => "Scheduled",
        (None, Some(_)) => "Unschedulable",
        (None, None) => "Pending",
    };
    Some(status.into())
}
