//! All authenticators as one, in the reference's order.

use super::anonymous::Anonymous;
use super::audience::Agnostic;
use super::bearer::BearerToken;
use super::groups::AuthenticatedGroupAdder;
use super::request_header::RequestHeader;
use super::token_cache::{CacheErrors, CachePolicy, TokenCache};
use super::union::{OnError, TokenUnion, Union};
use super::websocket::WebSocketToken;
use super::x509::ClientCertificate;
use crate::stats::TokenStats;
use crate::traits::{Answer, Authentication, Authenticator, TokenAuthenticator};
use kubelith_meta::Str;
use kubelith_meta::time::Clock;
use std::sync::Arc;
use std::time::Duration;

/// The authenticators that are configured. Those that know nothing of audiences are limited to the API's.
pub struct Authenticators {
    pub api_audiences: Vec<Str>,
    pub request_header: Option<RequestHeader>,
    pub client_certificate: Option<ClientCertificate>,
    pub tokens: TokenAuthenticators,
    /// `--authentication-token-*`: for how long the owner of a token is remembered; zero: not at all.
    pub token_success_ttl: Duration,
    pub token_failure_ttl: Duration,
    pub anonymous: Option<Anonymous>,
    /// Where tokens are counted.
    pub stats: Arc<TokenStats>,
}

/// Those that look at bearer tokens.
#[derive(Default)]
pub struct TokenAuthenticators {
    pub token_file: Option<Arc<dyn TokenAuthenticator>>,
    pub legacy_service_accounts: Option<Arc<dyn TokenAuthenticator>>,
    pub service_accounts: Option<Arc<dyn TokenAuthenticator>>,
    pub bootstrap_tokens: Option<Arc<dyn TokenAuthenticator>>,
    /// One per issuer.
    pub oidc: Vec<Arc<dyn TokenAuthenticator>>,
    /// Behind a cache of its own.
    pub webhook: Option<Arc<dyn TokenAuthenticator>>,
}

impl Authenticators {
    /// `None` if nothing is configured: every request is let through unauthenticated.
    pub fn build(self, clock: Arc<dyn Clock>) -> Option<Arc<dyn Authenticator>> {
        let mut members: Vec<Arc<dyn Authenticator>> = Vec::new();
        if let Some(request_header) = self.request_header {
            members.push(Arc::new(Agnostic::new(self.api_audiences.clone(), request_header)));
        }
        if let Some(client_certificate) = self.client_certificate {
            members.push(Arc::new(client_certificate));
        }
        if let Some(tokens) = self.tokens.build(&self.api_audiences) {
            let policy = CachePolicy {
                success: self.token_success_ttl,
                failure: self.token_failure_ttl,
                errors: CacheErrors::Keep,
            };
            let tokens: Arc<dyn TokenAuthenticator> = match policy.success.is_zero() && policy.failure.is_zero() {
                true => tokens,
                // The group is added before users are kept: once for a token, not for every request.
                false => {
                    let tokens = Arc::new(AuthenticatedGroupAdder(tokens));
                    Arc::new(TokenCache::counted_in(self.stats, tokens, policy, clock))
                }
            };
            members.push(Arc::new(BearerToken::new(tokens.clone())));
            members.push(Arc::new(WebSocketToken::new(tokens)));
        }
        let anonymous = self.anonymous.map(|a| Arc::new(a) as Arc<dyn Authenticator>);
        if members.is_empty() {
            return anonymous;
        }
        let known = Arc::new(AuthenticatedGroupAdder(Union::new(members, OnError::Continue)));
        match anonymous {
            // A refused credential is refused: it does not make its sender anonymous.
            Some(anonymous) => Some(Arc::new(Union::new(vec![known, anonymous], OnError::Fail))),
            None => Some(known),
        }
    }
}

