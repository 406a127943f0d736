//! Tokens of OpenID Connect issuers: verified with the issuer's published keys, their claims mapped to a user.

mod distributed;
mod mapping;
mod metrics;
mod provider;

pub use metrics::IssuerMetrics;

use crate::config::JwtConfig;
use crate::config::authentication_rules::{CompiledJwt, compile};
use crate::error::AuthError;
use crate::expression::ExpressionCompiler;
use crate::jwt::UnverifiedToken;
use crate::jwt::claims::{ClaimError, Claims};
use crate::jwt::key::Algorithm;
use crate::remote::HttpFetch;
use crate::text::quote_list;
use crate::traits::{Answer, AuthResponse, Authentication, TokenAuthenticator};
use arc_swap::ArcSwapOption;
use distributed::Distributed;
use kubelith_meta::field::Path;
use kubelith_meta::text::quote;
use kubelith_meta::time::{Clock, Duration, Time};
use kubelith_meta::{Str, Value};
use metrics::Uncounted;
use provider::{KeySource, discover};
use std::sync::Arc;
use std::time::Instant;

/// How long the server waits between attempts to reach an issuer.
pub const RETRY_DISCOVERY: std::time::Duration = std::time::Duration::from_secs(10);
/// How far ahead of us an issuer's clock may be.
const NOT_BEFORE_LEEWAY: Duration = Duration::from_secs(300);

/// One issuer.
pub struct OidcAuthenticator {
    config: JwtConfig,
    expressions: CompiledJwt,
    verification: Verification,
    client: Arc<dyn HttpFetch>,
    /// Set once the issuer has told where its keys are.
    keys: ArcSwapOption<KeySource>,
    /// Why it is not set.
    unhealthy: ArcSwapOption<String>,
    distributed: Distributed,
    metrics: Arc<dyn IssuerMetrics>,
}

/// What every token of an issuer must fulfil.
struct Verification {
    audiences: Vec<Str>,
    algorithms: Vec<Algorithm>,
    clock: Arc<dyn Clock>,
}

impl OidcAuthenticator {
    /// `algorithms` are the accepted ones; the flags' default is RS256 alone, a configuration file has all.
    /// `client` is to trust the issuer's certificate authority.
    pub fn new(
        config: JwtConfig,
        algorithms: &[String],
        disallowed_issuers: &[String],
        compiler: &dyn ExpressionCompiler,
        client: Arc<dyn HttpFetch>,
        clock: Arc<dyn Clock>,
    ) -> Result<OidcAuthenticator, AuthError> {
        let (expressions, errors) = compile(&config, disallowed_issuers, compiler, &Path::ROOT);
        errors.into_result().map_err(|e| AuthError::new(e.to_string()))?;
        let mut accepted = Vec::new();
        for name in algorithms {
            let unknown = || AuthError::new(format!("oidc: unsupported signing alg: {}", quote(name)));
            accepted.push(Algorithm::named(name).ok_or_else(unknown)?);
        }
        if accepted.is_empty() {
            accepted.push(Algorithm::Rs256);
        }
        let waiting = format!("oidc: authenticator for issuer {} is not initialized", quote(&config.issuer.url));
        let verification = Verification { audiences: config.issuer.audiences.clone(), algorithms: accepted, clock };
        Ok(OidcAuthenticator {
            distributed: Distributed::new(config.groups.claim.clone()),
            config,
            expressions,
            verification,
            client,
            keys: ArcSwapOption::empty(),
            unhealthy: ArcSwapOption::from_pointee(waiting),
            metrics: Arc::new(Uncounted),
        })
    }

    pub fn counted_by(self, metrics: Arc<dyn IssuerMetrics>) -> OidcAuthenticator {
        OidcAuthenticator { metrics, ..self }
    }

    pub fn issuer(&self) -> &str {
        &self.config.issuer.url
    }

    /// Asks the issuer where its keys are. To be called until it succeeds, with [`RETRY_DISCOVERY`] between.
    pub async fn initialize(&self) -> Result<(), AuthError> {
        let issuer = &self.config.issuer;
        match discover(self.client.as_ref(), &issuer.url, &issuer.discovery_url).await {
            Ok(jwks_uri) => {
                let keys = KeySource::new(self.client.clone(), jwks_uri).counted(&issuer.url, &self.metrics);
                self.keys.store(Some(Arc::new(keys)));
                self.unhealthy.store(None);
                Ok(())
            }
            Err(e) => {
                self.unhealthy.store(Some(Arc::new(e.to_string())));
                Err(e)
            }
        }
    }

    /// Whether the issuer has been reached.
    pub fn health(&self) -> Result<(), AuthError> {
        match self.unhealthy.load().as_deref() {
            None => Ok(()),
            Some(e) => {
                let issuer = quote(&self.config.issuer.url);
                Err(AuthError::new(format!("oidc: authenticator for issuer {issuer} is not healthy: {e}")))
            }
        }
    }

