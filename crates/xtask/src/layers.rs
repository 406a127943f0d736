//! A test: a crate may depend only on those below it. Tools may depend on anything, and nothing on them; tests may look up,
//! for a codec is best tested with the real catalogue.

use crate::run::{capture, cargo, root};
use serde_json::{Value, json};
use std::path::Path;

/// From the top down, as docs/ARCHITECTURE.md draws it.
const LAYERS: [&str; 35] = [
    "kubelith-testing",
    "kubelith",
    "kubelith-console",
    "kubelith-controllers",
    "kubelith-aggregator",
    "kubelith-extensions",
    "kubelith-kube",
    "kubelith-server",
    "kubelith-handlers",
    "kubelith-openapi",
    "kubelith-listen",
    "kubelith-admission",
    "kubelith-observe",
    "kubelith-outbound",
    "kubelith-http",
    "kubelith-tls",
    "kubelith-auth",
    // Pure: beside merge and cel, but nothing between it and the server needs it.
    "kubelith-fairness",
    "kubelith-registry",
    "kubelith-store",
    "kubelith-grpc",
    "kubelith-kinds",
    "kubelith-pods",
    "kubelith-catalog",
    "kubelith-descriptions",
    "kubelith-descriptions-source",
    "kubelith-rules",
    "kubelith-merge",
    "kubelith-cel",
    "kubelith-codec",
    "kubelith-schema",
    "kubelith-features",
    "kubelith-meta",
    // A program of its own; the server only reads what it announces.
    "kubelith-companion",
    "kubelith-system",
];

const TOOLS: [&str; 6] = [
    "kubelith-xtask",
    "kubelith-acceptance",
    "kubelith-conformance",
    "kubelith-coverage",
    "kubelith-bench",
    "kubelith-robustness",
];

/// May have unsafe code, and nothing that is shipped depends on it: a tool.
const UNSAFE: &str = "coverage";

/// What `cargo metadata --no-deps` tells of our packages.
pub fn metadata() -> Value {
    let text = capture(cargo().args(["metadata", "--no-deps", "--format-version=1", "--offline"])).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// What is wrong with the edges of this `cargo metadata --no-deps` document.
fn violations(metadata: &Value) -> Vec<String> {
    let packages: Vec<&Value> = metadata["packages"].as_array().into_iter().flatten().collect();
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let names: Vec<String> = packages.iter().map(|package| name(package)).collect();
    let place = |name: &str| LAYERS.iter().position(|layer| *layer == name);
    let mut found = Vec::new();
    for package in &packages {
        let from = name(package);
        if TOOLS.contains(&from.as_str()) {
            continue;
        }
        let Some(upper) = place(&from) else {
            found.push(format!("{from} has no place in the order of the crates"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            // Tests may reach up: a codec is tried on the real catalogue.
            if dependency["kind"] == "dev" {
                continue;
            }
            let to = name(dependency);
            let is_ours = names.contains(&to);
            if is_ours && place(&to).is_none_or(|lower| lower <= upper) {
                found.push(format!("{from} may not depend on {to}"));
            }
        }
    }
    found
}

#[test]
fn crates_depend_downwards_only() {
    let metadata = metadata();
    assert!(metadata["packages"].as_array().unwrap().len() >= LAYERS.len());
    assert_eq!(violations(&metadata), [""; 0]);
}

#[test]
fn an_edge_upwards_is_found() {
    let package = |name: &str, on: &[&str]| {
        let dependencies: Vec<_> = on.iter().map(|on| json!({"name": on, "kind": null})).collect();
        json!({"name": name, "dependencies": dependencies})
    };
    let metadata = json!({"packages": [
        package("kubelith-meta", &["serde_json"]),
        package("kubelith-codec", &["kubelith-meta", "kubelith-store"]),
        package("kubelith-store", &["kubelith-xtask"]),
        package("kubelith-xtask", &["kubelith-store"]),
        package("kubelith-new", &[]),
    ]});
    assert_eq!(
        violations(&metadata),
        [
            "kubelith-codec may not depend on kubelith-store",
            "kubelith-store may not depend on kubelith-xtask",
            "kubelith-new has no place in the order of the crates",
        ]
    );
}

/// Two cryptographic libraries in one binary would be one too many; `ring` comes in through the defaults of others.
#[test]
fn ring_is_not_among_the_dependencies() {
    let tree = capture(cargo().args(["tree", "--workspace", "--prefix=none", "--format={lib}"])).unwrap();
    let libraries: Vec<&str> = tree.lines().collect();
    assert!(libraries.contains(&"aws_lc_rs"), "{libraries:?}");
    assert!(!libraries.contains(&"ring"));
}

/// What operating systems do differently has one place: logic elsewhere need not be read once for each of them.
#[test]
fn one_crate_asks_which_system_it_is_for() {
    let metadata = metadata();
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        if TOOLS.contains(&name) || name == "kubelith-system" {
            continue;
        }
        let mut left = vec![Path::new(package["manifest_path"].as_str().unwrap()).with_file_name("src")];
        while let Some(path) = left.pop() {
            if path.is_dir() {
                left.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else if std::fs::read_to_string(&path).is_ok_and(|text| asks_for_the_system(&text)) {
                found.push(path);
            }
        }
    }
    assert!(found.is_empty(), "{found:?}: move what differs to crates/system");
}

fn asks_for_the_system(source: &str) -> bool {
    ["target_os", "cfg(unix", "cfg(windows", "cfg(not(unix", "cfg(not(windows", "cfg!(unix", "cfg!(windows"]
        .iter()
        .any(|mark| source.contains(mark))
}

/// The lints (unsafe code is forbidden) hold only where a crate asks for them.
#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let manifest = folder.join("Cargo.toml");
        let Ok(text) = std::fs::read_to_string(&manifest) else { continue };
        if folder.ends_with(UNSAFE) {
            continue;
        }
        assert!(text.contains("[lints]\nworkspace = true"), "{}", manifest.display());
    }
}
