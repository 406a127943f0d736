//! Replays one transcript against a server: sends each request and compares the answer with the recorded one.

use crate::compare::{Difference, compare};
use crate::http::{Address, Client, Request, Response};
use crate::normalise;
use crate::path::Path;
use crate::transcript::{Identity, Step, Transcript, one_line};
use crate::variables::Variables;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Bearer tokens that the server under test must know: a member of system:masters, and a user without rights.
#[derive(Debug, Clone)]
pub struct Tokens {
    pub admin: String,
    pub user: String,
}

impl Default for Tokens {
    fn default() -> Tokens {
        Tokens { admin: "admintoken".to_owned(), user: "usertoken".to_owned() }
    }
}

impl Tokens {
    /// The lines of a `--token-auth-file` that makes the server accept them.
    pub fn auth_file(&self) -> String {
        format!("{},admin,admin-uid,\"system:masters\"\n{},alice,alice-uid,\"devs\"\n", self.admin, self.user)
    }
}

#[derive(Debug)]
pub struct StepOutcome {
    pub index: usize,
    pub request: String,
    pub differences: Vec<Difference>,
}

/// What a server answered, as compared: {"status", "type", "warnings", "body"}.
struct Answer {
    status: u16,
    media_type: String,
    warnings: Vec<String>,
    body: Value,
}

/// Whether an `until` step may take the time that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    AsRecorded,
    /// The step is known to differ: waiting long for what will not come would only slow the run down.
    Little,
}

/// Enough for what comes at all.
const LITTLE: Duration = Duration::from_secs(1);

/// A busy machine takes longer than the one that the exchanges were recorded on.
const BUSY: Duration = Duration::from_secs(60);

/// Between two requests of an `until` step.
const POLL: Duration = Duration::from_millis(20);

/// Runs all steps in their order; `patience` is asked for each by its index.
pub fn replay(
    transcript: &Transcript,
    stem: &str,
    address: &Address,
    tokens: &Tokens,
    patience: &dyn Fn(usize) -> Patience,
) -> Vec<StepOutcome> {
    let mut session =
        Session { client: Client::new(address.clone()), tokens, variables: Variables::new(&namespace_for(stem)) };
    let namespace = transcript.needs_namespace().then(|| session.make_namespace());
    let steps = transcript.steps.iter().enumerate();
    let outcomes = steps.map(|(index, step)| StepOutcome {
        index,
        request: format!("{} {}", step.method, step.path),
        differences: session.step(step, patience(index)),
    });
    let outcomes = outcomes.collect();
    if let Some(namespace) = namespace {
        let _ = session.as_admin("DELETE", &format!("/api/v1/namespaces/{namespace}"), None);
    }
    outcomes
}

/// Unique among the runs against one server, short enough for a label.
fn namespace_for(stem: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let millis = std::time::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_millis() as u32);
    let unique = millis.wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed)) & 0xff_ffff;
    let safe = stem
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' });
    format!("tr-{}-{unique:x}", safe.take(40).collect::<String>())
}

struct Session<'a> {
    client: Client,
    tokens: &'a Tokens,
    variables: Variables,
}

