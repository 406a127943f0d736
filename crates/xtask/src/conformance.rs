//! Builds the server and the replayer, and replays.

use crate::run::{binaries, cargo, command, run};
use crate::tools;

pub fn run_with(arguments: &[String]) -> Result<(), String> {
    let mut build = cargo();
    build.args(["build", "--quiet", "--package", "kubelith-conformance"]);
    if !arguments.iter().any(|argument| argument == "--server" || argument == "--binary") {
        build.args(["--package", "kubelith"]);
    }
    run(&mut build)?;
    if arguments.iter().any(|argument| argument.contains("etcd")) {
        tools::install()?;
    }
    run(command(binaries().join("conformance")).arg("--etcd").arg(tools::dir().join("bin/etcd")).args(arguments))
}