    async fn counted_check(&self, token: UnverifiedToken<'_>) -> Authentication {
        let begin = Instant::now();
        let outcome = self.check(token).await;
        self.metrics.checked(self.issuer(), &outcome, begin.elapsed());
        outcome
    }

    async fn check(&self, token: UnverifiedToken<'_>) -> Authentication {
        let Some(keys) = self.keys.load_full() else {
            return Err(AuthError::new("oidc: authenticator not initialized"));
        };
        let verified = self.verification.verify(&token, &self.config.issuer.url, &keys).await;
        let mut claims = verified.map_err(|e| AuthError::new(format!("oidc: verify token: {e}")))?;
        let expanded = self.distributed.expand(&mut claims, &self.client, &self.verification).await;
        expanded.map_err(|e| AuthError::new(format!("oidc: could not expand distributed claims: {e}")))?;
        let user = mapping::user_of(&claims, &self.config, &self.expressions)?;
        Ok(Some(AuthResponse::user(user)))
    }
}

impl TokenAuthenticator for OidcAuthenticator {
    fn authenticate_token<'a>(&'a self, token: &'a str, _audiences: &'a [Str]) -> Answer<'a, Authentication> {
        let issuer = self.config.issuer.url.as_str();
        let ours = UnverifiedToken::parse(token).filter(|t| claimed_issuer(t) == Some(issuer));
        match ours {
            Some(token) => Answer::pending(self.counted_check(token)),
            None => Answer::Ready(Ok(None)),
        }
    }
}

/// One issuer signs its tokens without the scheme.
fn claimed_issuer<'t>(token: &'t UnverifiedToken<'_>) -> Option<&'t str> {
    match token.claimed_issuer()? {
        "accounts.google.com" => Some("https://accounts.google.com"),
        issuer => Some(issuer),
    }
}

impl Verification {
    /// The claims of a token of `issuer`, if it is good.
    async fn verify(&self, token: &UnverifiedToken<'_>, issuer: &str, keys: &KeySource) -> Result<Value, String> {
        let claimed = claimed_issuer(token).unwrap_or("");
        if claimed != issuer {
            let (want, got) = (quote(issuer), quote(claimed));
            return Err(format!("oidc: id token issued by a different provider, expected {want} got {got}"));
        }
        let algorithm = token.algorithm().filter(|a| self.algorithms.contains(a));
        if algorithm.is_none() {
            let names: Vec<&str> = self.algorithms.iter().map(|a| a.name()).collect();
            let got = token.algorithm().map_or("", Algorithm::name);
            let (want, got) = (quote_list(&names), quote(got));
            return Err(format!("oidc: malformed jwt: unexpected signature algorithm {got}; expected {want}"));
        }
        // Nothing in the claims is looked at before the signature, but all that can fail is told together.
        let claims = keys.verified_claims(token).await.map_err(|e| format!("failed to verify signature: {e}"))?;
        self.check_audience(&claims)?;
        self.check_times(&claims)?;
        Ok(claims)
    }

    fn check_audience(&self, claims: &Value) -> Result<(), String> {
        let parsed = Claims::read_id_token(claims);
        let own = parsed.map_err(unreadable)?.audience;
        if own.iter().any(|a| self.audiences.iter().any(|ours| ours == a)) {
            return Ok(());
        }
        Err(match self.audiences.as_slice() {
            [one] => format!("oidc: expected audience {} got {}", quote(one), quote_list(&own)),
            many => {
                let mut sorted = many.to_vec();
                sorted.sort();
                format!("oidc: expected audience in {} got {}", quote_list(&sorted), quote_list(&own))
            }
        })
    }

    fn check_times(&self, claims: &Value) -> Result<(), String> {
        let parsed = Claims::read_id_token(claims);
        let times = parsed.map_err(unreadable)?;
        let now = self.clock.now();
        let expires = times.expires.map_or(Time::ZERO, Time::from_unix);
        if expires < now {
            return Err(format!("oidc: token is expired (Token Expiry: {expires})"));
        }
        if let Some(begin) = times.not_before.map(Time::from_unix).filter(|t| now + NOT_BEFORE_LEEWAY < *t) {
            return Err(format!("oidc: current time {now} before the nbf (not before) time: {begin}"));
        }
        Ok(())
    }
}

/// A claim of the wrong type, in the words of the library that reads these tokens.
fn unreadable(error: ClaimError) -> String {
    let why = match error {
        ClaimError::NotText { claim, kind } => {
            format!("json: cannot unmarshal {kind} into Go struct field idToken.{claim} of type string")
        }
        ClaimError::Other(text) => text.to_owned(),
    };
    format!("oidc: failed to unmarshal claims: {why}")
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
