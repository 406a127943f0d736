//! The same requests to another server, as a kube-apiserver: where the two answer with other codes, or in other words.

use super::notes::normalised;
use super::words::{self, Difference};
use kubelith_conformance::http::{Address, Client, Request, Response};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// Kinds of differences that are told; there are more where two servers have little in common.
const MOST_TOLD: usize = 400;

/// The other server, as one client sees it.
pub struct Other(Client);

impl Other {
    pub fn new(address: &Address, timeout: Duration) -> Other {
        Other(Client::new(address.clone()).with_timeout(timeout))
    }

    pub fn ask(&mut self, request: &Request) -> io::Result<Response> {
        self.0.send_once(request)
    }
}

/// What two servers answered differently.
#[derive(Debug, Default)]
pub struct Differences {
    compared: usize,
    different: usize,
    /// By the codes and by what this server said: how often, and an example.
    kinds: Kinds,
    /// Answers of the same code that say something else: how many, and by where they do.
    reworded: usize,
    words: Kinds,
}

type Kinds = BTreeMap<String, (usize, String)>;

fn count(kinds: &mut Kinds, key: String, example: impl FnOnce() -> String) {
    if kinds.len() < MOST_TOLD || kinds.contains_key(&key) {
        kinds.entry(key).or_insert_with(|| (0, example())).0 += 1;
    }
}

impl Differences {
    /// `request` tells what was sent.
    pub fn note(&mut self, method: &str, ours: &Response, theirs: &Response, request: impl FnOnce() -> String) {
        self.compared += 1;
        if ours.status == theirs.status {
            if let Some(Difference { path, here, there }) = words::difference(ours, theirs) {
                self.reworded += 1;
                let key = normalised(&format!("{} {method} {path}: {here}", ours.status));
                count(&mut self.words, key, || format!("{}\n      here  {here}\n      there {there}", request()));
            }
            return;
        }
        self.different += 1;
        let said = |answer: &Response| String::from_utf8_lossy(&answer.body).chars().take(400).collect::<String>();
        let codes = format!("{} here, {} there", ours.status, theirs.status);
        let key = format!("{codes}: {}", normalised(&format!("    {method} {}", message(ours))).trim_start());
        let example = || format!("{}\n      here  {}\n      there {}", request(), said(ours), said(theirs));
        count(&mut self.kinds, key, example);
    }

    /// Errors of this server that the other one does not have, and then all others.
    pub fn text(&self) -> String {
        if self.compared == 0 {
            return String::new();
        }
        let is_error = |key: &str| key.starts_with('5') && !key.contains(" here, 5");
        let (errors, others): (Vec<_>, Vec<_>) = self.kinds.iter().partition(|(key, _)| is_error(key));
        let mut text = String::new();
        let words = self.words.iter().collect();
        for (word, kinds) in [("ONLY HERE", &errors), ("DIFFERENT", &others), ("OTHER WORDS", &words)] {
            for (key, (count, example)) in kinds {
                text.push_str(&format!("{word} {count} × {key}\n      {example}\n"));
            }
        }
        let (compared, different) = (self.compared, self.different);
        let reworded = self.reworded;
        text.push_str(&format!("{compared} answers compared, {different} have another code, {reworded} other words, "));
        text.push_str(&format!("{} kinds of 5xx are only here\n", errors.len()));
        text
    }
}

/// What a Status says, or the answer as it is.
fn message(answer: &Response) -> String {
    let status = serde_json::from_slice::<serde_json::Value>(&answer.body).ok();
    let message = status.and_then(|status| status["message"].as_str().map(str::to_owned));
    message.unwrap_or_else(|| String::from_utf8_lossy(&answer.body).chars().take(100).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_codes_are_told_and_errors_of_ours_first() {
        let answer = |status, body: &str| Response { status, headers: Vec::new(), body: body.as_bytes().to_vec() };
        let mut found = Differences::default();
        found.note("GET", &answer(200, "a"), &answer(200, "b"), String::new);
        found.note("PUT", &answer(400, "x"), &answer(422, "y"), || "PUT /a".to_owned());
        found.note("POST", &answer(500, r#"{"message":"no 12"}"#), &answer(422, "z"), || "POST /b".to_owned());
        found.note("POST", &answer(500, r#"{"message":"no 345"}"#), &answer(422, "z"), || "POST /c".to_owned());
        let text = found.text();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
        let wanted = [
            "ONLY HERE 2 × 500 here, 422 there: POST no 0",
            "DIFFERENT 1 × 400 here, 422 there: PUT x",
            "4 answers compared, 3 have another code, 0 other words, 1 kinds of 5xx are only here",
        ];
        assert_eq!(lines, wanted);
    }
}
