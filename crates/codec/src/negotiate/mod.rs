//! Which representation a client sends and wants: Content-Type and Accept as kube-apiserver reads them.
//!
//! Two layers speak here, each with its own wording. The router refuses what a path never produces or consumes
//! (`route_*`, "406: Not Acceptable"); the handler then picks among the formats of the endpoint
//! (`output`, `input`, "only the following media types are accepted").

mod accept;
mod mime;
mod route;
#[cfg(test)]
mod tests;

pub use accept::{Clause, parse_accept};
pub use mime::{parse_media_type, read_media_type};
pub use route::{RouteError, route_accepts, route_consumes};

use kubelith_meta::{GroupVersionKind, Str};
use std::fmt;

/// A representation of API objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    Json,
    Yaml,
    Protobuf,
    /// Plain text, for the few documents that have it (/statusz, /flagz).
    Text,
}

/// What built-in resources speak, in order of preference.
pub const BUILT_IN: &[Format] = &[Format::Json, Format::Yaml, Format::Protobuf];

impl Format {
    pub const fn media_type(self) -> &'static str {
        match self {
            Format::Json => "application/json",
            Format::Yaml => "application/yaml",
            Format::Protobuf => "application/vnd.kubernetes.protobuf",
            Format::Text => "text/plain",
        }
    }

    /// The media type with the parameter that marks a stream of watch events; `None` if it cannot stream.
    pub const fn stream_media_type(self) -> Option<&'static str> {
        match self {
            Format::Json => Some("application/json;stream=watch"),
            Format::Protobuf => Some("application/vnd.kubernetes.protobuf;stream=watch"),
            Format::Yaml | Format::Text => None,
        }
    }

    /// The Content-Type of a watch. JSON goes without the parameter, for clients that never knew it.
    pub const fn watch_content_type(self) -> Option<&'static str> {
        match self {
            Format::Json => Some("application/json"),
            other => other.stream_media_type(),
        }
    }

    fn parts(self) -> (&'static str, &'static str) {
        self.media_type().split_once('/').expect("media types have a slash")
    }
}

/// What an endpoint can do beyond sending its own kind.
pub trait Endpoint {
    /// May this format carry the conversion asked for (`as=Table;v=v1;g=meta.k8s.io`), or the endpoint's own
    /// kind if none is asked for?
    fn allows_transform(&self, format: Format, target: Option<&GroupVersionKind>) -> bool {
        let _ = format;
        target.is_none()
    }

    /// `sv=`: the version of generic documents.
    fn allows_server_version(&self, version: &str) -> bool {
        let _ = version;
        false
    }

    fn allows_stream(&self, stream: &str) -> bool {
        stream == "watch"
    }
}

/// An endpoint that sends its own kind and nothing else.
pub struct PlainEndpoint;

impl Endpoint for PlainEndpoint {}

/// An endpoint of a resource: tables for JSON and YAML, partial metadata in every format.
pub struct ResourceEndpoint<'a> {
    /// Formats of the resource's own kind; custom resources have no protobuf, but their tables' metadata has.
    pub own: &'a [Format],
    pub has_table: bool,
}

impl Endpoint for ResourceEndpoint<'_> {
    fn allows_transform(&self, format: Format, target: Option<&GroupVersionKind>) -> bool {
        let Some(target) = target else { return self.own.contains(&format) };
        if target.group != "meta.k8s.io" || !matches!(target.version.as_str(), "v1" | "v1beta1") {
            return false;
        }
        match target.kind.as_str() {
            "Table" => self.has_table && matches!(format, Format::Json | Format::Yaml),
            "PartialObjectMetadata" | "PartialObjectMetadataList" => true,
            _ => false,
        }
    }

    fn allows_server_version(&self, version: &str) -> bool {
        version == "v1"
    }
}

/// The outcome of reading an Accept header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub format: Format,
    /// `as`, `g` and `v`: the kind to answer with instead of the endpoint's own.
    pub convert: Option<GroupVersionKind>,
    /// `pretty=1` as a parameter of the media type; see [`wants_pretty`] for the query.
    pub pretty: bool,
    pub stream: Str,
    pub profile: Str,
}

impl Output {
    fn of(format: Format) -> Output {
        Output { format, convert: None, pretty: false, stream: Str::default(), profile: Str::default() }
    }

    /// The media type with the kind in its parameters, as aggregated discovery answers.
    pub fn media_type_with_kind(&self) -> String {
        let mut s = self.format.media_type().to_owned();
        if let Some(gvk) = &self.convert {
            for (name, value) in [(";g=", &gvk.group), (";v=", &gvk.version), (";as=", &gvk.kind)] {
                if !value.is_empty() {
                    s.push_str(name);
                    s.push_str(value);
                }
            }
        }
        s
    }
}

