//! `cargo xtask test`: all that CI runs, in one command. A stage that fails does not keep the others from running, and a
//! program that is missing is a failure.

use crate::run::{binaries, cargo, command, follow, run};
use crate::{browser, tools};
use std::num::NonZero;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::Instant;

type Stage = fn(&Request, Say) -> Tally;

/// Takes the lines that a stage prints.
type Say<'a> = &'a mut dyn FnMut(&str);

/// What the stages are told.
struct Request {
    /// Of the unit tests.
    filters: Vec<String>,
    /// The compiler that checks the lints as well, where what it builds is tested, too: to check them apart means to read
    /// every crate twice, which took 211 of the 1,119 s of a run.
    linter: Option<PathBuf>,
    /// The programs that are being got meanwhile: that waits for the network, and the stages before it for the processor.
    tools: Mutex<Option<JoinHandle<Result<(), String>>>>,
}

impl Request {
    /// Cargo, with the compiler that everything here is built by: what one stage built is there for the next.
    fn cargo(&self) -> Command {
        let mut cargo = cargo();
        if let Some(linter) = &self.linter {
            // What `cargo clippy -- -D warnings` sets.
            cargo.env("RUSTC_WORKSPACE_WRAPPER", linter);
            cargo.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
        }
        cargo
    }
}

/// The stages in the order in which they run: what fails fastest comes first.
const STAGES: [(&str, Stage); 8] = [
    ("fmt", fmt),
    ("clippy", clippy),
    ("tools", tools),
    ("build", build),
    ("unit", unit),
    ("conformance", conformance),
    ("clients", clients),
    ("console", console),
];

/// Stages that run one after another while the unit tests do, and are shown after them: each waits at times, for a watch, a
/// browser or a fault, and leaves the processor to the other.
const BESIDE_UNIT: [&str; 3] = ["conformance", "clients", "console"];

/// What the stages of a run add up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
}

impl Tally {
    fn of(outcome: Result<(), String>, say: Say) -> Tally {
        match outcome {
            Ok(()) => Tally { passed: 1, failed: 0 },
            Err(message) => {
                say(&message);
                Tally { passed: 0, failed: 1 }
            }
        }
    }

    fn plus(self, other: Tally) -> Tally {
        Tally { passed: self.passed + other.passed, failed: self.failed + other.failed }
    }
}

/// Words that name stages select them; other words are handed to the unit tests as filters.
pub fn test(words: &[String]) -> Result<(), String> {
    let is_stage = |word: &String| STAGES.iter().any(|(name, _)| name == word);
    let (chosen, filters): (Vec<String>, Vec<String>) = words.iter().cloned().partition(is_stage);
    let everything = chosen.is_empty() && filters.is_empty();
    let mut total = Tally::default();
    let start = Instant::now();
    let is_wanted = |name: &str| match name {
        _ if everything => true,
        // Unit tests start etcd, the later stages all of them.
        "tools" => words.iter().any(|word| word != "fmt" && word != "clippy"),
        "unit" if !filters.is_empty() => true,
        // Those run what it makes.
        "build" => chosen.iter().any(|word| ["build", "conformance", "clients"].contains(&word.as_str())),
        _ => chosen.iter().any(|word| word == name),
    };
    let mut request = Request {
        filters: filters.clone(),
        linter: everything.then(linter).flatten(),
        tools: Mutex::new(is_wanted("tools").then(|| std::thread::spawn(get_tools))),
    };
    let (beside, before): (Vec<_>, Vec<_>) = STAGES
        .into_iter()
        .filter(|(name, _)| is_wanted(name))
        .partition(|(name, _)| is_wanted("unit") && BESIDE_UNIT.contains(name));
    let unit = before.last().filter(|(name, _)| *name == "unit").copied();
    for (name, stage) in before.into_iter().filter(|(name, _)| *name != "unit") {
        let tally = perform(name, stage, &request, &mut show);
        if name == "clippy" && tally.failed > 0 {
            // What it finds fault with is tested all the same.
            request.linter = None;
        }
        total = total.plus(tally);
    }
    if let Some((name, stage)) = unit {
        total = total.plus(side_by_side((name, stage), &beside, &request));
    }
    println!("took {:.0?}", start.elapsed());
    println!("{} passed, {} failed", total.passed, total.failed);
    match total.failed {
        0 => Ok(()),
        _ => Err("the tests failed".to_owned()),
    }
}

