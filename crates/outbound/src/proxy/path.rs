//! Paths and queries for other servers, escaped as Go does.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What must be escaped in a path.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b'/')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');
/// What must be escaped in a query; spaces become `+`.
const QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b' ');

/// A decoded path as it goes on the wire.
pub fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

/// `key=value&…`, in the order given.
pub fn encode_query<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let text = |s: &str| utf8_percent_encode(s, QUERY).to_string().replace(' ', "+");
    pairs.into_iter().map(|(key, value)| format!("{}={}", text(key), text(value))).collect::<Vec<_>>().join("&")
}

/// A query in the only spelling that the other side cannot read in another way than we did: what is malformed is left
/// out, the rest is sorted by name and escaped anew.
pub fn canonical_query(raw: &str) -> String {
    let mut pairs: Vec<_> = kubelith_http::query::pairs(raw).collect();
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    encode_query(pairs.iter().map(|(key, value)| (&**key, &**value)))
}

/// Resolves `.`, `..` and doubled slashes. A slash at the end stays.
pub fn clean_path(path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
    let mut kept: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(kept.pop()),
            part => kept.push(part),
        }
    }
    let end = if path.ends_with('/') && !kept.is_empty() { "/" } else { "" };
    format!("/{}{end}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (path, want) in [("", ""), ("/", "/"), ("/a//b/./c/", "/a/b/c/"), ("/../../a", "/a"), ("a/..", "/")] {
            assert_eq!(clean_path(path), want, "{path}");
        }
        assert_eq!(encode_path("/a b/%/ä(x)"), "/a%20b/%25/%C3%A4%28x%29");
        assert_eq!(canonical_query("x=1&y=2;z&a=%41&b=%4&a=0&w"), "a=A&a=0&w=&x=1");
        assert_eq!(canonical_query(""), "");
        assert_eq!(encode_query([("command", "a b"), ("x", "&")]), "command=a+b&x=%26");
    }
}