impl Session<'_> {
    fn make_namespace(&mut self) -> String {
        let name = self.variables.namespace().unwrap_or_default().to_owned();
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}});
        // A failure here shows in the steps.
        let _ = self.as_admin("POST", "/api/v1/namespaces", Some(&namespace));
        let _ = self.as_admin("POST", &format!("/api/v1/namespaces/{name}/serviceaccounts"), Some(&account));
        name
    }

    fn as_admin(&mut self, method: &str, path: &str, body: Option<&Value>) -> std::io::Result<Response> {
        let headers = vec![
            ("Accept".to_owned(), "application/json".to_owned()),
            ("Authorization".to_owned(), format!("Bearer {}", self.tokens.admin)),
            ("Content-Type".to_owned(), "application/json".to_owned()),
        ];
        let body = body.map(|body| body.to_string().into_bytes());
        self.client.send(&Request { method: method.to_owned(), path: path.to_owned(), headers, body })
    }

    fn step(&mut self, step: &Step, patience: Patience) -> Vec<Difference> {
        let answer = self.answer(step, patience).unwrap_or_else(|error| Answer {
            // A dropped connection is a difference, too.
            status: 0,
            media_type: String::new(),
            warnings: Vec::new(),
            body: json!({"<error>": error.to_string()}),
        });
        for (variable, path) in &step.capture {
            self.variables.set(variable, Path::parse(path).lookup(&answer.body));
        }
        let mut body = answer.body;
        normalise::normalise(&mut body, &self.variables);
        for path in &step.ignore {
            Path::parse(path).drop_from(&mut body);
        }
        if !step.only.is_empty() {
            body = step.only.iter().map(|path| (path.clone(), Path::parse(path).lookup(&body))).collect();
        }
        let warnings: Vec<_> = answer.warnings.iter().map(|text| normalise::text(text, &self.variables)).collect();
        let got = json!({"status": answer.status, "type": answer.media_type, "warnings": warnings, "body": body});
        compare(&step.expect, &got)
    }

    fn answer(&mut self, step: &Step, patience: Patience) -> std::io::Result<Answer> {
        let Some(until) = &step.until else { return self.once(step) };
        let path = Path::parse(&until.path);
        let wanted = match &until.is {
            Value::String(text) => Value::from(self.variables.substitute(text)),
            other => other.clone(),
        };
        let limit = match patience {
            Patience::AsRecorded => Duration::from_secs_f64(until.seconds).max(BUSY),
            Patience::Little => LITTLE,
        };
        let end = Instant::now() + limit;
        loop {
            let answer = self.once(step)?;
            if path.lookup(&answer.body) == wanted || Instant::now() > end {
                return Ok(answer);
            }
            std::thread::sleep(POLL);
        }
    }

    fn once(&mut self, step: &Step) -> std::io::Result<Answer> {
        let request = self.request(step);
        let Some(watch) = &step.watch else {
            let response = self.client.send(&request)?;
            let body = decode(&response.body);
            return Ok(answer_of(&response, body));
        };
        let limit = Duration::from_secs_f64(watch.seconds);
        let (response, lines) = self.client.lines(&request, watch.events, limit)?;
        let body = match response.status {
            200 => lines.iter().map(|line| serde_json::from_slice::<Value>(line)).collect::<Result<Value, _>>()?,
            _ => decode(&response.body),
        };
        Ok(answer_of(&response, body))
    }

    fn request(&self, step: &Step) -> Request {
        let mut headers = vec![
            ("Accept".to_owned(), "application/json".to_owned()),
            ("User-Agent".to_owned(), "transcript/1.0".to_owned()),
        ];
        match step.identity {
            Identity::Admin => headers.push(("Authorization".to_owned(), format!("Bearer {}", self.tokens.admin))),
            Identity::User => headers.push(("Authorization".to_owned(), format!("Bearer {}", self.tokens.user))),
            Identity::None => {}
        }
        let body = match (&step.body, &step.text) {
            (Some(body), _) => {
                headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
                Some(self.variables.substitute_json(&one_line(body.get())).into_bytes())
            }
            (None, Some(text)) => Some(self.variables.substitute(text).into_bytes()),
            (None, None) => None,
        };
        for (name, value) in &step.headers {
            headers.retain(|(existing, _)| existing != name);
            headers.push((name.clone(), self.variables.substitute(value)));
        }
        let method = if step.watch.is_some() { "GET" } else { &step.method };
        Request { method: method.to_owned(), path: self.variables.substitute(&step.path), headers, body }
    }
}

fn answer_of(response: &Response, body: Value) -> Answer {
    Answer {
        status: response.status,
        media_type: response.header("Content-Type").unwrap_or_default().to_owned(),
        warnings: response.headers_named("Warning").map(str::to_owned).collect(),
        body,
    }
}

fn decode(raw: &[u8]) -> Value {
    serde_json::from_slice(raw).unwrap_or_else(|_| json!({"<text>": String::from_utf8_lossy(raw)}))
}
