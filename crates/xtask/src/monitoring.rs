//! A test: the dashboard and the alert rules name metrics that the server has. A panel that shows nothing looks like calm.

use crate::run::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Beginnings of names that the sources add to what stands in them.
const PREFIXES: [&str; 3] = ["", "apiserver_flowcontrol_", "apiserver_admission_"];

/// Names of metrics in expressions: they begin as ours do, which no label and no function does.
fn named(text: &str) -> BTreeSet<String> {
    const BEGINNINGS: [&str; 9] = [
        "apiserver_",
        "etcd_",
        "process_",
        "rest_client_",
        "workqueue_",
        "watch_cache_",
        "authentication_",
        "authorization_",
        "aggregator_",
    ];
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = text.split(|c| !is_name(c)).filter(|word| BEGINNINGS.iter().any(|start| word.starts_with(start)));
    words.map(str::to_owned).collect()
}

fn sources(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).expect("sources can be read").flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("xtask") {
            sources(&path, all);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            all.push_str(&fs::read_to_string(&path).expect("sources can be read"));
        }
    }
}

#[test]
fn what_is_shown_and_alerted_on_exists() {
    let read = |path: &str| fs::read_to_string(root().join("packaging/monitoring").join(path)).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    assert!(dashboard["panels"].as_array().unwrap().len() > 10);
    let mut code = String::new();
    for part in ["observe", "kubelith", "aggregator", "server", "store", "auth", "admission"] {
        sources(&root().join("crates").join(part).join("src"), &mut code);
    }
    let names: BTreeSet<String> =
        named(&read("dashboard.json")).into_iter().chain(named(&read("alerts.yaml"))).collect();
    assert!(names.len() > 20, "{names:?}");
    let is_known = |name: &str| {
        let rests = PREFIXES.iter().filter_map(|prefix| name.strip_prefix(prefix));
        rests.into_iter().any(|rest| code.contains(&format!("\"{rest}\"")))
    };
    let series = |name: &str| {
        ["_bucket", "_sum", "_count"].iter().find_map(|ending| name.strip_suffix(ending).map(str::to_owned))
    };
    let unknown: Vec<&String> =
        names.iter().filter(|name| !is_known(name) && !series(name).is_some_and(|family| is_known(&family))).collect();
    assert!(unknown.is_empty(), "the server has none of these: {unknown:?}");
}
