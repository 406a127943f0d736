//! Tells the program which commit it is built from and when that was made. The same sources give the same answers, so that
//! a build can be repeated: the date is the commit's, not the clock's.
//!
//! A debug build does not follow git, or every commit would link the program and all its tests anew: it tells the commit that it
//! was first built from, and that there are changes.
//!
//! In this order: what the environment says (`cargo xtask dist`, distributions), what git says of this checkout, what
//! `git archive` wrote into `commit.txt`; else nothing is known.

use std::path::Path;
use std::process::Command;

const COMMIT: &str = "KUBELITH_GIT_COMMIT";
const STATE: &str = "KUBELITH_GIT_TREE_STATE";
const DATE: &str = "KUBELITH_BUILD_DATE";
/// Seconds since 1970: the date, if nothing else is said.
const SECONDS: &str = "KUBELITH_BUILD_SECONDS";
/// As others name it: seconds since 1970 that stand for the time of a build.
const EPOCH: &str = "SOURCE_DATE_EPOCH";

struct Source {
    commit: String,
    state: &'static str,
    /// Seconds since 1970.
    made: i64,
}

pub fn tell() {
    println!("cargo::rerun-if-changed=commit.txt");
    for name in [COMMIT, STATE, DATE, EPOCH] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let given = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let source = of_git().or_else(of_archive);
    let source = source.unwrap_or(Source { commit: "unknown".to_owned(), state: "clean", made: 0 });
    let made: i64 = given(EPOCH).and_then(|text| text.parse().ok()).unwrap_or(source.made);
    for (name, value) in [(COMMIT, source.commit), (STATE, source.state.to_owned()), (DATE, String::new())] {
        println!("cargo::rustc-env={name}={}", given(name).unwrap_or(value));
    }
    println!("cargo::rustc-env={SECONDS}={made}");
}

/// Asks git, if this checkout is its own: a copy inside of another repository has none of that one's commits.
fn of_git() -> Option<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?;
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let head = git(&["log", "-1", "--format=%H %ct"])?;
    if std::env::var("PROFILE").is_ok_and(|profile| profile == "debug") {
        return read(&head, "dirty");
    }
    // Both change with each commit and each checkout.
    for name in ["HEAD", "logs/HEAD"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(git(&["rev-parse", "--git-path", name])?);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    // Files that nobody added are no part of the sources.
    let state = match git(&["status", "--porcelain", "--untracked-files=no"])?.as_str() {
        "" => "clean",
        _ => "dirty",
    };
    read(&head, state)
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// `git archive` replaces the text between the dollar signs.
fn of_archive() -> Option<Source> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("commit.txt")).ok()?;
    read(text.trim(), "archive")
}

/// `<commit> <seconds since 1970>`
fn read(text: &str, state: &'static str) -> Option<Source> {
    let (commit, made) = text.split_once(' ')?;
    let is_commit = commit.len() >= 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
    Some(Source { commit: commit.to_owned(), state, made: made.parse().ok()? }).filter(|_| is_commit)
}
