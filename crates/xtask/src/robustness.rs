//! Builds the server and the clients that break it, and runs them.

use crate::run::{cargo, command, run, target};
use std::process::{Command, ExitCode};

const PACKAGE: [&str; 5] = ["--quiet", "--package", "kubelith-robustness", "--bin", "robustness"];
/// Set for the compiler's sake, when cargo starts it through this program: the object of `COUNTING`.
const INSTRUMENT: &str = "KUBELITH_INSTRUMENT";
/// Has the function that is told where the flags are.
const COUNTING: &str = "crates/coverage/src/lib.rs";
/// A flag for each edge of the code.
const FLAGS: [&str; 3] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=3",
    "-Cllvm-args=-sanitizer-coverage-inline-bool-flag",
];
/// Ours, but none of the server: what they do leads nowhere.
const TOOLS: [&str; 4] = ["robustness", "kubelith_robustness", "kubelith_conformance", "kubelith_coverage"];

pub fn run_with(arguments: &[String]) -> Result<(), String> {
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    if has("--coverage") {
        return run_instrumented(arguments);
    }
    // Millions of requests are for an optimised server.
    if has("--in-process") {
        return run(cargo().arg("run").args(PACKAGE).args(["--release", "--"]).args(arguments));
    }
    run(cargo().args(["build", "--quiet", "--package", "kubelith", "--bin", "kubelith"]))?;
    run(cargo().arg("run").args(PACKAGE).arg("--").args(arguments))
}

/// In a folder of its own: other builds stay as they are. Not optimised, so that flags are where the source has edges, sums that
/// overflow are heard of, and it is built in minutes.
fn run_instrumented(arguments: &[String]) -> Result<(), String> {
    let folder = target().join("coverage");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    // Build scripts are linked with some of what is instrumented, and need the function that is told of the flags, too.
    let (own, object) = (std::env::current_exe().map_err(|error| error.to_string())?, folder.join("counting.o"));
    let counting = ["--crate-type=lib", "--edition=2024", "--emit=obj", "-Ccodegen-units=1", "-Copt-level=2", "-o"];
    run(command("rustc").args(counting).arg(&object).arg(COUNTING))?;
    let mut build = cargo();
    build.arg("run").args(PACKAGE).arg("--target-dir").arg(folder).arg("--").args(arguments);
    run(build.env("RUSTC_WORKSPACE_WRAPPER", own).env(INSTRUMENT, object))
}

/// The compiler with what it needs besides, if that is what this program was started as.
pub fn compile(arguments: &[String]) -> Option<ExitCode> {
    let object = std::env::var(INSTRUMENT).ok()?;
    let (compiler, rest) = arguments.split_first()?;
    Some(match Command::new(compiler).args(rest).args(additions(rest, &object)).status() {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("{compiler}: {error}");
            ExitCode::FAILURE
        }
    })
}

/// Flags for the server, the function that is told of them for build scripts, nothing for the rest.
fn additions(arguments: &[String], object: &str) -> Vec<String> {
    let mut words = arguments.iter();
    match words.find(|word| *word == "--crate-name").and_then(|_| words.next()) {
        Some(name) if name.starts_with("build_script_") => vec![format!("-Clink-arg={object}")],
        Some(name) if !TOOLS.contains(&name.as_str()) => FLAGS.map(str::to_owned).into(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{capture, root};

    #[test]
    fn only_the_server_is_instrumented() {
        for (words, want) in [
            ("--crate-name kubelith_meta --edition=2024", &FLAGS[..]),
            ("--crate-name kubelith_robustness --edition=2024", &[]),
            ("--crate-name build_script_main", &["-Clink-arg=counting.o"]),
            ("-vV", &[]),
        ] {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            assert_eq!(additions(&words, "counting.o"), want, "{words:?}");
        }
    }

    /// That the compiler still knows these flags, and that they do what `crates/coverage` takes them for.
    #[test]
    fn the_compiler_tells_which_edges_were_passed() {
        let folder = std::env::temp_dir().join(format!("kubelith-edges-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (source, program) = (folder.join("program.rs"), folder.join("program"));
        let counting = root().join(COUNTING);
        let text = "mod counting; use counting::{all, seen};
            #[inline(never)] fn way(number: usize) -> &'static str {
                match number { 0..5 => \"few\", 5..99 => \"some\", _ => \"many\" }
            }
            fn main() {
                let mut counts = Vec::with_capacity(99);
                for text in std::env::args().skip(1) {
                    std::hint::black_box(way(text.parse().unwrap_or(0)));
                    counts.push(seen());
                }
                println!(\"{} {counts:?}\", all());
            }";
        std::fs::write(&source, text.replace("mod counting;", &format!("#[path = {counting:?}] mod counting;")))
            .unwrap();
        let build = |flags: &[&str]| {
            let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
            capture(
                command(compiler)
                    .args(["--edition=2024", "-Cdebuginfo=0", "-o"])
                    .arg(&program)
                    .arg(&source)
                    .args(flags),
            )
            .unwrap();
            let said = capture(command(&program).args(["1", "1", "1", "3", "50", "2", "500"])).unwrap();
            let numbers = said.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
            numbers.collect::<Vec<usize>>()
        };
        let counts = build(&FLAGS);
        // The first ones pass what the loop has.
        let new: Vec<bool> = counts[3..].windows(2).map(|pair| pair[1] > pair[0]).collect();
        assert_eq!(new, [false, true, false, true], "{counts:?}");
        assert!(counts[0] > counts[7], "{counts:?}");
        assert_eq!(build(&[]), [0; 8], "a plain build has no flags");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
