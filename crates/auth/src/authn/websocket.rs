//! The bearer token that browsers send as a WebSocket subprotocol, as they cannot set `Authorization`.

use super::bearer::refuse_unknown;
use crate::error::AuthError;
use crate::traits::{Answer, AuthRequest, Authentication, Authenticator, TokenAuthenticator};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::{HeaderMap, HeaderValue};
use kubelith_meta::Str;
use std::sync::Arc;

const BEARER_PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

pub struct WebSocketToken {
    tokens: Arc<dyn TokenAuthenticator>,
}

impl WebSocketToken {
    pub fn new(tokens: Arc<dyn TokenAuthenticator>) -> WebSocketToken {
        WebSocketToken { tokens }
    }
}

impl Authenticator for WebSocketToken {
    fn authenticate<'a>(&'a self, request: AuthRequest<'a>) -> Answer<'a, Authentication> {
        if !is_websocket(request.headers) {
            return Answer::Ready(Ok(None));
        }
        let token = match find(request.headers) {
            Ok(Some(token)) => token,
            Ok(None) => return Answer::Ready(Ok(None)),
            Err(e) => return Answer::Ready(Err(AuthError::new(e))),
        };
        let audiences: &'a [Str] = request.audiences;
        Answer::pending(async move { refuse_unknown(self.tokens.authenticate_token(&token, audiences).await) })
    }
}

/// Takes the token out of the offered subprotocols, so that it is neither echoed nor sent to a backend.
pub fn strip_token(headers: &mut HeaderMap) {
    let offered: Vec<String> = protocols(headers).map(str::to_string).collect();
    if !offered.iter().any(|p| p.starts_with(BEARER_PREFIX)) {
        return;
    }
    let kept: Vec<&str> = offered.iter().map(String::as_str).filter(|p| !p.starts_with(BEARER_PREFIX)).collect();
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    if let Ok(value) = HeaderValue::from_str(&kept.join(",")) {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, value);
    }
}

fn is_websocket(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(UPGRADE).is_some_and(|u| u.as_bytes().eq_ignore_ascii_case(b"websocket"));
    upgrade
        && headers
            .get_all(CONNECTION)
            .iter()
            .any(|c| c.to_str().is_ok_and(|c| c.to_ascii_lowercase().contains("upgrade")))
}

fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    values.filter_map(|v| v.to_str().ok()).flat_map(|v| v.split(',')).map(str::trim)
}

fn find(headers: &HeaderMap) -> Result<Option<String>, &'static str> {
    let mut token = None;
    let mut others = false;
    for protocol in protocols(headers) {
        let Some(encoded) = protocol.strip_prefix(BEARER_PREFIX) else {
            others = true;
            continue;
        };
        if token.is_some() {
            return Err("multiple base64.bearer.authorization tokens specified");
        }
        let bytes =
            URL_SAFE_NO_PAD.decode(encoded).map_err(|_| "invalid base64.bearer.authorization token encoding")?;
        token = Some(String::from_utf8(bytes).map_err(|_| "invalid base64.bearer.authorization token")?);
    }
    match token {
        Some(token) if token.is_empty() => Ok(None),
        Some(_) if !others => Err("missing additional subprotocol"),
        token => Ok(token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authn::testing::Probe;
    use crate::authn::token_file::TokenFile;

    #[test]
    fn protocol_forms() {
        let ws = WebSocketToken::new(Arc::new(TokenFile::parse("good,u,1", "f").unwrap()));
        let ok = Ok(Some("u".to_string()));
        let err = |e: &str| Err(e.to_string());
        let prefix = BEARER_PREFIX;
        let cases = [
            (format!("v4.channel.k8s.io, {prefix}Z29vZA"), ok.clone()),
            (format!("{prefix}Z29vZA,x"), ok),
            (format!("{prefix}Z29vZA"), err("missing additional subprotocol")),
            (format!("{prefix}Z29vZA==,x"), err("invalid base64.bearer.authorization token encoding")),
            (format!("{prefix}_w,x"), err("invalid base64.bearer.authorization token")),
            (format!("{prefix}YmFk,x"), err("invalid bearer token")),
            (format!("{prefix}Z29vZA,{prefix}Z29vZA,x"), err("multiple base64.bearer.authorization tokens specified")),
            ("x".to_string(), Ok(None)),
            (prefix.to_string(), Ok(None)),
        ];
        for (protocol, want) in cases {
            let probe = Probe::new()
                .header("upgrade", "WebSocket")
                .header("connection", "keep-alive, Upgrade")
                .header("sec-websocket-protocol", &protocol);
            let got = probe.ask(&ws).map(|r| r.map(|r| r.user.name.to_string())).map_err(|e| e.to_string());
            assert_eq!(got, want, "{protocol}");
        }
        let plain = Probe::new().header("sec-websocket-protocol", &format!("x,{prefix}Z29vZA"));
        assert_eq!(plain.ask(&ws), Ok(None));
    }

    #[test]
    fn the_token_is_taken_out() {
        let mut probe = Probe::new().header("sec-websocket-protocol", &format!("a, {BEARER_PREFIX}Z29vZA, b"));
        strip_token(&mut probe.headers);
        assert_eq!(probe.headers["sec-websocket-protocol"], "a,b");
    }
}
