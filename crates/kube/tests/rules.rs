//! Rules with examples: objects and changes that kube-apiserver refused, with what it said (`tests/rules`: with the gates as
//! they are by default, and with some turned), and that every
//! message a rule can give is reached by one of them, by a recorded exchange, or by a test beside the rule.

use crate::support::Server;
use http::Method;
use kubelith_catalog::RuntimeConfig;
use kubelith_features::FeatureGates;
use kubelith_kube::Install;
use kubelith_rules::Env;
use kubelith_store::MemoryStore;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The gates that were on where the examples come from, beside those that are on by default.
const GATES: [&str; 8] = [
    "ClusterTrustBundle",
    "ClusterTrustBundleProjection",
    "CoordinatedLeaderElection",
    "DRADeviceTaintRules",
    "DRAResourcePoolStatus",
    "GenericWorkload",
    "PodCertificateRequest",
    "StorageVersionMigrator",
];

/// The gates that were turned for the examples in `turned`, beside `--allow-privileged`.
const TURNED: [(&str, bool); 21] = [
    ("ClearingNominatedNodeNameAfterBinding", false),
    ("DRAConsumableCapacity", false),
    ("EnvFiles", false),
    ("HPAScaleToZero", true),
    ("ImageVolumeWithDigest", true),
    ("InPlacePodLevelResourcesVerticalScaling", false),
    ("InPlacePodVerticalScalingInitContainers", false),
    ("MatchLabelKeysInPodTopologySpreadSelectorMerge", false),
    ("MaxUnavailableStatefulSet", true),
    ("MutablePVNodeAffinity", true),
    ("MutablePodResourcesForSuspendedJobs", false),
    ("MutableSchedulingDirectivesForSuspendedJobs", false),
    ("PodDeletionCost", false),
    ("RelaxedServiceNameValidation", false),
    ("RestartAllContainersOnContainerExits", false),
    ("SELinuxMount", true),
    ("ServiceCIDRStatusFieldWiping", false),
    ("StrictIPCIDRValidation", false),
    ("TaintTolerationComparisonOperators", true),
    ("UserNamespacesHostNetworkSupport", true),
    ("VolumeLimitScaling", true),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Everything below a folder that ends like this.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().filter_map(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path, end));
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Where the rules are.
fn sources() -> impl Iterator<Item = PathBuf> {
    ["rules", "pods", "kinds"].into_iter().flat_map(|name| files(&root().join("crates").join(name).join("src"), ".rs"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn parse(path: &Path) -> Value {
    serde_json::from_str(&read(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

async fn server(is_on: impl Fn(&str) -> bool + Send + Sync + 'static, allow_privileged: bool) -> Server {
    let is_on = Arc::new(is_on);
    let install = |install: Install| {
        let everything = [("api/all".to_owned(), "true".to_owned())].into();
        Install {
            runtime_config: RuntimeConfig::parse(install.catalog, &everything).unwrap(),
            env: Arc::new(Env::new(allow_privileged, &*is_on, install.clock.clone())),
            gates: is_on.clone(),
            ..install
        }
    };
    Server::with(Arc::new(MemoryStore::default()), install).await
}

/// Sets what `at` leads to, or takes it away.
fn change(object: &mut Value, at: &[Value], to: Option<&Value>) {
    let (last, path) = at.split_last().expect("a path");
    let parent = path.iter().fold(object, |value, step| match step {
        Value::Number(i) => &mut value[i.as_u64().unwrap() as usize],
        step => &mut value[step.as_str().unwrap()],
    });
    match (last, to) {
        (Value::Number(i), Some(to)) => parent[i.as_u64().unwrap() as usize] = to.clone(),
        (key, Some(to)) => parent[key.as_str().unwrap()] = to.clone(),
        (key, None) => drop(parent.as_object_mut().and_then(|map| map.remove(key.as_str().unwrap()))),
    }
}

/// The causes of a refusal, as `path: message`.
fn causes(answer: &Value) -> Vec<String> {
    let list = answer["details"]["causes"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    list.iter().map(|cause| format!("{}: {}", text(&cause["field"]), text(&cause["message"]))).collect()
}

async fn send(server: &Server, method: Method, uri: &str, body: &Value) -> Value {
    let (_, bytes) = server.send_raw(method, uri, "application/json", &body.to_string()).await;
    serde_json::from_slice(&bytes).unwrap_or(Value::Null)
}

/// What is said to an example: a new object, or a change of one.
async fn answer(server: &Server, example: &Value) -> Value {
    let resource = example["resource"].as_str().expect("a resource");
    let Some(old) = example.get("old") else {
        return send(server, Method::POST, &format!("{resource}?dryRun=All"), &example["object"]).await;
    };
    let mut object = send(server, Method::POST, resource, old).await;
    let name = object["metadata"]["name"].as_str().unwrap_or_else(|| panic!("{object}")).to_owned();
    change(&mut object, example["at"].as_array().expect("a path"), example.get("to"));
    let uri = match example["subresource"].as_str().unwrap_or_default() {
        "" => format!("{resource}/{name}"),
        subresource => format!("{resource}/{name}/{subresource}"),
    };
    let answer = send(server, Method::PUT, &format!("{uri}?dryRun=All"), &object).await;
    send(server, Method::DELETE, &format!("{resource}/{name}"), &serde_json::json!({"gracePeriodSeconds": 0})).await;
    answer
}

#[tokio::test]
async fn examples_are_refused_as_kube_apiserver_refuses_them() {
    let features = FeatureGates::default();
    let server = server(move |gate| features.enabled(gate) || GATES.contains(&gate), true).await;
    check(server, "tests/rules/default").await;
}

#[tokio::test]
async fn gates_turn_rules() {
    let features = FeatureGates::default();
    let is_on = move |gate: &str| {
        let turned = TURNED.iter().find(|(name, _)| *name == gate).map(|(_, on)| *on);
        turned.unwrap_or_else(|| features.enabled(gate))
    };
    check(server(is_on, false).await, "tests/rules/turned").await;
}

async fn check(server: Server, folder: &str) {
    let mut wrong = Vec::new();
    for path in files(&root().join(folder), ".json") {
        for (i, example) in parse(&path).as_array().expect("a list").iter().enumerate() {
            let answer = answer(&server, example).await;
            let expected: Vec<&str> = example["errors"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            if causes(&answer) != expected {
                let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                wrong.push(format!("{file} {i}\n  expected {expected:#?}\n  found {answer:#}"));
            }
        }
    }
    server.stop().await;
    assert!(wrong.is_empty(), "{} examples\n{}", wrong.len(), wrong.join("\n"));
}

/// A string of Rust at the start of `text`, if there is one: what it says, and what comes behind it.
fn literal(text: &str) -> Option<(String, &str)> {
    if let Some(rest) = text.strip_prefix('r') {
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        let rest = rest[hashes..].strip_prefix('"')?;
        let (body, rest) = rest.split_once(&format!("\"{}", "#".repeat(hashes)))?;
        return Some((body.to_owned(), rest));
    }
    let mut rest = text.strip_prefix('"')?;
    let mut said = String::new();
    loop {
        let next = rest.chars().next()?;
        rest = &rest[next.len_utf8()..];
        match next {
            '"' => return Some((said, rest)),
            '\\' => {
                let escaped = rest.chars().next()?;
                rest = &rest[escaped.len_utf8()..];
                match escaped {
                    'n' => said.push('\n'),
                    '\n' => rest = rest.trim_start(),
                    other => said.push(other),
                }
            }
            other => said.push(other),
        }
    }
}

/// Whether what comes next is not the end of a word.
fn is_apart(before: &str) -> bool {
    !before.strip_suffix('b').unwrap_or(before).ends_with(char::is_alphanumeric)
}

/// The strings of a source, without those that tell a programmer something.
fn literals(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source;
    let mut before = String::new();
    while let Some(next) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        } else if next == '\'' && rest.len() > 2 && (rest[1..].starts_with('\\') || rest[2..].starts_with('\'')) {
            let end = if rest[1..].starts_with('\\') { 4 } else { 3 };
            rest = rest.get(end..).unwrap_or("");
        } else if let Some((text, behind)) = literal(rest).filter(|_| next == '"' || is_apart(&before)) {
            let call = before.trim_end();
            let is_for_people = !["expect(", "panic!(", "include_str!("].iter().any(|end| call.ends_with(end));
            if is_for_people && !before.ends_with('b') {
                found.push(text);
            }
            before.clear();
            rest = behind;
        } else {
            before.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    found
}

/// All that was said, to be searched.
struct Said {
    each: BTreeSet<String>,
    together: String,
}

impl Said {
    /// Whether one text has these parts in this order.
    fn has(&self, parts: &[&str]) -> bool {
        let Some(longest) = parts.iter().max_by_key(|part| part.len()) else { return true };
        if parts.len() < 2 || !self.together.contains(longest) {
            return self.together.contains(longest);
        }
        let has_all = |text: &&String| {
            parts.iter().try_fold(text.as_str(), |rest, part| Some(rest.split_once(part)?.1)).is_some()
        };
        self.each.iter().filter(|text| text.contains(longest)).any(|text| has_all(&text))
    }
}

/// What is fixed of a message with places for values.
fn parts(message: &str) -> Vec<&str> {
    let all = message.split(['{', '}']).enumerate().filter(|(i, _)| i % 2 == 0).map(|(_, part)| part);
    all.filter(|part| !part.trim().is_empty()).collect()
}

fn texts(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => drop(found.insert(text.clone())),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(map) => map.values().for_each(|item| texts(item, found)),
        _ => {}
    }
}

/// All that was said in recorded exchanges, in the examples, and in tests beside the rules.
fn reached() -> Said {
    let mut found = BTreeSet::new();
    for path in files(&root().join("tests/conformance"), ".json") {
        for step in parse(&path)["steps"].as_array().into_iter().flatten() {
            texts(&step["expect"], &mut found);
        }
    }
    for path in files(&root().join("tests/rules"), ".json") {
        for example in parse(&path).as_array().into_iter().flatten() {
            texts(&example["errors"], &mut found);
        }
    }
    for path in sources() {
        let source = read(&path);
        let tests = match path.to_string_lossy().ends_with("tests.rs") {
            true => Some(source.as_str()),
            false => source.split_once(TESTS).map(|(_, tests)| tests),
        };
        found.extend(tests.into_iter().flat_map(literals));
    }
    found.retain(|text| text.contains(' '));
    let together = found.iter().fold(String::new(), |all, text| all + text + "\u{0}");
    Said { each: found, together }
}

const TESTS: &str = "#[cfg(test)]\nmod tests {";

#[test]
fn every_message_is_reached_by_an_example() {
    let reached = reached();
    let known: BTreeSet<String> = read(&root().join("tests/rules/unreached.txt")).lines().map(str::to_owned).collect();
    let mut unreached = BTreeSet::new();
    for path in sources() {
        if path.to_string_lossy().ends_with("tests.rs") {
            continue;
        }
        let source = read(&path);
        let source = source.split_once(TESTS).map_or(source.as_str(), |(rules, _)| rules);
        // A message has several words.
        let is_message = |text: &&String| text.trim().contains(' ') && text.contains(char::is_alphabetic);
        for message in literals(source).iter().filter(is_message) {
            let parts = parts(message);
            if !reached.has(&parts) {
                unreached.insert(message.replace('\n', " "));
            }
        }
    }
    if std::env::var_os("BLESS").is_some() {
        let lines: Vec<&str> = unreached.iter().map(String::as_str).collect();
        fs::write(root().join("tests/rules/unreached.txt"), lines.join("\n") + "\n").unwrap();
        return;
    }
    let new: Vec<&String> = unreached.difference(&known).collect();
    let gone: Vec<&String> = known.difference(&unreached).collect();
    assert!(new.is_empty(), "no example reaches {new:#?}: add one to tests/rules, with what kube-apiserver says");
    assert!(
        gone.is_empty(),
        "these are reached, or there no more: take them out of tests/rules/unreached.txt {gone:#?}"
    );
}