impl TokenAuthenticators {
    fn build(self, api_audiences: &[Str]) -> Option<Arc<dyn TokenAuthenticator>> {
        let agnostic = |inner: Arc<dyn TokenAuthenticator>| -> Arc<dyn TokenAuthenticator> {
            Arc::new(Agnostic::new(api_audiences.to_vec(), inner))
        };
        let mut members: Vec<Arc<dyn TokenAuthenticator>> = Vec::new();
        members.extend(self.token_file.map(agnostic));
        members.extend(self.legacy_service_accounts);
        members.extend(self.service_accounts);
        members.extend(self.bootstrap_tokens.map(agnostic));
        if !self.oidc.is_empty() {
            members.push(agnostic(Arc::new(TokenUnion::new(self.oidc, OnError::Fail))));
        }
        members.extend(self.webhook);
        (!members.is_empty()).then(|| Arc::new(TokenUnion::new(members, OnError::Continue)) as _)
    }
}

impl TokenAuthenticator for Arc<dyn TokenAuthenticator> {
    fn authenticate_token<'a>(&'a self, token: &'a str, audiences: &'a [Str]) -> Answer<'a, Authentication> {
        self.as_ref().authenticate_token(token, audiences)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authn::testing::Probe;
    use crate::authn::token_file::TokenFile;
    use crate::testing::clock_at;

    fn parts(tokens: TokenAuthenticators, anonymous: bool) -> Authenticators {
        Authenticators {
            api_audiences: vec!["api".into()],
            request_header: None,
            client_certificate: None,
            tokens,
            token_success_ttl: Duration::from_secs(10),
            token_failure_ttl: Duration::ZERO,
            anonymous: anonymous.then(|| Anonymous::new([])),
            stats: Arc::default(),
        }
    }

    fn tokens() -> TokenAuthenticators {
        let file = |text: &str| Some(Arc::new(TokenFile::parse(text, "f").unwrap()) as Arc<dyn TokenAuthenticator>);
        TokenAuthenticators {
            token_file: file("both,from-file,1\nfile,f,1"),
            bootstrap_tokens: file("both,from-bootstrap,1\nboot,b,1"),
            oidc: vec![file("oidc,o,1").unwrap()],
            ..TokenAuthenticators::default()
        }
    }

    #[test]
    fn order_and_fallback() {
        let clock = clock_at(0);
        let authenticator = parts(tokens(), true).build(clock.clone()).unwrap();
        let ask = |authorization: Option<&str>, audience: &str| {
            let mut probe = Probe::new();
            probe.audiences = vec![audience.into()];
            if let Some(value) = authorization {
                probe = probe.header("authorization", value);
            }
            let result = probe.ask(authenticator.as_ref());
            result.map(|r| r.map(|r| format!("{} {}", r.user.name, r.user.groups.join(",")))).map_err(|e| e.to_string())
        };
        let known = |name: &str| Ok(Some(format!("{name} system:authenticated")));
        let anonymous = Ok(Some("system:anonymous system:unauthenticated".to_string()));
        let wrong = Err("invalid bearer token".to_string());
        assert_eq!(ask(Some("Bearer both"), "api"), known("from-file"));
        assert_eq!(ask(Some("Bearer boot"), "api"), known("b"));
        assert_eq!(ask(Some("Bearer oidc"), "api"), known("o"));
        assert_eq!(ask(Some("Bearer file"), "vault"), wrong.clone(), "not for that audience");
        assert_eq!(ask(Some("Bearer nope"), "api"), wrong, "never anonymous");
        assert_eq!(ask(Some("Bearer "), "api"), anonymous.clone());
        assert_eq!(ask(Some("Basic eDp5"), "api"), anonymous.clone());
        assert_eq!(ask(None, "api"), anonymous);

        let strict = parts(tokens(), false).build(clock.clone()).unwrap();
        assert_eq!(Probe::new().ask(strict.as_ref()), Ok(None));
        assert!(parts(TokenAuthenticators::default(), false).build(clock.clone()).is_none());
        assert!(parts(TokenAuthenticators::default(), true).build(clock).is_some());
    }
}
