//! Cells of pods, and of the containers in templates.

use kubelith_meta::Value;
use kubelith_meta::time::Time;
use kubelith_rules::cells::{Cells, Row, condition, holds, int, joined};

pub const CELLS: Cells = &[
    ("pod_ready", |row| {
        let summary = Summary::of(row);
        Some(format!("{}/{}", summary.ready, summary.total).into())
    }),
    ("pod_status", |row| Some(Summary::of(row).reason.into())),
    ("pod_restarts", restarts),
    ("pod_ip", ip),
    ("pod_readiness_gates", readiness_gates),
    ("container_names", |row| Some(of_containers(row, "name"))),
    ("container_images", |row| Some(of_containers(row, "image"))),
];

/// A row of a pod that has ended says so.
pub fn completion(object: &Value) -> Option<Value> {
    if object.str_at(&["kind"]) != "Pod" || object.str_at(&["apiVersion"]) != "v1" {
        return None;
    }
    let (reason, message) = match object.str_at(&["status", "phase"]) {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    let condition = Value::from([("type", "Completed"), ("status", "True"), ("reason", reason), ("message", message)]);
    Some(vec![condition].into())
}

/// What the containers of a pod come to.
struct Summary {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<Time>,
}

/// Restarts of some containers, and when the last one was.
#[derive(Default, Clone, Copy)]
struct Restarts {
    count: i64,
    last: Option<Time>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += int(status, &["restartCount"]);
        let finished = status.str_at(&["lastState", "terminated", "finishedAt"]);
        if let Ok(time) = Time::parse(finished)
            && !time.is_zero()
        {
            self.last = self.last.max(Some(time));
        }
    }
}

impl Summary {
    fn of(row: &Row<'_>) -> Summary {
        let init = row.list(&["spec", "initContainers"]);
        let sidecars = init.iter().filter(|c| is_restartable(c)).count();
        let mut summary = Summary {
            reason: initial_reason(row),
            ready: 0,
            total: row.list(&["spec", "containers"]).len() + sidecars,
            restarts: 0,
            last_restart: None,
        };
        let sidecar_restarts = match summary.init_containers(row, init) {
            Progress::Initializing(_) if !is_initialized(row) => None,
            Progress::Initializing(restarts) | Progress::Done(restarts) => Some(restarts),
        };
        if let Some(restarts) = sidecar_restarts {
            summary.containers(row, restarts);
        }
        if row.is_deleted() {
            if row.text(&["status", "reason"]) == "NodeLost" {
                summary.reason = "Unknown".to_owned();
            } else if !matches!(row.text(&["status", "phase"]), "Succeeded" | "Failed") {
                summary.reason = "Terminating".to_owned();
            }
        }
        summary
    }

    fn count(&mut self, restarts: Restarts) {
        (self.restarts, self.last_restart) = (restarts.count, restarts.last);
    }

