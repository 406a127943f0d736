//! What the server offers: api-resources and api-versions as the reference lists them, explain for every kind, the version.

use super::kubectl::Kubectl;
use super::{Check, Context, Outcome, ensure};

pub fn checks() -> Vec<Check> {
    vec![
        Check::new("discovery/api-resources", api_resources),
        Check::new("discovery/api-versions", api_versions),
        Check::new("discovery/explain-every-kind", explain_every_kind),
        Check::new("discovery/explain-fields", explain_fields),
        Check::new("discovery/version", version),
        Check::new("discovery/raw", raw),
    ]
}

fn is_custom(line: &str) -> bool {
    line.contains("example.com") || line.contains("metrics.k8s.io")
}

/// Other checks make kinds of their own while these run.
fn without_custom(text: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().filter(|line| !is_custom(line)).map(words).collect()
}

fn same_lines(got: &str, fixture: &std::path::Path) -> Outcome {
    let want = std::fs::read_to_string(fixture).map_err(|error| format!("{}: {error}", fixture.display()))?;
    let (want, got) = (without_custom(&want), without_custom(got));
    let missing: Vec<_> = want.iter().filter(|line| !got.contains(line)).cloned().collect();
    let extra: Vec<_> = got.iter().filter(|line| !want.contains(line)).cloned().collect();
    ensure!(
        missing.is_empty() && extra.is_empty(),
        "missing:\n{}\nunexpected:\n{}",
        missing.join("\n"),
        extra.join("\n")
    );
    ensure!(want == got, "the order differs:\n{}", got.join("\n"));
    Ok(())
}

fn api_resources(context: &Context) -> Outcome {
    let got = Kubectl::plain(context).ok(&["api-resources", "-o", "wide"])?;
    same_lines(&got, &context.fixture("api-resources.txt"))
}

fn api_versions(context: &Context) -> Outcome {
    let got = Kubectl::plain(context).ok(&["api-versions"])?;
    same_lines(&got, &context.fixture("api-versions.txt"))
}

fn explain_every_kind(context: &Context) -> Outcome {
    let kubectl = Kubectl::plain(context);
    let rows = kubectl.ok(&["api-resources", "--no-headers"])?;
    for row in rows.lines().filter(|row| !is_custom(row)) {
        let words: Vec<_> = row.split_whitespace().collect();
        let [plural, .., version, _, kind] = words.as_slice() else { return Err(format!("not a row: {row:?}")) };
        let text = kubectl.ok(&["explain", plural, "--api-version", version])?;
        ensure!(text.contains(&format!("KIND:       {kind}\n")), "explain {plural} of {version}:\n{text}");
        ensure!(text.contains("\n  apiVersion\t<string>\n"), "explain {plural} of {version}:\n{text}");
        ensure!(!text.contains("<empty>"), "explain {plural} of {version} has no description:\n{text}");
    }
    Ok(())
}

fn explain_fields(context: &Context) -> Outcome {
    let kubectl = Kubectl::plain(context);
    let containers = [
        "FIELD: containers <[]Container>",
        "image\t<string>",
        "name\t<string> -required-",
        "enum: Always, IfNotPresent, Never",
    ];
    kubectl.says(&["explain", "pod.spec.containers"], &containers)?;
    kubectl.says(
        &["explain", "deployment", "--recursive"],
        &["rollingUpdate\t<RollingUpdateDeployment>", "maxSurge\t<IntOrString>"],
    )?;
    kubectl.refuses(&["explain", "pod.spec.nothing"], &["field \"nothing\" does not exist"])
}

fn version(context: &Context) -> Outcome {
    Kubectl::plain(context).says(&["version"], &["Client Version: v1.36", "Server Version: v"])
}

fn raw(context: &Context) -> Outcome {
    let kubectl = Kubectl::plain(context);
    kubectl.says(&["get", "--raw", "/readyz"], &["ok"])?;
    kubectl.says(&["get", "--raw", "/livez?verbose"], &["[+]ping ok", "livez check passed"])?;
    kubectl.says(&["get", "--raw", "/apis"], &["\"kind\":\"APIGroupList\""])?;
    kubectl.says(&["get", "--raw", "/metrics"], &["apiserver_request_total"])?;
    kubectl.says(&["cluster-info"], &["control plane"])
}
