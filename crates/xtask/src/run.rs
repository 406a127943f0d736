//! Runs programs from the root of the repository.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

/// The root of the repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").components().collect()
}

/// The cargo that runs this program.
pub fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// A command in the root of the repository.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Runs it with our own input and output; an exit code other than 0 is an error.
pub fn run(command: &mut Command) -> Result<(), String> {
    let name = format!("{:?}", command.get_program());
    let status = command.status().map_err(|error| format!("{name}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed: {status}")) }
}
