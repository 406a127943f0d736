//! URLs as Go's net/url takes them apart.

use super::{Run, URL, global, list, map, member, of, text};
use crate::decl::Function;
use crate::types::Type;
use crate::value::{EvalError, Map, Opaque, Res, UrlVal, Val};
use kubelith_meta::text::quote;
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
            parse_request(string).map_err(failed)?;
            Ok(Val::opaque(Opaque::Url(parse(string).map_err(failed)?)))
        },
        "is_url_string" => |s| Ok(Val::Bool(parse_request(text(s)?).is_ok())),
        "url_get_scheme" => |u| Ok(Val::text(url(u)?.scheme.as_str())),
        "url_get_host" => |u| Ok(Val::text(url(u)?.host.as_str())),
        "url_get_hostname" => |u| Ok(Val::text(split_port(&url(u)?.host).0)),
        "url_get_port" => |u| Ok(Val::text(split_port(&url(u)?.host).1)),
        "url_get_escaped_path" => |u| Ok(Val::text(url(u)?.escaped_path.as_str())),
        "url_get_query" => |u| query(&url(u)?.query),
        _ => return None,
    }))
}

fn url<'v>(val: &'v Val<'_>) -> Result<&'v UrlVal, EvalError> {
    match val.as_opaque() {
        Some(Opaque::Url(url)) => Ok(url),
        _ => Err(EvalError::no_overload()),
    }
}

/// A host without brackets, and its port.
fn split_port(host: &str) -> (&str, &str) {
    let (name, port) = match host.rfind(':') {
        Some(at) if host[at + 1..].bytes().all(|b| b.is_ascii_digit()) => (&host[..at], &host[at + 1..]),
        _ => (host, ""),
    };
    (name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name), port)
}

