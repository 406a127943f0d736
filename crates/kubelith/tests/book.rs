//! Runs the commands of the book (docs/SUMMARY.md and the chapters it names) as a reader would: each chapter in a shell of its own, in
//! an empty folder, with the program that was just built, kubectl and etcd; and compares what they print with what the book says.
//!
//! In blocks marked `console`, a line with `$ ` in front is a command and lines with `> ` behind it belong to it. Other lines are
//! what it prints: an ellipsis stands for any text, a line of nothing else for any lines, and spaces are not counted. A
//! command ends well unless `# fails` stands at its end. After one that ends with `&`, the server is waited for.

use kubelith_conformance::harness::free_port;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// What the book calls the ports; each run has its own, for there are other servers on the machine.
const PORTS: [&str; 2] = ["6443", "23790"];
/// Parts what commands print.
const MARK: &str = "=====book";
/// A chapter takes seconds; one that hangs must not hang the run.
const LIMIT_SECONDS: &str = "300";

/// A command and what it prints.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    line: usize,
    command: String,
    output: Vec<String>,
    fails: bool,
}

fn steps(chapter: &str) -> Vec<Step> {
    let (mut steps, mut is_console): (Vec<Step>, bool) = (Vec::new(), false);
    for (at, line) in chapter.lines().enumerate() {
        if line.starts_with("```") {
            is_console = line == "```console";
        } else if !is_console {
            continue;
        } else if let Some(command) = line.strip_prefix("$ ") {
            let (command, fails) = match command.split_once("    # fails") {
                Some((command, _)) => (command, true),
                None => (command, false),
            };
            steps.push(Step { line: at + 1, command: command.to_owned(), output: Vec::new(), fails });
        } else if let Some(step) = steps.last_mut() {
            match line.strip_prefix("> ").or_else(|| (line == ">").then_some("")) {
                Some(more) if step.output.is_empty() => step.command += &format!("\n{more}"),
                _ => step.output.push(line.to_owned()),
            }
        }
    }
    steps
}

