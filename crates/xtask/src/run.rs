//! Runs programs from the root of the repository.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The root of the repository.
pub fn root() -> PathBuf {
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    crates.ancestors().nth(2).map_or_else(|| crates.clone(), PathBuf::from)
}

/// Where cargo puts what it builds, as seen from this program.
pub fn target() -> PathBuf {
    binaries().parent().map_or_else(|| root().join("target"), PathBuf::from)
}

/// Where the programs of a debug build are.
pub fn binaries() -> PathBuf {
    let own = std::env::current_exe().ok();
    own.and_then(|own| own.parent().map(PathBuf::from)).unwrap_or_else(|| root().join("target/debug"))
}

/// The cargo that runs this program.
pub fn cargo() -> Command {
    command(std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()))
}

/// A command in the root of the repository.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Runs it with our own input and output; an exit code other than 0 is an error.
pub fn run(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{}: {error}", name(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed: {status}", name(command))) }
}

/// Runs it and gives what it wrote to its output.
pub fn capture(command: &mut Command) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{}: {error}", name(command)))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(format!("{} failed: {}\n{}{}", name(command), output.status, text(&output.stdout), text(&output.stderr)))
}

/// Runs it, handing each line of its output (both streams, as one) to `line`; says whether it succeeded.
pub fn follow(command: &mut Command, mut line: impl FnMut(&str)) -> Result<bool, String> {
    let (reader, writer) = std::io::pipe().map_err(|error| format!("pipe: {error}"))?;
    let second = writer.try_clone().map_err(|error| format!("pipe: {error}"))?;
    let mut child = command.stdin(Stdio::null()).stdout(writer).stderr(second).spawn();
    // The command keeps its ends of the pipe open until it is told to let go of them.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = child.as_mut().map_err(|error| format!("{}: {error}", name(command)))?;
    for text in BufReader::new(reader).lines() {
        let text = text.map_err(|error| format!("{}: {error}", name(command)))?;
        line(&text);
    }
    child.wait().map(|status| status.success()).map_err(|error| format!("{}: {error}", name(command)))
}

fn name(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().take(3).map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}
