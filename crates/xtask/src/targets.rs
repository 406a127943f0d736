//! A test: a target whose tests are turned off in its `Cargo.toml`, which saves building and running it for nothing, has none.

use crate::layers::metadata;
use crate::run::root;
use std::path::Path;

/// What a fence in documentation may be marked with when nothing of it is run.
const NOT_CODE: [&str; 4] = ["text", "json", "yaml", "console"];

/// Whether these lines have an example in their documentation that would be run.
fn has_examples(source: &str) -> bool {
    let docs = source.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("///").or(line.strip_prefix("//!"))
    });
    let mut inside = false;
    for mark in docs.filter_map(|line| line.trim_start().strip_prefix("```")) {
        if !inside && !NOT_CODE.contains(&mark.trim()) {
            return true;
        }
        inside = !inside;
    }
    false
}

/// Whether these lines have a test, or a module that could have one.
fn has_tests(source: &str) -> bool {
    let is_module = |line: &str| line.starts_with("mod ") || line.starts_with("pub mod ");
    source.contains("#[test]") || source.contains("::test]") || source.lines().any(is_module)
}

/// The sources in this folder, and below it, that `is_wrong` is true of.
fn sources(folder: &Path, is_wrong: fn(&str) -> bool, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, is_wrong, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            if is_wrong(&text) {
                found.push(path.display().to_string());
            }
        }
    }
}

#[test]
fn what_is_not_tested_has_no_tests() {
    let metadata = metadata();
    let mut found = Vec::new();
    let packages = metadata["packages"].as_array().unwrap();
    for target in packages.iter().flat_map(|package| package["targets"].as_array().unwrap()) {
        let path = Path::new(target["src_path"].as_str().unwrap());
        match (target["kind"][0].as_str().unwrap(), target["test"] == true, target["doctest"] == true) {
            ("lib", true, false) => sources(path.parent().unwrap(), has_examples, &mut found),
            ("lib", false, _) => found.push(path.display().to_string()),
            ("bin", false, _) if has_tests(&std::fs::read_to_string(path).unwrap()) => {
                found.push(path.display().to_string());
            }
            _ => {}
        }
    }
    assert_eq!(found, [""; 0], "these have tests or examples, but `test` or `doctest` is false in their Cargo.toml");
}

/// `--all-targets` builds a program once more, as a test, for each that could have benchmarks in it: all, unless told.
#[test]
fn what_has_no_tests_has_no_benchmarks() {
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path().join("Cargo.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let with_both = text.matches("\ntest = false\nbench = false\n").count();
        assert_eq!(text.matches("\ntest = false\n").count(), with_both, "{}", path.display());
    }
}

/// Where a program has the tests of several files, cargo does not look for those files: one that nobody names is never run.
#[test]
fn every_file_of_tests_belongs_to_a_program() {
    let metadata = metadata();
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let tests = Path::new(package["manifest_path"].as_str().unwrap()).with_file_name("tests");
        let targets = package["targets"].as_array().unwrap().iter().filter(|target| target["kind"][0] == "test");
        let programs: Vec<&Path> = targets.map(|target| Path::new(target["src_path"].as_str().unwrap())).collect();
        let sources: Vec<String> = programs.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
        for entry in std::fs::read_dir(&tests).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let is_named = sources.iter().any(|source| source.contains(&format!("mod {name};")));
            if path.extension().is_some_and(|ending| ending == "rs") && !programs.contains(&&*path) && !is_named {
                found.push(path.display().to_string());
            }
        }
    }
    assert_eq!(found, [""; 0], "no program has the tests of these files");
}

#[test]
fn examples_are_told_from_figures() {
    assert!(has_examples("/// ```\n/// assert!(true);\n/// ```"));
    assert!(has_examples("//! ```text\n//! a\n//! ```\n//!\n//! ```no_run\n//! ```"));
    assert!(!has_examples("    /// ```text\n    /// a → b\n    /// ```\nlet fence = \"```\";"));
}
