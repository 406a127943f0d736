//! Who is who: all authenticators that the options ask for, as one.

use super::authorities::Authorities;
use super::client_cas::ClientCas;
use super::files;
use super::front_proxy::FrontProxy;
use super::issuers::{Issuers, IssuersOrigin};
use super::metrics::AccessMetrics;
use super::objects::{CachedObjects, LegacyUse};
use super::service_accounts::ServiceAccountKeys;
use crate::options::{AuthenticationOptions, TokenWebhookOptions};
use kubelith_auth::Authenticator;
use kubelith_auth::TokenAuthenticator;
use kubelith_auth::authn::anonymous::Anonymous;
use kubelith_auth::authn::bootstrap_token::BootstrapToken;
use kubelith_auth::authn::build::{Authenticators, TokenAuthenticators};
use kubelith_auth::authn::request_header::RequestHeader;
use kubelith_auth::authn::token_cache::{CacheErrors, CachePolicy, TokenCache};
use kubelith_auth::authn::token_file::TokenFile;
use kubelith_auth::authn::webhook::{TokenReviewVersion, WebhookTokens};
use kubelith_auth::authn::x509::ClientCertificate;
use kubelith_auth::clock::Clock;
use kubelith_auth::expression::Cel;
use kubelith_auth::remote::{Backoff, ReviewClient};
use kubelith_auth::service_account::{LegacyTokens, ServiceAccountTokens};
use kubelith_auth::stats::TokenStats;
use kubelith_meta::Str;
use kubelith_outbound::client::Kubeconfig;
use kubelith_outbound::egress::{Egress, Route};
use kubelith_tls::Flaws;
use kubelith_tls::files::unopened;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long the owner of a token is remembered.
const TOKEN_SUCCESS_TTL: Duration = Duration::from_secs(10);
/// One try of the token webhook.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// What authenticators look things up in.
pub struct Sources<'a> {
    pub client_cas: &'a ClientCas,
    pub authorities: &'a Authorities,
    pub keys: &'a ServiceAccountKeys,
    pub objects: &'a Arc<CachedObjects>,
    pub legacy_use: &'a Arc<LegacyUse>,
    /// The ways to webhooks and issuers.
    pub egress: &'a Egress,
    /// Compiles the expressions of issuers.
    pub cel: &'a Cel,
    pub metrics: &'a AccessMetrics,
    pub clock: &'a Arc<dyn Clock>,
}

pub struct Authentication {
    pub authenticator: Arc<dyn Authenticator>,
    pub audiences: Vec<Str>,
    /// Front proxies, whose authorities are to be followed.
    pub proxy: Option<FrontProxy>,
    /// Issuers of tokens, to be started.
    pub issuers: Option<Issuers>,
    /// Counts of tokens, to be shown.
    pub stats: Arc<TokenStats>,
}

pub fn build(
    options: &AuthenticationOptions,
    anonymous_allowed: bool,
    from: &Sources<'_>,
) -> Result<Authentication, String> {
    let clock = from.clock;
    let audiences: Vec<Str> = options.audiences.iter().map(Str::from).collect();
    let stats = Arc::<TokenStats>::default();
    let issuers = Issuers::load(options, from.egress, from.cel, from.metrics, clock)?;
    let anonymous = anonymous(options, issuers.as_ref(), anonymous_allowed)?;
    let proxy = options.request_header.as_ref().map(|proxy| FrontProxy::load(proxy, from.authorities)).transpose();
    let proxy = proxy.map_err(|e| format!("unable to load --requestheader-client-ca-file: {e}"))?;
    check_overlap(options, from.client_cas)?;
    let tokens = TokenAuthenticators {
        token_file: Some(token_file(options)?),
        legacy_service_accounts: Some(Arc::new(legacy(options, &audiences, from).counted_in(stats.clone()))),
        service_accounts: Some(Arc::new(
            ServiceAccountTokens::bound(
                options.service_accounts.issuers.clone(),
                from.keys.verify.clone(),
                audiences.clone(),
                from.objects.clone(),
                clock.clone(),
            )
            .counted_in(stats.clone())
            .signed_by(from.keys.external()),
        )),
        bootstrap_tokens: options.bootstrap_tokens.then(|| -> Arc<dyn TokenAuthenticator> {
            Arc::new(BootstrapToken::new(from.objects.clone(), clock.clone()))
        }),
        oidc: issuers.iter().map(|i| i.tokens()).collect(),
        webhook: match &options.webhook {
            Some(webhook) => {
                let (route, flaws) = (&from.egress.control_plane, &from.metrics.webhooks);
                Some(token_webhook(webhook, &audiences, route, clock, flaws)?)
            }
            None => None,
        },
    };
    let authenticators = Authenticators {
        api_audiences: audiences.clone(),
        request_header: proxy.as_ref().map(|p| RequestHeader::new(p.config.clone(), clock.clone())),
        client_certificate: Some(
            ClientCertificate::new(from.client_cas.pool.clone(), clock.clone()).counted_in(stats.clone()),
        ),
        tokens,
        token_success_ttl: TOKEN_SUCCESS_TTL,
        token_failure_ttl: Duration::ZERO,
        anonymous,
        stats: stats.clone(),
    };
    let authenticator = authenticators.build(clock.clone()).ok_or("no authenticator is configured")?;
    Ok(Authentication { authenticator, audiences, proxy, issuers, stats })
}

