//! Builds the server and the clients that break it, and runs them.

use crate::run::{cargo, run};

pub fn run_with(arguments: &[String]) -> Result<(), String> {
    const PACKAGE: [&str; 5] = ["--quiet", "--package", "kubelith-robustness", "--bin", "robustness"];
    // Millions of requests are for an optimised server.
    if arguments.iter().any(|argument| argument == "--in-process") {
        return run(cargo().arg("run").args(PACKAGE).args(["--release", "--"]).args(arguments));
    }
    run(cargo().args(["build", "--quiet", "--package", "kubelith", "--bin", "kubelith"]))?;
    run(cargo().arg("run").args(PACKAGE).arg("--").args(arguments))
}
