//! What a request is about, read once from its method and URL: verb, group, version, namespace, resource,
//! name, subresource. Filters and handlers share it as `Arc<RequestInfo>` from the request's extensions.
//!
//! ```text
//! GET  /api/v1/namespaces/ns/pods/p/log        get    ""    v1  ns  pods p log
//! GET  /apis/apps/v1/deployments?watch=1       watch  apps  v1      deployments
//! GET  /api/v1/watch/namespaces/ns/pods        watch  ""    v1  ns  pods      (deprecated form)
//! POST /healthz                                post   not a resource request
//! ```

use crate::query;
use http::Method;
use kubelith_meta::Str;
use kubelith_meta::selector::{FieldSelector, LabelSelector};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// True for paths that name a resource of an API; false for /version, /apis/apps and the like.
    pub is_resource_request: bool,
    /// The decoded URL path.
    pub path: Str,
    /// get, list, watch, create, update, patch, delete, deletecollection, proxy; empty for a resource request
    /// with another method. For other requests the method in lower case.
    pub verb: Str,
    /// `api` or `apis`.
    pub api_prefix: Str,
    pub group: Str,
    pub version: Str,
    pub namespace: Str,
    pub resource: Str,
    pub subresource: Str,
    pub name: Str,
    /// The path from the resource on: resource, name, subresource, and what follows.
    pub parts: Vec<Str>,
    /// As sent, for authorizers; only with verbs that honour it.
    pub field_selector: Str,
    pub label_selector: Str,
}

/// A resource path that names a special verb and nothing to apply it to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unable to determine kind and namespace from url, {url}")]
pub struct UnknownKind {
    url: String,
}

impl RequestInfo {
    /// `path` is the decoded path of `uri`.
    pub fn parse(method: &Method, path: &str, uri: &http::Uri) -> Result<RequestInfo, UnknownKind> {
        let mut info = RequestInfo {
            path: path.into(),
            verb: method.as_str().to_ascii_lowercase().into(),
            ..RequestInfo::default()
        };
        let trimmed = path.trim_matches('/');
        let all: Vec<&str> = if trimmed.is_empty() { Vec::new() } else { trimmed.split('/').collect() };
        let mut parts = match all.as_slice() {
            ["api", rest @ ..] if rest.len() >= 2 => {
                info.api_prefix = "api".into();
                rest
            }
            ["apis", rest @ ..] if rest.len() >= 2 => {
                info.api_prefix = "apis".into();
                if rest.len() < 3 {
                    return Ok(info);
                }
                info.group = rest[0].into();
                &rest[1..]
            }
            _ => return Ok(info),
        };
        info.is_resource_request = true;
        info.version = parts[0].into();
        parts = &parts[1..];

        let verb_in_path = matches!(parts[0], "proxy" | "watch");
        if verb_in_path {
            info.verb = parts[0].into();
            parts = &parts[1..];
            if parts.is_empty() {
                return Err(UnknownKind { url: uri.to_string() });
            }
        } else {
            info.verb = verb_of(method).into();
        }

        if parts[0] == "namespaces" && parts.len() > 1 {
            info.namespace = parts[1].into();
            // `/namespaces/n/status` is about the namespace; `/namespaces/n/pods` about pods in it.
            if parts.len() > 2 && !matches!(parts[2], "status" | "finalize") {
                parts = &parts[2..];
            }
        }
        info.parts = parts.iter().map(|p| Str::from(*p)).collect();
        info.resource = info.parts[0].clone();
        info.name = info.parts.get(1).cloned().unwrap_or_default();
        if info.verb != "proxy" {
            info.subresource = info.parts.get(2).cloned().unwrap_or_default();
        }
        info.read_query(uri.query(), verb_in_path);
        Ok(info)
    }

    /// A collection's get is a list or a watch, its delete a deletecollection.
    fn read_query(&mut self, query: Option<&str>, verb_in_path: bool) {
        if self.name.is_empty() && self.verb == "get" {
            self.verb = if query::first(query, "watch").is_some_and(|v| is_true(&v)) { "watch" } else { "list" }.into();
            if let Some(name) = name_from_selector(query) {
                self.name = name;
            }
        }
        if self.name.is_empty() && self.verb == "delete" {
            self.verb = "deletecollection".into();
        }
        // The deprecated verb-in-path form does not honour selectors everywhere, so authorizers see none.
        if !verb_in_path && matches!(self.verb.as_str(), "list" | "watch" | "deletecollection") {
            let value = |key| query::first(query, key).map(|v| Str::from(v.as_ref())).unwrap_or_default();
            self.field_selector = value("fieldSelector");
            self.label_selector = value("labelSelector");
        }
    }

    /// Requests that may last: they have no deadline, are not counted as in flight, and are not waited for
    /// when the server stops.
    pub fn is_long_running(&self) -> bool {
        matches!(self.verb.as_str(), "watch" | "proxy")
            || self.is_resource_request
                && matches!(self.subresource.as_str(), "attach" | "exec" | "proxy" | "log" | "portforward")
            || !self.is_resource_request && self.path.starts_with("/debug/pprof/")
    }

    pub fn is_read_only(&self) -> bool {
        matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

fn verb_of(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::GET | Method::HEAD => "get",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "",
    }
}

/// Query booleans are true unless they say false: `?watch`, `?watch=maybe`.
pub fn is_true(value: &str) -> bool {
    !value.eq_ignore_ascii_case("false") && value != "0"
}

/// `fieldSelector=metadata.name=x` names one object: authorizers may allow by name. Not if another list
/// option is malformed, because then the reference reads none of them.
fn name_from_selector(query: Option<&str>) -> Option<Str> {
    let selector = FieldSelector::parse(&query::first(query, "fieldSelector")?).ok()?;
    let is_integer = |key| query::first(query, key).is_none_or(|v| v.parse::<i64>().is_ok());
    let labels = query::first(query, "labelSelector").is_none_or(|v| LabelSelector::parse(&v).is_ok());
    if !is_integer("limit") || !is_integer("timeoutSeconds") || !labels {
        return None;
    }
    let name = selector.exact_value("metadata.name")?;
    let is_segment = !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '%']);
    is_segment.then(|| name.into())
}

#[cfg(test)]
#[path = "request_info_tests.rs"]
mod tests;
