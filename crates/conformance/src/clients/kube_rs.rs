//! kube-rs: its checks are a program of their own, built beside this one, since the library takes minutes to compile.

use super::process;
use super::{Check, Context, Outcome, ensure};
use std::process::Command;

/// The names that the program knows.
const CHECKS: [&str; 5] = ["crud", "reflector", "reflector-of-a-stream", "apply", "controller"];

pub fn checks() -> Vec<Check> {
    CHECKS.map(|name| Check::new(format!("kube-rs/{name}"), move |context| check(context, name))).into()
}

fn check(context: &Context, name: &str) -> Outcome {
    let program = std::env::current_exe().map_err(|error| error.to_string())?.with_file_name("kube-rs-client");
    ensure!(program.exists(), "{} is missing: build with --features kube-rs", program.display());
    let mut command = Command::new(program);
    command.arg(name).env("KUBECONFIG", &context.kubeconfig).env("HOME", &context.home);
    let printed = process::run(command, "")?.ok()?;
    ensure!(printed.trim_end().ends_with("done"), "{name} did not come to its end:\n{printed}");
    Ok(())
}