fn show(line: &str) {
    println!("{line}");
}

/// Runs a stage, between its name and its totals.
fn perform(name: &str, stage: Stage, request: &Request, say: Say) -> Tally {
    say(&format!("== {name}"));
    let begin = Instant::now();
    let tally = stage(request, say);
    say(&format!("== {name}: {} passed, {} failed in {:.0?}", tally.passed, tally.failed, begin.elapsed()));
    tally
}

/// Runs a stage and shows it, and these others meanwhile, which are shown from when it has ended.
fn side_by_side((name, stage): (&str, Stage), beside: &[(&str, Stage)], request: &Request) -> Tally {
    let (lines, shown) = std::sync::mpsc::channel::<String>();
    std::thread::scope(|scope| {
        let others = scope.spawn(move || {
            // Whoever shows them stays until all are there.
            let mut say = |line: &str| drop(lines.send(line.to_owned()));
            beside
                .iter()
                .fold(Tally::default(), |total, (name, stage)| total.plus(perform(name, *stage, request, &mut say)))
        });
        let own = perform(name, stage, request, &mut show);
        shown.iter().for_each(|line| show(&line));
        let failure = |_| Tally::of(Err("a stage panicked".to_owned()), &mut show);
        own.plus(others.join().unwrap_or_else(failure))
    })
}

/// Clippy's compiler, beside cargo.
fn linter() -> Option<PathBuf> {
    let cargo = PathBuf::from(std::env::var_os("CARGO")?);
    let driver = cargo.with_file_name(format!("clippy-driver{}", std::env::consts::EXE_SUFFIX));
    driver.is_file().then_some(driver)
}

fn fmt(_: &Request, say: Say) -> Tally {
    Tally::of(run(cargo().args(["fmt", "--all", "--check"])), say)
}

fn clippy(request: &Request, say: Say) -> Tally {
    let mut cargo = request.cargo();
    match request.linter {
        Some(_) => cargo.args(["build", "--quiet", "--keep-going", "--all-targets"]).args(WHOLE),
        None => cargo.args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]),
    };
    Tally::of(run(&mut cargo), say)
}

/// All that is built and run is built with these: packages that are built by themselves get fewer features of what they
/// depend on (tests ask for more of tokio than the server does), and then everything would be built twice.
const WHOLE: [&str; 3] = ["--workspace", "--features", "kubelith-conformance/kube-rs,kubelith-testing/kube"];

/// The tests, and the programs that the later stages start.
fn build(request: &Request, say: Say) -> Tally {
    Tally::of(run(request.cargo().args(["build", "--quiet", "--bins", "--tests"]).args(WHOLE)), say)
}

fn get_tools() -> Result<(), String> {
    tools::install().and_then(|()| browser::install())
}

/// Waits for the programs.
fn tools(request: &Request, say: Say) -> Tally {
    let getting = request.tools.lock().ok().and_then(|mut getting| getting.take());
    let got = getting.map(|getting| getting.join().unwrap_or_else(|_| Err("getting the programs panicked".to_owned())));
    Tally::of(got.unwrap_or(Ok(())), say)
}

