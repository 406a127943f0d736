//! `/statusz` and `/flagz`: what runs here and with which flags, as text for people or as
//! `config.k8s.io` objects for programs that ask for those by name.

use super::{Listing, Routes};
use http::header::WARNING;
use http::{HeaderValue, StatusCode};
use kubelith_codec::negotiate::{self, Endpoint, Format};
use kubelith_codec::{json, yaml};
use kubelith_features::VersionInfo;
use kubelith_http::{BoxHandler, Reply, Request, Response, query, respond};
use kubelith_meta::time::Time;
use kubelith_meta::time::wall_time;
use kubelith_meta::{GroupVersionKind, Map, Status, Value};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

const COMPONENT: &str = "apiserver";
const GROUP: &str = "config.k8s.io";
const FORMATS: &[Format] = &[Format::Json, Format::Yaml, Format::Text];

/// In the order in which they are written.
type Members = Vec<(&'static str, Value)>;

/// A page: its kind, the members of its object, and its text.
struct Page {
    kind: &'static str,
    /// `statusz` in the heading and in warnings.
    name: &'static str,
    members: Box<dyn Fn() -> Members + Send + Sync>,
    text: Box<dyn Fn() -> String + Send + Sync>,
}

/// Adds `/flagz` with the flags as they are.
pub fn install_flagz(routes: &mut Routes, flags: impl Fn() -> Vec<(String, String)> + Clone + Send + Sync + 'static) {
    let sorted = flags.clone();
    let object = move || flags().iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<Map>();
    let text = move || {
        let (mut all, mut text) = (sorted(), String::new());
        all.sort();
        for (name, value) in &all {
            let _ = writeln!(text, "{name}={value}");
        }
        text
    };
    let page = Page {
        kind: "Flagz",
        name: "flagz",
        members: Box::new(move || vec![("flags", Value::Object(object()))]),
        text: Box::new(text),
    };
    routes.exact("/flagz", Listing::Listed, page.handler());
}

/// Adds `/statusz`. Comes last, since it lists the paths that are there by then.
pub fn install_statusz(routes: &mut Routes, version: &VersionInfo) {
    let started = wall_time();
    let binary = version.binary_version();
    let emulation = format!("{}.{}", version.emulation_major, version.emulation_minor);
    let mut paths = first_segments(routes.listed());
    paths.insert("/statusz".into());
    let paths: Vec<String> = paths.into_iter().collect();
    let up = move || started.elapsed().unwrap_or_default().as_secs();
    let text = {
        let (binary, emulation, paths) = (binary.clone(), emulation.clone(), paths.join(" "));
        move || {
            let (up, begun) = (up(), unix_date(Time::from(started)));
            let up = format!("{} hr {:02} min {:02} sec", up / 3600, up / 60 % 60, up % 60);
            format!(
                "\nStarted: {begun}\nUp: {up}\nGo version: none\nBinary version: {binary}\n\
                 Emulation version: {emulation}\nPaths: {paths}\n"
            )
        }
    };
    let members = move || {
        vec![
            ("startTime", Value::from(Time::from(started).to_string())),
            ("uptimeSeconds", Value::Int(up() as i64)),
            ("goVersion", "none".into()),
            ("binaryVersion", binary.as_str().into()),
            ("emulationVersion", emulation.as_str().into()),
            ("paths", paths.clone().into()),
        ]
    };
    let page = Page { kind: "Statusz", name: "statusz", members: Box::new(members), text: Box::new(text) };
    routes.exact("/statusz", Listing::Listed, page.handler());
}

/// `Mon Jan  2 15:04:05 UTC 2006`.
fn unix_date(time: Time) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    // `2006-01-02T15:04:05Z`
    let text = time.rfc3339();
    let number = |from: usize, to: usize| text.get(from..to).and_then(|part| part.parse::<usize>().ok()).unwrap_or(1);
    // The epoch was a Thursday.
    let weekday = DAYS[time.unix_seconds().div_euclid(24 * 3600).rem_euclid(7) as usize];
    let month = MONTHS[(number(5, 7) - 1) % 12];
    let clock = text.get(11..19).unwrap_or_default();
    format!("{weekday} {month} {:2} {clock} UTC {}", number(8, 10), number(0, 4))
}

