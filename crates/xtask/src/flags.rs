//! A test: no flag of the server is accepted and then forgotten. Each is read by its name somewhere, or its table says that
//! it has no use, which who gives it is told.

use crate::run::root;
use std::fs;
use std::path::Path;

/// Accepted either way, since what it asks for is always so, here and in kube-apiserver (Go's sockets have SO_REUSEADDR).
const ALWAYS_SO: &[&str] = &["permit-address-sharing"];

/// The text of all sources below a folder, but for tests and the tables of flags.
fn sources(folder: &Path, text: &mut String) {
    for entry in fs::read_dir(folder).expect("sources can be read").filter_map(Result::ok) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() && name != "table" {
            sources(&path, text);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            text.push_str(&fs::read_to_string(&path).expect("sources can be read"));
        }
    }
}

/// The names in the tables of flags that are said to apply: the first text in quotes behind `flag(`.
fn applying(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).expect("the tables can be read").filter_map(Result::ok);
    let texts = files.map(|file| fs::read_to_string(file.path()).expect("the tables can be read"));
    let names = |text: String| {
        let entries = text.split("flag(").skip(1).filter_map(|rest| rest.trim_start().strip_prefix('"'));
        entries.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect::<Vec<_>>()
    };
    texts.flat_map(names).collect()
}

/// Whether a name can be made of a text with `{}` in it, as `audit-log-version` of `audit-{plugin}-version`.
fn is_made_of(name: &str, template: &str) -> bool {
    let Some((head, rest)) = template.split_once('{') else { return name == template };
    let Some((_, rest)) = rest.split_once('}') else { return false };
    let Some(tail) = name.strip_prefix(head) else { return false };
    (1..=tail.len()).any(|end| is_made_of(&tail[end..], rest))
}

#[test]
fn every_flag_is_read_or_has_no_use() {
    let folder = root().join("crates/kubelith/src");
    let flags = applying(&folder.join("flags/table"));
    assert!(flags.len() > 150, "{} flags", flags.len());
    let mut text = String::new();
    sources(&folder, &mut text);
    let quoted: Vec<&str> = text.lines().flat_map(|line| line.split('"').skip(1).step_by(2)).collect();
    // A part that stands for anything says nothing: a template has the beginning of a name at least.
    let templates: Vec<&&str> = quoted.iter().filter(|q| q.find("-{").is_some_and(|at| at > 3)).collect();
    let is_read =
        |flag: &&String| quoted.contains(&flag.as_str()) || templates.iter().any(|template| is_made_of(flag, template));
    let forgotten: Vec<&String> =
        flags.iter().filter(|flag| !is_read(flag) && !ALWAYS_SO.contains(&flag.as_str())).collect();
    assert!(forgotten.is_empty(), "nothing reads {forgotten:?}, and their tables do not say that they have no use");
}

#[test]
fn names_are_made_of_templates() {
    for (name, template, want) in [
        ("audit-log-version", "audit-{plugin}-version", true),
        ("audit-log-batch-max-size", "audit-{plugin}-batch-{rest}", true),
        ("audit-log-path", "audit-{plugin}-version", false),
        ("audit-log-version", "audit-log-version", true),
        ("audit--version", "audit-{plugin}-version", false),
    ] {
        assert_eq!(is_made_of(name, template), want, "{name} {template}");
    }
}