/// Settings that hold unless somebody gives others.
fn settings_of_tests() -> [(&'static str, String); 2] {
    // Tests of whole programs wait for these half of their time.
    let threads = 2 * std::thread::available_parallelism().map_or(1, NonZero::get);
    [
        // Property tests try the same inputs each time, so that a change fails by what it changed.
        ("PROPTEST_RNG_SEED", "7".to_owned()),
        ("NEXTEST_TEST_THREADS", threads.to_string()),
    ]
}

fn unit(request: &Request, say: Say) -> Tally {
    let filters = &request.filters;
    let has_nextest = cargo().args(["nextest", "--version"]).output().is_ok_and(|output| output.status.success());
    let mut tests = request.cargo();
    if has_nextest {
        let quiet = ["--status-level=fail", "--final-status-level=flaky", "--show-progress=none"];
        tests.args(["nextest", "run", "--no-fail-fast", "--no-tests=pass", "--cargo-quiet"]).args(quiet);
    } else {
        tests.args(["test", "--quiet", "--no-fail-fast"]);
    }
    tests.args(WHOLE).args(filters);
    for (setting, value) in settings_of_tests() {
        if std::env::var_os(setting).is_none() {
            tests.env(setting, value);
        }
    }
    let mut tally = counted(&mut tests, say);
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!(
            "WARNING: there is no valgrind, so the instructions of the hot paths were not counted (docs/PERFORMANCE.md)"
        );
    }
    if has_nextest && filters.is_empty() {
        // nextest leaves examples in documentation to cargo.
        let mut examples = request.cargo();
        tally = tally.plus(counted(examples.args(["test", "--quiet", "--doc", "--no-fail-fast"]).args(WHOLE), say));
    }
    tally
}

fn conformance(_: &Request, say: Say) -> Tally {
    let etcd = tools::programs().join("etcd");
    let mut replay = command(binaries().join("conformance"));
    counted(replay.args(["--stores", "memory,embedded,etcd", "--etcd"]).arg(etcd), say)
}

fn clients(_: &Request, say: Say) -> Tally {
    counted(command(binaries().join("clients")).arg("--tools").arg(tools::dir()), say)
}

fn console(_: &Request, say: Say) -> Tally {
    match browser::tests(&[]) {
        Ok(mut tests) => counted(&mut tests, say),
        Err(message) => Tally::of(Err(message), say),
    }
}

/// Runs it and adds up the totals that it prints; a failure that no total tells of counts as one.
fn counted(command: &mut Command, say: Say) -> Tally {
    let mut tally = Tally::default();
    let followed = follow(command, |line| {
        say(line);
        tally = tally.plus(totals(line).unwrap_or_default());
    });
    match followed {
        Ok(true) => tally,
        Ok(false) => Tally { failed: tally.failed.max(1), ..tally },
        Err(message) => tally.plus(Tally::of(Err(message), say)),
    }
}

/// Reads a line of totals, as nextest, cargo test and our own programs write them.
fn totals(line: &str) -> Option<Tally> {
    // nextest shows the output of tests that fail, with their own totals, indented.
    let counts = if let Some(result) = line.strip_prefix("test result: ") {
        result.split_once(". ")?.1
    } else if line.trim_start().starts_with("Summary [") {
        line.split_once(" run: ")?.1
    } else if line.starts_with(|c: char| c.is_ascii_digit()) && line.contains(" passed, ") && line.ends_with(" failed")
    {
        line
    } else {
        return None;
    };
    let mut tally = Tally::default();
    for part in counts.split([',', ';']) {
        let mut words = part.split_whitespace();
        let (Some(Ok(count)), Some(word)) = (words.next().map(str::parse::<usize>), words.next()) else { continue };
        match word {
            "passed" => tally.passed += count,
            "failed" | "timed" => tally.failed += count,
            _ => {}
        }
    }
    Some(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_totals() {
        for (line, passed, failed) in [
            ("     Summary [   0.512s] 12 tests run: 10 passed (1 slow), 1 failed, 1 timed out, 3 skipped", 10, 2),
            ("     Summary [   0.512s] 1 test run: 1 passed, 0 skipped", 1, 0),
            ("     Summary [   0.512s] 9 tests run: 9 passed (1 flaky), 0 skipped", 9, 0),
            ("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.18s", 3, 2),
            ("4461 passed, 12 failed", 4461, 12),
        ] {
            assert_eq!(totals(line), Some(Tally { passed, failed }), "{line}");
        }
        for line in [
            "",
            "12 known differences",
            "ok crud: 3 same, 1 different",
            "PASS [ 0.1s] x",
            "== fmt: 1 passed, 0 failed in 1s",
            "    test result: FAILED. 0 passed; 1 failed",
        ] {
            assert_eq!(totals(line), None, "{line}");
        }
    }
}
