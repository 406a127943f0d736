//! Helm: a small chart installed, listed, upgraded, rolled back and removed; a chart with a CRD.

use super::kubectl::Kubectl;
use super::process;
use super::{Check, Context, Outcome, ensure};
use std::process::Command;

pub fn checks() -> Vec<Check> {
    vec![Check::new("helm/release", release), Check::new("helm/crds", crds)]
}

const NAMESPACE: &str = "clients-helm";

fn helm(context: &Context, words: &[&str]) -> Result<process::Output, String> {
    let mut command = Command::new(context.program("helm"));
    command.arg("--kubeconfig").arg(&context.kubeconfig).args(["--namespace", NAMESPACE]).args(words);
    command.env("HOME", &context.home).env_remove("KUBECONFIG").envs(process::SHORT_LIVED);
    process::run(command, "")
}

fn release(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, NAMESPACE)?;
    let chart = context.fixture("chart");
    let chart = chart.to_string_lossy();
    helm(context, &["install", "shop", &chart])?.ok()?;
    kubectl.has("deployment/shop-web", "{.spec.replicas}", "1")?;
    kubectl.has("configmap/shop-settings", "{.data.greeting}", "hello")?;
    let listed = helm(context, &["list"])?.ok()?;
    ensure!(listed.contains("shop") && listed.contains("deployed"), "helm list printed:\n{listed}");

    helm(
        context,
        &[
            "upgrade",
            "shop",
            &chart,
            "--set",
            "replicas=3",
            "--set",
            "greeting=goodbye",
            "--set",
            "service.enabled=false",
        ],
    )?
    .ok()?;
    kubectl.has("deployment/shop-web", "{.spec.replicas}", "3")?;
    kubectl.has("configmap/shop-settings", "{.data.greeting}", "goodbye")?;
    kubectl.refuses(&["get", "service", "shop-web"], &["NotFound"])?;

    helm(context, &["rollback", "shop", "1"])?.ok()?;
    kubectl.has("deployment/shop-web", "{.spec.replicas}", "1")?;
    kubectl.has("configmap/shop-settings", "{.data.greeting}", "hello")?;
    kubectl.ok(&["get", "service", "shop-web"])?;
    let history = helm(context, &["history", "shop"])?.ok()?;
    ensure!(history.contains("Rollback to 1"), "helm history printed:\n{history}");

    helm(context, &["uninstall", "shop"])?.ok()?;
    kubectl.refuses(&["get", "deployment", "shop-web"], &["NotFound"])?;
    kubectl.refuses(&["get", "secret", "sh.helm.release.v1.shop.v1"], &["NotFound"])
}

fn crds(context: &Context) -> Outcome {
    let kubectl = Kubectl::new(context, NAMESPACE)?;
    let chart = context.fixture("chart-with-crd");
    helm(context, &["install", "gadgets", &chart.to_string_lossy()])?.ok()?;
    kubectl.has("gadgets.helm.clients.example.com/first", "{.spec.power}", "11")?;
    helm(context, &["uninstall", "gadgets"])?.ok()?;
    kubectl.ok(&["delete", "crd", "gadgets.helm.clients.example.com"]).map(|_| ())
}
