//! Builds for shipping. `profile` runs a server that counts what it does under the loads of `bench`; `dist` builds one that is
//! optimised with these counts. Both let cargo start the compiler through this program, which adds what the compiler has to
//! know; plain builds know nothing of it.

use crate::envtest;
use crate::run::{capture, cargo, command, run, target};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Set for the compiler's sake: `make`, or the profile to use.
const MODE: &str = "KUBELITH_PROFILE";
const MAKE: &str = "make";

/// Writes weigh more than their share of the requests: a read that takes a tenth of their time is fast as it is.
#[rustfmt::skip]
const LOADS: &[&str] = &[
    "--pods", "6000", "--seconds", "1", "--watchers", "200", "--writes", "1000",
    "create", "get", "list", "list-proto", "patch", "apply", "watch", "delete",
    "custom-create", "custom-get", "custom-list", "custom-patch", "custom-watch",
];

/// Where a profile is kept if no other place is named.
fn usual() -> PathBuf {
    target().join("profile/kubelith.profdata")
}

/// `cargo xtask profile [FILE]`
pub fn make(arguments: &[String]) -> Result<(), String> {
    let profile = match arguments {
        [] => usual(),
        [file] => std::path::absolute(file).map_err(|error| format!("{file}: {error}"))?,
        _ => return Err("usage: cargo xtask profile [FILE]".to_owned()),
    };
    collect(&profile)?;
    println!("{} is new; `cargo xtask dist` takes it", profile.display());
    Ok(())
}

/// `cargo xtask dist [--profile FILE]`: with that profile, with the one made last, or with a new one.
pub fn dist(arguments: &[String]) -> Result<(), String> {
    let profile = match arguments {
        [] if usual().exists() => usual(),
        [] => {
            collect(&usual())?;
            usual()
        }
        [option, file] if option == "--profile" => {
            let file = std::path::absolute(file).map_err(|error| format!("{file}: {error}"))?;
            if !file.exists() {
                return Err(format!("{}: no such file", file.display()));
            }
            file
        }
        _ => return Err("usage: cargo xtask dist [--profile FILE]".to_owned()),
    };
    let folder = target().join("dist");
    build(&folder, profile.as_os_str().to_string_lossy().as_ref())?;
    println!("{}", folder.join("release/kubelith").display());
    envtest::pack(&folder.join("release"), envtest::URL)
}

/// Counts what a server does under load, and adds the counts up in `profile`.
fn collect(profile: &Path) -> Result<(), String> {
    let merge = profdata()?;
    let folder = target().join("profile");
    let counts = folder.join("counts");
    let failed = |error| format!("{}: {error}", counts.display());
    if counts.exists() {
        std::fs::remove_dir_all(&counts).map_err(failed)?;
    }
    std::fs::create_dir_all(&counts).map_err(failed)?;
    build(&folder, MAKE)?;
    let bench = ["run", "--release", "--package", "kubelith-bench", "--", "--binary"];
    let counter = folder.join("release/kubelith");
    run(cargo().args(bench).arg(counter).args(LOADS).env("LLVM_PROFILE_FILE", counts.join("%p.profraw")))?;
    run(command(merge).args(["merge", "--sparse", "-o"]).arg(profile).args(files(&counts).map_err(failed)?))
}

fn build(folder: &Path, mode: &str) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| format!("where is this program: {error}"))?;
    let mut server = cargo();
    server.args(["build", "--release", "--package", "kubelith", "--target-dir"]).arg(folder);
    run(server.env("RUSTC_WRAPPER", own).env(MODE, mode))
}

/// The compiler in our clothes, if that is what this program was started as: `xtask /path/to/rustc arguments…`.
pub fn compile(arguments: &[String]) -> Option<ExitCode> {
    let mode = std::env::var(MODE).ok()?;
    let (compiler, rest) = arguments.split_first()?;
    let status = Command::new(compiler).args(rest).args(additions(rest, &mode, cfg!(target_os = "linux"))).status();
    Some(match status {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("{compiler}: {error}");
            ExitCode::FAILURE
        }
    })
}

/// What the compiler is told besides. Only code of the release profile is compiled as one unit; build scripts and macros
/// are none of the server.
fn additions(arguments: &[String], mode: &str, has_elf: bool) -> Vec<String> {
    if !arguments.iter().any(|word| word == "codegen-units=1" || word == "-Ccodegen-units=1") {
        return Vec::new();
    }
    // Branches are counted, targets of calls are not: with them the compiler makes one function of the whole way of a
    // request, and has not finished it after a quarter of an hour.
    if mode == MAKE {
        return ["-Cprofile-generate", "-Cllvm-args=-disable-vp"].map(String::from).into();
    }
    // Calls that are made often are inlined like all others: a request waits for code to come from memory, and copies of
    // code make that longer. A function that changed since the profile was made is built as if there were none.
    let mut words = vec![
        format!("-Cprofile-use={mode}"),
        "-Cllvm-args=-disable-vp -no-pgo-warn-mismatch -hot-callsite-threshold=225".to_owned(),
    ];
    // Code that runs often lies apart from code that hardly ever does; the option is one of ELF linkers.
    if has_elf {
        words.push("-Clink-arg=-Wl,-z,keep-text-section-prefix".to_owned());
    }
    words
}

/// The program that adds the counts up must be of the compiler's version.
fn profdata() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("LLVM_PROFDATA") {
        return Ok(path.into());
    }
    let libraries = capture(command("rustc").args(["--print", "target-libdir"]))?;
    let path = Path::new(libraries.trim()).with_file_name("bin").join("llvm-profdata");
    if path.exists() {
        Ok(path)
    } else {
        Err(format!("{} is missing: rustup component add llvm-tools", path.display()))
    }
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(words: &str, mode: &str) -> String {
        let words: Vec<String> = words.split(' ').map(String::from).collect();
        additions(&words, mode, true).join(" ")
    }

    #[test]
    fn the_compiler_is_told_of_the_profile_for_the_server_alone() {
        let release = "--edition 2024 -C codegen-units=1";
        let uses = told(release, "/p/kubelith.profdata");
        assert!(uses.starts_with("-Cprofile-use=/p/kubelith.profdata -Cllvm-args=-disable-vp "), "{uses}");
        assert!(uses.ends_with(" -Clink-arg=-Wl,-z,keep-text-section-prefix"), "{uses}");
        assert_eq!(told(release, MAKE), "-Cprofile-generate -Cllvm-args=-disable-vp");
        assert_eq!(told("--edition 2024 -Copt-level=0", MAKE), "");
        assert_eq!(told("-vV", "/p/kubelith.profdata"), "");
    }
}
