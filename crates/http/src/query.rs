//! Query strings: `a=1&b=%20` as pairs, decoded as Go's url package decodes them.

use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// The pairs of a query in order. A pair that holds a semicolon or a broken escape is left out, as in Go.
pub fn pairs(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')).filter_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((unescape(key)?, unescape(value)?))
    })
}

/// The first value of `key`.
pub fn first<'q>(query: Option<&'q str>, key: &str) -> Option<Cow<'q, str>> {
    pairs(query.unwrap_or("")).find(|(k, _)| k == key).map(|(_, v)| v)
}

pub fn has(query: Option<&str>, key: &str) -> bool {
    first(query, key).is_some()
}

/// Undoes `%xx` and `+`. `None` for an escape that is not one. Bytes that are no UTF-8 become U+FFFD.
fn unescape(s: &str) -> Option<Cow<'_, str>> {
    if !s.bytes().any(|b| b == b'%' || b == b'+') {
        return Some(Cow::Borrowed(s));
    }
    if !escapes_are_whole(s) {
        return None;
    }
    let spaced = s.replace('+', " ");
    Some(Cow::Owned(percent_decode_str(&spaced).decode_utf8_lossy().into_owned()))
}

/// The path of a URL with its escapes undone; `None` if an escape is broken.
pub fn decode_path(path: &str) -> Option<Cow<'_, str>> {
    if !path.contains('%') {
        return Some(Cow::Borrowed(path));
    }
    escapes_are_whole(path).then(|| percent_decode_str(path).decode_utf8_lossy())
}

fn escapes_are_whole(s: &str) -> bool {
    s.split('%').skip(1).all(|rest| {
        let hex = rest.as_bytes();
        hex.len() >= 2 && hex[0].is_ascii_hexdigit() && hex[1].is_ascii_hexdigit()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_decode() {
        let cases: &[(&str, &[(&str, &str)])] = &[
            ("", &[]),
            ("verbose", &[("verbose", "")]),
            ("a=1&b=x%20y&a=+2", &[("a", "1"), ("b", "x y"), ("a", " 2")]),
            ("a=%zz&b=%4&c=1;d=2&=e", &[("", "e")]),
            ("a=b=c&&d", &[("a", "b=c"), ("d", "")]),
        ];
        for (query, want) in cases {
            let got: Vec<_> = pairs(query).map(|(k, v)| (k.into_owned(), v.into_owned())).collect();
            let want: Vec<_> = want.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
            assert_eq!(got, want, "{query}");
        }
    }

    #[test]
    fn paths_decode() {
        assert_eq!(decode_path("/a%2Fb").as_deref(), Some("/a/b"));
        assert_eq!(decode_path("/a+b").as_deref(), Some("/a+b"));
        assert_eq!(decode_path("/%f"), None);
    }
}
