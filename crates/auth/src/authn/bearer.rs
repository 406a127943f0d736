//! The token in the `Authorization` header.

use crate::error::AuthError;
use crate::traits::{Answer, AuthRequest, Authentication, Authenticator, TokenAuthenticator};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use std::sync::Arc;

pub const INVALID_TOKEN: &str = "invalid bearer token";

/// A bearer token that no authenticator knows is an error, so that it never counts as anonymous.
pub struct BearerToken {
    tokens: Arc<dyn TokenAuthenticator>,
}

impl BearerToken {
    pub fn new(tokens: Arc<dyn TokenAuthenticator>) -> BearerToken {
        BearerToken { tokens }
    }
}

impl Authenticator for BearerToken {
    fn authenticate<'a>(&'a self, request: AuthRequest<'a>) -> Answer<'a, Authentication> {
        match find(request.headers) {
            Found::Token(token) => self.tokens.authenticate_token(token, request.audiences).map(refuse_unknown),
            Found::NotText => Answer::Ready(Err(AuthError::new(INVALID_TOKEN))),
            Found::Nothing | Found::ExtraSpace => Answer::Ready(Ok(None)),
        }
    }
}

pub(crate) fn refuse_unknown(result: Authentication) -> Authentication {
    match result? {
        Some(response) => Ok(Some(response)),
        None => Err(AuthError::new(INVALID_TOKEN)),
    }
}

/// The warning a client gets whose token is ignored because it sent `Bearer  token`, with two spaces.
pub fn extra_space_warning(headers: &HeaderMap) -> Option<&'static str> {
    matches!(find(headers), Found::ExtraSpace)
        .then_some("the provided Authorization header contains extra space before the bearer token, and is ignored")
}

enum Found<'a> {
    Token(&'a str),
    /// No header, another scheme, or `Bearer ` with nothing behind it: the request is anonymous.
    Nothing,
    ExtraSpace,
    /// A bearer token with bytes no token has.
    NotText,
}

fn find(headers: &HeaderMap) -> Found<'_> {
    let Some(header) = headers.get(AUTHORIZATION).map(|h| h.as_bytes()) else { return Found::Nothing };
    let Ok(header) = std::str::from_utf8(header) else {
        let bearer = header.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "));
        return if bearer { Found::NotText } else { Found::Nothing };
    };
    // As nearly all clients write it: nothing before it, nothing behind it.
    if let Some(token) = header.strip_prefix("Bearer ")
        && token.bytes().next_back().is_some_and(|last| last.is_ascii_graphic())
        && memchr::memchr(b' ', token.as_bytes()).is_none()
    {
        return Found::Token(token);
    }
    let mut parts = header.trim().splitn(3, ' ');
    let scheme = parts.next().unwrap_or("");
    match (parts.next(), parts.next()) {
        (Some(""), Some(_)) if scheme.eq_ignore_ascii_case("bearer") => Found::ExtraSpace,
        (Some(token), _) if !token.is_empty() && scheme.eq_ignore_ascii_case("bearer") => Found::Token(token),
        _ => Found::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authn::testing::Probe;
    use crate::authn::token_file::TokenFile;

    #[test]
    fn header_forms() {
        let bearer = BearerToken::new(Arc::new(TokenFile::parse("good,u,1", "f").unwrap()));
        let ok = |name: &str| Ok(Some(name.to_string()));
        let wrong = Err("invalid bearer token".to_string());
        let cases = [
            ("Bearer good", ok("u")),
            ("bearer good", ok("u")),
            ("  BEARER good  ", ok("u")),
            ("Bearer good trailing words", ok("u")),
            ("Bearer bad", wrong.clone()),
            ("Bearer", Ok(None)),
            ("Bearer ", Ok(None)),
            ("Bearer  good", Ok(None)),
            ("Basic Z29vZDpnb29k", Ok(None)),
            ("good", Ok(None)),
            ("", Ok(None)),
            ("Bearer \u{fc}", wrong),
        ];
        for (header, want) in cases {
            let probe = Probe::new().header("authorization", header);
            let got = probe.ask(&bearer).map(|r| r.map(|r| r.user.name.to_string())).map_err(|e| e.to_string());
            assert_eq!(got, want, "{header:?}");
            assert_eq!(extra_space_warning(&probe.headers).is_some(), header.contains("Bearer  g"));
        }
        let bytes = Probe::new().header_bytes("authorization", b"Bearer \xff\xfe");
        assert!(bytes.ask(&bearer).is_err());
    }
}
