//! Replays a folder of facts: what `cargo xtask cel-facts` runs.

#[path = "../tests/replay/mod.rs"]
mod replay;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args().nth(1) else {
        eprintln!("the folder of facts is missing");
        return ExitCode::FAILURE;
    };
    match replay::files(Path::new(&folder)).and_then(|files| replay::replay(&files)) {
        Ok(tally) => {
            println!("{} passed, {} failed", tally.passed, tally.failed);
            if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
