//! kubectl apply, on the client and on the server, and diff.

use super::kubectl::Kubectl;
use super::{Check, Context, Outcome, ensure};

pub fn checks() -> Vec<Check> {
    vec![
        Check::new("apply/client-side", client_side),
        Check::new("apply/server-side", server_side),
        Check::new("apply/conflicts", conflicts),
        Check::new("apply/diff", diff),
        Check::new("apply/prune", prune),
        Check::new("apply/kustomize", kustomize),
    ]
}

fn deployment(image: &str, extra: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web, labels: {{app: web}}}}\nspec:\n  replicas: 2\n  selector: {{matchLabels: {{app: web}}}}\n\
         \x20 template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      containers:\n      - name: web\n        image: {image}\n{extra}"
    )
}

const SIDECAR: &str = "      - name: side\n        image: example.com/side:1\n        env: [{name: A, value: b}]\n";

fn client_side(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-apply")?;
    let apply = |text: &str| kubectl.feed(&["apply", "-f", "-"], text);
    ensure!(apply(&deployment("example.com/web:1", SIDECAR))?.contains("deployment.apps/web created"), "not created");
    ensure!(
        apply(&deployment("example.com/web:1", SIDECAR))?.contains("deployment.apps/web unchanged"),
        "not unchanged"
    );
    kubectl.ok(&["scale", "deployment", "web", "--replicas=7"])?;
    kubectl.ok(&["annotate", "deployment", "web", "kept=yes"])?;
    ensure!(apply(&deployment("example.com/web:2", ""))?.contains("deployment.apps/web configured"), "not configured");
    kubectl.has("deployment/web", "{.spec.template.spec.containers[*].image}", "example.com/web:2")?;
    kubectl.has("deployment/web", "{.spec.replicas}", "2")?;
    kubectl.has("deployment/web", "{.metadata.annotations.kept}", "yes")?;
    kubectl.says(&["apply", "view-last-applied", "deployment/web"], &["image: example.com/web:2"])?;
    kubectl.ok(&["delete", "deployment", "web"]).map(|_| ())
}

fn server_side(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-ssa")?;
    let apply = |text: &str| kubectl.feed(&["apply", "--server-side", "-f", "-"], text);
    ensure!(apply(&deployment("example.com/web:1", SIDECAR))?.contains("serverside-applied"), "not applied");
    kubectl.has("deployment/web", "{.metadata.managedFields[0].operation}", "Apply")?;
    apply(&deployment("example.com/web:2", ""))?;
    kubectl.has("deployment/web", "{.spec.template.spec.containers[*].image}", "example.com/web:2")?;
    let before = kubectl.field("deployment/web", "{.metadata.resourceVersion}")?;
    apply(&deployment("example.com/web:2", ""))?;
    kubectl.has("deployment/web", "{.metadata.resourceVersion}", &before)?;
    // The way from client-side to server-side and back.
    kubectl.feed(
        &["apply", "-f", "-"],
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: moved}\ndata: {a: '1', b: '2'}\n",
    )?;
    kubectl.feed(
        &["apply", "--server-side", "-f", "-"],
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: moved}\ndata: {a: '1'}\n",
    )?;
    kubectl.has("cm/moved", "{.data}", r#"{"a":"1"}"#)?;
    kubectl.ok(&["delete", "deployment/web", "cm/moved"]).map(|_| ())
}

fn conflicts(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-conflicts")?;
    let text =
        |value: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\ndata: {{a: '{value}'}}\n");
    kubectl.feed(&["apply", "--server-side", "--field-manager=one", "-f", "-"], &text("1"))?;
    let refused = kubectl.feed_any(&["apply", "--server-side", "--field-manager=two", "-f", "-"], &text("2"))?.err()?;
    ensure!(refused.contains("conflict with \"one\": .data.a"), "the conflict said:\n{refused}");
    kubectl.feed(&["apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-"], &text("2"))?;
    kubectl.has("cm/c", "{.data.a}", "2")?;
    kubectl.feed(&["apply", "--server-side", "--field-manager=one", "-f", "-"], &text("2"))?;
    kubectl.has("cm/c", "{.metadata.managedFields[*].manager}", "one two")?;
    kubectl.ok(&["delete", "cm", "c"]).map(|_| ())
}

fn diff(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-diff")?;
    kubectl.feed(&["apply", "-f", "-"], &deployment("example.com/web:1", ""))?;
    kubectl.feed(&["diff", "-f", "-"], &deployment("example.com/web:1", ""))?;
    for words in [&["diff", "-f", "-"][..], &["diff", "--server-side", "--force-conflicts", "-f", "-"]] {
        let changed = kubectl.feed_any(words, &deployment("example.com/web:2", ""))?;
        let lines = changed.stdout.contains("-      - image: example.com/web:1")
            && changed.stdout.contains("+      - image: example.com/web:2");
        ensure!(
            !changed.success && lines,
            "kubectl {} printed:\n{}{}",
            words.join(" "),
            changed.stdout,
            changed.stderr
        );
    }
    kubectl.has("deployment/web", "{.spec.template.spec.containers[0].image}", "example.com/web:1")?;
    kubectl.ok(&["delete", "deployment", "web"]).map(|_| ())
}

fn prune(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-prune")?;
    let map = |name: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{set: one}}}}\n---\n")
    };
    let words = ["apply", "--prune", "-l", "set=one", "--prune-allowlist=core/v1/ConfigMap", "-f", "-"];
    kubectl.feed(&words, &(map("a") + &map("b")))?;
    let said = kubectl.feed(&words, &map("a"))?;
    ensure!(said.contains("configmap/b pruned"), "pruning said:\n{said}");
    kubectl.refuses(&["get", "cm", "b"], &["NotFound"])?;
    kubectl.ok(&["delete", "cm", "a"]).map(|_| ())
}

fn kustomize(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-kustomize")?;
    let folder = context.fixture("kustomize");
    kubectl.ok(&["apply", "-k", &folder.to_string_lossy()])?;
    kubectl.has("deployment/small-web", "{.spec.replicas}", "3")?;
    kubectl.ok(&["delete", "-k", &folder.to_string_lossy()])?;
    kubectl.refuses(&["get", "deployment", "small-web"], &["NotFound"])
}
