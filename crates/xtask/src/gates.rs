//! A test: no feature gate is accepted and then forgotten. Each is asked for somewhere, or stands in one of the lists of
//! `features/src/effect.rs`: of another program, or fixed, which who sets it is told.

use crate::run::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The names in quotes in these lines.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('"').skip(1).step_by(2))
}

/// Adds the names that sources below a folder ask for: in quotes in Rust, as words in the catalogue.
fn collect(folder: &Path, gates: &BTreeSet<String>, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("sources can be read").filter_map(Result::ok) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() && !["target", "tests", "features", "xtask", "descriptions"].contains(&name.as_str()) {
            collect(&path, gates, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).expect("sources can be read");
            // What stands behind it are tests.
            let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
            found.extend(quoted(shipped).filter(|word| gates.contains(*word)).map(str::to_owned));
        } else if name.ends_with(".api") {
            let text = fs::read_to_string(&path).expect("the catalogue can be read");
            found.extend(text.split_whitespace().filter(|word| gates.contains(*word)).map(str::to_owned));
        }
    }
}

#[test]
fn every_gate_is_asked_for_or_explained() {
    let crates = root().join("crates");
    let read = |path: &str| fs::read_to_string(crates.join(path)).expect("sources can be read");
    let is_entry = |line: &&str| line.trim_start().starts_with("gate(") || line.trim_start().starts_with("locked(");
    let table = read("features/src/table.rs");
    let gates: BTreeSet<String> =
        table.lines().filter(is_entry).filter_map(|line| quoted(line).next()).map(str::to_owned).collect();
    assert!(gates.len() > 200, "{} gates", gates.len());
    let mut known: BTreeSet<String> = quoted(&read("features/src/effect.rs")).map(str::to_owned).collect();
    collect(&crates, &gates, &mut known);
    let forgotten: Vec<&String> = gates.difference(&known).collect();
    assert!(forgotten.is_empty(), "nothing asks for {forgotten:?}, and features/src/effect.rs does not say why");
}

/// Adds the fields that sources below a folder read of some value.
fn collect_fields(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("sources can be read").filter_map(Result::ok) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if path.is_dir() && name != "tests" {
            collect_fields(&path, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).expect("sources can be read");
            let shipped = text.split("#[cfg(test)]").next().unwrap_or_default();
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let fields = shipped.split('.').skip(1).filter_map(|rest| rest.split(|c| !is_part(c)).next());
            found.extend(fields.filter(|field| !field.is_empty()).map(str::to_owned));
        }
    }
}

/// Rules read their gates from fields; one that no rule reads would be forgotten all the same.
#[test]
fn every_feature_of_rules_is_read() {
    let crates = root().join("crates");
    let text = fs::read_to_string(crates.join("rules/src/env.rs")).expect("sources can be read");
    let list = text.split("features! {").nth(1).and_then(|rest| rest.split('}').next()).expect("the list of features");
    let fields: BTreeSet<String> =
        list.lines().filter_map(|line| line.split_once(':')).map(|(field, _)| field.trim().to_owned()).collect();
    assert!(fields.len() > 20, "{fields:?}");
    let mut read = BTreeSet::new();
    for part in ["rules", "kinds", "pods"] {
        collect_fields(&crates.join(part).join("src"), &mut read);
    }
    let forgotten: Vec<&String> = fields.difference(&read).collect();
    assert!(forgotten.is_empty(), "no rule reads {forgotten:?}");
}
