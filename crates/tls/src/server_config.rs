//! From certificate files to the TLS configuration of new connections, again whenever the files change.
//! Connections keep the configuration they began with.

use super::client_certs::AnyClientCert;
use super::pair::certified_key;
use super::policy::TlsPolicy;
use super::resolver::CertResolver;
use super::suites::SuiteOrder;
use arc_swap::ArcSwap;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::CertifiedKey;
use rustls::{DistinguishedName, ServerConfig};
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use x509_parser::prelude::{FromDer, X509Certificate};

/// How often the files are looked at. A look is a stat and, if something changed, a read.
pub const RELOAD_INTERVAL: std::time::Duration = std::time::Duration::from_secs(2);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertKeyFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// A certificate for some server names; for those in the certificate if none are given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SniCertKey {
    pub files: CertKeyFiles,
    pub names: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct TlsOptions {
    pub serving: CertKeyFiles,
    pub sni: Vec<SniCertKey>,
    /// Authorities of client certificates: hints for clients, not checked here. Without any, none is asked for.
    pub client_ca_files: Vec<PathBuf>,
    pub policy: TlsPolicy,
    /// Protocols offered, best first.
    pub alpn: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(String);

fn error(what: impl Into<String>, why: impl ToString) -> TlsError {
    TlsError(format!("{}: {}", what.into(), why.to_string()))
}

/// The configurations of one state of the files.
#[derive(Debug)]
struct Loaded {
    default: Configs,
    /// For clients that send no server name and come to an address that has a certificate of its own.
    by_address: HashMap<IpAddr, Configs>,
}

/// The same configuration by whose order of cipher suites counts.
#[derive(Debug)]
struct Configs {
    server: Arc<ServerConfig>,
    client: Arc<ServerConfig>,
}

/// The current TLS configuration, and how to get the next one.
#[derive(Debug)]
pub struct DynamicTls {
    options: TlsOptions,
    current: ArcSwap<Loaded>,
    /// File contents that `current` was made from.
    seen: Mutex<Contents>,
}

impl DynamicTls {
    pub fn load(options: TlsOptions) -> Result<DynamicTls, TlsError> {
        let contents = Contents::read(&options)?;
        let loaded = contents.build(&options)?;
        Ok(DynamicTls { options, current: ArcSwap::from_pointee(loaded), seen: Mutex::new(contents) })
    }

    /// The configuration for a connection that came to `local`.
    pub fn config_for(&self, local: IpAddr, order: SuiteOrder) -> Arc<ServerConfig> {
        let current = self.current.load();
        let configs = current.by_address.get(&local.to_canonical()).unwrap_or(&current.default);
        match order {
            SuiteOrder::Server => configs.server.clone(),
            SuiteOrder::Client => configs.client.clone(),
        }
    }

    /// Looks at the files and takes them over if they changed. On an error the old state stays; files that are
    /// being replaced one by one are whole at the next look. True if there is something new.
    pub fn reload(&self) -> Result<bool, TlsError> {
        let contents = Contents::read(&self.options)?;
        let mut seen = self.seen.lock().unwrap_or_else(|e| e.into_inner());
        if *seen == contents {
            return Ok(false);
        }
        self.current.store(Arc::new(contents.build(&self.options)?));
        *seen = contents;
        Ok(true)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PemPair {
    cert: Vec<u8>,
    key: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Contents {
    serving: PemPair,
    sni: Vec<PemPair>,
    client_cas: Vec<Vec<u8>>,
}

impl Contents {
    fn read(options: &TlsOptions) -> Result<Contents, TlsError> {
        let is_named = |path: &Path| !path.as_os_str().is_empty();
        if !is_named(&options.serving.cert) || !is_named(&options.serving.key) {
            return Err(TlsError("missing filename for serving cert".to_owned()));
        }
        let of_sni = |TlsError(why)| error("failed to load SNI cert and key", why);
        let pair = |files: &CertKeyFiles| Ok(PemPair { cert: read(&files.cert)?, key: read(&files.key)? });
        Ok(Contents {
            serving: pair(&options.serving)?,
            sni: options.sni.iter().map(|s| pair(&s.files)).collect::<Result<_, _>>().map_err(of_sni)?,
            client_cas: options.client_ca_files.iter().map(|p| read(p)).collect::<Result<_, _>>()?,
        })
    }

    fn build(&self, options: &TlsOptions) -> Result<Loaded, TlsError> {
        let provider = Arc::new(options.policy.provider());
        let serving = Arc::new(
            certified_key(&self.serving.cert, &self.serving.key, &provider)
                .map_err(|why| error("invalid serving cert keypair", why))?,
        );
        let by_name = Arc::new(self.named(options, &provider)?);
        let mut authorities = Vec::new();
        for (pem, path) in self.client_cas.iter().zip(&options.client_ca_files) {
            let what = || format!("unable to load client CA file {}", path.display());
            authorities.extend(subjects(pem).map_err(|why| error(what(), why))?);
        }
        let verifier = Arc::new(AnyClientCert::new(provider.clone(), authorities));
        let config = |default: &Arc<CertifiedKey>| {
            let config = ServerConfig::builder_with_provider(provider.clone())
                .with_protocol_versions(options.policy.versions)
                .map_err(|why| error("TLS versions", why))?;
            let config = match options.client_ca_files.is_empty() {
                true => config.with_no_client_auth(),
                false => config.with_client_cert_verifier(verifier.clone()),
            };
            let mut config = config.with_cert_resolver(Arc::new(CertResolver::new(
                by_name.clone(),
                default.clone(),
                serving.clone(),
            )));
            config.alpn_protocols = options.alpn.clone();
            // One ticket is what a returning client uses; a second costs every new connection its bytes.
            config.send_tls13_tickets = 1;
            // The copy has the same tickets and sessions.
            let client = Arc::new(config.clone());
            config.ignore_client_order = true;
            Ok(Configs { server: Arc::new(config), client })
        };
        let by_address = by_name
            .iter()
            .filter_map(|(name, key)| Some((name.parse::<IpAddr>().ok()?, key)))
            .map(|(address, key)| Ok((address, config(key)?)))
            .collect::<Result<_, TlsError>>()?;
        Ok(Loaded { default: config(&serving)?, by_address })
    }

    /// Earlier pairs win over later ones, names given in the flag over names read from a certificate.
    fn named(
        &self,
        options: &TlsOptions,
        provider: &Arc<CryptoProvider>,
    ) -> Result<HashMap<String, Arc<CertifiedKey>>, TlsError> {
        let mut explicit: HashMap<String, Arc<CertifiedKey>> = HashMap::new();
        let mut inherent = HashMap::new();
        for (i, (pem, sni)) in self.sni.iter().zip(&options.sni).enumerate() {
            let what = || format!("invalid SNI cert keypair [{i}/{}]", sni.files.cert.display());
            let key = Arc::new(certified_key(&pem.cert, &pem.key, provider).map_err(|why| error(what(), why))?);
            if sni.names.is_empty() {
                for name in names_in(&key.cert[0]) {
                    inherent.entry(name.to_ascii_lowercase()).or_insert_with(|| key.clone());
                }
            }
            for name in &sni.names {
                explicit.entry(name.to_ascii_lowercase()).or_insert_with(|| key.clone());
            }
        }
        inherent.extend(explicit);
        Ok(inherent)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|why| TlsError(super::files::unopened(path, &why)))
}

fn subjects(pem: &[u8]) -> Result<Vec<DistinguishedName>, String> {
    let mut all = Vec::new();
    for cert in CertificateDer::pem_slice_iter(pem) {
        let cert = cert.map_err(|e| e.to_string())?;
        let (_, parsed) = X509Certificate::from_der(&cert).map_err(|e| e.to_string())?;
        all.push(DistinguishedName::from(parsed.subject().as_raw().to_vec()));
    }
    if all.is_empty() { Err("data does not contain any valid RSA or ECDSA certificates".into()) } else { Ok(all) }
}

/// The common name, if it is a host name, and the DNS names. Addresses are no server names.
fn names_in(cert: &CertificateDer<'_>) -> Vec<String> {
    use x509_parser::prelude::GeneralName;
    let Ok((_, cert)) = X509Certificate::from_der(cert) else { return Vec::new() };
    let mut names: Vec<String> = cert
        .subject()
        .iter_common_name()
        .filter_map(|cn| cn.as_str().ok())
        .filter(|cn| is_host_pattern(cn))
        .map(str::to_owned)
        .collect();
    if let Ok(Some(sans)) = cert.subject_alternative_name() {
        names.extend(sans.value.general_names.iter().filter_map(|n| match n {
            GeneralName::DNSName(name) => Some(name.to_string()),
            _ => None,
        }));
    }
    names
}

fn is_host_pattern(name: &str) -> bool {
    let rest = name.strip_prefix("*.").unwrap_or(name);
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name == "*" || name.parse::<IpAddr>().is_err() && rest.len() <= 253 && rest.split('.').all(is_label)
}
