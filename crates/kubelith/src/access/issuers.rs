//! Issuers of OpenID tokens, from the flags or from an AuthenticationConfiguration that is followed.

use super::files::Followed;
use super::metrics::AccessMetrics;
use crate::options::{AuthenticationOptions, OidcOptions};
use futures::future::join_all;
use kubelith_auth::TokenAuthenticator;
use kubelith_auth::authn::swap::SwapTokens;
use kubelith_auth::authn::union::{OnError, TokenUnion};
use kubelith_auth::clock::Clock;
use kubelith_auth::config::authentication::{AnonymousConfig, AuthenticationConfig, JwtConfig, OidcFlags};
use kubelith_auth::config::authentication_rules;
use kubelith_auth::expression::Cel;
use kubelith_auth::jwt::key::Algorithm;
use kubelith_auth::oidc::{OidcAuthenticator, RETRY_DISCOVERY};
use kubelith_meta::Str;
use kubelith_outbound::client::{ClientTls, Credential, HttpClient};
use kubelith_outbound::egress::{Egress, Route};
use kubelith_server::lifecycle::Tasks;
use kubelith_tls::Trust;
use kubelith_tls::files::unopened;
use kubelith_tls::server_config::RELOAD_INTERVAL;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// One request to an issuer.
const ISSUER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a new configuration may take to find all its issuers. One that takes longer is tried again.
const RELOAD_PATIENCE: Duration = Duration::from_secs(60);

pub enum IssuersOrigin {
    Flags(OidcOptions),
    File(PathBuf),
}

/// The issuers in force.
pub struct Issuers {
    tokens: Arc<SwapTokens>,
    current: Vec<Arc<OidcAuthenticator>>,
    config: AuthenticationConfig,
    /// Our own issuers, which nobody else may claim to be.
    disallowed: Vec<String>,
    file: Option<Followed>,
    /// Why the file could not be read, if that was so.
    unreadable: Option<String>,
    egress: Egress,
    cel: Cel,
    metrics: AccessMetrics,
    clock: Arc<dyn Clock>,
}

impl Issuers {
    pub fn load(
        options: &AuthenticationOptions,
        egress: &Egress,
        cel: &Cel,
        metrics: &AccessMetrics,
        clock: &Arc<dyn Clock>,
    ) -> Result<Option<Issuers>, String> {
        let disallowed = options.service_accounts.issuers.clone();
        let (config, algorithms, file) = match options.issuers_origin() {
            None => return Ok(None),
            Some(IssuersOrigin::Flags(oidc)) => {
                let algorithms = oidc.signing_algorithms.clone();
                let config = AuthenticationConfig { jwt: vec![from_flags(&oidc)?], anonymous: None };
                let errors = authentication_rules::validate(&config, &disallowed, cel);
                errors.into_result().map_err(|e| format!("invalid authentication configuration: {e}"))?;
                (config, algorithms, None)
            }
            Some(IssuersOrigin::File(path)) => {
                let followed = Followed::read(vec![path.clone()]).map_err(|e| in_file(&path, e))?;
                let config = read_config(followed.content(), &disallowed, cel).map_err(|e| in_file(&path, e))?;
                metrics.authentication.in_force(followed.content());
                (config, all_algorithms(), Some(followed))
            }
        };
        let current = authenticators(&config, &algorithms, &disallowed, egress, (cel, clock, metrics))?;
        let tokens = Arc::new(SwapTokens::new(union(&current)));
        let (egress, cel, metrics, clock) = (egress.clone(), cel.clone(), metrics.clone(), clock.clone());
        Ok(Some(Issuers { tokens, current, config, disallowed, file, unreadable: None, egress, cel, metrics, clock }))
    }

    pub fn tokens(&self) -> Arc<dyn TokenAuthenticator> {
        self.tokens.clone()
    }

    pub fn anonymous(&self) -> Option<&AnonymousConfig> {
        self.config.anonymous.as_ref()
    }

    /// Finds the issuers' keys, and follows the file.
    pub fn start(mut self, tasks: &Tasks) {
        for issuer in &self.current {
            let issuer = issuer.clone();
            tasks.spawn_until_stopped("oidc-discovery", async move { discover(&issuer).await });
        }
        if self.file.is_none() {
            return;
        }
        tasks.spawn_until_stopped("authentication-config-reload", async move {
            loop {
                tokio::time::sleep(RELOAD_INTERVAL).await;
                if let Err(why) = self.reload().await {
                    tracing::error!(err = why, "failed to reload the authentication config");
                }
            }
        });
    }

    /// Takes a changed file over, once its issuers have answered. A bad one is told once and passed over.
    pub async fn reload(&mut self) -> Result<(), String> {
        let Some(file) = &self.file else { return Ok(()) };
        let content = match file.changed() {
            Ok(None) => return Ok(()),
            Ok(Some(content)) => content,
            // It is looked at again every second, and told once.
            Err(why) if self.unreadable.as_ref() == Some(&why) => return Ok(()),
            Err(why) => {
                self.metrics.authentication.failed();
                self.unreadable = Some(why.clone());
                return Err(why);
            }
        };
        self.unreadable = None;
        let taken = match self.judge(&content) {
            Ok(config) => self.take_over(config).await,
            Err(why) => {
                // It will not get any better.
                self.accept(&content);
                Err(why)
            }
        };
        match taken {
            Ok(()) => {
                self.accept(&content);
                self.metrics.authentication.reloaded(&content);
            }
            Err(_) => self.metrics.authentication.failed(),
        }
        taken
    }

