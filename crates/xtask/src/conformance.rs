//! Builds the server and the replayer, and replays.

use crate::run::{self, cargo, command, root};

pub fn run(arguments: &[String]) -> Result<(), String> {
    let mut build = command(cargo());
    build.args(["build", "--quiet", "--package", "kubelith-conformance"]);
    if !arguments.iter().any(|argument| argument == "--server" || argument == "--binary") {
        build.args(["--package", "kubelith"]);
    }
    run::run(&mut build)?;
    let replayer = root().join("target/debug/conformance");
    run::run(command(replayer).args(arguments))
}
