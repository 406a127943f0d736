//! A test: dependencies have licences that we can live with, come from the registry, and are none of those that are banned.
//! `deny.toml` says which; this is the part of `cargo deny check` that needs neither that program nor a network.

use crate::run::{capture, cargo, command, root};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The texts of a list in `deny.toml`: `key = [ "a", "b" ]` below `[section]`.
fn list(config: &str, section: &str, key: &str) -> Vec<String> {
    let body = config.split_once(&format!("[{section}]\n")).map_or("", |(_, rest)| rest);
    let body = body.split("\n[").next().unwrap_or("");
    let values = body.split_once(&format!("{key} = [")).map_or("", |(_, rest)| rest);
    let values = values.split("\n]").next().unwrap_or("");
    let lines = values.lines().map(|line| line.split('#').next().unwrap_or(""));
    lines.flat_map(|line| line.split('"').skip(1).step_by(2).map(String::from).collect::<Vec<_>>()).collect()
}

/// Whether one way to read an expression of SPDX names allowed licences only. Old crates write `/` for OR.
fn is_allowed(expression: &str, allowed: &[String]) -> bool {
    let expression = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = expression.split_whitespace().collect();
    let mut at = 0;
    let verdict = any(&words, &mut at, allowed);
    verdict && at == words.len()
}

fn any(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut verdict = all(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        verdict |= all(words, at, allowed);
    }
    verdict
}

fn all(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut verdict = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        verdict &= one(words, at, allowed);
    }
    verdict
}

fn one(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let verdict = any(words, at, allowed);
        *at += 1;
        return verdict;
    }
    let mut licence = (*word).to_owned();
    if words.get(*at) == Some(&"WITH") {
        licence = format!("{licence} WITH {}", words.get(*at + 1).unwrap_or(&""));
        *at += 2;
    }
    allowed.contains(&licence)
}

/// What is wrong with those packages of a `cargo metadata` document that are built.
fn violations(metadata: &Value, config: &str, is_built: impl Fn(&str) -> bool) -> Vec<String> {
    let (licences, banned) = (list(config, "licenses", "allow"), list(config, "bans", "deny"));
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        if !is_built(name) {
            continue;
        }
        let licence = package["license"].as_str().unwrap_or_default();
        if !is_allowed(licence, &licences) {
            found.push(format!("{name}: licence {licence:?}"));
        }
        // Ours have none.
        if !package["source"].as_str().is_none_or(|source| source.starts_with("registry+")) {
            found.push(format!("{name}: from {}", package["source"]));
        }
        if banned.iter().any(|ban| ban == name) {
            found.push(format!("{name}: banned"));
        }
    }
    found
}

#[test]
fn dependencies_are_allowed() {
    let config = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    // Packages of other systems need not have been fetched.
    let compiler = capture(command("rustc").arg("-vV")).unwrap();
    let host = compiler.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let metadata = ["metadata", "--format-version=1", "--offline", "--filter-platform", host];
    let metadata: Value = serde_json::from_str(&capture(cargo().args(metadata)).unwrap()).unwrap();
    let tree = ["tree", "--workspace", "--all-features", "--prefix=none", "--format={p}", "--offline"];
    let tree = capture(cargo().args(tree)).unwrap();
    let built: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(built.len() > 100);
    assert_eq!(violations(&metadata, &config, |name| built.contains(name)), [""; 0]);
}

#[test]
fn what_is_not_allowed_is_found() {
    let config = "[licenses]\nallow = [\n    \"MIT\",\n    \"Apache-2.0\", # ours\n    \"Apache-2.0 WITH LLVM-exception\",\n]\n\n\
                  [bans]\ndeny = [\n    \"ring\",\n]\n";
    let package =
        |name: &str, licence: &str, source: Value| json!({"name": name, "license": licence, "source": source});
    let registry = || json!("registry+somewhere");
    let metadata = json!({"packages": [
        package("ours", "Apache-2.0", Value::Null),
        package("either", "GPL-3.0 OR (MIT AND Apache-2.0)", registry()),
        package("old", "MIT/Apache-2.0", registry()),
        package("with", "Apache-2.0 WITH LLVM-exception", registry()),
        package("both", "MIT AND GPL-3.0", registry()),
        package("none", "", registry()),
        package("branch", "MIT", json!("git+somewhere")),
        package("ring", "MIT", registry()),
        package("unused", "", registry()),
    ]});
    assert_eq!(
        violations(&metadata, config, |name| name != "unused"),
        ["both: licence \"MIT AND GPL-3.0\"", "none: licence \"\"", "branch: from \"git+somewhere\"", "ring: banned",]
    );
}