/// `/healthz/ping` counts as `/healthz`; the APIs are not for debugging.
fn first_segments(paths: &BTreeSet<String>) -> BTreeSet<String> {
    let not_debugging = ["/apis", "/api", "/openid", "/openapi", "/.well-known"];
    let segments = paths.iter().filter_map(|p| p.split('/').nth(1).filter(|s| !s.is_empty()));
    segments
        .collect::<BTreeSet<&str>>()
        .into_iter()
        .map(|s| format!("/{s}"))
        .filter(|p| !not_debugging.contains(&p.as_str()))
        .collect()
}

/// Text as it is; JSON and YAML only if the kind is asked for by name.
struct Kinds(&'static str);

impl Endpoint for Kinds {
    fn allows_transform(&self, format: Format, target: Option<&GroupVersionKind>) -> bool {
        match (format, target) {
            (Format::Text, target) => target.is_none(),
            (_, Some(target)) => {
                target.group == GROUP
                    && target.kind == self.0
                    && matches!(target.version.as_str(), "v1alpha1" | "v1beta1")
            }
            (_, None) => false,
        }
    }

    fn allows_stream(&self, _: &str) -> bool {
        false
    }
}

impl Page {
    fn handler(self) -> BoxHandler {
        Arc::new(move |request: Request| -> Reply {
            let response = self.answer(&request);
            Reply::Ready(response)
        })
    }

    fn answer(&self, request: &Request) -> Response {
        let accept = request.header("accept");
        if accept.trim().is_empty() {
            return self.as_text();
        }
        match negotiate::output(accept, FORMATS, &Kinds(self.kind)) {
            Err(_) => respond::status(request, &Status::not_acceptable(&negotiate::media_types(FORMATS))),
            Ok(output) => match output.convert {
                None => self.as_text(),
                Some(kind) => self.as_object(request, output.format, &kind),
            },
        }
    }

    fn as_text(&self) -> Response {
        let warning = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
                       guarantees and is for debugging purposes only.";
        respond::text(StatusCode::OK, format!("\n{COMPONENT} {}\n{warning}\n{}", self.name, (self.text)()))
    }

    fn as_object(&self, request: &Request, format: Format, kind: &GroupVersionKind) -> Response {
        let mut members: Members = vec![
            ("kind", self.kind.into()),
            ("apiVersion", Value::from(kind.api_version())),
            ("metadata", Value::from([("name", COMPONENT)])),
        ];
        members.extend((self.members)());
        let body = match format {
            Format::Yaml => yaml::to_vec(&Value::Object(members.into_iter().collect())),
            _ => self.json(request, &members),
        };
        let media_type = format!("{};g={GROUP};v={};as={}", format.media_type(), kind.version, self.kind);
        let media_type = HeaderValue::try_from(media_type).unwrap_or(respond::JSON);
        let mut response = respond::with_type(StatusCode::OK, media_type, body);
        if kind.version == "v1alpha1" {
            let text = format!(
                "299 - \"This version of the {} endpoint is deprecated. Please use a newer version.\"",
                self.name
            );
            response.headers_mut().extend(HeaderValue::try_from(text).map(|value| (WARNING, value)));
        }
        response
    }

    /// For people, with line breaks.
    fn json(&self, request: &Request, members: &Members) -> Vec<u8> {
        let mut body = b"{".to_vec();
        for (i, (name, value)) in members.iter().enumerate() {
            body.extend_from_slice(if i > 0 { b",\"" } else { b"\"" });
            body.extend_from_slice(name.as_bytes());
            body.extend_from_slice(b"\":");
            json::write(&mut body, value);
        }
        body.push(b'}');
        let asked = query::first(request.uri().query(), "pretty");
        if !negotiate::wants_pretty(asked.as_deref(), request.header("user-agent")) {
            return body;
        }
        let mut pretty = Vec::new();
        json::reindent(&mut pretty, &body);
        pretty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_as_unix_shows_them() {
        for (text, want) in [
            ("2026-11-15T13:44:18Z", "Sun Nov 15 13:44:18 UTC 2026"),
            ("1970-01-01T00:00:00Z", "Thu Jan  1 00:00:00 UTC 1970"),
            ("2024-02-29T23:59:59Z", "Thu Feb 29 23:59:59 UTC 2024"),
        ] {
            assert_eq!(unix_date(Time::parse(text).unwrap()), want);
        }
    }
}
