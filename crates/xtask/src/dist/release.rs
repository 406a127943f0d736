//! What is released: version, commit and time, and the machine it is for.

use crate::run::{capture, command, root};
use std::path::Path;

/// Set to build the sources of another time or commit than git tells: see `crates/kubelith/build/commit.rs`.
const EPOCH: &str = "SOURCE_DATE_EPOCH";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    pub version: String,
    pub commit: String,
    /// Seconds since 1970: the commit's time, not the clock's.
    pub made: u64,
    pub machine: Machine,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// As the compiler names it.
    pub triple: String,
    /// As Go and images name them.
    pub system: &'static str,
    pub architecture: &'static str,
}

impl Machine {
    pub fn of(triple: &str) -> Result<Machine, String> {
        let unknown = || format!("{triple}: no archive is made for such a machine");
        let system = [("linux", "linux"), ("darwin", "darwin"), ("windows", "windows")];
        let system = system.into_iter().find(|(part, _)| triple.contains(part)).ok_or_else(unknown)?.1;
        let architecture = match triple.split('-').next() {
            Some("x86_64") => "amd64",
            Some("aarch64") => "arm64",
            _ => return Err(unknown()),
        };
        Ok(Machine { triple: triple.to_owned(), system, architecture })
    }

    /// What the file of a program is called there.
    pub fn program(&self, name: &str) -> String {
        if self.system == "windows" { format!("{name}.exe") } else { name.to_owned() }
    }

    /// The machine that this runs on.
    pub fn own() -> Result<Machine, String> {
        let compiler = capture(command("rustc").arg("-vV"))?;
        let host = compiler.lines().find_map(|line| line.strip_prefix("host: "));
        Machine::of(host.ok_or("the compiler does not say for which machine it is")?)
    }
}

impl Release {
    pub fn new(machine: Machine) -> Result<Release, String> {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).map_err(|e| format!("Cargo.toml: {e}"))?;
        let git = |words: &[&str]| capture(command("git").args(words)).map(|text| text.trim().to_owned());
        let commit = std::env::var("KUBELITH_GIT_COMMIT").or_else(|_| git(&["rev-parse", "HEAD"]));
        let made = match std::env::var(EPOCH) {
            Ok(text) => text.parse().map_err(|_| format!("{EPOCH}: {text:?} is no number"))?,
            Err(_) => git(&["log", "-1", "--format=%ct"]).ok().and_then(|text| text.parse().ok()).unwrap_or(0),
        };
        Ok(Release {
            version: version(&manifest).ok_or("Cargo.toml names no version")?,
            commit: commit.unwrap_or_else(|_| "unknown".to_owned()),
            made,
            machine,
        })
    }

    /// `kubelith-0.2.0-linux-amd64`
    pub fn name(&self) -> String {
        format!("kubelith-{}-{}-{}", self.version, self.machine.system, self.machine.architecture)
    }

    /// The time as documents have it.
    pub fn rfc3339(&self) -> Result<String, String> {
        let when = format!("@{}", self.made);
        capture(command("date").args(["-u", "-d", &when, "+%Y-%m-%dT%H:%M:%SZ"])).map(|text| text.trim().to_owned())
    }
}

/// The version of the workspace.
fn version(manifest: &str) -> Option<String> {
    let section = manifest.split("[workspace.package]").nth(1)?;
    let line = section.lines().find_map(|line| line.strip_prefix("version = "))?;
    Some(line.trim_matches('"').to_owned())
}

/// What a program needs of the system that it runs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: it runs anywhere, in an empty image too.
    Nothing,
    /// The GNU C library, of this version at least.
    Glibc(String),
    /// Something else: it is no program of Linux.
    Unknown,
}

/// Reads it out of a program: only one that is linked at run time names an interpreter.
pub fn needs(program: &[u8]) -> Needs {
    let has = |text: &[u8]| program.windows(text.len()).any(|part| part == text);
    match program {
        [0x7f, b'E', b'L', b'F', ..] if !has_interpreter(program) => Needs::Nothing,
        [0x7f, b'E', b'L', b'F', ..] if has(b"GLIBC_2.") => Needs::Glibc(glibc(program)),
        _ => Needs::Unknown,
    }
}

/// Of 64 bits and little-endian, as all machines that we build for.
fn has_interpreter(program: &[u8]) -> bool {
    const INTERPRETER: u32 = 3;
    let number = |at: usize, size: usize| -> Option<u64> {
        let bytes = program.get(at..at + size)?;
        Some(bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    };
    let table = || Some((number(32, 8)? as usize, number(54, 2)? as usize, number(56, 2)? as usize));
    let Some((start, size, count)) = table() else { return false };
    (0..count).any(|i| number(start + i * size, 4) == Some(INTERPRETER.into()))
}

fn glibc(program: &[u8]) -> String {
    const MARK: &[u8] = b"GLIBC_2.";
    let starts =
        program.windows(MARK.len()).enumerate().filter(|(_, part)| *part == MARK).map(|(at, _)| at + MARK.len());
    let minor = starts.filter_map(|at| {
        let digits: String =
            program[at..].iter().take(3).take_while(|b| b.is_ascii_digit()).map(|b| *b as char).collect();
        digits.parse::<u32>().ok()
    });
    format!("2.{}", minor.max().unwrap_or(0))
}

pub fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_and_names() {
        let linux = Machine::of("x86_64-unknown-linux-musl").unwrap();
        assert_eq!((linux.system, linux.architecture), ("linux", "amd64"));
        let mac = Machine::of("aarch64-apple-darwin").unwrap();
        assert_eq!((mac.system, mac.architecture), ("darwin", "arm64"));
        assert_eq!(mac.program("kubelith"), "kubelith");
        let windows = Machine::of("x86_64-pc-windows-gnu").unwrap();
        assert_eq!((windows.system, windows.program("kubelith")), ("windows", "kubelith.exe".into()));
        assert!(Machine::of("riscv64gc-unknown-linux-gnu").is_err());
        let release = Release { version: "1.2.3".into(), commit: "c".into(), made: 1_700_000_000, machine: linux };
        assert_eq!(release.name(), "kubelith-1.2.3-linux-amd64");
        assert_eq!(release.rfc3339().unwrap(), "2023-11-14T22:13:20Z");
        assert_eq!(version("[workspace.package]\nversion = \"0.9.1\"\n"), Some("0.9.1".into()));
    }

    /// This test is a program of this machine; the shell's loader is not.
    #[test]
    fn programs_say_what_they_need() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        if cfg!(all(target_os = "linux", target_env = "gnu")) {
            assert!(matches!(needs(&own), Needs::Glibc(version) if version.starts_with("2.")));
        }
        assert_eq!(needs(b"#!/bin/sh\n"), Needs::Unknown);
        assert_eq!(needs(b""), Needs::Unknown);
    }
}
