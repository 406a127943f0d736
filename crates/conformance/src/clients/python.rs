//! The official Python client: its scripts live in `tests/clients/python`.

use super::process;
use super::{Check, Context, Outcome, ensure};
use std::process::Command;

pub fn checks() -> Vec<Check> {
    ["crud", "watch", "dynamic"]
        .map(|name| Check::new(format!("python/{name}"), move |context| script(context, name)))
        .into()
}

fn script(context: &Context, name: &str) -> Outcome {
    let mut command = Command::new("python3");
    command.arg("-B").arg(context.fixture("python").join(format!("{name}.py"))).arg(&context.kubeconfig);
    command.env("PYTHONPATH", context.tools.join("python")).env("HOME", &context.home).env_remove("KUBECONFIG");
    let printed = process::run(command, "")?.ok()?;
    ensure!(printed.trim_end().ends_with("done"), "{name}.py did not come to its end:\n{printed}");
    Ok(())
}
