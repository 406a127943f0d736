//! kubectl's commands about workloads and nodes, as far as they need no controller: the checks write what a controller would.

use super::kubectl::Kubectl;
use super::{Check, Context, Outcome, ensure};

pub fn checks() -> Vec<Check> {
    vec![
        Check::new("workloads/rollout", rollout),
        Check::new("workloads/rollout-history", rollout_history),
        Check::new("workloads/scale-and-autoscale", scale_and_autoscale),
        Check::new("workloads/set", set),
        Check::new("workloads/nodes", nodes),
        Check::new("workloads/cascade", cascade),
    ]
}

fn rollout(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-rollout")?;
    kubectl.ok(&["create", "deployment", "web", "--image=example.com/web:1", "--replicas=2"])?;
    kubectl.ok(&["rollout", "pause", "deployment/web"])?;
    kubectl.has("deployment/web", "{.spec.paused}", "true")?;
    kubectl.ok(&["rollout", "resume", "deployment/web"])?;
    kubectl.ok(&["rollout", "restart", "deployment/web"])?;
    let restarted = kubectl
        .field("deployment/web", r"{.spec.template.metadata.annotations.kubectl\.kubernetes\.io/restartedAt}")?;
    ensure!(!restarted.is_empty(), "the template has no restart annotation");
    let mut status = kubectl.background(&["rollout", "status", "deployment/web", "--timeout=50s"])?;
    status.wait_for(&["Waiting for"])?;
    let generation = kubectl.field("deployment/web", "{.metadata.generation}")?;
    let done = format!(
        r#"{{"status":{{"observedGeneration":{generation},"replicas":2,"updatedReplicas":2,"readyReplicas":2,"availableReplicas":2}}}}"#
    );
    kubectl.ok(&["patch", "deployment", "web", "--subresource=status", "-p", &done])?;
    status.wait_for(&["successfully rolled out"])?;
    kubectl.ok(&["delete", "deployment", "web"]).map(|_| ())
}

fn rollout_history(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-history")?;
    kubectl.ok(&["create", "deployment", "web", "--image=example.com/web:2"])?;
    let uid = kubectl.field("deployment/web", "{.metadata.uid}")?;
    for revision in [1, 2] {
        let set = format!(
            r#"{{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{{"name":"web-{revision}","labels":{{"app":"web"}},"annotations":{{"deployment.kubernetes.io/revision":"{revision}"}},
            "ownerReferences":[{{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"{uid}","controller":true}}]}},
            "spec":{{"selector":{{"matchLabels":{{"app":"web"}}}},"template":{{"metadata":{{"labels":{{"app":"web","pod-template-hash":"{revision}"}}}},
            "spec":{{"containers":[{{"name":"web","image":"example.com/web:{revision}"}}]}}}}}}}}"#
        );
        kubectl.feed(&["create", "-f", "-"], &set)?;
    }
    kubectl.ok(&["annotate", "deployment", "web", "deployment.kubernetes.io/revision=2"])?;
    kubectl.says(&["rollout", "history", "deployment/web"], &["REVISION", "1", "2"])?;
    kubectl.says(&["rollout", "history", "deployment/web", "--revision=1"], &["example.com/web:1"])?;
    kubectl.says(&["rollout", "undo", "deployment/web", "--to-revision=1"], &["rolled back"])?;
    kubectl.has("deployment/web", "{.spec.template.spec.containers[0].image}", "example.com/web:1")?;
    kubectl.ok(&["delete", "deployment,rs", "--all"]).map(|_| ())
}

fn scale_and_autoscale(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-scale")?;
    kubectl.ok(&["create", "deployment", "web", "--image=example.com/web:1"])?;
    kubectl.ok(&["scale", "deployment", "web", "--current-replicas=1", "--replicas=4"])?;
    kubectl.has("deployment/web", "{.spec.replicas}", "4")?;
    kubectl.refuses(
        &["scale", "deployment", "web", "--current-replicas=1", "--replicas=9"],
        &["Expected replicas to be 1, was 4"],
    )?;
    kubectl
        .says(&["get", "deployment", "web", "--subresource=scale", "-o", "yaml"], &["kind: Scale", "replicas: 4"])?;
    kubectl.ok(&["autoscale", "deployment", "web", "--min=2", "--max=6", "--cpu=80%"])?;
    kubectl.has("hpa/web", "{.spec.metrics[0].resource.target.averageUtilization}", "80")?;
    kubectl.says(
        &[
            "get",
            "horizontalpodautoscalers.v1.autoscaling",
            "web",
            "-o",
            "jsonpath={.spec.targetCPUUtilizationPercentage}",
        ],
        &["80"],
    )?;
    kubectl.ok(&["expose", "deployment", "web", "--port=80"])?;
    kubectl.ok(&["delete", "deployment,hpa,service", "--all"]).map(|_| ())
}

fn set(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-set")?;
    kubectl.ok(&["create", "deployment", "web", "--image=example.com/web:1"])?;
    kubectl.ok(&["set", "image", "deployment/web", "web=example.com/web:9"])?;
    kubectl.ok(&["set", "env", "deployment/web", "MODE=fast"])?;
    kubectl.ok(&["set", "resources", "deployment/web", "--requests=cpu=100m,memory=64Mi"])?;
    kubectl.ok(&["set", "serviceaccount", "deployment/web", "default"])?;
    let container = "{.spec.template.spec.containers[0]";
    for (path, want) in
        [(".image}", "example.com/web:9"), (".env[0].value}", "fast"), (".resources.requests.memory}", "64Mi")]
    {
        kubectl.has("deployment/web", &format!("{container}{path}"), want)?;
    }
    kubectl.ok(&["delete", "deployment", "web"]).map(|_| ())
}

fn nodes(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-nodes")?;
    kubectl.feed(&["create", "-f", "-"], "apiVersion: v1\nkind: Node\nmetadata: {name: clients-node}\n")?;
    kubectl.ok(&["taint", "node", "clients-node", "dedicated=db:NoSchedule"])?;
    kubectl.has("node/clients-node", "{.spec.taints[?(@.key=='dedicated')].value}", "db")?;
    kubectl.ok(&["cordon", "clients-node"])?;
    kubectl.has("node/clients-node", "{.spec.unschedulable}", "true")?;
    kubectl.says(&["get", "node", "clients-node"], &["STATUS", "SchedulingDisabled"])?;
    kubectl.ok(&["drain", "clients-node", "--ignore-daemonsets"])?;
    kubectl.ok(&["uncordon", "clients-node"])?;
    kubectl.ok(&["taint", "node", "clients-node", "dedicated-"])?;
    kubectl.ok(&["delete", "node", "clients-node"]).map(|_| ())
}

fn cascade(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, "clients-cascade")?;
    for (policy, finalizer) in [("foreground", "foregroundDeletion"), ("orphan", "orphan")] {
        kubectl.ok(&["create", "deployment", "web", "--image=example.com/web:1"])?;
        kubectl.ok(&["delete", "deployment", "web", &format!("--cascade={policy}"), "--wait=false"])?;
        kubectl.has("deployment/web", "{.metadata.finalizers[*]}", finalizer)?;
        kubectl.ok(&["patch", "deployment", "web", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#])?;
        kubectl.refuses(&["get", "deployment", "web"], &["NotFound"])?;
    }
    Ok(())
}