/// One script for a chapter: what a command sets, the next one has.
fn script(steps: &[Step]) -> String {
    // What was started last ends first: a server that stops still needs its etcd.
    let mut script = String::from(
        "trap 'exit 1' TERM\ntrap 'for job in $(jobs -p | tac); do kill $job 2>/dev/null; wait $job; done' EXIT\n",
    );
    for step in steps {
        let _ = writeln!(script, "{}", step.command);
        let _ = writeln!(script, "printf '\\n{MARK} %s\\n' $?");
        if step.command.ends_with('&') && step.command.starts_with("kubelith") {
            let wait =
                "for i in $(seq 600); do kubelith health --path /readyz >/dev/null 2>&1 && break; sleep 0.1; done";
            let _ = writeln!(script, "{wait}");
        }
    }
    script
}

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a line is what the book says; an ellipsis is any text.
fn fits(line: &str, wanted: &str) -> bool {
    let parts: Vec<&str> = wanted.split('…').collect();
    let [first, middle @ .., last] = &parts[..] else { return line == wanted };
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Whether lines are what the book says; a line that is an ellipsis is any lines.
fn all_fit(lines: &[String], wanted: &[String]) -> bool {
    match wanted {
        [] => lines.is_empty(),
        [first, rest @ ..] if first == "…" => (0..=lines.len()).any(|skipped| all_fit(&lines[skipped..], rest)),
        [first, rest @ ..] => lines.first().is_some_and(|line| fits(line, first)) && all_fit(&lines[1..], rest),
    }
}

/// A folder with the programs that the book names.
fn programs(folder: &Path) {
    let tools = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/bin"));
    std::fs::create_dir(folder).unwrap();
    for tool in ["kubectl", "etcd", "etcdctl"] {
        std::os::unix::fs::symlink(tools.join(tool), folder.join(tool)).unwrap();
    }
    // Its own port where it serves and where it is asked; everything else as it is called.
    let wrapper = format!(
        "#!/bin/sh\ncase \"$1\" in\n\"\"|--[!v]*) exec {program} --secure-port=$BOOK_PORT --bind-address=127.0.0.1 \"$@\" >>server.log 2>&1 ;;\n\
         health) case \"$*\" in *--server*) ;; *) shift; set -- health --server https://127.0.0.1:$BOOK_PORT \"$@\" ;; esac ;;\nesac\n\
         exec {program} \"$@\"\n",
        program = env!("CARGO_BIN_EXE_kubelith")
    );
    let path = folder.join("kubelith");
    std::fs::write(&path, wrapper).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// What is wrong with a chapter.
fn run(name: &str, steps: &[Step]) -> Result<(), String> {
    let dir = TempDir::new().unwrap();
    let (bin, home) = (dir.path().join("bin"), dir.path().join("home"));
    programs(&bin);
    std::fs::create_dir(&home).unwrap();
    let ports = PORTS.map(|_| free_port().unwrap().to_string());
    let mut script = script(steps);
    for (theirs, ours) in PORTS.iter().zip(&ports) {
        script = script.replace(theirs, ours);
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("timeout")
        .args([LIMIT_SECONDS, "bash", "--norc", "-c", &format!("exec 2>&1\n{script}")])
        .current_dir(&home)
        .env("PATH", path)
        .env("HOME", &home)
        .env("BOOK_PORT", &ports[0])
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    for (theirs, ours) in PORTS.iter().zip(&ports) {
        text = text.replace(ours.as_str(), theirs);
    }
    let log = || std::fs::read_to_string(home.join("server.log")).unwrap_or_default();
    let mut rest = text.as_str();
    for step in steps {
        let told = |why: &str| format!("{name}:{}: $ {}\n{why}", step.line, step.command);
        let Some((printed, after)) = rest.split_once(&format!("\n{MARK} ")) else {
            return Err(told(&format!("did not end; it printed:\n{rest}\nthe log of the server:\n{}", log())));
        };
        let (code, after) = after.split_once('\n').unwrap_or((after, ""));
        rest = after;
        let lines = |text: &str| text.trim_end().lines().map(words).collect::<Vec<_>>();
        let wanted: Vec<String> = lines(&step.output.join("\n"));
        let is_server = step.command.ends_with('&');
        if (code != "0") != step.fails || (!is_server && !all_fit(&lines(printed), &wanted)) {
            return Err(told(&format!(
                "ended with {code} and printed:\n{printed}\nnot:\n{}\n{}",
                step.output.join("\n"),
                log()
            )));
        }
    }
    Ok(())
}

#[test]
fn commands_of_the_book_do_what_it_says() {
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let chapters: Vec<&str> = summary.lines().filter_map(|line| line.split_once("](")?.1.strip_suffix(')')).collect();
    let read = |chapter: &&str| {
        let text = std::fs::read_to_string(docs.join(chapter)).unwrap_or_else(|why| panic!("{chapter}: {why}"));
        (chapter.to_string(), steps(&text))
    };
    let read: Vec<(String, Vec<Step>)> = chapters.iter().map(read).filter(|(_, steps)| !steps.is_empty()).collect();
    let count: usize = read.iter().map(|(_, steps)| steps.len()).sum();
    // Most of the time is spent waiting: chapters know nothing of each other.
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = read.iter().map(|(chapter, steps)| scope.spawn(|| run(chapter, steps))).collect();
        running.into_iter().filter_map(|chapter| chapter.join().unwrap().err()).collect()
    });
    assert!(chapters.len() > 15 && count > 50, "{} chapters, {count} commands", chapters.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn links_of_the_book_lead_somewhere() {
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    for chapter in summary.lines().filter_map(|line| line.split_once("](")?.1.strip_suffix(')')) {
        let text = std::fs::read_to_string(docs.join(chapter)).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = link.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") || path.contains(' ') {
                continue;
            }
            assert!(docs.join(chapter).parent().unwrap().join(path).exists(), "{chapter}: {link}");
        }
    }
}

#[test]
fn the_book_is_read_and_compared() {
    let read = steps("text\n```console\n$ a <<EOF\n> b\n>\n> EOF\nout\n\nmore\n$ c    # fails\n```\n```sh\n$ d\n```\n");
    assert_eq!(read.len(), 2);
    assert_eq!((read[0].command.as_str(), read[0].output.len()), ("a <<EOF\nb\n\nEOF", 3));
    assert_eq!((read[1].command.as_str(), read[1].fails, read[1].line), ("c", true, 10));
    for (line, wanted, fit) in [
        ("abc", "abc", true),
        ("abc", "a…", true),
        ("abc", "…c", true),
        ("abc", "a…b…c", true),
        ("abc", "a…d", false),
        ("abc", "ab", false),
    ] {
        assert_eq!(fits(line, wanted), fit, "{line} {wanted}");
    }
    let lines = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert!(all_fit(&lines("a b c d"), &lines("a … d")) && all_fit(&lines("a"), &lines("a …")));
    assert!(!all_fit(&lines("a b"), &lines("a")) && !all_fit(&lines("a"), &lines("a b")));
}

/// Files in YAML that other programs read are YAML, and workflows do what contributors do.
#[test]
fn files_for_other_programs_can_be_read() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut count = 0;
    let folders = ["packaging/kubeadm", "packaging/monitoring", ".github/workflows", ".github/ISSUE_TEMPLATE"];
    for entry in folders.iter().flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap().flatten()) {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == "yml" || ending == "yaml") {
            let read = kubelith_codec::yaml::read(&std::fs::read(&path).unwrap());
            let document = read.unwrap_or_else(|why| panic!("{}: {why}", path.display()));
            assert!(document.value.as_object().is_some() && document.duplicates.is_empty(), "{}", path.display());
            count += 1;
        }
    }
    assert!(count >= 7, "{count} files");
    let read = |path: &str| kubelith_codec::yaml::read(&std::fs::read(root.join(path)).unwrap()).unwrap().value;
    let steps = read(".github/workflows/ci.yml").at(&["jobs", "test", "steps"]).cloned().unwrap();
    assert!(steps.as_array().unwrap().iter().any(|step| step.str_at(&["run"]) == ".ci/run"));
    let groups = read("packaging/monitoring/alerts.yaml").get("groups").cloned().unwrap();
    let rules = groups.as_array().unwrap()[0].get("rules").and_then(|rules| rules.as_array()).unwrap().to_vec();
    for rule in &rules {
        for path in [
            &["alert"][..],
            &["expr"],
            &["labels", "severity"],
            &["annotations", "summary"],
            &["annotations", "action"],
        ] {
            assert!(!rule.str_at(path).is_empty(), "{}: {path:?}", rule.str_at(&["alert"]));
        }
    }
}
