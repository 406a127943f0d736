//! What a fork costs, in instructions: a change that makes it dearer does not go unnoticed, however busy the machine is.
//!
//! The test runs itself once more under callgrind and compares with `instructions.txt`. Counts are those of a build for tests, several
//! times those of a release. `BLESS=1 cargo test -p kubelith-testing --test instructions` writes them anew. Where there is no valgrind, nothing is
//! compared.

use kubelith_testing::{Controllers, Kubelith};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Counts differ from run to run, by where hash maps put things.
const TOLERANCE_PERCENT: u64 = 5;
const FORKS: u64 = 4;
/// What is counted: all that is done before `fork` returns.
const COUNTED: &str = "kubelith::plane::seed::Seed::fork::{{closure}}";

#[test]
#[ignore = "a part of the test below"]
fn counted() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let base = Kubelith::builder().controllers(Controllers::Off).start().await.unwrap();
        for _ in 0..FORKS {
            base.fork().await.unwrap();
        }
    });
}

/// Instructions of one fork, with all that is called for it.
fn read(profile: &str) -> u64 {
    let (mut id, mut sum, mut is_it) = (None, 0, false);
    let mut lines = profile.lines();
    while let Some(line) = lines.next() {
        if let Some(named) = line.strip_prefix("cfn=").or_else(|| line.strip_prefix("fn=")) {
            let (number, name) = named.split_once(' ').unwrap_or((named, ""));
            if name.contains(COUNTED) && !name.contains(&format!("{COUNTED}::")) {
                id = Some(number);
            }
            is_it = line.starts_with("cfn=") && id == Some(number);
        } else if line.starts_with("calls=") && is_it {
            let cost = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|cost| cost.parse::<u64>().ok());
            sum += cost.unwrap_or_default();
        }
    }
    sum / FORKS
}

fn count() -> Option<u64> {
    let out = tempfile::NamedTempFile::new().unwrap();
    let child = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.path().display()))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "counted", "--ignored", "--test-threads=1"])
        .stdout(Stdio::null())
        .status();
    match child {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        status => {
            assert!(status.unwrap().success());
            Some(read(&std::fs::read_to_string(out.path()).unwrap()))
        }
    }
}

#[test]
fn a_fork_costs_what_it_did() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/instructions.txt");
    let Some(now) = count() else { return eprintln!("there is no valgrind: nothing was counted") };
    assert!(now > 0, "no fork was found among the figures");
    if std::env::var_os("BLESS").is_some() {
        return std::fs::write(&path, format!("fork {now}\n")).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap();
    let known: u64 = known.trim().strip_prefix("fork ").and_then(|n| n.parse().ok()).expect("a count");
    let limit = known + known * TOLERANCE_PERCENT / 100;
    assert!(now <= limit, "a fork takes {now} instructions, and took {known}");
}
