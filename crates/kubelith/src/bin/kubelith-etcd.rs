//! The companion (`crates/companion`) as a program, shipped under the name `etcd`.

use kubelith_companion::flags::{self, Command};
use kubelith_companion::serve::{Companion, ETCD_VERSION};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match flags::parse(&words) {
        Ok(Command::Help) => {
            print!("{}", flags::help());
            return ExitCode::SUCCESS;
        }
        Ok(Command::Version) => {
            println!("etcd Version: {ETCD_VERSION}+kubelith.{}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Ok(Command::Run(options)) => Companion::open(&options),
        Err(wrong) => Err(wrong),
    };
    match outcome.and_then(|companion| companion.run().map_err(|why| why.to_string())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}
