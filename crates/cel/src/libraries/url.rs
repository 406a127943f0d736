//! URLs.

use super::{Run, URL, global, list, map, member, of, text};
use crate::decl::Function;
use crate::types::Type;
use crate::value::{EvalError, Map, Opaque, Res, Val};
use kubelith_meta::url::Url;
use std::sync::Arc;

pub fn functions() -> Vec<Function> {
    const THIS: Type = Type::Named(URL);
    let part = |name, id| of(name, [member(id, [THIS], Type::String)]);
    vec![
        of("url", [global("string_to_url", [Type::String], THIS)]),
        part("getScheme", "url_get_scheme"),
        part("getHost", "url_get_host"),
        part("getHostname", "url_get_hostname"),
        part("getPort", "url_get_port"),
        part("getEscapedPath", "url_get_escaped_path"),
        of("getQuery", [member("url_get_query", [THIS], map(Type::String, list(Type::String)))]),
        of("isURL", [global("is_url_string", [Type::String], Type::Bool)]),
    ]
}

pub fn run(id: &str) -> Option<Run> {
    Some(Run::Unary(match id {
        "string_to_url" => |s| {
            let failed = |why: String| EvalError::new(format!("URL parse error during conversion from string: {why}"));
            let string = text(s)?;
            Url::parse_request(string).map_err(failed)?;
            Ok(Val::opaque(Opaque::Url(Url::parse(string).map_err(failed)?)))
        },
        "is_url_string" => |s| Ok(Val::Bool(Url::parse_request(text(s)?).is_ok())),
        "url_get_scheme" => |u| Ok(Val::text(url(u)?.scheme.as_str())),
        "url_get_host" => |u| Ok(Val::text(url(u)?.host.as_str())),
        "url_get_hostname" => |u| Ok(Val::text(url(u)?.host_and_port().0)),
        "url_get_port" => |u| Ok(Val::text(url(u)?.host_and_port().1)),
        "url_get_escaped_path" => |u| Ok(Val::text(url(u)?.escaped_path.as_str())),
        "url_get_query" => |u| query(url(u)?),
        _ => return None,
    }))
}

fn url<'v>(val: &'v Val<'_>) -> Result<&'v Url, EvalError> {
    match val.as_opaque() {
        Some(Opaque::Url(url)) => Ok(url),
        _ => Err(EvalError::no_overload()),
    }
}

fn query<'a>(url: &Url) -> Res<'a> {
    let mut lists: Vec<(String, Vec<Val<'a>>)> = Vec::new();
    for (key, value) in url.query_pairs() {
        match lists.iter_mut().find(|(name, _)| *name == key) {
            Some((_, values)) => values.push(Val::text(value)),
            None => lists.push((key, vec![Val::text(value)])),
        }
    }
    let mut map = Map::with_capacity(lists.len());
    for (key, values) in lists {
        map.insert(Val::text(key), Val::flat(values))?;
    }
    Ok(Val::Map(Arc::new(map)))
}
