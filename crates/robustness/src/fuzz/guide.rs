//! Feedback: a request whose answer is of a kind that was not seen before led somewhere new, and further requests grow from it.
//!
//! The kind of an answer stands for the way that the request took through the server: its code and reason, the kinds and fields of its
//! causes, what its message says but for names, values and numbers. It needs no instrumented build, and works with any server.
//!
//! In an instrumented build, with servers within the program, the way itself is seen: a request after which more edges of the code
//! were passed than before is grown from, too, whatever was answered. Many requests run at once, so the one that ended first after an
//! edge was passed counts as the one that passed it, which is not always so; what is grown from in vain yields nothing.

use super::corpus::Seed;
use kubelith_conformance::http::{Request, Response};
use kubelith_store::random::Random;
use serde_json::Value;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

/// Requests that are kept to grow from.
const MOST_GROWN: usize = 50_000;
/// A larger body is not grown from: with each generation it could become larger still.
const LARGEST_BODY: usize = 30_000;
/// What of a message tells its kind.
const MESSAGE: usize = 120;

/// What is made use of: all that there is, or less for comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feedback {
    Followed,
    Answers,
    Edges,
    Ignored,
}

impl Feedback {
    pub fn parse(text: &str) -> Result<Feedback, String> {
        match text {
            "on" => Ok(Feedback::Followed),
            "answers" => Ok(Feedback::Answers),
            "edges" => Ok(Feedback::Edges),
            "off" => Ok(Feedback::Ignored),
            other => Err(format!("--feedback is on, answers, edges or off, not {other:?}")),
        }
    }

    fn is_of_answers(self) -> bool {
        matches!(self, Feedback::Followed | Feedback::Answers)
    }

    fn is_of_edges(self) -> bool {
        matches!(self, Feedback::Followed | Feedback::Edges)
    }
}

/// How many edges were passed until now.
pub type Count = fn() -> usize;

#[derive(Debug)]
pub struct Guide {
    feedback: Feedback,
    /// In an instrumented build.
    edges: Option<Count>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    kinds: HashSet<String>,
    grown: Vec<Arc<Seed>>,
    /// The most edges that were passed at a look.
    edges: usize,
    /// Of requests from recorded ones, and of requests from grown ones.
    yields: [Yield; 2],
}

/// How often something new came of a source lately.
#[derive(Debug, Clone, Copy, Default)]
struct Yield {
    tries: f64,
    finds: f64,
}

impl Yield {
    /// What is long ago counts less: what is found once is not found again.
    const FADES: f64 = 0.999;

    fn note(&mut self, is_new: bool) {
        self.tries = self.tries * Yield::FADES + 1.0;
        self.finds = self.finds * Yield::FADES + f64::from(is_new);
    }

    fn rate(self) -> f64 {
        (self.finds + 1.0) / (self.tries + 1.0)
    }
}

impl Guide {
    pub fn new(feedback: Feedback, edges: Option<Count>) -> Guide {
        Guide { feedback, edges, inner: Mutex::default() }
    }

    /// Edges that were passed by starting a server are nothing new. Tells how many there were.
    pub fn begin(&self) -> usize {
        let edges = self.edges.map_or(0, |count| count());
        if let Ok(mut inner) = self.inner.lock() {
            inner.edges = edges.max(inner.edges);
        }
        edges
    }

    /// How many kinds of answers there were, and how many requests led to a new one.
    pub fn seen(&self) -> (usize, usize) {
        self.inner.lock().map_or((0, 0), |inner| (inner.kinds.len(), inner.grown.len()))
    }

    /// What to grow from, if it shall not be one of the recorded requests.
    pub fn base(&self, random: &mut Random) -> Option<Arc<Seed>> {
        if self.feedback == Feedback::Ignored {
            return None;
        }
        let inner = self.inner.lock().ok()?;
        let count = inner.grown.len();
        // Mostly from where more that is new came from lately; the other way is tried now and then.
        let [recorded, grown] = inner.yields.map(Yield::rate);
        if (grown > recorded) == random.one_in(5) {
            return None;
        }
        // The latest lead on most often.
        let newest = if random.one_in(2) { count.saturating_sub(count / 8 + 1) } else { 0 };
        (count > 0).then(|| inner.grown[newest + random.below(count - newest)].clone())
    }

