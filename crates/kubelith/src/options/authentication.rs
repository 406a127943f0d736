//! Options of authentication: which credentials are believed.

use crate::flags::Flags;
use kubelith_auth::authn::request_header::RequestHeaderNames;
use kubelith_meta::text::Quoted;
use kubelith_system::require_sockets;
use kubelith_tls::CertKeyFiles;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

/// The issuer of service account tokens if no flag names one.
pub const DEFAULT_ISSUER: &str = "https://kubernetes.default.svc";
/// A year: for how long pods' tokens live that old clients do not refresh.
const EXTENDED_EXPIRATION: Duration = Duration::from_secs(365 * 24 * 3600);

#[derive(Debug, Clone)]
pub struct AuthenticationOptions {
    pub anonymous: bool,
    /// The flag was given: a configuration file must not say it again.
    pub anonymous_given: bool,
    /// Audiences of which tokens must be meant for one.
    pub audiences: Vec<String>,
    pub client_ca_file: Option<PathBuf>,
    /// The authority of clients, with its key, if it is our own.
    pub client_authority: Option<CertKeyFiles>,
    pub token_file: Option<PathBuf>,
    /// AuthenticationConfiguration.
    pub config_file: Option<PathBuf>,
    pub bootstrap_tokens: bool,
    pub oidc: Option<OidcOptions>,
    pub request_header: Option<RequestHeaderOptions>,
    pub service_accounts: ServiceAccountOptions,
    pub webhook: Option<TokenWebhookOptions>,
}

