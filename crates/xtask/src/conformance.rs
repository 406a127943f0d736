//! Builds the server and the programs that drive it, and runs them.

use crate::run::{binaries, cargo, command, run};
use crate::tools;

/// Replays recorded exchanges.
pub fn run_with(arguments: &[String]) -> Result<(), String> {
    build(arguments, &[])?;
    if arguments.iter().any(|argument| argument.contains("etcd")) {
        tools::install()?;
    }
    run(command(binaries().join("conformance")).arg("--etcd").arg(tools::programs().join("etcd")).args(arguments))
}

/// Drives real clients.
pub fn clients(arguments: &[String]) -> Result<(), String> {
    tools::install()?;
    build(arguments, &KUBE_RS)?;
    run(command(binaries().join("clients")).arg("--tools").arg(tools::dir()).args(arguments))
}

/// kube-rs takes minutes to compile, so only those who run it build it.
const KUBE_RS: [&str; 2] = ["--features", "kube-rs"];

fn build(arguments: &[String], features: &[&str]) -> Result<(), String> {
    if !arguments.iter().any(|argument| argument == "--server" || argument == "--binary") {
        run(cargo().args(["build", "--quiet", "--package", "kubelith"]))?;
    }
    run(cargo().args(["build", "--quiet", "--package", "kubelith-conformance"]).args(features))
}
