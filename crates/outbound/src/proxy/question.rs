//! A request in HTTP/1.1 as it is sent: its head is written once, as text.

use super::transport::Failed;
use bytes::Bytes;
use http::uri::Authority;
use http::{HeaderValue, Method, Uri};

/// Room for a head with a path and headers of the usual length.
const USUAL_HEAD: usize = 512;

/// A request that is asked as it is.
pub(super) struct Question {
    draft: Draft,
    body: Bytes,
}

/// A head that still takes headers.
pub(super) struct Draft {
    uri: Uri,
    server: Authority,
    head: Vec<u8>,
}

impl Draft {
    /// To an absolute URI, whose own host is named unless `host` is another.
    pub fn new(method: &Method, uri: Uri, host: Option<&HeaderValue>) -> Result<Draft, Failed> {
        let server = uri.authority().cloned().ok_or_else(|| Failed::fresh("no Host in request URL".to_owned()))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let slash = if path.starts_with('/') { "" } else { "/" };
        let own = server.as_str();
        let own = own.rsplit_once('@').map_or(own, |(_, host)| host);
        let mut head = Vec::with_capacity(USUAL_HEAD);
        for part in [method.as_str(), " ", slash, path, " HTTP/1.1\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
        let mut draft = Draft { uri, server: server.clone(), head };
        draft.line("host", host.map_or(own.as_bytes(), HeaderValue::as_bytes));
        Ok(draft)
    }

    pub fn with(mut self, name: &str, value: &HeaderValue) -> Draft {
        self.line(name, value.as_bytes());
        self
    }

    fn line(&mut self, name: &str, value: &[u8]) {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            self.head.extend_from_slice(part);
        }
    }

    /// With the length of its body, if it has one.
    pub fn done(mut self, body: Option<Bytes>) -> Question {
        if let Some(body) = &body {
            self.line("content-length", body.len().to_string().as_bytes());
        }
        self.head.extend_from_slice(b"\r\n");
        Question { draft: self, body: body.unwrap_or_default() }
    }
}

impl Question {
    pub fn uri(&self) -> &Uri {
        &self.draft.uri
    }

    pub fn server(&self) -> &Authority {
        &self.draft.server
    }

    pub fn head(&self) -> &[u8] {
        &self.draft.head
    }

    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_written_as_they_are_sent() {
        let (plain, value) = (Uri::from_static("http://me:secret@h:8/a?b"), HeaderValue::from_static("v"));
        let question = Draft::new(&Method::POST, plain, None).unwrap().with("n", &value).done(Some(b"body"[..].into()));
        assert_eq!(question.head(), b"POST /a?b HTTP/1.1\r\nhost: h:8\r\nn: v\r\ncontent-length: 4\r\n\r\n");
        let question = Draft::new(&Method::GET, Uri::from_static("http://h"), Some(&value)).unwrap().done(None);
        assert_eq!((question.head(), question.body()), (&b"GET / HTTP/1.1\r\nhost: v\r\n\r\n"[..], &b""[..]));
        assert!(Draft::new(&Method::GET, Uri::from_static("/only/a/path"), None).is_err());
    }
}
