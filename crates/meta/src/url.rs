//! URLs as Go's net/url takes them apart: what it refuses, and in which words, is part of messages of the API.

use crate::text::Quoted;

/// The parts of a URL that rules look at.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Url {
    pub scheme: String,
    /// What stands before the `@`.
    pub user: Option<String>,
    /// With its port.
    pub host: String,
    pub query: String,
    pub fragment: String,
}

impl Url {
    /// The error is the whole message, as `parse "::": missing protocol scheme`.
    pub fn parse(text: &str) -> Result<Url, String> {
        let (body, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = read(body).map_err(|why| format!("parse {}: {why}", Quoted(body)))?;
        check_escapes(fragment, Place::Elsewhere).map_err(|why| format!("parse {}: {why}", Quoted(text)))?;
        url.fragment = fragment.into();
        Ok(url)
    }
}

fn read(text: &str) -> Result<Url, String> {
    if text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return Err("net/url: invalid control character in URL".into());
    }
    let mut url = Url::default();
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    url.query = query.into();
    if !rest.starts_with('/') {
        // Something like mailto:someone has no parts.
        if !url.scheme.is_empty() {
            return Ok(url);
        }
        let first = rest.split('/').next().unwrap_or_default();
        if first.contains(':') {
            return Err("first path segment in URL cannot contain colon".into());
        }
    }
    let has_authority = rest.starts_with("//") && (!url.scheme.is_empty() || !rest.starts_with("///"));
    let mut path = rest;
    if has_authority {
        let after = &rest[2..];
        let authority = after.split('/').next().unwrap_or_default();
        path = &after[authority.len()..];
        read_authority(authority, &mut url)?;
    }
    check_escapes(path, Place::Elsewhere)?;
    Ok(url)
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

fn read_authority(authority: &str, url: &mut Url) -> Result<(), String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        &host[end + 1..]
    } else {
        host.rfind(':').map_or("", |i| &host[i..])
    };
    let is_port = port.is_empty() || port.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()));
    if !is_port {
        return Err(format!("invalid port {} after host", Quoted(port)));
    }
    check_escapes(host, Place::Host)?;
    url.host = host.into();
    if let Some(user) = user {
        let is_right = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
        if !user.bytes().all(is_right) {
            return Err("net/url: invalid userinfo".into());
        }
        check_escapes(user, Place::Elsewhere)?;
        url.user = Some(user.into());
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Host,
    Elsewhere,
}

/// A percent sign begins two hexadecimal digits; in a host it may only hide what is not ASCII.
fn check_escapes(text: &str, place: Place) -> Result<(), String> {
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let b = bytes[i];
        if b == b'%' {
            let code = bytes.get(i + 1..i + 3).filter(|code| code.iter().all(u8::is_ascii_hexdigit));
            let is_allowed = place == Place::Elsewhere
                || code.is_some_and(|code| code == b"25" || !(b'0'..=b'7').contains(&code[0]));
            if code.is_none() || !is_allowed {
                let shown = text.get(i..(i + 3).min(text.len())).unwrap_or("%");
                return Err(format!("invalid URL escape {}", Quoted(shown)));
            }
            i += 3;
            continue;
        }
        let is_host_byte = b >= 0x80 || b.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&b);
        if place == Place::Host && !is_host_byte {
            return Err(format!("invalid character {} in host name", Quoted(&text[i..i + 1])));
        }
        i += 1;
    }
    Ok(())
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
            query: "q".into(),
            fragment: "f".into(),
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
            ("https://u{}@x", "parse \"https://u{}@x\": net/url: invalid userinfo"),
        ];
        for (text, expected) in cases {
            assert_eq!(Url::parse(text).unwrap_err(), expected);
        }
    }
}
