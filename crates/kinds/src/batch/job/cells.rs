//! Status, completions and duration.

use kubelith_meta::Value;
use kubelith_meta::time::{Time, human_duration};
use kubelith_rules::cells::{Cells, Row, condition, holds};

pub const CELLS: Cells = &[
    ("job_status", |row| Some(job_status(row).into())),
    ("job_completions", job_completions),
    ("job_duration", job_duration),
];

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
