//! The file format of a transcript: a list of steps, each one request and the answer that kube-apiserver v1.36.4 gave.

use crate::webhook_server;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Debug, Deserialize)]
pub struct Transcript {
    pub name: String,
    #[serde(default)]
    pub about: String,
    pub steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    #[serde(default = "get")]
    pub method: String,
    pub path: String,
    #[serde(default, rename = "as")]
    pub identity: Identity,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Kept as text: the order of its keys and the form of its numbers are part of what is sent.
    pub body: Option<Box<RawValue>>,
    pub text: Option<String>,
    /// Variable name to the path in the answer that gives its value.
    #[serde(default)]
    pub capture: BTreeMap<String, String>,
    pub watch: Option<Watch>,
    pub until: Option<Until>,
    #[serde(default)]
    pub ignore: Vec<String>,
    #[serde(default)]
    pub only: Vec<String>,
    pub expect: Value,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Identity {
    #[default]
    Admin,
    User,
    None,
}

/// Read a watch stream until this many events came or the time is over.
#[derive(Debug, Deserialize)]
pub struct Watch {
    pub events: usize,
    #[serde(default = "five")]
    pub seconds: f64,
}

/// Repeat the request until the answer has this value at this path, or the time is over.
#[derive(Debug, Deserialize)]
pub struct Until {
    pub path: String,
    pub is: Value,
    #[serde(default = "ten")]
    pub seconds: f64,
}

impl Transcript {
    pub fn load(path: &Path) -> Result<Transcript, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Whether any step leads the server under test to the webhook server.
    pub fn needs_webhooks(&self) -> bool {
        let leads = |step: &Step| step.body.as_ref().is_some_and(|body| webhook_server::is_named_in(body.get()));
        self.steps.iter().any(leads)
    }

    /// Whether any step speaks of the namespace that the runner makes.
    pub fn needs_namespace(&self) -> bool {
        self.steps.iter().any(|step| {
            let in_headers = || step.headers.values().any(|value| value.contains("${ns}"));
            let in_body = || step.body.as_ref().is_some_and(|body| body.get().contains("${ns}"));
            let in_text = || step.text.as_ref().is_some_and(|text| text.contains("${ns}"));
            let in_answer = || step.expect.to_string().contains("${ns}");
            step.path.contains("${ns}") || in_headers() || in_body() || in_text() || in_answer()
        })
    }

    /// Seconds that waiting steps may take: long files start first.
    pub fn patience(&self) -> f64 {
        let watches = self.steps.iter().filter_map(|step| step.watch.as_ref()).map(|watch| watch.seconds);
        let untils = self.steps.iter().filter(|step| step.until.is_some()).map(|_| 0.5);
        watches.sum::<f64>() + untils.sum::<f64>() + self.steps.len() as f64 * 0.01
    }
}

fn get() -> String {
    "GET".to_owned()
}

fn five() -> f64 {
    5.0
}

fn ten() -> f64 {
    10.0
}

/// One space after each colon and comma and none elsewhere: the form in which the recorded requests were sent.
pub fn one_line(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for c in json.chars() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = c == '\\' && !escaped;
            out.push(c);
        } else if !c.is_ascii_whitespace() {
            in_string = c == '"';
            out.push(c);
            if matches!(c, ':' | ',') {
                out.push(' ');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_lines() {
        let text = "{\n \"a\": [\n  1.0,\n  \"x\\\" ,  y\"\n ],\n \"b\": {}\n}";
        assert_eq!(one_line(text), r#"{"a": [1.0, "x\" ,  y"], "b": {}}"#);
    }
}