/// Why no representation could be chosen. Displays as the message of the Status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NegotiationError {
    /// 406
    NotAcceptable(Vec<&'static str>),
    /// 415
    UnsupportedMediaType(Vec<&'static str>),
}

impl fmt::Display for NegotiationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NegotiationError::NotAcceptable(types) => {
                write!(f, "only the following media types are accepted: {}", types.join(", "))
            }
            NegotiationError::UnsupportedMediaType(types) => write!(
                f,
                "the body of the request was in an unknown format - accepted media types include: {}",
                types.join(", ")
            ),
        }
    }
}

impl std::error::Error for NegotiationError {}

/// Chooses the representation of an answer from the Accept header (empty if absent).
pub fn output(accept: &str, supported: &[Format], endpoint: &dyn Endpoint) -> Result<Output, NegotiationError> {
    choose(accept, supported, endpoint).ok_or_else(|| NegotiationError::NotAcceptable(media_types(supported)))
}

/// Chooses the representation of a watch.
pub fn output_stream(accept: &str, supported: &[Format], endpoint: &dyn Endpoint) -> Result<Output, NegotiationError> {
    choose(accept, supported, endpoint)
        .filter(|o| o.format.stream_media_type().is_some())
        .ok_or_else(|| NegotiationError::NotAcceptable(stream_media_types(supported)))
}

/// The format of a request body from its Content-Type (empty if absent: the first one supported).
pub fn input(content_type: &str, supported: &[Format]) -> Result<Format, NegotiationError> {
    let found = if content_type.is_empty() {
        supported.first().copied()
    } else {
        parse_media_type(content_type).and_then(|t| supported.iter().copied().find(|f| f.media_type() == t))
    };
    found.ok_or_else(|| NegotiationError::UnsupportedMediaType(media_types(supported)))
}

pub fn media_types(formats: &[Format]) -> Vec<&'static str> {
    formats.iter().map(|f| f.media_type()).collect()
}

pub fn stream_media_types(formats: &[Format]) -> Vec<&'static str> {
    formats.iter().filter_map(|f| f.stream_media_type()).collect()
}

fn choose(accept: &str, supported: &[Format], endpoint: &dyn Endpoint) -> Option<Output> {
    if accept.is_empty() {
        return supported.first().map(|&f| Output::of(f));
    }
    // Programs say what they want in plain words.
    if let Some(&format) = supported.iter().find(|f| f.media_type() == accept)
        && endpoint.allows_transform(format, None)
    {
        return Some(Output::of(format));
    }
    for clause in parse_accept(accept) {
        for &format in supported {
            let (kind, subkind) = format.parts();
            let matches = (clause.kind == kind && (clause.subkind == subkind || clause.subkind == "*"))
                || (clause.kind == "*" && clause.subkind == "*");
            if matches && let Some(output) = with_params(&clause, format, endpoint) {
                return Some(output);
            }
        }
    }
    None
}

/// `None` if a parameter asks for what the endpoint does not allow: the clause is passed over.
fn with_params(clause: &Clause<'_>, format: Format, endpoint: &dyn Endpoint) -> Option<Output> {
    let mut output = Output::of(format);
    for &(name, value) in &clause.params {
        match name {
            "as" => output.convert.get_or_insert_default().kind = value.into(),
            "g" => output.convert.get_or_insert_default().group = value.into(),
            "v" => output.convert.get_or_insert_default().version = value.into(),
            "stream" => {
                if !value.is_empty() && (format.stream_media_type().is_none() || !endpoint.allows_stream(value)) {
                    return None;
                }
                output.stream = value.into();
            }
            "sv" if !value.is_empty() && !endpoint.allows_server_version(value) => return None,
            "pretty" => output.pretty = value == "1",
            "profile" => output.profile = value.into(),
            _ => {}
        }
    }
    endpoint.allows_transform(format, output.convert.as_ref()).then_some(output)
}

/// Is the answer for people? The query parameter `pretty` decides; without it, browsers, curl and wget get
/// indented JSON.
pub fn wants_pretty(query: Option<&str>, user_agent: &str) -> bool {
    match query {
        Some(value) if !value.is_empty() => matches!(value, "1" | "t" | "T" | "TRUE" | "true" | "True"),
        _ => ["curl", "Wget", "Mozilla/5.0"].iter().any(|agent| user_agent.starts_with(agent)),
    }
}