fn query<'a>(raw: &str) -> Res<'a> {
    let mut lists: Vec<(String, Vec<Val<'a>>)> = Vec::new();
    for pair in raw.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Ok(key), Ok(value)) = (unescape(key, Part::Query), unescape(value, Part::Query)) else { continue };
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

/// Go's `url.ParseRequestURI`, without what it comes to.
pub fn parse_request(text: &str) -> Result<(), String> {
    read(text, true).map(drop).map_err(|why| format!("parse {}: {why}", quote(text)))
}

/// Go's `url.Parse`.
fn parse(text: &str) -> Result<UrlVal, String> {
    let (body, fragment) = text.split_once('#').unwrap_or((text, ""));
    let mut url = read(body, false).map_err(|why| format!("parse {}: {why}", quote(body)))?;
    if !fragment.is_empty() {
        let plain = unescape(fragment, Part::Fragment).map_err(|why| format!("parse {}: {why}", quote(text)))?;
        url.text.push('#');
        url.text.push_str(&escaped(fragment, &plain, Part::Fragment));
    }
    Ok(url)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Host,
    Zone,
    User,
    Query,
    Fragment,
}

fn read(text: &str, request: bool) -> Result<UrlVal, String> {
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err("net/url: invalid control character in URL".into());
    }
    if text.is_empty() && request {
        return Err("empty url".into());
    }
    if text == "*" {
        return Ok(UrlVal { escaped_path: "*".into(), text: "*".into(), ..UrlVal::default() });
    }
    let (scheme, rest) = split_scheme(text)?;
    let scheme = scheme.to_ascii_lowercase();
    let force_query = rest.ends_with('?') && rest.matches('?').count() == 1;
    let (mut rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = UrlVal { scheme, query: query.into(), ..UrlVal::default() };
    if !url.scheme.is_empty() {
        url.text = format!("{}:", url.scheme);
    }
    let end = |mut url: UrlVal| {
        if force_query || !url.query.is_empty() {
            url.text = format!("{}?{}", url.text, url.query);
        }
        Ok(url)
    };
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.text.push_str(rest);
            return end(url);
        }
        if request {
            return Err("invalid URI for request".into());
        }
        if rest.split('/').next().is_some_and(|first| first.contains(':')) {
            return Err("first path segment in URL cannot contain colon".into());
        }
    }
    let has_authority = (!url.scheme.is_empty() || !request && !rest.starts_with("///")) && rest.starts_with("//");
    let (mut user, mut omit) = (None, false);
    if has_authority {
        let after = &rest[2..];
        let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
        rest = path;
        (user, url.host) = read_authority(authority)?;
    } else {
        omit = !url.scheme.is_empty() && rest.starts_with('/');
    }
    let path = unescape(rest, Part::Path)?;
    url.escaped_path = escaped(rest, &path, Part::Path);
    let is_rooted = !url.scheme.is_empty() || !url.host.is_empty() || user.is_some();
    if is_rooted && !(omit && url.host.is_empty() && user.is_none()) {
        if !url.host.is_empty() || !path.is_empty() || user.is_some() {
            url.text.push_str("//");
        }
        if let Some(user) = user {
            url.text.push_str(&user);
            url.text.push('@');
        }
        url.text.push_str(&escape(&url.host, Part::Host));
    }
    url.text.push_str(&url.escaped_path);
    end(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (i, b) in text.bytes().enumerate() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if i > 0 => {}
            b':' if i == 0 => return Err("missing protocol scheme".into()),
            b':' => return Ok((&text[..i], &text[i + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

/// The user as it is printed, and the host.
fn read_authority(authority: &str) -> Result<(Option<String>, String), String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let host = read_host(host)?;
    let Some(user) = user else { return Ok((None, host)) };
    let is_right = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
    if !user.bytes().all(is_right) {
        return Err("net/url: invalid userinfo".into());
    }
    let part = |text: &str| unescape(text, Part::User).map(|plain| escape(&plain, Part::User));
    let shown = match user.split_once(':') {
        Some((name, password)) => format!("{}:{}", part(name)?, part(password)?),
        None => part(user)?,
    };
    Ok((Some(shown), host))
}

fn read_host(host: &str) -> Result<String, String> {
    let is_port =
        |port: &str| port.is_empty() || port.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()));
    let bad_port = |port: &str| format!("invalid port {} after host", quote(port));
    let Some(open) = host.rfind('[') else {
        if let Some(port) = host.rfind(':').map(|at| &host[at..])
            && !is_port(port)
        {
            return Err(bad_port(port));
        }
        return unescape(host, Part::Host);
    };
    let close = host.rfind(']').filter(|close| *close > open).ok_or("missing ']' in host")?;
    let port = &host[close + 1..];
    if !is_port(port) {
        return Err(bad_port(port));
    }
    let name = &host[open + 1..close];
    let plain = match name.find("%25") {
        Some(zone) => unescape(&name[..zone], Part::Host)? + &unescape(&name[zone..], Part::Zone)?,
        None => unescape(name, Part::Host)?,
    };
    let (address, _) = super::net::parse_address(&plain).map_err(|why| format!("invalid host: {why}"))?;
    if address.is_ipv4() {
        return Err("invalid IP-literal".into());
    }
    Ok(format!("[{plain}]{port}"))
}

/// Whether a byte must be written with a percent sign.
fn must_escape(b: u8, part: Part) -> bool {
    if b.is_ascii_alphanumeric() || b"-_.~".contains(&b) {
        return false;
    }
    if matches!(part, Part::Host | Part::Zone) && b"!$&'()*+,;=:[]<>\"".contains(&b) {
        return false;
    }
    if b"$&+,/:;=?@".contains(&b) {
        return match part {
            Part::Path => b == b'?',
            Part::User => b"@/?:".contains(&b),
            Part::Query => true,
            Part::Fragment => false,
            Part::Host | Part::Zone => true,
        };
    }
    !(part == Part::Fragment && b"!()*".contains(&b))
}

fn escape(text: &str, part: Part) -> String {
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        if must_escape(b, part) {
            out.push_str(&format!("%{b:02X}"));
        } else {
            out.push(char::from(b));
        }
    }
    out
}

/// How a part is printed: as it was written if that is right, else escaped anew.
fn escaped(raw: &str, plain: &str, part: Part) -> String {
    let is_right = |b: u8| b"!$&'()*+,;=:@[]%".contains(&b) || !must_escape(b, part);
    if plain == "*" && part == Part::Path {
        return "*".into();
    }
    if raw.bytes().all(is_right) { raw.into() } else { escape(plain, part) }
}

fn unescape(text: &str, part: Part) -> Result<String, String> {
    let bytes = text.as_bytes();
    let hex = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16)).map(|d| d as u8);
    let bad = |from: usize| {
        let shown = String::from_utf8_lossy(&bytes[from..(from + 3).min(bytes.len())]).into_owned();
        format!("invalid URL escape {}", quote(&shown))
    };
    let in_host = matches!(part, Part::Host | Part::Zone);
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                let (Some(high), Some(low)) = (hex(at + 1), hex(at + 2)) else { return Err(bad(at)) };
                let byte = high << 4 | low;
                let is_percent = &bytes[at..at + 3] == b"%25";
                if part == Part::Host && high < 8 && !is_percent {
                    return Err(bad(at));
                }
                if part == Part::Zone && !is_percent && byte != b' ' && must_escape(byte, Part::Host) {
                    return Err(bad(at));
                }
                out.push(byte);
                at += 3;
                continue;
            }
            b'+' if part == Part::Query => out.push(b' '),
            b if in_host && b < 0x80 && must_escape(b, part) => {
                return Err(format!("invalid character {} in host name", quote(&char::from(b).to_string())));
            }
            b => out.push(b),
        }
        at += 1;
    }
    Ok(match String::from_utf8(out) {
        Ok(text) => text,
        Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
    })
}
