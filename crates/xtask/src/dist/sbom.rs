//! A list of all that is in the program: CycloneDX, made of what cargo knows.

use super::release::Release;
use crate::run::{capture, cargo, root};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The document for the server.
pub fn document(release: &Release) -> Result<String, String> {
    let words = ["metadata", "--format-version=1", "--locked", "--filter-platform", &release.machine.triple];
    let metadata: Value =
        serde_json::from_str(&capture(cargo().args(words))?).map_err(|e| format!("cargo metadata: {e}"))?;
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).map_err(|error| format!("Cargo.lock: {error}"))?;
    let document = of_metadata(&metadata, &checksums(&lock), release, &release.rfc3339()?)?;
    Ok(format!("{document:#}\n"))
}

/// Checksums by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let field = |package: &str, name: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
        line.map(|value| value.trim_end_matches('"').to_owned())
    };
    let packages = lock.split("[[package]]").skip(1);
    packages.filter_map(|p| Some(((field(p, "name")?, field(p, "version")?), field(p, "checksum")?))).collect()
}

fn of_metadata(
    metadata: &Value,
    checksums: &BTreeMap<(String, String), String>,
    release: &Release,
    made: &str,
) -> Result<Value, String> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|package| (text(&package["id"]), package)).collect();
    let nodes: BTreeMap<String, Value> =
        list(&metadata["resolve"]["nodes"]).into_iter().map(|node| (text(&node["id"]), node)).collect();
    let root = packages.iter().find(|(_, package)| package["name"] == "kubelith");
    let root = root.map(|(id, _)| id.clone()).ok_or("cargo knows no kubelith")?;

    // Tests are no part of the program, and neither is what builds it.
    let is_inside = |dependency: &Value| list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
    let below = |id: &str| -> BTreeSet<String> {
        let all = nodes.get(id).map(|node| list(&node["deps"])).unwrap_or_default();
        all.iter().filter(|dependency| is_inside(dependency)).map(|dependency| text(&dependency["pkg"])).collect()
    };
    let (mut found, mut left) = (BTreeSet::new(), vec![root.clone()]);
    while let Some(id) = left.pop() {
        if found.insert(id.clone()) {
            left.extend(below(&id));
        }
    }
    let url = |id: &str| format!("pkg:cargo/{}@{}", text(&packages[id]["name"]), text(&packages[id]["version"]));
    let component = |id: &String| {
        let package = &packages[id];
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        let mut component = json!({
            "type": "library", "bom-ref": url(id), "name": name, "version": version, "purl": url(id),
            "licenses": [{"expression": text(&package["license"]).replace('/', " OR ")}],
        });
        if let Some(sum) = checksums.get(&(name, version)) {
            component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
        }
        component
    };
    let components: Vec<Value> = found.iter().filter(|id| **id != root).map(component).collect();
    let edges =
        |id: &String| json!({"ref": url(id), "dependsOn": below(id).iter().map(|id| url(id)).collect::<Vec<_>>()});
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": made,
            "component": {
                "type": "application", "bom-ref": url(&root), "name": "kubelith", "version": release.version,
                "purl": url(&root), "licenses": [{"expression": "Apache-2.0"}],
                "properties": [
                    {"name": "commit", "value": release.commit},
                    {"name": "target", "value": release.machine.triple},
                ],
            },
        },
        "components": components,
        "dependencies": found.iter().map(edges).collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::release::Machine;

    #[test]
    fn what_is_built_in_is_listed() {
        let package = |id: &str, name: &str, version: &str| json!({"id": id, "name": name, "version": version, "license": "MIT/Apache-2.0"});
        let on = |id: &str, kind: Value| json!({"pkg": id, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [package("k", "kubelith", "0.2.0"), package("a", "alpha", "1.0.0"), package("t", "tests", "1.0.0"),
                         package("b", "beta", "2.0.0")],
            "resolve": {"nodes": [
                {"id": "k", "deps": [on("a", Value::Null), on("t", json!("dev"))]},
                {"id": "a", "deps": [on("b", Value::Null)]},
            ]},
        });
        let lock = "[[package]]\nname = \"alpha\"\nversion = \"1.0.0\"\nchecksum = \"00ff\"\n\n[[package]]\nname = \"kubelith\"\n";
        let machine = Machine::of("x86_64-unknown-linux-musl").unwrap();
        let release = Release { version: "0.2.0".into(), commit: "c".into(), made: 0, machine };
        let document = of_metadata(&metadata, &checksums(lock), &release, "1970-01-01T00:00:00Z").unwrap();
        let names: Vec<&str> =
            document["components"].as_array().unwrap().iter().filter_map(|c| c["purl"].as_str()).collect();
        assert_eq!(names, ["pkg:cargo/alpha@1.0.0", "pkg:cargo/beta@2.0.0"]);
        assert_eq!(document["components"][0]["hashes"][0]["content"], "00ff");
        assert_eq!(document["components"][0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(document["dependencies"].as_array().unwrap().len(), 3);
    }
}
