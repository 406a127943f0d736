//! `/statusz` and `/flagz`: what runs here and with which flags, as text for people or as
//! `config.k8s.io` objects for programs that ask for those by name.

use super::{Listing, Routes, VersionInfo};
use crate::context::RequestExt;
use crate::http::{BoxHandler, Request, Response};
use crate::respond;
use futures::future::BoxFuture;
use http::header::WARNING;
use http::{HeaderValue, StatusCode};
use kubelith_codec::negotiate::{self, Endpoint, Format};
use kubelith_codec::{json, yaml};
use kubelith_meta::time::Time;
use kubelith_meta::{GroupVersionKind, Map, Status, Value};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use std::time::SystemTime;

const COMPONENT: &str = "apiserver";
const GROUP: &str = "config.k8s.io";
const FORMATS: &[Format] = &[Format::Json, Format::Yaml, Format::Text];

/// A page: its kind, the members of its object, and its text.
struct Page {
    kind: &'static str,
    /// `statusz` in the heading and in warnings.
    name: &'static str,
    members: Box<dyn Fn() -> Map + Send + Sync>,
    text: Box<dyn Fn() -> String + Send + Sync>,
}

/// Adds `/flagz` with the flags as they are.
pub fn install_flagz(routes: &mut Routes, flags: Vec<(String, String)>) {
    let object: Map = flags.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut sorted = flags;
    sorted.sort();
    let mut text = String::new();
    for (name, value) in &sorted {
        let _ = writeln!(text, "{name}={value}");
    }
    let page = Page {
        kind: "Flagz",
        name: "flagz",
        members: Box::new(move || Map::from_iter([("flags", object.clone())])),
        text: Box::new(move || text.clone()),
    };
    routes.exact("/flagz", Listing::Listed, page.handler());
}

/// Adds `/statusz`. Comes last, since it lists the paths that are there by then.
pub fn install_statusz(routes: &mut Routes, version: &VersionInfo) {
    let started = SystemTime::now();
    let binary = version.binary_version();
    let emulation = format!("{}.{}", version.emulation_major, version.emulation_minor);
    let mut paths = first_segments(routes.listed());
    paths.insert("/statusz".into());
    let paths: Vec<String> = paths.into_iter().collect();
    let up = move || started.elapsed().unwrap_or_default().as_secs();
    let text = {
        let (binary, emulation, paths) = (binary.clone(), emulation.clone(), paths.join(" "));
        move || {
            let (up, begun) = (up(), Time::from(started));
            let up = format!("{} hr {:02} min {:02} sec", up / 3600, up / 60 % 60, up % 60);
            format!(
                "\nStarted: {begun}\nUp: {up}\nGo version: none\nBinary version: {binary}\n\
                 Emulation version: {emulation}\nPaths: {paths}\n"
            )
        }
    };
    let members = move || {
        Map::from_iter([
            ("startTime", Value::from(Time::from(started).to_string())),
            ("uptimeSeconds", Value::Int(up() as i64)),
            ("goVersion", "none".into()),
            ("binaryVersion", binary.as_str().into()),
            ("emulationVersion", emulation.as_str().into()),
            ("paths", paths.clone().into()),
        ])
    };
    let page = Page { kind: "Statusz", name: "statusz", members: Box::new(members), text: Box::new(text) };
    routes.exact("/statusz", Listing::Listed, page.handler());
}

/// `/healthz/ping` counts as `/healthz`; the APIs are not for debugging.
fn first_segments(paths: &BTreeSet<String>) -> BTreeSet<String> {
    let not_debugging = ["/apis", "/api", "/openid", "/openapi", "/.well-known"];
    paths
        .iter()
        .filter_map(|p| p.split('/').nth(1).filter(|s| !s.is_empty()))
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
        Arc::new(move |request: Request| -> BoxFuture<'static, Response> {
            let response = self.answer(&request);
            Box::pin(async move { response })
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
                Some(kind) => self.as_object(output.format, &kind),
            },
        }
    }

    fn as_text(&self) -> Response {
        let warning = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
                       guarantees and is for debugging purposes only.";
        respond::text(StatusCode::OK, format!("\n{COMPONENT} {}\n{warning}\n{}", self.name, (self.text)()))
    }

    fn as_object(&self, format: Format, kind: &GroupVersionKind) -> Response {
        let mut object = (self.members)();
        object.insert("kind", self.kind);
        object.insert("apiVersion", kind.api_version());
        object.insert("metadata", Map::from_iter([("name", COMPONENT)]));
        let object = Value::Object(object);
        let body = if format == Format::Yaml { yaml::to_vec(&object) } else { json::to_vec(&object) };
        let media_type = HeaderValue::from_static(format.media_type());
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
}
