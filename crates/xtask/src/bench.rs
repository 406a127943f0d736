//! Builds the server as it is shipped (without a profile of its branches) and the load generator, and measures.

use crate::profile::SHIPPED;
use crate::run::{cargo, run, target};

pub fn run_with(arguments: &[String]) -> Result<(), String> {
    let mut bench = cargo();
    bench.args(["run", "--release", "--quiet", "--package", "kubelith-bench", "--"]);
    if !arguments.iter().any(|word| word == "--binary") {
        run(cargo().args(["build", "--profile", SHIPPED, "--quiet", "--package", "kubelith"]))?;
        bench.arg("--binary").arg(target().join(SHIPPED).join("kubelith"));
    }
    run(bench.args(arguments))
}
