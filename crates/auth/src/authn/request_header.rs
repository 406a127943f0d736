//! Users vouched for by a front proxy: names in headers, believed only with the proxy's client certificate.

use super::x509::{CaPool, Verified, verify_cached};
use crate::error::AuthError;
use crate::traits::{Answer, AuthRequest, AuthResponse, Authentication, Authenticator};
use crate::user::User;
use arc_swap::ArcSwapOption;
use http::{HeaderMap, HeaderName};
use kubelith_meta::Str;
use kubelith_meta::time::Clock;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which headers carry the user; the same list tells which to remove before a request goes on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestHeaderNames {
    pub username: Vec<String>,
    pub uid: Vec<String>,
    pub group: Vec<String>,
    pub extra_prefix: Vec<String>,
}

impl RequestHeaderNames {
    /// The headers that are removed always, whatever is configured.
    pub fn standard() -> RequestHeaderNames {
        let one = |name: &str| vec![name.to_string()];
        RequestHeaderNames {
            username: one("X-Remote-User"),
            uid: one("X-Remote-Uid"),
            group: one("X-Remote-Group"),
            extra_prefix: one("X-Remote-Extra-"),
        }
    }

    /// Trims the names and refuses empty ones.
    pub fn normalized(self) -> Result<RequestHeaderNames, String> {
        let trim = |names: Vec<String>| -> Result<Vec<String>, String> {
            let trimmed: Vec<String> = names.iter().map(|n| n.trim().to_string()).collect();
            match trimmed.iter().position(String::is_empty) {
                Some(i) => Err(format!("empty header {}", kubelith_meta::text::quote(&names[i]))),
                None => Ok(trimmed),
            }
        };
        Ok(RequestHeaderNames {
            username: trim(self.username)?,
            uid: trim(self.uid)?,
            group: trim(self.group)?,
            extra_prefix: trim(self.extra_prefix)?,
        })
    }

    /// Removes all of these headers: nobody behind us may believe what a client wrote there.
    pub fn remove_from(&self, headers: &mut HeaderMap) {
        if !headers.keys().any(|name| self.has(name.as_str())) {
            return;
        }
        let names: Vec<HeaderName> = headers.keys().filter(|name| self.has(name.as_str())).cloned().collect();
        for name in names {
            headers.remove(name);
        }
    }

    fn has(&self, header: &str) -> bool {
        for names in [&self.username, &self.uid, &self.group] {
            if names.iter().any(|name| name.eq_ignore_ascii_case(header)) {
                return true;
            }
        }
        let begins_it = |prefix: &String| header.get(..prefix.len()).is_some_and(|h| h.eq_ignore_ascii_case(prefix));
        self.extra_prefix.iter().any(begins_it)
    }

    fn names_nobody(&self, headers: &HeaderMap) -> bool {
        !self.username.iter().any(|name| headers.get(name.as_str()).is_some_and(|value| !value.is_empty()))
    }

    /// The user in the headers, if there is a name.
    fn user(&self, headers: &HeaderMap) -> Result<Option<User>, AuthError> {
        let name = first(headers, &self.username)?;
        if name.is_empty() {
            return Ok(None);
        }
        let mut groups = Vec::new();
        for header in &self.group {
            for value in headers.get_all(header.as_str()) {
                let value = text(value)?;
                if !value.is_empty() {
                    groups.push(value);
                }
            }
        }
        let mut extra: BTreeMap<Str, Vec<Str>> = BTreeMap::new();
        for header in headers.keys() {
            // A header that fits two prefixes counts under both.
            for key in self.extra_keys(header.as_str()) {
                let values = headers.get_all(header).iter().map(text).collect::<Result<Vec<_>, _>>()?;
                extra.entry(key).or_default().extend(values);
            }
        }
        Ok(Some(User { name, uid: first(headers, &self.uid)?, groups, extra }))
    }

    fn extra_keys(&self, header: &str) -> impl Iterator<Item = Str> {
        self.extra_prefix.iter().filter_map(move |prefix| {
            let start = header.get(..prefix.len())?;
            start.eq_ignore_ascii_case(prefix).then(|| unescape_key(&header[prefix.len()..].to_ascii_lowercase()))
        })
    }
}

fn first(headers: &HeaderMap, names: &[String]) -> Result<Str, AuthError> {
    for name in names {
        if let Some(value) = headers.get(name.as_str()).filter(|v| !v.is_empty()) {
            return text(value);
        }
    }
    Ok(Str::default())
}

/// Bytes that are not text could make two users look like one; no proxy sends them.
fn text(value: &http::HeaderValue) -> Result<Str, AuthError> {
    let text = std::str::from_utf8(value.as_bytes());
    text.map(Str::from).map_err(|_| AuthError::new("request header value is not valid UTF-8"))
}

/// Decodes `%xx`; a key with a broken escape stays as it is.
pub(crate) fn unescape_key(key: &str) -> Str {
    let bytes = key.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] != b'%' {
            out.push(bytes[i]);
            i += 1;
            continue;
        }
        let hex = key.get(i + 1..i + 3).filter(|h| h.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(byte) = hex.and_then(|h| u8::from_str_radix(h, 16).ok()) else { return key.into() };
        out.push(byte);
        i += 3;
    }
    String::from_utf8(out).map_or_else(|_| key.into(), Str::from)
}

/// What `--requestheader-*` and the ConfigMap of the same settings say.
#[derive(Debug, Clone)]
pub struct RequestHeaderConfig {
    pub headers: RequestHeaderNames,
    /// Common names of proxies; empty: any certificate of the CA.
    pub allowed_names: Vec<String>,
    pub ca: CaPool,
}

/// Reads its configuration anew on each request, so that it can be replaced while running.
pub struct RequestHeader {
    config: Arc<ArcSwapOption<RequestHeaderConfig>>,
    clock: Arc<dyn Clock>,
}

impl RequestHeader {
    pub fn new(config: Arc<ArcSwapOption<RequestHeaderConfig>>, clock: Arc<dyn Clock>) -> RequestHeader {
        RequestHeader { config, clock }
    }

    fn check(&self, request: AuthRequest<'_>) -> Authentication {
        let config = self.config.load();
        let (Some(config), Some(peer)) = (config.as_deref(), request.peer_certificates) else { return Ok(None) };
        // Most certificates are those of clients, which the proxy's authority did not sign: to find that out costs more than a whole read,
        // and matters to no request that names no user.
        if config.headers.names_nobody(request.headers) {
            return Ok(None);
        }
        let verified: Arc<Verified> = verify_cached(&config.ca, peer, self.clock.now())?;
        let common_name = &verified.common_name;
        if !config.allowed_names.is_empty() && !config.allowed_names.iter().any(|n| n == common_name) {
            return Err(AuthError::new(format!("x509: subject with cn={common_name} is not in the allowed list")));
        }
        Ok(config.headers.user(request.headers)?.map(AuthResponse::user))
    }
}

impl Authenticator for RequestHeader {
    fn authenticate<'a>(&'a self, request: AuthRequest<'a>) -> Answer<'a, Authentication> {
        Answer::Ready(self.check(request))
    }
}

#[cfg(test)]
#[path = "request_header_tests.rs"]
mod tests;
