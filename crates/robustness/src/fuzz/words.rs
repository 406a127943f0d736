//! Where two servers say different things in answers of the same code. What no two servers have in common (uids, revisions,
//! times, what is made by chance) does not count.

use kubelith_conformance::http::Response;
use serde_json::Value;

/// Members that differ between any two servers.
const OWN: [&str; 16] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "deletionTimestamp",
    "time",
    "continue",
    "remainingItemCount",
    "clusterIP",
    "clusterIPs",
    "nodePort",
    "healthCheckNodePort",
    "token",
    "expirationTimestamp",
    "storageVersionHash",
    "serverAddress",
    "caBundle",
];
/// How much of a value is told.
const TOLD: usize = 300;

/// The first place where two answers differ.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    pub path: String,
    pub here: String,
    pub there: String,
}

/// `None` also where the answers are no JSON documents, or lists, in which each server has objects of its own.
pub fn difference(ours: &Response, theirs: &Response) -> Option<Difference> {
    let [ours, theirs] = [ours, theirs].map(|answer| serde_json::from_slice::<Value>(&answer.body).ok());
    let (ours, theirs) = (ours?, theirs?);
    if ours.get("items").is_some() || ours.get("rows").is_some() {
        return None;
    }
    let mut path = String::new();
    let (here, there) = first(&ours, &theirs, &mut path)?;
    Some(Difference { path, here, there })
}

fn told(value: Option<&Value>) -> String {
    value.map_or("nothing".to_owned(), ToString::to_string).chars().take(TOLD).collect()
}

/// Walks down to where the values differ; `path` says then how.
fn first(ours: &Value, theirs: &Value, path: &mut String) -> Option<(String, String)> {
    let length = path.len();
    match (ours, theirs) {
        (Value::Object(here), Value::Object(there)) => {
            let is_generated = here.contains_key("generateName");
            let mut keys: Vec<&String> = here.keys().chain(there.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys.into_iter().filter(|key| !OWN.contains(&key.as_str())) {
                if is_generated && key == "name" {
                    continue;
                }
                path.push('.');
                path.push_str(key);
                let found = match (here.get(key), there.get(key)) {
                    (Some(here), Some(there)) => first(here, there, path),
                    (here, there) => Some((told(here), told(there))),
                };
                if found.is_some() {
                    return found;
                }
                path.truncate(length);
            }
            None
        }
        (Value::Array(here), Value::Array(there)) if here.len() == there.len() => {
            path.push_str("[]");
            let found = here.iter().zip(there).find_map(|(here, there)| first(here, there, path));
            if found.is_none() {
                path.truncate(length);
            }
            found
        }
        (Value::String(here), Value::String(there)) if without_numbers(here) == without_numbers(there) => None,
        (here, there) if here == there => None,
        (here, there) => Some((told(Some(here)), told(Some(there)))),
    }
}

/// Uids, revisions and times stand in messages, too: all long runs of hexadecimal digits, and all numbers.
fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_hexadecimal = digits.len() >= 4 && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let is_time = digits.bytes().next().is_some_and(|b| b.is_ascii_digit());
        match is_hexadecimal || is_time {
            true => out.push_str(&word[digits.len()..]),
            false => out.push_str(word),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_that_differs_is_told() {
        let answer = |body: &str| Response { status: 422, headers: Vec::new(), body: body.as_bytes().to_vec() };
        let found = |here, there| difference(&answer(here), &answer(there)).map(|d| (d.path, d.here, d.there));
        let some = |path: &str, here: &str, there: &str| Some((path.to_owned(), here.to_owned(), there.to_owned()));
        for (here, there, want) in [
            (r#"{"a":{"b":[1,2]}}"#, r#"{"a":{"b":[1,2]}}"#, None),
            (r#"{"a":{"b":[1,2]}}"#, r#"{"a":{"b":[1,3]}}"#, some(".a.b[]", "2", "3")),
            (r#"{"a":1}"#, r#"{"a":1,"b":true}"#, some(".b", "nothing", "true")),
            (r#"{"metadata":{"uid":"x"}}"#, r#"{"metadata":{"uid":"y"}}"#, None),
            (r#"{"generateName":"a","name":"a1"}"#, r#"{"generateName":"a","name":"a2"}"#, None),
            (r#"{"m":"at 0a1b-17 or 2024-01-02T03:04:05Z"}"#, r#"{"m":"at 1111-18 or 2025-01-02T03:04:06Z"}"#, None),
            (r#"{"m":"too long"}"#, r#"{"m":"too short"}"#, some(".m", "\"too long\"", "\"too short\"")),
            (r#"{"items":[]}"#, r#"{"items":[1]}"#, None),
            ("no JSON", "{}", None),
        ] {
            assert_eq!(found(here, there), want, "{here} {there}");
        }
    }
}
