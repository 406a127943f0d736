//! URLs as Go's net/url takes them apart: what it refuses, and in which words, is part of messages of the API.

use crate::address::parse_address;
use crate::text::quote;

/// A URL and its parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Url {
    pub scheme: String,
    /// What stands before the `@`, as it is printed.
    pub user: Option<String>,
    /// With its port.
    pub host: String,
    pub escaped_path: String,
    pub query: String,
    pub fragment: String,
    /// The whole, as Go puts it together again.
    pub text: String,
}

impl Url {
    /// Go's `url.Parse`. The error is the whole message, as `parse "::": missing protocol scheme`.
    pub fn parse(text: &str) -> Result<Url, String> {
        let (body, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = read(body, Form::Any).map_err(|why| format!("parse {}: {why}", quote(body)))?;
        if !fragment.is_empty() {
            let plain = unescape(fragment, Part::Fragment).map_err(|why| format!("parse {}: {why}", quote(text)))?;
            url.text.push('#');
            url.text.push_str(&escaped(fragment, &plain, Part::Fragment));
            url.fragment = plain;
        }
        Ok(url)
    }

    /// Go's `url.ParseRequestURI`.
    pub fn parse_request(text: &str) -> Result<Url, String> {
        read(text, Form::Request).map_err(|why| format!("parse {}: {why}", quote(text)))
    }

    /// The host without brackets and port, and the port.
    pub fn host_and_port(&self) -> (&str, &str) {
        let (name, port) = match self.host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (name, port),
            _ => (self.host.as_str(), ""),
        };
        (name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name), port)
    }

    /// The pairs of the query, in their order, without those that are not right.
    pub fn query_pairs(&self) -> impl Iterator<Item = (String, String)> {
        self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')).filter_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((unescape(key, Part::Query).ok()?, unescape(value, Part::Query).ok()?))
        })
    }
}

/// Whether it must be what a request can ask for: a whole URL or a path from the root on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Any,
    Request,
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

fn read(text: &str, form: Form) -> Result<Url, String> {
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err("net/url: invalid control character in URL".into());
    }
    let is_request = form == Form::Request;
    if text.is_empty() && is_request {
        return Err("empty url".into());
    }
    if text == "*" {
        return Ok(Url { escaped_path: "*".into(), text: "*".into(), ..Url::default() });
    }
    let (scheme, rest) = split_scheme(text)?;
    let scheme = scheme.to_ascii_lowercase();
    let force_query = rest.ends_with('?') && rest.matches('?').count() == 1;
    let (mut rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut url = Url { scheme, query: query.into(), ..Url::default() };
    if !url.scheme.is_empty() {
        url.text = format!("{}:", url.scheme);
    }
    let end = |mut url: Url| {
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
        if is_request {
            return Err("invalid URI for request".into());
        }
        if rest.split('/').next().is_some_and(|first| first.contains(':')) {
            return Err("first path segment in URL cannot contain colon".into());
        }
    }
    let has_authority = (!url.scheme.is_empty() || !is_request && !rest.starts_with("///")) && rest.starts_with("//");
    let mut omit = false;
    if has_authority {
        let after = &rest[2..];
        let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
        rest = path;
        (url.user, url.host) = read_authority(authority)?;
    } else {
        omit = !url.scheme.is_empty() && rest.starts_with('/');
    }
    let path = unescape(rest, Part::Path)?;
    url.escaped_path = escaped(rest, &path, Part::Path);
    let is_rooted = !url.scheme.is_empty() || !url.host.is_empty() || url.user.is_some();
    if is_rooted && !(omit && url.host.is_empty() && url.user.is_none()) {
        if !url.host.is_empty() || !path.is_empty() || url.user.is_some() {
            url.text.push_str("//");
        }
        if let Some(user) = &url.user {
            url.text.push_str(user);
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
    let (address, _) = parse_address(&plain).map_err(|why| format!("invalid host: {why}"))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        let url = Url::parse("HTTPS://me:pw@host:8/p?q#f").unwrap();
        let expected = Url {
            scheme: "https".into(),
            user: Some("me:pw".into()),
            host: "host:8".into(),
            escaped_path: "/p".into(),
            query: "q".into(),
            fragment: "f".into(),
            text: "https://me:pw@host:8/p?q#f".into(),
        };
        assert_eq!(url, expected);
        for text in ["", "host/path", "/x", "mailto:a:b", "https:"] {
            assert!(Url::parse(text).is_ok_and(|url| url.host.is_empty()), "{text}");
        }
    }

    #[test]
    fn refusals() {
        let cases = [
            ("::", "parse \"::\": missing protocol scheme"),
            ("a b:c", "parse \"a b:c\": first path segment in URL cannot contain colon"),
            ("https://x:y/", "parse \"https://x:y/\": invalid port \":y\" after host"),
            ("https://[::1", "parse \"https://[::1\": missing ']' in host"),
            ("https://a b", "parse \"https://a b\": invalid character \" \" in host name"),
            ("https://x/%zz", "parse \"https://x/%zz\": invalid URL escape \"%zz\""),
            ("https://x%41", "parse \"https://x%41\": invalid URL escape \"%41\""),
            ("https://x\u{7f}", "parse \"https://x\\x7f\": net/url: invalid control character in URL"),
            ("https://[1.2.3.4]", "parse \"https://[1.2.3.4]\": invalid IP-literal"),
            ("https://u{}@x", "parse \"https://u{}@x\": net/url: invalid userinfo"),
        ];
        for (text, expected) in cases {
            assert_eq!(Url::parse(text).unwrap_err(), expected);
        }
    }
}