/// Any client could pose as a front proxy if both are believed by the same authority, whatever their names.
fn check_overlap(options: &AuthenticationOptions, client_cas: &ClientCas) -> Result<(), String> {
    let Some(proxy) = options.request_header.as_ref().filter(|p| p.allowed_names.is_empty()) else { return Ok(()) };
    let blocks = |paths: &[PathBuf]| -> HashSet<String> {
        let text = String::from_utf8(files::read_all(paths).unwrap_or_default()).unwrap_or_default();
        let certificates = text.split("-----BEGIN CERTIFICATE-----").skip(1);
        certificates.map(|c| c.split("-----END").next().unwrap_or("").split_whitespace().collect()).collect()
    };
    let (clients, proxies) = (blocks(client_cas.files()), blocks(std::slice::from_ref(&proxy.client_ca_file)));
    match clients.is_disjoint(&proxies) {
        true => Ok(()),
        false => Err("--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; \
                      --requestheader-allowed-names must be specified to ensure regular client certificates cannot set \
                      authenticating proxy headers for arbitrary users"
            .into()),
    }
}

/// The configuration file decides if it says anything; otherwise the flag does.
fn anonymous(
    options: &AuthenticationOptions,
    issuers: Option<&Issuers>,
    allowed: bool,
) -> Result<Option<Anonymous>, String> {
    match issuers.and_then(Issuers::anonymous) {
        Some(_) if options.anonymous_given => Err("--anonymous-auth flag cannot be set when anonymous field is \
                                                   configured in authentication configuration file"
            .into()),
        Some(config) => Ok(config.enabled.then(|| Anonymous::new(config.paths.iter().map(Str::to_string)))),
        None => Ok((options.anonymous && allowed).then(|| Anonymous::new([]))),
    }
}

/// Without a file nobody is in it: still a token that nobody knows is refused.
fn token_file(options: &AuthenticationOptions) -> Result<Arc<dyn TokenAuthenticator>, String> {
    let Some(file) = &options.token_file else { return Ok(Arc::new(TokenFile::default())) };
    let path = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|e| unopened(file, &e))?;
    Ok(Arc::new(TokenFile::parse(&text, &path)?))
}

fn legacy(options: &AuthenticationOptions, audiences: &[Str], from: &Sources<'_>) -> ServiceAccountTokens {
    let how = match options.service_accounts.lookup {
        true => LegacyTokens::Lookup(from.legacy_use.clone()),
        false => LegacyTokens::SignatureOnly,
    };
    let keys = from.keys.verify.clone();
    ServiceAccountTokens::legacy(how, keys, audiences.to_vec(), from.objects.clone(), from.clock.clone())
        .signed_by(from.keys.external())
}

fn token_webhook(
    options: &TokenWebhookOptions,
    audiences: &[Str],
    route: &Route,
    clock: &Arc<dyn Clock>,
    flaws: &Arc<Flaws>,
) -> Result<Arc<dyn TokenAuthenticator>, String> {
    let version = TokenReviewVersion::parse(&options.version)?;
    let mut kubeconfig = Kubeconfig::load(&options.config_file)?;
    kubeconfig.tls.flaws = Some(flaws.clone());
    let client = Arc::new(kubeconfig.client(route, WEBHOOK_TIMEOUT)?);
    let client = ReviewClient::new(client, kubeconfig.server.clone(), Backoff::default());
    let tokens = Arc::new(WebhookTokens::new(client, version, audiences.to_vec()));
    let policy = CachePolicy { success: options.cache_ttl, failure: options.cache_ttl, errors: CacheErrors::Retry };
    Ok(Arc::new(TokenCache::new(tokens, policy, clock.clone())))
}

impl AuthenticationOptions {
    /// Where issuers are described.
    pub fn issuers_origin(&self) -> Option<IssuersOrigin> {
        match (&self.config_file, &self.oidc) {
            (Some(file), _) => Some(IssuersOrigin::File(file.clone())),
            (None, Some(oidc)) => Some(IssuersOrigin::Flags(oidc.clone())),
            (None, None) => None,
        }
    }
}
