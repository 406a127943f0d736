//! What requests grow from: the recorded exchanges, without those that would lead the server to other machines.

use kubelith_conformance::corpus;
use serde_json::Value;
use std::path::Path;

/// A recorded request.
#[derive(Debug, Clone)]
pub struct Seed {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Value>,
    pub text: Option<String>,
}

/// Parts of paths and bodies that make the server dial somebody.
const OUTWARD: [&str; 10] = [
    "proxy",
    "/exec",
    "/attach",
    "portforward",
    "/log",
    "clientConfig",
    "apiservices",
    "APIService",
    "webhook",
    "externalName",
];

pub fn load(root: &Path) -> Result<Vec<Seed>, String> {
    let mut seeds = Vec::new();
    for file in corpus::load(root, &[])? {
        for step in file.transcript.steps {
            let body = step.body.as_ref().map(|body| filled(body.get()));
            let path = filled(&step.path);
            let is_outward = |text: &str| OUTWARD.iter().any(|part| text.contains(part));
            if is_outward(&path)
                || body.as_deref().is_some_and(is_outward)
                || step.text.as_deref().is_some_and(is_outward)
            {
                continue;
            }
            let headers = step.headers.into_iter().map(|(name, value)| (name, filled(&value)));
            // Whoever is named there, all requests come from the administrator.
            let headers = headers.filter(|(name, _)| !name.eq_ignore_ascii_case("authorization")).collect();
            let body = body.and_then(|body| serde_json::from_str(&body).ok());
            seeds.push(Seed { method: step.method, path, headers, body, text: step.text.map(|text| filled(&text)) });
        }
    }
    Ok(seeds)
}

/// Variables are replaced by things that exist.
fn filled(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else { break };
        out.push_str(before);
        out.push_str(match name {
            "ns" => "default",
            name if name.contains("rv") || name.contains("ersion") => "1",
            name if name.contains("uid") => "00000000-0000-4000-8000-000000000000",
            _ => "a",
        });
        rest = behind;
    }
    out.push_str(rest);
    out
}
