//! What metrics call a request.

use crate::message::Request;
use crate::query;
use crate::request_info::{RequestInfo, is_true};
use kubelith_auth::User;
use kubelith_auth::user::API_SERVER;
use std::sync::Arc;

const APPLY_YAML: &str = "application/apply-patch+yaml";
const APPLY_CBOR: &str = "application/apply-patch+cbor";

/// A request's labels.
#[derive(Debug, Clone)]
pub struct Labels {
    pub info: Arc<RequestInfo>,
    pub verb: &'static str,
    pub scope: &'static str,
    pub dry_run: &'static str,
    pub is_self: bool,
}

impl Labels {
    /// Taken before the request goes on.
    pub fn of(request: &Request) -> Labels {
        let info = request.info();
        Labels {
            verb: reported_verb(request),
            scope: scope(info),
            dry_run: dry_run(request.uri().query()),
            is_self: request.user().is_some_and(|u| u.name == API_SERVER),
            info: info.clone(),
        }
    }

    /// The same, now that it is known who asks.
    pub fn asked_by(self, user: Option<&Arc<User>>) -> Labels {
        Labels { is_self: user.is_some_and(|u| u.name == API_SERVER), ..self }
    }
}

fn scope(info: &RequestInfo) -> &'static str {
    match info {
        i if !i.name.is_empty() || i.verb == "create" => "resource",
        i if !i.namespace.is_empty() => "namespace",
        i if i.is_resource_request => "cluster",
        _ => "",
    }
}

/// The verb in capitals, one of a fixed set.
pub fn reported_verb(request: &Request) -> &'static str {
    let info = request.info();
    let subresource = info.subresource.as_str();
    if info.is_resource_request && matches!(subresource, "log" | "exec" | "portforward" | "attach" | "proxy") {
        return "CONNECT";
    }
    match request.method().as_str() {
        "GET" if query::first(request.uri().query(), "watch").is_some_and(|v| is_true(&v)) => "WATCH",
        "GET" if info.verb == "watch" => "WATCH",
        "GET" | "HEAD" if !matches!(scope(info), "resource" | "") => "LIST",
        "GET" | "HEAD" => "GET",
        "PATCH" if matches!(request.header("content-type"), APPLY_YAML | APPLY_CBOR) => "APPLY",
        "PATCH" => "PATCH",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        "CONNECT" => "CONNECT",
        _ => "other",
    }
}

fn dry_run(query: Option<&str>) -> &'static str {
    let Some(query) = query.filter(|q| q.contains("dryRun")) else { return "" };
    let values: Vec<_> = query::pairs(query).filter(|(k, _)| k == "dryRun").map(|(_, v)| v).collect();
    match values.as_slice() {
        [] => "",
        all if all.iter().all(|v| v == "All") => "All",
        _ => "invalid",
    }
}