    /// `base` is what the request was grown from, if that was no recorded one.
    pub fn learn(&self, request: &Request, answer: &Response, base: Option<&Seed>) {
        let (kinds, edges) = (kinds(request, answer), self.edges.map_or(0, |count| count()));
        let Ok(mut inner) = self.inner.lock() else { return };
        let mut is_new_kind = false;
        for kind in kinds {
            is_new_kind |= inner.kinds.insert(kind);
        }
        is_new_kind &= self.feedback.is_of_answers();
        let is_new_way = edges > inner.edges && self.feedback.is_of_edges();
        inner.edges = edges.max(inner.edges);
        inner.yields[usize::from(base.is_some())].note(is_new_kind || is_new_way);
        if (is_new_way || is_new_kind && leads_on(answer.status)) && inner.grown.len() < MOST_GROWN {
            inner.grown.extend(seed(request).map(Arc::new));
        }
    }
}

/// What is refused at the door (no JSON, no such path or media type) comes no further by being changed more.
fn leads_on(status: u16) -> bool {
    matches!(status, 200..=299 | 403 | 409 | 422 | 500..)
}

fn seed(request: &Request) -> Option<Seed> {
    let bytes = request.body.as_deref().unwrap_or_default();
    if bytes.len() > LARGEST_BODY {
        return None;
    }
    let body: Option<Value> = serde_json::from_slice(bytes).ok();
    let text = match (&body, std::str::from_utf8(bytes)) {
        (None, Ok(text)) if !text.is_empty() => Some(text.to_owned()),
        (None, Err(_)) => return None,
        _ => None,
    };
    let headers = request.headers.iter().filter(|(name, _)| name != "Authorization").cloned().collect();
    // Options pile up with each generation.
    let path = request.path.split_once('?').map_or(request.path.as_str(), |(path, _)| path);
    let path = if request.path.len() < 200 { request.path.as_str() } else { path };
    Some(Seed { method: request.method.clone(), path: path.to_owned(), headers, body, text })
}

