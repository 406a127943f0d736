//! Every kind: created, read in each form, labelled, annotated, edited, watched and deleted with kubectl.

use super::kubectl::Kubectl;
use super::{Check, Context, Outcome, ensure};
use std::path::{Path, PathBuf};

/// The manifests name it where one object refers to another.
const NAMESPACE: &str = "clients-kinds";

/// These wait for a controller to let them go: deletion only marks them.
const FINALIZED: [&str; 4] = ["namespaces", "persistentvolumes", "persistentvolumeclaims", "volumeattributesclasses"];

pub fn checks(context: &Context) -> Result<Vec<Check>, String> {
    let manifests = yaml_files(&context.fixture("manifests"))?;
    let reviews = yaml_files(&context.fixture("reviews"))?;
    let mut checks: Vec<Check> = Vec::new();
    checks.extend(
        manifests
            .into_iter()
            .map(|file| Check::new(format!("kinds/{}", stem(&file)), move |context| whole_life(context, &file))),
    );
    checks.extend(
        reviews
            .into_iter()
            .map(|file| Check::new(format!("reviews/{}", stem(&file)), move |context| review(context, &file))),
    );
    checks.push(Check::new("kinds/each-has-a-manifest", each_has_a_manifest));
    Ok(checks)
}

fn whole_life(context: &Context, manifest: &Path) -> Outcome {
    let editor = "sed -i s/before-edit/after-edit/";
    let kubectl = Kubectl::new(context, NAMESPACE)?.with_env("KUBE_EDITOR", editor);
    let kind = stem(manifest);
    let object = kubectl.create(manifest)?;
    let name = object.split_once('/').map_or(object.as_str(), |(_, name)| name);
    let selector = format!("metadata.name={name}");
    let resource = object.split('/').next().unwrap_or_default();
    let watch_words =
        ["get", resource, "--field-selector", &selector, "-o", "wide", "--watch", "--output-watch-events"];
    let mut watch = kubectl.background(&watch_words)?;
    watch.wait_for(&["ADDED", name])?;

    kubectl.says(&["get", &object, "-o", "wide"], &[name])?;
    kubectl.says(&["get", &object, "-o", "yaml"], &["apiVersion: ", "kind: ", &format!("name: {name}"), "uid: "])?;
    kubectl.says(&["get", resource, "-A", "-o", "name"], &[&object])?;
    kubectl.ok(&["label", &object, "example.com/label=yes"])?;
    watch.wait_for(&["MODIFIED", name])?;
    kubectl.says(&["get", resource, "-A", "-l", "example.com/label=yes", "-o", "name"], &[&object])?;
    kubectl.ok(&["annotate", &object, "example.com/edited=before-edit"])?;
    watch.wait_for(&["MODIFIED", name])?;
    kubectl.ok(&["edit", &object])?;
    watch.wait_for(&["MODIFIED", name])?;
    kubectl.has(&object, r"{.metadata.annotations.example\.com/edited}", "after-edit")?;
    kubectl.has(&object, r"{.metadata.labels.example\.com/label}", "yes")?;
    kubectl.says(&["describe", &object], &[name])?;

    if FINALIZED.contains(&kind.as_str()) {
        kubectl.ok(&["delete", &object, "--wait=false"])?;
        watch.wait_for(&["MODIFIED", name])?;
        ensure!(
            !kubectl.field(&object, "{.metadata.deletionTimestamp}")?.is_empty(),
            "{object} is not marked as deleted"
        );
        finalize(&kubectl, &object, name)?;
    } else {
        kubectl.ok(&["delete", &object])?;
    }
    watch.wait_for(&["DELETED", name])?;
    kubectl.refuses(&["get", &object], &["NotFound"])
}

/// Does what the controllers do that let such an object go.
fn finalize(kubectl: &Kubectl, object: &str, name: &str) -> Outcome {
    if !object.starts_with("namespace/") {
        return kubectl.ok(&["patch", object, "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#]).map(|_| ());
    }
    let body = format!(
        r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}},"spec":{{"finalizers":[]}}}}"#
    );
    kubectl.feed(&["replace", "--raw", &format!("/api/v1/namespaces/{name}/finalize"), "-f", "-"], &body).map(|_| ())
}

fn review(context: &Context, manifest: &Path) -> Outcome {
    let kubectl = Kubectl::new(context, NAMESPACE)?;
    kubectl.says(&["create", "-f", &manifest.to_string_lossy(), "-o", "yaml"], &["\nstatus:\n"])
}

/// A new resource cannot be forgotten: whatever discovery offers for creation is in one of the folders.
fn each_has_a_manifest(context: &Context) -> Outcome {
    let kubectl = Kubectl::plain(context);
    let offered = kubectl.ok(&["api-resources", "--verbs=create", "--no-headers", "-o", "name"])?;
    for resource in offered.lines() {
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        let is_ours = !group.contains("example.com");
        let named = |name: &str| {
            ["manifests", "reviews"].iter().any(|dir| context.fixture(dir).join(format!("{name}.yaml")).exists())
        };
        // A binding needs a pod and a node; writing::binding makes one.
        ensure!(!is_ours || plural == "bindings" || named(plural) || named(resource), "{resource} has no manifest");
    }
    ensure!(offered.lines().count() > 60, "discovery offers only:\n{offered}");
    Ok(())
}

fn yaml_files(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    Ok(files)
}

fn stem(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
