//! Builds the server and the load generator with optimisation, and measures.

use crate::run::{cargo, run};

pub fn run_with(arguments: &[String]) -> Result<(), String> {
    run(cargo().args(["build", "--release", "--quiet", "--package", "kubelith"]))?;
    run(cargo().args(["run", "--release", "--quiet", "--package", "kubelith-bench", "--"]).args(arguments))
}
