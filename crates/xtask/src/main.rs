//! `cargo xtask …`: everything that a contributor runs. Depends on next to nothing, so that it builds in seconds.

mod conformance;
mod run;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <command>

  conformance [options] [area|file]...   replay the recorded exchanges; --help shows the options
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((command, rest)) => dispatch(command, rest),
        None => Err(HELP.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: &str, rest: &[String]) -> Result<(), String> {
    match command {
        "conformance" => conformance::run(rest),
        "help" | "-h" | "--help" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("unknown command {other:?}\n\n{HELP}")),
    }
}
