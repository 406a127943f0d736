//! What the program does: flags, then options, then the server; or one of the commands beside it.

use crate::failure::Failure;
use crate::options::Options;
use crate::{commands, flags, run, version};
use kubelith_system::process;
use std::io::IsTerminal;
use std::process::ExitCode;

/// Does what the arguments of the process say.
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(code) = commands::run(&args) {
        return code;
    }
    let flags = match flags::parse(&args).and_then(flags::with_config_file) {
        Ok(flags) => flags,
        Err(error) => {
            eprintln!("Error: {error}");
            return ExitCode::FAILURE;
        }
    };
    for message in flags.deprecations() {
        eprintln!("{message}");
    }
    if flags.bool("help") {
        print!("{}", commands::overview());
        return ExitCode::SUCCESS;
    }
    if let Some(text) = version::asked_for(&flags.text("version")) {
        println!("{text}");
        return ExitCode::SUCCESS;
    }
    process::raise_open_files();
    process::leave_no_core();
    let options = Options::from_flags(&flags).map_err(|e| Failure::from(e.to_string()));
    match options.and_then(|options| run::run(options, &flags)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            tell(&failure);
            ExitCode::FAILURE
        }
    }
}

/// Why the server did not start. What helps is a line of its own for people, and part of the line for programs.
fn tell(failure: &Failure) {
    kubelith_observe::logging::init(Default::default(), 0);
    let Failure { message, advice } = failure;
    match advice {
        Some(advice) if std::io::stderr().is_terminal() => {
            tracing::error!(err = message, "command failed");
            eprintln!("\n{advice}.");
        }
        Some(advice) => tracing::error!(err = message, advice, "command failed"),
        None => tracing::error!(err = message, "command failed"),
    }
}
