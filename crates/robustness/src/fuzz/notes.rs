//! What came of the requests: codes, errors, problems, and bodies to send back.

use super::HANG;
use super::compare::Differences;
use kubelith_conformance::http::{Request, Response};
use kubelith_store::random::Random;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Bodies that the server gave, kept to be sent back changed.
const KEPT: usize = 300;
const LARGEST_KEPT: usize = 20_000;
/// Errors of a server (5xx) that kube-apiserver answers as well, by what they say.
const EXPECTED: [&str; 22] = [
    // Apply: what does not fit the schema is no bad request there.
    "failed to create typed patch object",
    "failed to create manager for existing fields",
    // As a Secret whose data is no base64.
    "failed to convert new object",
    "Too large resource version",
    // timeout=1s, on a busy machine.
    "request did not complete within",
    "strconv.ParseUint",
    // Of a Binding, and of a strategic patch: errors without a code.
    "target.name: Required value",
    "target.kind: Unsupported value",
    "unknown patch type",
    "list element types are not identical",
    "does not contain declared merge key",
    "but received a",
    "unable to find api field in struct",
    "doesn't match $setElementOrder list",
    "no elements in any of the given slices",
    "resourceVersion should not be set on objects to be created",
    // A path as `/api/v1/watch`.
    "unable to determine kind and namespace from url",
    // The namespace `.`, looked for by admission.
    "invalid resource name",
    // A namespace as `..`.
    "invalid key",
    "does not reference that secret",
    // Of an eviction that says it twice.
    "Non-matching dry-run options in request and content",
    // A custom resource as a list of metadata.
    "content is not a list",
];

/// Of the code of the server.
#[derive(Debug, Clone, Copy)]
pub struct Edges {
    pub all: usize,
    /// Passed when the first request was sent.
    pub before: usize,
    pub seen: usize,
}

#[derive(Debug, Default)]
pub struct Found {
    pub requests: usize,
    pub servers: usize,
    /// How often each code was answered.
    pub codes: BTreeMap<u16, usize>,
    /// The most that a server used.
    pub most_memory: u64,
    /// Errors of the server, by what it said, with an example.
    pub errors: BTreeMap<String, String>,
    pub expected_errors: usize,
    /// Kinds of answers, and requests that led to a new one.
    pub kinds: usize,
    pub grown: usize,
    pub differences: Differences,
    /// In an instrumented build.
    pub edges: Option<Edges>,
    /// Panics, hangs, ends, growth.
    pub problems: Vec<String>,
}

impl Found {
    fn failed(&mut self, request: &Request, answer: &Response) {
        let said = String::from_utf8_lossy(&answer.body);
        // An answer to HEAD has no words that would tell a timeout of the request's own, or a path as `/api/v1/watch`.
        let path = request.path.split('?').next().unwrap_or_default();
        let is_known = request.method == "HEAD" && (answer.status == 504 || path.ends_with("/watch"));
        if is_known || EXPECTED.iter().any(|expected| said.contains(expected)) {
            self.expected_errors += 1;
            return;
        }
        let said: String = said.chars().take(300).collect();
        let key = normalised(&format!("{} {} {said}", answer.status, request.method));
        self.errors.entry(key).or_insert_with(|| shown(request));
    }

    /// What another one has found.
    pub fn add(&mut self, other: Found) {
        self.requests += other.requests;
        self.servers += other.servers;
        self.most_memory = self.most_memory.max(other.most_memory);
        self.expected_errors += other.expected_errors;
        for (code, count) in other.codes {
            *self.codes.entry(code).or_default() += count;
        }
        self.errors.extend(other.errors);
        self.problems.extend(other.problems);
    }

    pub fn text(&self) -> String {
        let mut text =
            format!("{} requests to {} servers, at most {} MB\n", self.requests, self.servers, self.most_memory >> 20);
        text.push_str(&format!("{} kinds of answers, {} requests led to a new one\n", self.kinds, self.grown));
        for (code, count) in &self.codes {
            text.push_str(&format!("{count:>9} × {code}\n"));
        }
        for (said, example) in &self.errors {
            text.push_str(&format!("ERROR {said}\n      {example}\n"));
        }
        text.push_str(&self.differences.text());
        for problem in &self.problems {
            text.push_str(&format!("PROBLEM {problem}\n"));
        }
        let (errors, problems) = (self.errors.len(), self.problems.len());
        let expected = self.expected_errors;
        text.push_str(&format!("{expected} expected 5xx, {errors} unexpected kinds of them, {problems} problems\n"));
        if let Some(Edges { all, before, seen }) = self.edges {
            text.push_str(&format!(
                "{seen} edges of the code were passed of {all}, {before} of them before the first request\n"
            ));
        }
        text
    }
}

/// Written by all clients of a server.
#[derive(Debug, Default)]
pub struct Notes {
    pub found: Mutex<Found>,
    /// Bodies in protobuf or CBOR that the server gave.
    bodies: Mutex<Vec<Arc<Vec<u8>>>>,
}

impl Notes {
    pub fn new(found: Found) -> Notes {
        Notes { found: Mutex::new(found), bodies: Mutex::default() }
    }

    /// A body that the server gave, if there is one.
    pub fn body(&self, random: &mut Random) -> Option<Arc<Vec<u8>>> {
        let bodies = self.bodies.lock().ok()?;
        (!bodies.is_empty()).then(|| bodies[random.below(bodies.len())].clone())
    }

    pub fn note(&self, request: &Request, took: Duration, answer: io::Result<Response>) {
        let Ok(mut found) = self.found.lock() else { return };
        found.requests += 1;
        if took > HANG / 2 {
            found.problems.push(format!("{took:?} for {}", shown(request)));
        }
        let Ok(answer) = answer else {
            // A connection that the server closed for what came on it is an answer, too.
            *found.codes.entry(0).or_default() += 1;
            return;
        };
        *found.codes.entry(answer.status).or_default() += 1;
        if answer.status >= 500 {
            found.failed(request, &answer);
        }
        drop(found);
        let is_binary = answer.body.starts_with(b"k8s\0") || answer.body.starts_with(&[0xd9, 0xd9, 0xf7]);
        if is_binary
            && answer.body.len() < LARGEST_KEPT
            && let Ok(mut bodies) = self.bodies.lock()
        {
            if bodies.len() >= KEPT {
                bodies.remove(0);
            }
            bodies.push(Arc::new(answer.body));
        }
    }
}

pub fn shown(request: &Request) -> String {
    let body = request.body.as_deref().unwrap_or_default();
    let body: String = String::from_utf8_lossy(body).chars().take(600).collect();
    let headers: Vec<_> = request.headers.iter().filter(|(name, _)| name != "Authorization").collect();
    format!("{} {} {headers:?} {body}", request.method, request.path)
}

/// Without what differs from request to request.
pub fn normalised(text: &str) -> String {
    let (status, text) = text.split_at_checked(3).unwrap_or(("", text));
    let mut out = status.to_owned();
    for c in text.chars() {
        let c = if c.is_ascii_digit() { '0' } else { c };
        if !(c == '0' && out.ends_with('0')) {
            out.push(c);
        }
    }
    // What comes after is often the name or the value that was sent.
    out.chars().take(160).collect()
}
