//! What the program does: flags, then options, then the server; or a command on the store, or on expressions in CEL.

use crate::options::Options;
use crate::{cel_command, flags, limits, run, store_command, version};
use std::process::ExitCode;

/// Does what the arguments of the process say.
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("store", words)) = args.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return match store_command::run(words) {
            Ok(text) => {
                print!("{text}");
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("Error: {}", error.trim_end());
                ExitCode::FAILURE
            }
        };
    }
    if let Some(("cel", words)) = args.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return cel_command::run(words);
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
        print!("{}", flags::help());
        return ExitCode::SUCCESS;
    }
    if let Some(text) = version::asked_for(&flags.text("version")) {
        println!("{text}");
        return ExitCode::SUCCESS;
    }
    limits::raise_open_files();
    let outcome = Options::from_flags(&flags).map_err(|e| e.to_string()).and_then(|options| run::run(options, &flags));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            kubelith_observe::logging::init(Default::default(), 0);
            tracing::error!(err = error, "command failed");
            ExitCode::FAILURE
        }
    }
}