    fn accept(&mut self, content: &[u8]) {
        if let Some(file) = &mut self.file {
            file.accept(content.to_vec());
        }
    }

    fn judge(&self, content: &[u8]) -> Result<AuthenticationConfig, String> {
        let config = read_config(content, &self.disallowed, &self.cel)?;
        if config.anonymous != self.config.anonymous {
            return Err("anonymous: Forbidden: changed from initial configuration file".into());
        }
        Ok(config)
    }

    /// Puts the new issuers in the place of the old ones, once all of them have answered. Tokens of the old ones are good until
    /// then, and for good if they do not.
    async fn take_over(&mut self, config: AuthenticationConfig) -> Result<(), String> {
        let by = (&self.cel, &self.clock, &self.metrics);
        let next = authenticators(&config, &all_algorithms(), &self.disallowed, &self.egress, by)?;
        let found = join_all(next.iter().map(|issuer| discover(issuer)));
        if tokio::time::timeout(RELOAD_PATIENCE, found).await.is_err() {
            let why: Vec<String> = next.iter().filter_map(|i| i.health().err()).map(|e| e.to_string()).collect();
            return Err(format!("failed to update authentication config: {}", why.join(", ")));
        }
        self.tokens.replace(union(&next));
        let trusted: HashSet<&str> = next.iter().map(|issuer| issuer.issuer()).collect();
        for gone in self.current.iter().filter(|issuer| !trusted.contains(issuer.issuer())) {
            self.metrics.issuers.forget(gone.issuer());
        }
        (self.current, self.config) = (next, config);
        tracing::info!("reloaded authentication config");
        Ok(())
    }
}

fn in_file(path: &Path, why: String) -> String {
    let path = kubelith_meta::text::quote(&path.display().to_string());
    format!("failed to load authentication configuration from file {path}: {why}")
}

async fn discover(issuer: &OidcAuthenticator) {
    while let Err(why) = issuer.initialize().await {
        tracing::error!(err = %why, "oidc authenticator: initializing plugin");
        tokio::time::sleep(RETRY_DISCOVERY).await;
    }
}

fn read_config(content: &[u8], disallowed: &[String], cel: &Cel) -> Result<AuthenticationConfig, String> {
    if content.trim_ascii().is_empty() {
        return Err("empty config data".into());
    }
    let document = kubelith_codec::yaml::read(content).map_err(|e| e.to_string())?;
    let config = AuthenticationConfig::decode(&document.value)?;
    let errors = authentication_rules::validate(&config, disallowed, cel);
    errors.into_result().map_err(|e| e.to_string())?;
    Ok(config)
}

fn from_flags(oidc: &OidcOptions) -> Result<JwtConfig, String> {
    let ca_pem = match &oidc.ca_file {
        None => Str::default(),
        Some(file) => std::fs::read_to_string(file).map_err(|e| unopened(file, &e))?.into(),
    };
    let text = |s: &String| Str::from(s);
    Ok(JwtConfig::from_flags(&OidcFlags {
        issuer_url: text(&oidc.issuer_url),
        client_id: text(&oidc.client_id),
        username_claim: text(&oidc.username_claim),
        username_prefix: text(&oidc.username_prefix),
        groups_claim: text(&oidc.groups_claim),
        groups_prefix: text(&oidc.groups_prefix),
        ca_pem,
        required_claims: oidc.required_claims.iter().map(|(k, v)| (text(k), text(v))).collect(),
    }))
}

fn all_algorithms() -> Vec<String> {
    Algorithm::all().map(|a| a.name().to_owned()).collect()
}

fn authenticators(
    config: &AuthenticationConfig,
    algorithms: &[String],
    disallowed: &[String],
    egress: &Egress,
    (cel, clock, metrics): (&Cel, &Arc<dyn Clock>, &AccessMetrics),
) -> Result<Vec<Arc<OidcAuthenticator>>, String> {
    let make = |jwt: &JwtConfig| {
        let trust = match jwt.issuer.certificate_authority.as_str() {
            "" => Trust::System,
            pem => Trust::Authorities(pem.as_bytes().to_vec()),
        };
        let tls = ClientTls { trust, ..ClientTls::default() };
        let route = match jwt.issuer.egress_selector_type.as_str() {
            "controlplane" => &egress.control_plane,
            "cluster" => &egress.cluster,
            _ => &Route::Direct,
        };
        let client = Arc::new(HttpClient::by(route, &tls, Credential::None, ISSUER_TIMEOUT)?);
        let made = OidcAuthenticator::new(jwt.clone(), algorithms, disallowed, cel, client, clock.clone());
        let made = made.map_err(|e| e.to_string())?;
        Ok(Arc::new(made.counted_by(Arc::new(metrics.issuers.clone()))))
    };
    config.jwt.iter().map(make).collect()
}

fn union(issuers: &[Arc<OidcAuthenticator>]) -> Arc<dyn TokenAuthenticator> {
    let members = issuers.iter().map(|i| i.clone() as Arc<dyn TokenAuthenticator>).collect();
    Arc::new(TokenUnion::new(members, OnError::Fail))
}