#[derive(Debug, Clone)]
pub struct OidcOptions {
    pub issuer_url: String,
    pub client_id: String,
    pub ca_file: Option<PathBuf>,
    pub username_claim: String,
    pub username_prefix: String,
    pub groups_claim: String,
    pub groups_prefix: String,
    pub signing_algorithms: Vec<String>,
    pub required_claims: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
pub struct RequestHeaderOptions {
    pub client_ca_file: PathBuf,
    pub allowed_names: Vec<String>,
    pub names: RequestHeaderNames,
}

#[derive(Debug, Clone)]
pub struct ServiceAccountOptions {
    /// The first signs.
    pub issuers: Vec<String>,
    pub jwks_uri: String,
    /// Keys that verify; our own if empty.
    pub key_files: Vec<PathBuf>,
    pub signing_key_file: Option<PathBuf>,
    /// The socket of a program that signs instead.
    pub signing_endpoint: Option<String>,
    pub lookup: bool,
    pub max_expiration: Duration,
    /// Zero: tokens of pods live as long as they were asked for.
    pub extended_expiration: Duration,
}

#[derive(Debug, Clone)]
pub struct TokenWebhookOptions {
    pub config_file: PathBuf,
    pub version: String,
    pub cache_ttl: Duration,
}

impl AuthenticationOptions {
    pub fn from_flags(flags: &Flags, errors: &mut Vec<String>) -> AuthenticationOptions {
        let service_accounts = ServiceAccountOptions::from_flags(flags, errors);
        let mut audiences = flags.list("api-audiences");
        if audiences.is_empty() {
            audiences = service_accounts.issuers.clone();
        }
        AuthenticationOptions {
            anonymous: flags.bool("anonymous-auth"),
            anonymous_given: flags.is_given("anonymous-auth"),
            audiences,
            client_ca_file: file(flags, "client-ca-file"),
            client_authority: None,
            token_file: file(flags, "token-auth-file"),
            config_file: file(flags, "authentication-config"),
            bootstrap_tokens: flags.bool("enable-bootstrap-token-auth"),
            oidc: OidcOptions::from_flags(flags, errors),
            request_header: RequestHeaderOptions::from_flags(flags, errors),
            service_accounts,
            webhook: file(flags, "authentication-token-webhook-config-file").map(|config_file| TokenWebhookOptions {
                config_file,
                version: flags.text("authentication-token-webhook-version"),
                cache_ttl: duration(flags, "authentication-token-webhook-cache-ttl"),
            }),
        }
    }
}

impl OidcOptions {
    fn from_flags(flags: &Flags, errors: &mut Vec<String>) -> Option<OidcOptions> {
        const FLAGS: [&str; 9] = [
            "oidc-issuer-url",
            "oidc-client-id",
            "oidc-ca-file",
            "oidc-username-claim",
            "oidc-username-prefix",
            "oidc-groups-claim",
            "oidc-groups-prefix",
            "oidc-signing-algs",
            "oidc-required-claim",
        ];
        if !FLAGS.iter().any(|f| flags.is_given(f)) {
            return None;
        }
        if flags.is_given("authentication-config") {
            errors.push("authentication-config file and oidc-* flags are mutually exclusive".into());
            return None;
        }
        let (issuer_url, client_id) = (flags.text("oidc-issuer-url"), flags.text("oidc-client-id"));
        if issuer_url.is_empty() || client_id.is_empty() {
            errors.push(
                "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set".into(),
            );
        }
        Some(OidcOptions {
            issuer_url,
            client_id,
            ca_file: file(flags, "oidc-ca-file"),
            username_claim: flags.text("oidc-username-claim"),
            username_prefix: flags.text("oidc-username-prefix"),
            groups_claim: flags.text("oidc-groups-claim"),
            groups_prefix: flags.text("oidc-groups-prefix"),
            signing_algorithms: flags.list("oidc-signing-algs"),
            required_claims: flags.pairs("oidc-required-claim"),
        })
    }
}

impl RequestHeaderOptions {
    fn from_flags(flags: &Flags, errors: &mut Vec<String>) -> Option<RequestHeaderOptions> {
        let list = |name: &str| flags.list(name);
        let allowed_names = list("requestheader-allowed-names");
        let names = RequestHeaderNames {
            username: list("requestheader-username-headers"),
            uid: list("requestheader-uid-headers"),
            group: list("requestheader-group-headers"),
            extra_prefix: list("requestheader-extra-headers-prefix"),
        };
        for (flag, values) in [
            ("requestheader-username-headers", &names.username),
            ("requestheader-group-headers", &names.group),
            ("requestheader-extra-headers-prefix", &names.extra_prefix),
            ("requestheader-allowed-names", &allowed_names),
            ("requestheader-uid-headers", &names.uid),
        ] {
            if values.iter().any(|v| v.trim().is_empty()) {
                errors.push(format!("empty value in {}", Quoted(flag)));
            }
        }
        if !names.uid.is_empty() && !names.uid.iter().any(|n| n.eq_ignore_ascii_case("X-Remote-Uid")) {
            errors.push(
                "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API \
                 aggregation will not work"
                    .into(),
            );
        }
        let client_ca_file = file(flags, "requestheader-client-ca-file")?;
        Some(RequestHeaderOptions { client_ca_file, allowed_names, names })
    }
}

impl ServiceAccountOptions {
    fn from_flags(flags: &Flags, errors: &mut Vec<String>) -> ServiceAccountOptions {
        let mut issuers = flags.list("service-account-issuer");
        let mut seen = HashSet::new();
        for issuer in &issuers {
            if issuer.is_empty() {
                errors.push("service-account-issuer should not be an empty string".into());
            } else if !seen.insert(issuer) {
                errors.push(format!("service-account-issuer {} is already specified", Quoted(issuer)));
            }
        }
        if issuers.is_empty() {
            issuers.push(DEFAULT_ISSUER.into());
        }
        let jwks_uri = flags.text("service-account-jwks-uri");
        if !jwks_uri.is_empty() && !jwks_uri.starts_with("https:") {
            errors.push(format!("service-account-jwks-uri requires https scheme, parsed as: {jwks_uri}"));
        }
        let max_expiration = duration(flags, "service-account-max-token-expiration");
        let bounds = Duration::from_secs(3600)..=Duration::from_secs(1 << 32);
        if !max_expiration.is_zero() && !bounds.contains(&max_expiration) {
            errors.push("the service-account-max-token-expiration must be between 1 hour and 2^32 seconds".into());
        }
        let signing_endpoint = Some(flags.text("service-account-signing-endpoint")).filter(|e| !e.is_empty());
        if let Some(endpoint) = &signing_endpoint {
            check_endpoint(flags, endpoint, errors);
        }
        let extend = flags.bool("service-account-extend-token-expiration");
        ServiceAccountOptions {
            issuers,
            jwks_uri,
            key_files: flags.list("service-account-key-file").into_iter().map(PathBuf::from).collect(),
            signing_key_file: file(flags, "service-account-signing-key-file"),
            signing_endpoint,
            lookup: flags.bool("service-account-lookup"),
            max_expiration,
            extended_expiration: if extend { EXTENDED_EXPIRATION } else { Duration::ZERO },
        }
    }
}

fn check_endpoint(flags: &Flags, endpoint: &str, errors: &mut Vec<String>) {
    errors.extend(require_sockets("--service-account-signing-endpoint").err());
    if flags.is_given("service-account-signing-key-file") || flags.is_given("service-account-key-file") {
        errors.push(
            "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with \
             `--service-account-signing-endpoint` (They are mutually exclusive)"
                .into(),
        );
    }
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if endpoint.strip_prefix('@').is_some_and(|name| !name.split('.').all(is_word)) {
        errors.push(format!(
            "invalid value {} passed for `--service-account-signing-endpoint`, when prefixed with @ must be a valid \
             abstract socket name",
            Quoted(endpoint)
        ));
    }
}

pub(super) fn file(flags: &Flags, name: &str) -> Option<PathBuf> {
    Some(flags.text(name)).filter(|f| !f.is_empty()).map(PathBuf::from)
}

/// Negative durations are none.
pub(super) fn duration(flags: &Flags, name: &str) -> Duration {
    let nanos = u64::try_from(flags.duration(name).as_nanos()).unwrap_or(0);
    Duration::from_nanos(nanos)
}
