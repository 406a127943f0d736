//! kubectl's ways to read: formats, selectors, sorting, paging, watching.

use super::kubectl::Kubectl;
use super::{Check, Context, Outcome, ensure};

pub fn checks() -> Vec<Check> {
    vec![
        Check::new("reading/formats", formats),
        Check::new("reading/selectors", selectors),
        Check::new("reading/many-pages", many_pages),
        Check::new("reading/watch-only", watch_only),
        Check::new("reading/wait", wait),
        Check::new("reading/events", events),
        Check::new("reading/errors", errors),
    ]
}

fn formats(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-formats")?;
    kubectl.ok(&["create", "configmap", "one", "--from-literal=a=1", "--from-literal=b=2"])?;
    kubectl.says(&["get", "configmap", "one"], &["NAME   DATA   AGE", "one    2"])?;
    kubectl.says(&["get", "cm", "one", "--show-labels"], &["LABELS", "<none>"])?;
    kubectl.says(&["get", "cm", "one", "-o", "json"], &["\"a\": \"1\"", "\"kind\": \"ConfigMap\""])?;
    kubectl.says(&["get", "cm", "one", "-o", "custom-columns=N:.metadata.name,A:.data.a"], &["N     A", "one   1"])?;
    kubectl.says(&["get", "cm", "one", "-o", "go-template={{.data.b}}"], &["2"])?;
    kubectl.says(
        &["get", "cm", "one", "-o", "yaml", "--show-managed-fields"],
        &["managedFields:", "manager: kubectl-create"],
    )?;
    let yaml = kubectl.ok(&["get", "cm", "one", "-o", "yaml"])?;
    ensure!(!yaml.contains("managedFields"), "managed fields are shown unasked:\n{yaml}");
    kubectl.says(&["get", "cm,secrets,sa"], &["configmap/one", "serviceaccount/default"])?;
    kubectl.says(&["get", "all,cm", "-o", "name"], &["configmap/one"])?;
    kubectl.says(&["describe", "cm", "one"], &["Name:         one", "BinaryData"])?;
    kubectl.ok(&["delete", "cm", "one"]).map(|_| ())
}

fn selectors(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-selectors")?;
    for (name, tier) in [("a", "web"), ("b", "web"), ("c", "db")] {
        kubectl.ok(&["create", "configmap", name])?;
        kubectl.ok(&["label", "configmap", name, &format!("tier={tier}")])?;
    }
    for (selector, want) in [
        ("tier=web", "a b"),
        ("tier!=web", "c"),
        ("tier in (web,db)", "a b c"),
        ("tier notin (db)", "a b"),
        ("!tier", ""),
    ] {
        let got = kubectl.ok(&["get", "cm", "-l", selector, "-o", "jsonpath={.items[*].metadata.name}"])?;
        ensure!(got == want, "{selector:?} selects {got:?}, not {want:?}");
    }
    let sorted = kubectl.ok(&["get", "cm", "--sort-by=.metadata.labels.tier", "-o", "name"])?;
    ensure!(sorted.starts_with("configmap/c\n"), "sorted by label:\n{sorted}");
    kubectl.says(&["get", "cm", "--field-selector=metadata.name=b", "-o", "name"], &["configmap/b"])?;
    kubectl.says(&["get", "cm", "-L", "tier"], &["TIER", "web", "db"])?;
    kubectl.ok(&["delete", "cm", "-l", "tier=web"])?;
    let left = kubectl.ok(&["get", "cm", "-o", "name"])?;
    ensure!(left == "configmap/c\n", "left after deletion by label:\n{left}");
    kubectl.ok(&["delete", "cm", "--all"])?;
    kubectl.says(&["get", "cm", "-o", "name"], &[""])
}

