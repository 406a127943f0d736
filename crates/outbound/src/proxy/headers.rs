//! Headers on their way through a proxy: those of one hop go, those that say who asks are ours alone.

use super::ProxyError;
use super::identity::escape_extra_key;
use http::header::{
    CONNECTION, EXPECT, HeaderName, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue};
use kubelith_auth::User;
use std::net::IpAddr;

const X_REMOTE_USER: HeaderName = HeaderName::from_static("x-remote-user");
const X_REMOTE_UID: HeaderName = HeaderName::from_static("x-remote-uid");
const X_REMOTE_GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const X_REMOTE_EXTRA: &str = "x-remote-extra-";
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// Whether the user's uid is told to extension servers (gate RemoteRequestHeaderUID).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    WithUid,
    WithoutUid,
}

/// Whether the client asks to take over the connection.
pub fn asks_for_upgrade(headers: &HeaderMap) -> bool {
    headers.get_all(CONNECTION).iter().any(|v| v.as_bytes().to_ascii_lowercase().windows(7).any(|w| w == b"upgrade"))
}

/// Removes what is meant for this hop alone: what `Connection` names, and the well-known ones.
pub fn remove_hop_headers(headers: &mut HeaderMap) {
    if headers.contains_key(CONNECTION) {
        let named: Vec<HeaderName> = headers
            .get_all(CONNECTION)
            .iter()
            .filter_map(|v| v.to_str().ok())
            .flat_map(|v| v.split(','))
            .filter_map(|name| name.trim().parse().ok())
            .collect();
        for name in named {
            headers.remove(name);
        }
    }
    for name in [
        CONNECTION,
        PROXY_CONNECTION,
        KEEP_ALIVE,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
    ] {
        headers.remove(name);
    }
}

/// What a request keeps for the next hop. Our side has answered `Expect` already.
pub fn prepare_request(headers: &mut HeaderMap, client: Option<IpAddr>) {
    let takes_trailers = headers.get_all(TE).iter().any(|v| v.as_bytes().eq_ignore_ascii_case(b"trailers"));
    remove_hop_headers(headers);
    headers.remove(EXPECT);
    if takes_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    if let Some(client) = client {
        append_forwarded_for(headers, client);
    }
}

fn append_forwarded_for(headers: &mut HeaderMap, client: IpAddr) {
    let mut list = Vec::new();
    for earlier in headers.get_all(X_FORWARDED_FOR) {
        list.extend_from_slice(earlier.as_bytes());
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(client.to_string().as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&list) {
        headers.insert(X_FORWARDED_FOR, value);
    }
}

/// Says who asks. Whatever the client sent under these names is gone.
pub fn set_user(headers: &mut HeaderMap, user: &User, identity: Identity) -> Result<(), ProxyError> {
    for name in [X_REMOTE_USER, X_REMOTE_UID, X_REMOTE_GROUP] {
        headers.remove(name);
    }
    let extras: Vec<HeaderName> = headers.keys().filter(|k| k.as_str().starts_with(X_REMOTE_EXTRA)).cloned().collect();
    for name in extras {
        headers.remove(name);
    }
    headers.insert(X_REMOTE_USER, value(&user.name)?);
    if identity == Identity::WithUid && !user.uid.is_empty() {
        headers.insert(X_REMOTE_UID, value(&user.uid)?);
    }
    for group in &user.groups {
        headers.append(X_REMOTE_GROUP, value(group)?);
    }
    for (key, values) in &user.extra {
        let name = format!("{X_REMOTE_EXTRA}{}", escape_extra_key(key));
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| ProxyError::Unreachable(format!("net/http: invalid header field name {name:?}")))?;
        for each in values {
            headers.append(name.clone(), value(each)?);
        }
    }
    Ok(())
}

fn value(text: &str) -> Result<HeaderValue, ProxyError> {
    HeaderValue::from_bytes(text.as_bytes())
        .map_err(|_| ProxyError::Unreachable("net/http: invalid header field value".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers
    }

    fn shown(headers: &HeaderMap) -> Vec<String> {
        let mut lines: Vec<String> = headers.iter().map(|(k, v)| format!("{k}: {}", v.to_str().unwrap())).collect();
        lines.sort();
        lines
    }

    #[test]
    fn hop_headers_end_here() {
        let mut headers = map(&[
            ("connection", "Keep-Alive, X-Secret"),
            ("x-secret", "1"),
            ("keep-alive", "5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("expect", "100-continue"),
            ("x-forwarded-for", "192.0.2.1"),
            ("accept", "a/b"),
        ]);
        prepare_request(&mut headers, Some("198.51.100.7".parse().unwrap()));
        assert_eq!(shown(&headers), ["accept: a/b", "te: trailers", "x-forwarded-for: 192.0.2.1, 198.51.100.7"]);
    }

    #[test]
    fn nobody_else_says_who_asks() {
        let mut headers = map(&[
            ("x-remote-user", "root"),
            ("x-remote-uid", "0"),
            ("x-remote-group", "system:masters"),
            ("x-remote-extra-scopes", "all"),
        ]);
        let mut user = User::named("alice").with_groups(&["devs", "ops"]);
        user.extra.insert("a/b".into(), vec!["1".into(), "2".into()]);
        set_user(&mut headers, &user, Identity::WithUid).unwrap();
        let want = [
            "x-remote-extra-a%2fb: 1",
            "x-remote-extra-a%2fb: 2",
            "x-remote-group: devs",
            "x-remote-group: ops",
            "x-remote-user: alice",
        ];
        assert_eq!(shown(&headers), want);
        user.name = "a\nx-remote-group: system:masters".into();
        assert!(set_user(&mut headers, &user, Identity::WithUid).is_err());
    }

    #[test]
    fn upgrades_are_seen_in_any_spelling() {
        for (value, want) in [("Upgrade", true), ("keep-alive, UPGRADE", true), ("keep-alive", false)] {
            assert_eq!(asks_for_upgrade(&map(&[("connection", value)])), want, "{value}");
        }
    }
}
