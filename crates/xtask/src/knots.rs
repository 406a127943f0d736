//! A test: the modules of a crate depend on each other in one direction, but for small knots. It reads the paths that
//! begin with `crate` or `super` as text, which is enough to see who names whom.

use crate::run::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Modules that all lead to each other. More of them than this are one module in several files.
const LARGEST_KNOT: usize = 4;
/// Lines of a crate, without its tests. Beyond it a crate is built, and read, as several.
const LARGEST_CRATE: usize = 15_000;

/// Who names whom, by the names of a crate's top-level modules.
type Edges = BTreeMap<String, BTreeSet<String>>;

/// The text without comments and without the tests at its end.
fn code(text: &str) -> String {
    let text: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
    let text = text.join("\n");
    let is_module = |rest: &str| rest.lines().nth(1).is_some_and(|l| l.starts_with("mod ") && l.ends_with('{'));
    let tests = text.match_indices("#[cfg(test)]\n").find(|(at, _)| is_module(&text[*at..]));
    match tests {
        Some((at, _)) => text[..at].to_owned(),
        None => text,
    }
}

/// The paths of a tree of imports: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn leaves(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        return vec![tree.split_whitespace().next().unwrap_or("").to_owned()];
    };
    let inner = tree[open + 1..].trim_end().strip_suffix('}').unwrap_or(&tree[open + 1..]);
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
    parts.flat_map(|part| leaves(part).into_iter().map(|leaf| format!("{}{leaf}", tree[..open].trim()))).collect()
}

/// All paths of a file that begin with `crate` or `super`.
fn paths(code: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start) {
            let before = &code[..at];
            if before.ends_with(is_word) || before.ends_with(':') {
                continue;
            }
            let rest = &code[at..];
            let end = rest.find(|c: char| !is_word(c) && c != ':').unwrap_or(rest.len());
            // A tree of imports goes on behind the path.
            let end = if rest[end..].starts_with('{') { rest.find(';').unwrap_or(end) } else { end };
            found.extend(leaves(&rest[..end]));
        }
    }
    found
}

/// The top-level module that a path leads to from the module `here`.
fn target(
    path: &str,
    here: &[String],
    modules: &BTreeSet<String>,
    exported: &BTreeMap<String, String>,
) -> Option<String> {
    let mut steps: Vec<&str> = path.split("::").collect();
    let mut base: Vec<&str> = here.iter().map(String::as_str).collect();
    if steps[0] == "crate" {
        base.clear();
        steps.remove(0);
    }
    while steps.first() == Some(&"super") {
        base.pop();
        steps.remove(0);
    }
    let first = base.into_iter().chain(steps).next()?;
    modules.get(first).or_else(|| exported.get(first)).cloned()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            found.extend(files(&path));
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
            found.push(path);
        }
    }
    found
}

/// `a/b/mod.rs` and `a/b.rs` are `[a, b]`; the root is empty.
fn module(file: &Path, source: &Path) -> Vec<String> {
    let relative = file.strip_prefix(source).unwrap_or(file).with_extension("");
    let mut steps: Vec<String> = relative.iter().map(|step| step.to_string_lossy().into_owned()).collect();
    if steps.last().is_some_and(|last| last == "mod")
        || matches!(steps.as_slice(), [one] if one == "lib" || one == "main")
    {
        steps.pop();
    }
    steps
}

/// What the root hands on under a shorter path: the name, and the module that has it.
fn exported(root: &str, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for (at, _) in root.match_indices("pub use ") {
        let tree = &root[at + "pub use ".len()..];
        for leaf in leaves(&tree[..tree.find(';').unwrap_or(0)]) {
            let steps: Vec<&str> = leaf.split("::").filter(|step| *step != "crate").collect();
            if let (Some(module), Some(name)) = (steps.first().and_then(|m| modules.get(*m)), steps.last()) {
                names.insert((*name).to_owned(), module.clone());
            }
        }
    }
    names
}

/// The edges of a crate, and how many lines it has.
fn read(source: &Path) -> (Edges, usize) {
    let texts: Vec<(Vec<String>, String)> =
        files(source).iter().map(|f| (module(f, source), code(&fs::read_to_string(f).unwrap()))).collect();
    let lines = texts.iter().map(|(_, text)| text.lines().count()).sum();
    let modules: BTreeSet<String> = texts.iter().filter_map(|(module, _)| module.first().cloned()).collect();
    let root: String = texts.iter().filter(|(module, _)| module.is_empty()).map(|(_, text)| text.as_str()).collect();
    let exported = exported(&root, &modules);
    let mut edges = Edges::new();
    for (module, text) in texts.iter().filter(|(module, _)| !module.is_empty()) {
        let from = &module[0];
        let to = paths(text).into_iter().filter_map(|path| target(&path, module, &modules, &exported));
        edges.entry(from.clone()).or_default().extend(to.filter(|to| to != from));
    }
    (edges, lines)
}

fn reachable<'e>(from: &'e str, edges: &'e Edges) -> BTreeSet<&'e str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(next) = open.pop() {
        for to in edges.get(next).into_iter().flatten() {
            if seen.insert(to.as_str()) {
                open.push(to);
            }
        }
    }
    seen
}

/// Sets of modules that all lead to each other.
fn knots(edges: &Edges) -> BTreeSet<Vec<&str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = edges.keys().map(|m| (m.as_str(), reachable(m, edges))).collect();
    let back = |a: &str, b: &str| reach.get(b).is_some_and(|from| from.contains(a));
    reach
        .iter()
        .map(|(module, to)| to.iter().copied().filter(|other| back(module, other)).collect::<Vec<_>>())
        .filter(|knot| knot.len() > 1)
        .collect()
}

#[test]
fn crates_are_small_and_their_modules_are_no_knot() {
    let mut wrong = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (edges, lines) = read(&path.join("src"));
        if lines > LARGEST_CRATE {
            wrong.push(format!("{name} has {lines} lines"));
        }
        let knots = knots(&edges);
        let large = knots.iter().filter(|knot| knot.len() > LARGEST_KNOT);
        wrong.extend(large.map(|knot| format!("{name}: {} all lead to each other", knot.join(", "))));
    }
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn a_knot_is_found() {
    let folder = std::env::temp_dir().join(format!("knots-{}", std::process::id()));
    fs::create_dir_all(folder.join("b")).unwrap();
    for (file, text) in [
        ("lib.rs", "pub mod a;\nmod b;\nmod c;\nmod d;\npub use b::{Thing, inner::Other as Else};\n"),
        ("a.rs", "use crate::{c::X, Thing};\n// use crate::d;\n"),
        ("b/mod.rs", "mod inner;\nfn f() { super::c::g() }\n"),
        ("b/inner.rs", "use super::super::d;\n"),
        ("c.rs", "use super::a;\n#[cfg(test)]\nmod tests {\n    use crate::d;\n}\n"),
        ("d.rs", "use std::fmt;\n"),
        ("d_tests.rs", "use crate::a;\n"),
    ] {
        fs::write(folder.join(file), text).unwrap();
    }
    let (edges, _) = read(&folder);
    fs::remove_dir_all(&folder).unwrap();
    let of = |module: &str| edges[module].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!((of("a"), of("b"), of("c"), of("d")), (vec!["b", "c"], vec!["c", "d"], vec!["a"], vec![]));
    assert_eq!(knots(&edges), BTreeSet::from([vec!["a", "b", "c"]]));
}