    /// Goes through init containers up to the first that has not done its part, which then is the state of the pod.
    fn init_containers(&mut self, row: &Row<'_>, specs: &[Value]) -> Progress {
        let (mut all, mut of_sidecars) = (Restarts::default(), Restarts::default());
        for (i, status) in row.list(&["status", "initContainerStatuses"]).iter().enumerate() {
            let name = status.str_at(&["name"]);
            // Names are unique; of several containers of one name the reference takes the last.
            let is_sidecar = specs.iter().rfind(|c| c.str_at(&["name"]) == name).is_some_and(is_restartable);
            all.add(status);
            if is_sidecar {
                of_sidecars.add(status);
            }
            let terminated = status.at(&["state", "terminated"]).filter(|t| !t.is_null());
            let waiting = status.str_at(&["state", "waiting", "reason"]);
            if terminated.is_some_and(|t| int(t, &["exitCode"]) == 0) {
                continue;
            }
            if is_sidecar && status.get("started") == Some(&Value::Bool(true)) {
                self.ready += usize::from(status.get("ready") == Some(&Value::Bool(true)));
                continue;
            }
            self.reason = match terminated {
                Some(terminated) => format!("Init:{}", termination(terminated)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
                None => format!("Init:{i}/{}", specs.len()),
            };
            self.count(all);
            return Progress::Initializing(of_sidecars);
        }
        self.count(all);
        Progress::Done(of_sidecars)
    }

    fn containers(&mut self, row: &Row<'_>, mut restarts: Restarts) {
        let (mut has_running, mut error) = (false, None);
        for status in row.list(&["status", "containerStatuses"]).iter().rev() {
            restarts.add(status);
            let state = |name| status.at(&["state", name]).filter(|s| !s.is_null());
            let waiting = status.str_at(&["state", "waiting", "reason"]);
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if let Some(terminated) = state("terminated") {
                self.reason = termination(terminated);
                if int(terminated, &["exitCode"]) != 0 {
                    error = Some(self.reason.clone());
                }
            } else if status.get("ready") == Some(&Value::Bool(true)) && state("running").is_some() {
                has_running = true;
                self.ready += 1;
            }
        }
        self.count(restarts);
        // A pod with a container that still runs is not completed.
        if self.reason == "Completed" {
            let is_ready = row.conditions().iter().any(|c| c.str_at(&["type"]) == "Ready" && holds(c));
            match (has_running, error) {
                (true, _) if is_ready => self.reason = "Running".to_owned(),
                (_, Some(error)) => self.reason = error,
                (true, None) => self.reason = "NotReady".to_owned(),
                (false, None) => {}
            }
        }
    }
}

/// How far the init containers are, with the restarts of those that go on running.
enum Progress {
    Initializing(Restarts),
    Done(Restarts),
}

fn initial_reason(row: &Row<'_>) -> String {
    let is_gated = |c: &Value| c.str_at(&["type"]) == "PodScheduled" && c.str_at(&["reason"]) == "SchedulingGated";
    if row.conditions().iter().any(is_gated) {
        return "SchedulingGated".to_owned();
    }
    match row.text(&["status", "reason"]) {
        "" => row.text(&["status", "phase"]).to_owned(),
        reason => reason.to_owned(),
    }
}

fn is_restartable(container: &Value) -> bool {
    container.str_at(&["restartPolicy"]) == "Always"
}

fn is_initialized(row: &Row<'_>) -> bool {
    condition(row.conditions(), "Initialized").is_some_and(holds)
}

/// The reason, or what the process ended with.
fn termination(terminated: &Value) -> String {
    match (terminated.str_at(&["reason"]), int(terminated, &["signal"])) {
        ("", 0) => format!("ExitCode:{}", int(terminated, &["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn restarts(row: &Row<'_>) -> Option<Value> {
    let summary = Summary::of(row);
    let count = summary.restarts;
    Some(match summary.last_restart {
        Some(last) if count != 0 => format!("{count} ({} ago)", last.age(row.now)).into(),
        _ => count.to_string().into(),
    })
}

fn ip(row: &Row<'_>) -> Option<Value> {
    let first = row.list(&["status", "podIPs"]).first().map_or("", |ip| ip.str_at(&["ip"]));
    Some(if first.is_empty() { "<none>" } else { first }.into())
}

fn readiness_gates(row: &Row<'_>) -> Option<Value> {
    let gates = row.list(&["spec", "readinessGates"]);
    if gates.is_empty() {
        return Some("<none>".into());
    }
    let is_open = |gate: &&Value| condition(row.conditions(), gate.str_at(&["conditionType"])).is_some_and(holds);
    Some(format!("{}/{}", gates.iter().filter(is_open).count(), gates.len()).into())
}

fn of_containers(row: &Row<'_>, member: &str) -> Value {
    let containers = row.first().and_then(Value::as_array).unwrap_or(&[]);
    joined(containers.iter().map(|c| c.str_at(&[member])), ",").into()
}
