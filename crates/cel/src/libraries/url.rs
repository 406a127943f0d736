//! URLs as Go's net/url takes them apart.

use super::{URL, global, list, map, member, of};
use crate::decl::Function;
use crate::types::Type;

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
