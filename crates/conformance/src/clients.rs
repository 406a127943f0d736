//! Real clients against a running server: each check drives a program as its users do and fails with what it saw.

mod access;
mod aggregation;
mod apply;
mod discovery;
mod helm;
mod kinds;
mod kube_rs;
mod kubectl;
mod process;
mod python;
mod reading;
mod workloads;
mod writing;

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Where the programs, the fixtures and the server are.
pub struct Context {
    /// `target/tools`
    pub tools: PathBuf,
    /// `tests/clients`
    pub fixtures: PathBuf,
    pub kubeconfig: PathBuf,
    /// Home of the clients: their caches and settings stay out of the user's.
    pub home: PathBuf,
    /// The namespaces that checks have made.
    namespaces: Mutex<HashSet<String>>,
}

impl Context {
    pub fn new(tools: PathBuf, fixtures: PathBuf, kubeconfig: PathBuf, home: PathBuf) -> Context {
        Context { tools, fixtures, kubeconfig, home, namespaces: Mutex::default() }
    }

    fn program(&self, name: &str) -> PathBuf {
        self.tools.join("bin").join(name)
    }

    fn fixture(&self, name: impl AsRef<Path>) -> PathBuf {
        self.fixtures.join(name)
    }
}

/// What went wrong, for a person to read.
pub type Outcome = Result<(), String>;

pub struct Check {
    pub name: String,
    run: Box<dyn Fn(&Context) -> Outcome + Send + Sync>,
}

impl Check {
    fn new(name: impl Into<String>, run: impl Fn(&Context) -> Outcome + Send + Sync + 'static) -> Check {
        Check { name: name.into(), run: Box::new(run) }
    }
}

/// Fails the check with a message unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}
use ensure;

/// Every check, grouped by what it is about.
pub fn all(context: &Context) -> Result<Vec<Check>, String> {
    let mut checks = kinds::checks(context)?;
    checks.extend(discovery::checks());
    checks.extend(reading::checks());
    checks.extend(writing::checks());
    checks.extend(apply::checks());
    checks.extend(workloads::checks());
    checks.extend(access::checks());
    checks.extend(aggregation::checks());
    checks.extend(helm::checks());
    checks.extend(python::checks());
    checks.extend(kube_rs::checks());
    Ok(checks)
}

/// Runs the checks, some at a time, and hands each outcome to `done` as it comes.
pub fn run(
    checks: Vec<Check>,
    context: &Context,
    jobs: usize,
    done: &(dyn Fn(&str, &Outcome) + Sync),
) -> Vec<(String, Outcome)> {
    let queue = Mutex::new(VecDeque::from(checks));
    let outcomes = Mutex::new(Vec::new());
    let worker = || loop {
        let Some(check) = queue.lock().expect("no worker panics").pop_front() else { return };
        let outcome = (check.run)(context);
        done(&check.name, &outcome);
        outcomes.lock().expect("no worker panics").push((check.name, outcome));
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(worker);
        }
    });
    let mut outcomes = outcomes.into_inner().expect("no worker panics");
    outcomes.sort_by(|a, b| a.0.cmp(&b.0));
    outcomes
}
