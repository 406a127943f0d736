//! Builds the server and the clients that break it, and runs them.

use crate::run::{cargo, run};

pub fn run_with(arguments: &[String]) -> Result<(), String> {
    run(cargo().args(["build", "--quiet", "--package", "kubelith", "--bin", "kubelith"]))?;
    run(cargo()
        .args(["run", "--quiet", "--package", "kubelith-robustness", "--bin", "robustness", "--"])
        .args(arguments))
}