fn kinds(request: &Request, answer: &Response) -> Vec<String> {
    let status: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let base = format!("{} {}", request.method, answer.status);
    if status["kind"] != "Status" {
        // What was made, or shown: its kind, and which fields it has at the top.
        let kind = status["kind"].as_str().unwrap_or_default();
        let fields = ["spec", "status"].map(|part| status[part].as_object().map_or(0, serde_json::Map::len));
        let mut kinds = vec![format!("{base} {kind} {fields:?}")];
        let warnings = answer.headers_named("warning").map(|text| format!("{kind} warns {}", skeleton(text)));
        kinds.extend(warnings);
        return kinds;
    }
    let (reason, kind) = (status["reason"].as_str().unwrap_or_default(), &status["details"]["kind"]);
    let causes = status["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
    if causes.is_empty() {
        return vec![format!("{base} {reason} {}", skeleton(status["message"].as_str().unwrap_or_default()))];
    }
    let cause = |cause: &Value| {
        let text = |name: &str| cause[name].as_str().unwrap_or_default().to_owned();
        format!("{base} {kind} {} {} {}", skeleton(&text("field")), text("reason"), skeleton(&text("message")))
    };
    causes.iter().map(cause).collect()
}

/// A text without what was sent: quoted parts, numbers, keys in brackets.
fn skeleton(text: &str) -> String {
    let mut out = String::new();
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' | '\'' | '`' => quoted = !quoted,
            _ if quoted => {}
            c if c.is_ascii_digit() => {
                if !out.ends_with('0') {
                    out.push('0');
                }
            }
            c => out.push(c),
        }
        if out.len() >= MESSAGE {
            break;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static EDGES: AtomicUsize = AtomicUsize::new(100);

    #[test]
    fn what_passes_a_new_edge_is_grown_from_whatever_is_answered() {
        let refused = answered(400, r#"{"kind": "Status", "message": "no JSON"}"#);
        for (feedback, want) in
            [(Feedback::Followed, 1), (Feedback::Edges, 1), (Feedback::Answers, 0), (Feedback::Ignored, 0)]
        {
            let guide = Guide::new(feedback, Some(|| EDGES.load(Ordering::Relaxed)));
            guide.begin();
            guide.learn(&asked("/a"), &refused, None);
            assert_eq!(guide.seen(), (1, 0), "{feedback:?}: what was passed before is nothing new");
            EDGES.fetch_add(1, Ordering::Relaxed);
            guide.learn(&asked("/b"), &refused, None);
            guide.learn(&asked("/c"), &refused, None);
            assert_eq!(guide.seen(), (1, want), "{feedback:?}");
        }
        let guide = Guide::new(Feedback::Edges, Some(|| EDGES.load(Ordering::Relaxed)));
        guide.begin();
        guide.learn(&asked("/d"), &answered(200, r#"{"kind": "Pod"}"#), None);
        assert_eq!(guide.seen(), (1, 0), "answers are counted, not followed");
    }

    fn answered(status: u16, body: &str) -> Response {
        Response { status, headers: Vec::new(), body: body.as_bytes().to_vec() }
    }

    fn asked(path: &str) -> Request {
        Request { method: "POST".into(), path: path.into(), headers: Vec::new(), body: Some(b"{\"a\": 1}".to_vec()) }
    }

    #[test]
    fn what_leads_to_something_new_is_grown_from() {
        let guide = Guide::new(Feedback::Followed, None);
        let refused = |name: &str, number: usize| {
            let message = format!(r#"pods \"{name}\" has {number} of what it must not"#);
            answered(422, &format!(r#"{{"kind": "Status", "reason": "Invalid", "message": "{message}"}}"#))
        };
        guide.learn(&asked("/a"), &refused("a", 1), None);
        guide.learn(&asked("/b"), &refused("b", 27), None);
        assert_eq!(guide.seen(), (1, 1), "names and numbers are nothing new");
        guide.learn(&asked("/c"), &answered(201, r#"{"kind": "Pod", "spec": {"a": 1}}"#), None);
        guide.learn(&asked("/d"), &answered(201, r#"{"kind": "Pod", "spec": {"a": 1, "b": 2}}"#), None);
        guide.learn(&asked("/e"), &answered(400, r#"{"kind": "Status", "message": "no JSON"}"#), None);
        assert_eq!(guide.seen(), (4, 3), "what is no JSON leads nowhere");
        let mut random = Random::new(1, 1);
        let bases: HashSet<String> = (0..200).filter_map(|_| guide.base(&mut random)).map(|s| s.path.clone()).collect();
        assert_eq!(bases.len(), 3, "{bases:?}");
        // As long as recorded requests lead to something new, they are taken; then the others are.
        let grown = |guide: &Guide, random: &mut Random| (0..1000).filter(|_| guide.base(random).is_some()).count();
        for i in 0..50 {
            let kind = format!(r#"{{"kind": "K{i}"}}"#);
            guide.learn(&asked("/f"), &answered(200, &kind), None);
            guide.learn(&asked("/g"), &answered(404, "{}"), Some(&seed(&asked("/a")).unwrap()));
        }
        assert!(grown(&guide, &mut random) < 300);
        for i in 0..2000 {
            let kind = format!(r#"{{"kind": "L{i}"}}"#);
            guide.learn(&asked("/f"), &answered(404, "{}"), None);
            guide.learn(&asked("/g"), &answered(200, &kind), Some(&seed(&asked("/a")).unwrap()));
        }
        assert!(grown(&guide, &mut random) > 700);
        assert!(Guide::new(Feedback::Ignored, None).base(&mut random).is_none());
    }
}
