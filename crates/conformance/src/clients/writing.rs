//! kubectl's ways to write one object: create in its many forms, patch, replace, edit, label, subresources.

use super::kubectl::Kubectl;
use super::{Check, Context, Outcome, ensure};

pub fn checks() -> Vec<Check> {
    vec![
        Check::new("writing/generators", generators),
        Check::new("writing/patch-strategic", patch_strategic),
        Check::new("writing/patch-merge-and-json", patch_merge_and_json),
        Check::new("writing/replace", replace),
        Check::new("writing/dry-run", dry_run),
        Check::new("writing/validation", validation),
        Check::new("writing/labels", labels),
        Check::new("writing/binding", binding),
        Check::new("writing/custom-resource", custom_resource),
    ]
}

const DEPLOYMENT: [&str; 6] = ["create", "deployment", "web", "--image=example.com/web:1", "--replicas=2", "--port=80"];

fn generators(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-generators")?;
    for words in [
        &["create", "secret", "generic", "s", "--from-literal=password=hidden"][..],
        &[
            "create",
            "secret",
            "docker-registry",
            "r",
            "--docker-username=u",
            "--docker-password=p",
            "--docker-server=registry.example.com",
        ],
        &["create", "quota", "q", "--hard=configmaps=9"],
        &["create", "serviceaccount", "robot"],
        &["create", "role", "reader", "--verb=get,list", "--resource=pods"],
        &["create", "rolebinding", "readers", "--role=reader", "--serviceaccount=clients-generators:robot"],
        &["create", "service", "clusterip", "plain", "--tcp=80:8080"],
        &["create", "service", "nodeport", "open", "--tcp=80:8080"],
        &["create", "service", "externalname", "away", "--external-name=example.com"],
        &["create", "ingress", "in", "--rule=a.example.com/x=plain:80"],
        &["create", "cronjob", "cj", "--image=example.com/job", "--schedule=* * * * *"],
        &["create", "job", "once", "--from=cronjob/cj"],
        &["create", "poddisruptionbudget", "pdb", "--selector=app=web", "--min-available=1"],
        &["run", "p", "--image=example.com/p", "--port=80", "--labels=app=p"],
        &["expose", "pod", "p", "--name=p", "--port=80"],
    ] {
        kubectl.ok(words)?;
    }
    kubectl.has("secret/s", "{.data.password}", "aGlkZGVu")?;
    kubectl.has("job/once", "{.metadata.ownerReferences[0].name}", "cj")?;
    kubectl.has("service/p", "{.spec.selector.app}", "p")?;
    ensure!(kubectl.field("service/plain", "{.spec.clusterIP}")?.starts_with("10."), "the service has no address");
    ensure!(!kubectl.field("service/open", "{.spec.ports[0].nodePort}")?.is_empty(), "the service has no node port");
    kubectl.says(&["create", "token", "robot", "--duration=10m"], &["ey"])
}

fn patch_strategic(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-strategic")?;
    kubectl.ok(&DEPLOYMENT)?;
    let sidecar = r#"{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"example.com/side:1"}]}}}}"#;
    kubectl.ok(&["patch", "deployment", "web", "-p", sidecar])?;
    kubectl.has("deployment/web", "{.spec.template.spec.containers[*].name}", "side web")?;
    let removal = r#"{"spec":{"template":{"spec":{"containers":[{"$patch":"delete","name":"web"}]}}}}"#;
    kubectl.ok(&["patch", "deployment", "web", "-p", removal])?;
    kubectl.has("deployment/web", "{.spec.template.spec.containers[*].name}", "side")?;
    kubectl.ok(&["delete", "deployment", "web"]).map(|_| ())
}

