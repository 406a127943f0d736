//! Builds for shipping. `profile` runs a server that counts what it does under the loads of `bench`; `dist` builds one that is
//! optimised with these counts. Both let cargo start the compiler through this program, which adds what the compiler has to
//! know; plain builds know nothing of it.

use crate::run::{capture, cargo, command, root, run, target};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Set for the compiler's sake: `make`, or the profile to use.
const MODE: &str = "KUBELITH_PROFILE";
const MAKE: &str = "make";
/// Builds for shipping without a profile.
const NONE: &str = "none";

/// How cargo builds what is shipped, and the folder that it puts it into: a profile in the manifest of the workspace.
pub const SHIPPED: &str = "dist";

/// Writes weigh more than their share of the requests: a read that takes a tenth of their time is fast as it is.
#[rustfmt::skip]
const LOADS: &[&str] = &[
    "--pods", "6000", "--seconds", "1", "--watchers", "200", "--writes", "1000",
    "create", "get", "list", "list-proto", "list-label", "patch", "apply", "watch",
    "admit", "admit-policy", "admit-webhook", "delete",
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

/// The profile that is named, the one made last, or a new one.
pub fn find(named: Option<&str>) -> Result<PathBuf, String> {
    let Some(file) = named else {
        if !usual().exists() {
            collect(&usual())?;
        }
        return Ok(usual());
    };
    let file = std::path::absolute(file).map_err(|error| format!("{file}: {error}"))?;
    if file.exists() { Ok(file) } else { Err(format!("{}: no such file", file.display())) }
}

/// Builds the server and its companion, with our cargo or another one, `made` being the time that counts as theirs.
pub fn build_for_shipping(
    with: Option<Command>,
    folder: &Path,
    profile: Option<&Path>,
    made: u64,
) -> Result<(), String> {
    let mode = profile.map_or_else(|| NONE.to_owned(), |file| file.to_string_lossy().into_owned());
    let mut server = with.unwrap_or_else(|| {
        let mut plain = cargo();
        plain.arg("build");
        plain
    });
    server.env("SOURCE_DATE_EPOCH", made.to_string()).env("CFLAGS", flags_of_c());
    build(&mut server, folder, &mode)
}

/// Code in C names its files, too. It may name the time: compilers take it from `SOURCE_DATE_EPOCH`, but zig refuses it unless told.
fn flags_of_c() -> String {
    let maps = maps().into_iter().map(|(from, to)| format!("-ffile-prefix-map={from}={to}"));
    maps.chain(["-Wno-error=date-time".to_owned()]).collect::<Vec<_>>().join(" ")
}

/// Folders of this machine, and what programs call them instead.
fn maps() -> Vec<(String, &'static str)> {
    let home = std::env::var("CARGO_HOME").or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")));
    let own = (root().to_string_lossy().into_owned(), "/kubelith");
    std::iter::once(own).chain(home.ok().map(|home| (home, "/cargo"))).collect()
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
    let mut counted = cargo();
    // What build scripts share with the server counts, too, and would leave the counts beside their sources.
    counted.arg("build").env("LLVM_PROFILE_FILE", folder.join("build-scripts.profraw"));
    build(&mut counted, &folder, MAKE)?;
    let bench = ["run", "--release", "--package", "kubelith-bench", "--", "--binary"];
    let counter = folder.join(SHIPPED).join("kubelith");
    run(cargo().args(bench).arg(counter).args(LOADS).env("LLVM_PROFILE_FILE", counts.join("%p.profraw")))?;
    run(command(merge).args(["merge", "--sparse", "-o"]).arg(profile).args(files(&counts).map_err(failed)?))
}

fn build(server: &mut Command, folder: &Path, mode: &str) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| format!("where is this program: {error}"))?;
    server.args(["--profile", SHIPPED, "--package", "kubelith", "--target-dir"]).arg(folder);
    run(server.env("RUSTC_WRAPPER", own).env(MODE, mode))
}

/// The compiler in our clothes, if that is what this program was started as: `xtask /path/to/rustc arguments…`.
pub fn compile(arguments: &[String]) -> Option<ExitCode> {
    let mode = std::env::var(MODE).ok()?;
    let (compiler, rest) = arguments.split_first()?;
    let status = Command::new(compiler).args(rest).args(additions(rest, &mode, has_elf(rest))).status();
    Some(match status {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("{compiler}: {error}");
            ExitCode::FAILURE
        }
    })
}

/// Whether this is compiled for Linux: for the machine that cargo names, or for this one.
fn has_elf(arguments: &[String]) -> bool {
    let mut after = arguments.iter().skip_while(|word| *word != "--target").skip(1);
    after.next().map_or(cfg!(target_os = "linux"), |triple| triple.contains("linux"))
}

/// What the compiler is told besides. Only code of the shipped profile is compiled as one unit; build scripts and macros
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
    let mut words: Vec<String> = maps().iter().map(|(from, to)| format!("--remap-path-prefix={from}={to}")).collect();
    if mode == NONE {
        return words;
    }
    // Calls that are made often are inlined like all others: a request waits for code to come from memory, and copies of
    // code make that longer. A function that changed since the profile was made is built as if there were none.
    words.extend([
        format!("-Cprofile-use={mode}"),
        "-Cllvm-args=-disable-vp -no-pgo-warn-mismatch -hot-callsite-threshold=225".to_owned(),
    ]);
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
        additions(&words, mode, has_elf(&words)).join(" ")
    }

    #[test]
    fn other_linkers_are_not_told_what_is_for_linux() {
        let told_for = |triple: &str| told(&format!("-C codegen-units=1 --target {triple}"), "/p/kubelith.profdata");
        assert!(told_for("aarch64-unknown-linux-musl").contains("-z,keep-text-section-prefix"));
        for triple in ["x86_64-pc-windows-gnu", "aarch64-apple-darwin"] {
            assert!(!told_for(triple).contains("-Clink-arg"), "{triple}");
        }
    }

    #[test]
    fn the_compiler_is_told_of_the_profile_for_the_server_alone() {
        let release = "--edition 2024 -C codegen-units=1 --target x86_64-unknown-linux-musl";
        let uses = told(release, "/p/kubelith.profdata");
        assert!(uses.contains(" -Cprofile-use=/p/kubelith.profdata -Cllvm-args=-disable-vp "), "{uses}");
        assert!(uses.starts_with("--remap-path-prefix="), "nothing tells of this machine: {uses}");
        assert!(uses.ends_with(" -Clink-arg=-Wl,-z,keep-text-section-prefix"), "{uses}");
        assert_eq!(told(release, MAKE), "-Cprofile-generate -Cllvm-args=-disable-vp");
        assert!(told(release, NONE).ends_with("=/cargo") && !told(release, NONE).contains("profile"));
        assert_eq!(told("--edition 2024 -Copt-level=0", MAKE), "");
        assert_eq!(told("-vV", "/p/kubelith.profdata"), "");
    }
}