fn many_pages(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-pages")?;
    let documents: Vec<_> =
        (0..23).map(|i| format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: page-{i:02}\n")).collect();
    kubectl.feed(&["create", "-f", "-"], &documents.join("---\n"))?;
    let listed = kubectl.ok(&["get", "cm", "--chunk-size=5", "-o", "name"])?;
    let want: Vec<_> = (0..23).map(|i| format!("configmap/page-{i:02}")).collect();
    ensure!(listed.lines().collect::<Vec<_>>() == want, "in pages of five:\n{listed}");
    kubectl.ok(&["delete", "cm", "--all"]).map(|_| ())
}

fn watch_only(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-watch")?;
    kubectl.ok(&["create", "configmap", "first"])?;
    let mut watch = kubectl.background(&["get", "cm", "-w", "--output-watch-events"])?;
    watch.wait_for(&["EVENT", "NAME", "DATA", "AGE"])?;
    watch.wait_for(&["ADDED", "first", "0"])?;
    kubectl.ok(&["create", "configmap", "second", "--from-literal=x=y"])?;
    watch.wait_for(&["ADDED", "second", "1"])?;
    kubectl.ok(&["patch", "cm", "second", "-p", r#"{"data":{"z":"1"}}"#])?;
    watch.wait_for(&["MODIFIED", "second", "2"])?;
    kubectl.ok(&["delete", "cm", "--all"])?;
    watch.wait_for(&["DELETED", "second"])
}

fn wait(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-wait")?;
    kubectl.ok(&["run", "waiting", "--image=example.com/app:1", "--restart=Never"])?;
    let mut ready = kubectl.background(&["wait", "pod/waiting", "--for=condition=Ready", "--timeout=50s"])?;
    let mut phase =
        kubectl.background(&["wait", "pod/waiting", "--for=jsonpath={.status.phase}=Running", "--timeout=50s"])?;
    let status = r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#;
    kubectl.ok(&["patch", "pod", "waiting", "--subresource=status", "-p", status])?;
    ready.wait_for(&["pod/waiting condition met"])?;
    phase.wait_for(&["pod/waiting condition met"])?;
    let mut gone = kubectl.background(&["wait", "pod/waiting", "--for=delete", "--timeout=50s", "-v=6"])?;
    // It has seen the pod.
    gone.wait_for(&["pods/waiting", "200"])?;
    kubectl.ok(&["delete", "pod", "waiting", "--wait=false", "--force", "--grace-period=0"])?;
    gone.wait_for(&["pod/waiting condition met"])?;
    kubectl.refuses(&["wait", "pod/waiting", "--for=condition=Ready", "--timeout=1s"], &["NotFound"])
}

fn events(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-events")?;
    kubectl.ok(&["run", "noisy", "--image=example.com/app:1"])?;
    let uid = kubectl.field("pod/noisy", "{.metadata.uid}")?;
    let event = format!(
        "apiVersion: v1\nkind: Event\nmetadata: {{name: noisy.1}}\nreason: Noise\nmessage: it made a noise\ntype: Warning\ncount: 3\n\
         involvedObject: {{apiVersion: v1, kind: Pod, name: noisy, namespace: clients-events, uid: {uid}}}\nlastTimestamp: 2026-01-02T03:04:05Z\n"
    );
    kubectl.feed(&["create", "-f", "-"], &event)?;
    kubectl.says(&["events", "--for=pod/noisy"], &["Warning", "Noise", "it made a noise"])?;
    kubectl
        .says(&["get", "events", "--field-selector=involvedObject.name=noisy,type=Warning"], &["pod/noisy", "Noise"])?;
    kubectl.says(&["get", "events.events.k8s.io", "-o", "jsonpath={.items[*].note}"], &["it made a noise"])?;
    kubectl.says(&["describe", "pod", "noisy"], &["Events:", "it made a noise"])
}

fn errors(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-errors")?;
    kubectl.refuses(&["get", "cm", "absent"], &["Error from server (NotFound): configmaps \"absent\" not found"])?;
    kubectl.refuses(&["get", "nonsense"], &["the server doesn't have a resource type \"nonsense\""])?;
    kubectl.refuses(&["get", "--raw", "/apis/nothing"], &["(NotFound)"])?;
    kubectl.refuses(
        &["create", "configmap", "Bad_Name"],
        &["Invalid value: \"Bad_Name\": a lowercase RFC 1123 subdomain"],
    )?;
    kubectl
        .refuses(&["create", "namespace", "default"], &["(AlreadyExists): namespaces \"default\" already exists"])?;
    kubectl.refuses(&["get", "pods", "--field-selector=spec.nothing=1"], &["field label not supported: spec.nothing"])
}