fn patch_merge_and_json(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-patch")?;
    kubectl.ok(&["create", "configmap", "c", "--from-literal=a=1", "--from-literal=b=2"])?;
    kubectl.ok(&["patch", "cm", "c", "--type=merge", "-p", r#"{"data":{"a":null,"c":"3"}}"#])?;
    kubectl.has("cm/c", "{.data}", r#"{"b":"2","c":"3"}"#)?;
    let operations = r#"[{"op":"test","path":"/data/b","value":"2"},{"op":"replace","path":"/data/b","value":"4"},{"op":"remove","path":"/data/c"}]"#;
    kubectl.ok(&["patch", "cm", "c", "--type=json", "-p", operations])?;
    kubectl.has("cm/c", "{.data}", r#"{"b":"4"}"#)?;
    kubectl.refuses(&["patch", "cm", "c", "--type=json", "-p", operations], &["the server rejected our request"])?;
    kubectl.says(
        &["patch", "cm", "c", "--type=merge", "-p", r#"{"data":{"b":"4"}}"#],
        &["configmap/c patched (no change)"],
    )?;
    kubectl.ok(&["delete", "cm", "c"]).map(|_| ())
}

fn replace(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-replace")?;
    kubectl.ok(&["create", "configmap", "c", "--from-literal=a=1"])?;
    let first = kubectl.field("cm/c", "{.metadata.uid}")?;
    let read = kubectl.ok(&["get", "cm", "c", "-o", "json"])?;
    kubectl.feed(&["replace", "-f", "-"], &read.replace(r#""a": "1""#, r#""a": "2""#))?;
    kubectl.has("cm/c", "{.data.a}", "2")?;
    let stale = kubectl.feed_any(&["replace", "-f", "-"], &read)?.err()?;
    ensure!(stale.contains("the object has been modified"), "a stale replace said:\n{stale}");
    kubectl.feed(&["replace", "--force", "-f", "-"], &read)?;
    kubectl.has("cm/c", "{.data.a}", "1")?;
    ensure!(kubectl.field("cm/c", "{.metadata.uid}")? != first, "replace --force kept the object");
    kubectl.ok(&["delete", "cm", "c"]).map(|_| ())
}

fn dry_run(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-dry-run")?;
    kubectl
        .says(&["create", "configmap", "d", "--dry-run=server", "-o", "yaml"], &["uid: ", "creationTimestamp: \""])?;
    kubectl.refuses(&["get", "cm", "d"], &["NotFound"])?;
    kubectl.ok(&["create", "configmap", "d", "--from-literal=a=1"])?;
    kubectl.says(&["delete", "cm", "d", "--dry-run=server"], &["(server dry run)"])?;
    kubectl.ok(&["label", "cm", "d", "x=y", "--dry-run=server"])?;
    kubectl.has("cm/d", "{.metadata.labels}", "")?;
    kubectl.ok(&["delete", "cm", "d"]).map(|_| ())
}

fn validation(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-validation")?;
    let unknown = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: v}\ndata: {a: b}\nnothing: 1\n";
    let strict = kubectl.feed_any(&["create", "-f", "-"], unknown)?.err()?;
    ensure!(strict.contains("strict decoding error: unknown field \"nothing\""), "strict said:\n{strict}");
    let warned = kubectl.feed_any(&["create", "--validate=warn", "-f", "-"], unknown)?;
    ensure!(
        warned.success && warned.stderr.contains("Warning: unknown field \"nothing\""),
        "warn said:\n{}",
        warned.stderr
    );
    let wrong = "apiVersion: v1\nkind: Pod\nmetadata: {name: v}\nspec: {containers: []}\n";
    let required = kubectl.feed_any(&["create", "-f", "-"], wrong)?.err()?;
    ensure!(required.contains("spec.containers: Required value"), "a pod without containers said:\n{required}");
    kubectl.ok(&["delete", "cm", "v"]).map(|_| ())
}

fn labels(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-labels")?;
    kubectl.ok(&["create", "configmap", "l"])?;
    kubectl.ok(&["label", "cm", "l", "a=1", "b=2"])?;
    kubectl.refuses(&["label", "cm", "l", "a=3"], &["already has a value"])?;
    kubectl.ok(&["label", "cm", "l", "a=3", "b-", "--overwrite"])?;
    kubectl.has("cm/l", "{.metadata.labels}", r#"{"a":"3"}"#)?;
    kubectl.refuses(&["label", "cm", "l", "a=not valid!", "--overwrite"], &["a valid label must be"])?;
    kubectl.ok(&["annotate", "cm", "--all", "note=some text"])?;
    kubectl.has("cm/l", "{.metadata.annotations.note}", "some text")?;
    kubectl.ok(&["delete", "cm", "l"]).map(|_| ())
}

fn binding(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-binding")?;
    kubectl.ok(&["run", "bound", "--image=example.com/app"])?;
    let body =
        r#"{"apiVersion":"v1","kind":"Binding","metadata":{"name":"bound"},"target":{"kind":"Node","name":"node-1"}}"#;
    kubectl.feed(&["create", "--raw", "/api/v1/namespaces/clients-binding/pods/bound/binding", "-f", "-"], body)?;
    kubectl.has("pod/bound", "{.spec.nodeName}", "node-1")?;
    kubectl.says(&["get", "pods", "--field-selector=spec.nodeName=node-1", "-o", "name"], &["pod/bound"])?;
    kubectl.ok(&["delete", "pod", "bound", "--force", "--grace-period=0"]).map(|_| ())
}

fn custom_resource(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-custom")?;
    kubectl.ok(&["apply", "-f", &context.fixture("widgets-crd.yaml").to_string_lossy()])?;
    kubectl.ok(&["wait", "crd/widgets.clients.example.com", "--for=condition=Established", "--timeout=30s"])?;
    let widget = "apiVersion: clients.example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: {size: 3}\n";
    kubectl.feed(&["apply", "-f", "-"], widget)?;
    kubectl.says(&["get", "wd"], &["NAME   SIZE   COLOUR", "w      3      red"])?;
    kubectl.says(&["explain", "widget.spec"], &["colour\t<string>", "size\t<integer> -required-", "How wide it is"])?;
    kubectl.ok(&["scale", "widget", "w", "--replicas=5"])?;
    kubectl.has("widget/w", "{.spec.replicas}", "5")?;
    kubectl.ok(&[
        "patch",
        "widget",
        "w",
        "--subresource=status",
        "--type=merge",
        "-p",
        r#"{"status":{"replicas":5}}"#,
    ])?;
    let wrong = kubectl.feed_any(&["apply", "-f", "-"], &widget.replace("size: 3", "size: 300"))?.err()?;
    ensure!(wrong.contains("spec.size: Invalid value: 300"), "a value over the maximum said:\n{wrong}");
    kubectl.ok(&["delete", "widget", "--all"])?;
    kubectl.ok(&["delete", "crd", "widgets.clients.example.com"])?;
    kubectl.refuses(&["get", "widgets.clients.example.com"], &[])
}
