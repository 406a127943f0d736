//! Where webhooks send on to, as Go's client follows them.

use super::answer::Head;
use http::header::LOCATION;
use http::{Method, Uri};
use kubelith_auth::remote::FetchError;
use kubelith_meta::text::quote;
use kubelith_meta::url::Url;

/// One request on the way to an answer.
#[derive(Clone)]
pub struct Step {
    pub method: Method,
    pub uri: Uri,
    /// The URL as errors call it.
    pub shown: String,
    /// It goes to the host that the configuration names.
    pub is_own: bool,
}

impl Step {
    /// Errors name what was asked at first, wherever that led.
    pub fn named(&self, why: &str) -> String {
        format!("Post {}: {why}", quote(&self.shown))
    }

    /// Where an answer leads, as Go's client follows it: mostly a POST becomes a GET on the way.
    pub fn redirected(&self, answer: &Head) -> Result<Option<Step>, FetchError> {
        let method = match answer.status.as_u16() {
            301..=303 => Method::GET,
            307 | 308 => self.method.clone(),
            _ => return Ok(None),
        };
        let Some(location) = location(answer) else { return Ok(None) };
        if let Err(why) = Url::parse(location) {
            let why = format!("failed to parse Location header {}: {why}", quote(location));
            return Err(FetchError::Other(self.named(&why)));
        }
        let failed = |why: &dyn std::fmt::Display| FetchError::Other(self.named(&why.to_string()));
        let (place, shown) = self.resolve(location);
        let (uri, is_own) = match place {
            // The same server: a service stays at the address where it was found.
            Some(path) => {
                let mut parts = self.uri.clone().into_parts();
                parts.path_and_query = Some(path.parse().map_err(|e| failed(&e))?);
                (Uri::from_parts(parts).map_err(|e| failed(&e))?, self.is_own)
            }
            None => (shown.parse().map_err(|e| failed(&e))?, false),
        };
        Ok(Some(Step { method, uri, shown, is_own }))
    }

    /// A reference as seen from here: the path, if it stays on this server, and the whole URL.
    fn resolve(&self, location: &str) -> (Option<String>, String) {
        let start = self.shown.find("://").map_or(0, |at| at + 3);
        let path_at = self.shown[start..].find('/').map_or(self.shown.len(), |at| start + at);
        let (server, path) = self.shown.split_at(path_at);
        let is_absolute = location.find("://").is_some_and(|at| !location[..at].contains(['/', '?']));
        if is_absolute || location.starts_with("//") {
            let shown = match is_absolute {
                true => location.to_owned(),
                false => format!("{}:{location}", &server[..start.saturating_sub(3)]),
            };
            let own = shown.strip_prefix(server).filter(|rest| rest.starts_with('/')).map(str::to_owned);
            return (own, shown);
        }
        let path = match location.starts_with('/') {
            true => location.to_owned(),
            false => {
                let path = path.split(['?', '#']).next().unwrap_or_default();
                format!("{}{location}", &path[..path.rfind('/').map_or(0, |at| at + 1)])
            }
        };
        let shown = format!("{server}{path}");
        (Some(path), shown)
    }
}

/// Where an answer says that another one is.
pub fn location(answer: &Head) -> Option<&str> {
    answer.text(&LOCATION).filter(|to| !to.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;

    fn answer(status: u16, location: &str) -> Head {
        let text = format!("HTTP/1.1 {status} OK\r\nLocation: {location}\r\n\r\n");
        Head::take(&mut BytesMut::from(text.as_str()), &mut 0).unwrap().unwrap()
    }

    #[test]
    fn references_are_seen_from_where_they_stand() {
        let shown = "https://s.n.svc:443/a/b?timeout=1s";
        let uri = "https://10.0.0.1:443/a/b?timeout=1s".parse().unwrap();
        let step = Step { method: Method::POST, uri, shown: shown.into(), is_own: true };
        for (location, want, to, is_own) in [
            ("/c", "https://s.n.svc:443/c", "https://10.0.0.1:443/c", true),
            ("c?d", "https://s.n.svc:443/a/c?d", "https://10.0.0.1:443/a/c?d", true),
            ("https://s.n.svc:443/c", "https://s.n.svc:443/c", "https://10.0.0.1:443/c", true),
            ("https://s.n.svc/c", "https://s.n.svc/c", "https://s.n.svc/c", false),
            ("//other/c", "https://other/c", "https://other/c", false),
            ("http://other:80/c", "http://other:80/c", "http://other:80/c", false),
        ] {
            let next = step.redirected(&answer(307, location)).unwrap().unwrap();
            assert_eq!(
                (next.shown.as_str(), next.uri.to_string().as_str(), next.is_own),
                (want, to, is_own),
                "{location}"
            );
        }
    }

    #[test]
    fn a_place_that_is_none_is_named() {
        let uri = "https://127.0.0.1:1/a".parse().unwrap();
        let step = Step { method: Method::POST, uri, shown: "https://127.0.0.1:1/a".into(), is_own: true };
        let why = step.redirected(&answer(302, "ht!tp://%zz")).err().unwrap().to_string();
        let want = "Post \"https://127.0.0.1:1/a\": failed to parse Location header \"ht!tp://%zz\": parse \"ht!tp://%zz\": \
                    first path segment in URL cannot contain colon";
        assert_eq!(why, want);
    }
}
