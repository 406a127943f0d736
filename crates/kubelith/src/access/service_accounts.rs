//! The keys of service account tokens: those of the flags, or one of our own, made on the first start.

use super::external_signer::JwtSigner;
use super::signer_metrics::SignerMetrics;
use crate::options::ServiceAccountOptions;
use arc_swap::ArcSwap;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use kubelith_auth::clock::Clock;
use kubelith_auth::jwt::key::PublicKey;
use kubelith_auth::jwt::signer::Signer;
use kubelith_auth::objects::ObjectGetter;
use kubelith_auth::reviews::token_request::TokenRequests;
use kubelith_auth::service_account::{ExternalSigner, KeyRing, KeySet, TokenIssuer, keys};
use kubelith_kube::actions::TokenService;
use kubelith_meta::Str;
use kubelith_meta::time::Duration as GoDuration;
use kubelith_server::lifecycle::Tasks;
use kubelith_server::routes::{OpenIdDocuments, Routes, install_openid};
use kubelith_system::files;
use kubelith_tls::files::unopened;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The key of our own, below the data folder.
const OWN_KEY: &str = "service-account.key";

/// Keys and the issuer, once they are there. Making a key takes longer than starting the server, so it is done when the
/// server is ready, or earlier if somebody asks for a token or for the keys.
pub struct ServiceAccountKeys {
    /// Empty until `ready`; a token that we have signed can only come after that.
    pub verify: Arc<ArcSwap<KeySet>>,
    /// The same, for who copies this server.
    pub ring: KeyRing,
    ready: Shared<BoxFuture<'static, Result<Arc<Signing>, Arc<str>>>>,
    issuer: String,
    jwks_uri: String,
    /// The program that signs, and the longest life that it gives tokens.
    external: Option<(Arc<JwtSigner>, Duration)>,
}

struct Signing {
    issuer: Arc<TokenIssuer>,
}

/// What tokens are given out by, beside the key.
pub struct TokenPolicy {
    pub objects: Arc<dyn ObjectGetter>,
    pub api_audiences: Vec<Str>,
}

impl ServiceAccountKeys {
    /// Reads the keys that the flags name, or our own; without one, it is made when it is first waited for. A signer
    /// outside of this program is connected to.
    pub async fn load(
        options: &ServiceAccountOptions,
        data_dir: &Path,
        metrics: &SignerMetrics,
    ) -> Result<ServiceAccountKeys, String> {
        let issuer = options.issuers[0].clone();
        let ring = KeyRing::default();
        let verify = ring.keys.clone();
        if let Some(socket) = &options.signing_endpoint {
            let (signer, longest) = JwtSigner::connect(socket, verify.clone(), metrics).await?;
            if options.max_expiration > longest {
                let (asked, longest) = (go(options.max_expiration), go(longest));
                return Err(format!(
                    "service-account-max-token-expiration cannot be set longer than the token expiration supported by \
                     service-account-signing-endpoint: {asked} > {longest}"
                ));
            }
            let signing = Signing { issuer: Arc::new(TokenIssuer::external(issuer.clone(), signer.clone())) };
            let ready: BoxFuture<'static, _> = Box::pin(std::future::ready(Ok(Arc::new(signing))));
            let jwks_uri = options.jwks_uri.clone();
            let external = Some((signer, longest));
            return Ok(ServiceAccountKeys { verify, ring, ready: ready.shared(), issuer, jwks_uri, external });
        }
        let mut public = Vec::new();
        for file in &options.key_files {
            let pem = read(file)?;
            let keys = PublicKey::list_from_pem(&pem).map_err(|e| format!("{}: {e}", file.display()))?;
            public.extend(keys);
        }
        let path = data_dir.join(OWN_KEY);
        let signer = match &options.signing_key_file {
            Some(file) => {
                let signer = read(file).and_then(|pem| Signer::from_pem(&pem).map_err(|e| e.to_string()));
                Some(signer.map_err(|why| format!("failed to parse service-account-issuer-key-file: {why}"))?)
            }
            None => read_own(&path)?,
        };
        let ready: BoxFuture<'static, Result<Arc<Signing>, Arc<str>>> = match signer {
            // Both were given: whoever signs with one key and trusts another means it.
            Some(signer) if options.signing_key_file.is_some() && !public.is_empty() => {
                verify.store(Arc::new(KeySet::new(public)));
                let issuer = Arc::new(TokenIssuer::new(&*issuer, signer).with_ring(ring.clone()));
                Box::pin(std::future::ready(Ok(Arc::new(Signing { issuer }))))
            }
            Some(signer) => {
                let signing = Ok(Arc::new(Signing::new(signer, public, &issuer, &ring)));
                Box::pin(std::future::ready(signing))
            }
            None => {
                // A token that a key file vouches for is good from the start.
                verify.store(Arc::new(KeySet::new(public.clone())));
                let (issuer, ring) = (issuer.clone(), ring.clone());
                let make = move || Ok(Arc::new(Signing::new(make_own(&path)?, public, &issuer, &ring)));
                Box::pin(async move {
                    // It is made to its end, whoever stops waiting.
                    let made = tokio::task::spawn_blocking(make).await;
                    made.unwrap_or_else(|e| Err(e.to_string())).map_err(Arc::from)
                })
            }
        };
        let jwks_uri = options.jwks_uri.clone();
        Ok(ServiceAccountKeys { verify, ring, ready: ready.shared(), issuer, jwks_uri, external: None })
    }

    /// Those of a fork: a new key to sign with, made when it is first needed, beside the keys that were believed before.
    pub fn forked(options: &ServiceAccountOptions, older: &KeySet) -> ServiceAccountKeys {
        let (issuer, jwks_uri) = (options.issuers[0].clone(), options.jwks_uri.clone());
        let ring = KeyRing::default();
        let verify = ring.keys.clone();
        let older: Vec<PublicKey> = older.keys().cloned().collect();
        verify.store(Arc::new(KeySet::new(older.clone())));
        let (name, kept) = (issuer.clone(), ring.clone());
        let make = move || {
            let signer = Signer::from_pem(Signer::generate_pem()?.as_bytes())?;
            Ok::<_, String>(Arc::new(Signing::new(signer, older, &name, &kept)))
        };
        // Most forks sign nothing.
        let ready: BoxFuture<'static, _> = Box::pin(async move { make().map_err(Arc::from) });
        ServiceAccountKeys { verify, ring, ready: ready.shared(), issuer, jwks_uri, external: None }
    }

    /// Who may know keys that we do not have yet.
    pub fn external(&self) -> Option<Arc<dyn ExternalSigner>> {
        self.external.as_ref().map(|(signer, _)| signer.clone() as Arc<dyn ExternalSigner>)
    }

    /// Makes the key that is missing once the server is ready: whoever looks for the file finds it soon after the start.
    pub fn start(&self, tasks: &Tasks, ready: CancellationToken) {
        if let Some((signer, _)) = &self.external {
            signer.follow(tasks);
        }
        let key = self.ready.clone();
        tasks.spawn_until_stopped("service-account-key", async move {
            ready.cancelled().await;
            if let Err(why) = key.await {
                tracing::error!(err = %why, "no key for service account tokens");
            }
        });
    }

    pub fn tokens(&self, options: &ServiceAccountOptions, policy: TokenPolicy, clock: Arc<dyn Clock>) -> TokenService {
        let ready = self.ready.clone();
        let (mut max, mut extended) = (options.max_expiration.as_secs(), options.extended_expiration.as_secs());
        if let Some((_, longest)) = &self.external {
            let longest = longest.as_secs();
            max = if max == 0 { longest } else { max };
            extended = extended.min(longest);
        }
        let service: BoxFuture<'static, _> = Box::pin(async move {
            let signing = ready.await?;
            Ok(Arc::new(TokenRequests {
                issuer: signing.issuer.clone(),
                objects: policy.objects,
                clock,
                api_audiences: policy.api_audiences,
                max_expiration_seconds: i64::try_from(max).unwrap_or(i64::MAX),
                extended_expiration_seconds: i64::try_from(extended).unwrap_or(i64::MAX),
            }))
        });
        service.shared()
    }

    pub fn publishes(&self, external_address: &str) -> bool {
        keys::jwks_uri(&self.issuer, &self.jwks_uri, external_address).is_ok()
    }

    /// Publishes the keys, if the issuer is one whose keys can be found.
    pub fn install(&self, routes: &mut Routes, external_address: &str) {
        let uri = match keys::jwks_uri(&self.issuer, &self.jwks_uri, external_address) {
            Ok(uri) => uri,
            Err(why) => {
                tracing::warn!("the keys of service accounts are not published: {why}");
                return;
            }
        };
        let (ready, issuer, keys) = (self.ready.clone(), self.issuer.clone(), self.verify.clone());
        let external = self.external.as_ref().map(|(signer, _)| signer.clone());
        let documents = move || {
            let (ready, issuer, keys) = (ready.clone(), issuer.clone(), keys.clone());
            let (uri, external) = (uri.clone(), external.clone());
            let made = async move {
                ready.await.map_err(|e| e.to_string())?;
                let keys = keys.load();
                let max_age = match external {
                    Some(signer) => signer.keys_max_age().await,
                    None => keys::DOCUMENT_MAX_AGE.into(),
                };
                Ok(OpenIdDocuments {
                    configuration: keys.openid_config_json(&issuer, &uri).into(),
                    keys: keys.jwks_json().into(),
                    max_age,
                })
            };
            made.boxed()
        };
        install_openid(routes, Arc::new(documents));
    }
}

impl Signing {
    fn new(signer: Signer, mut public: Vec<PublicKey>, issuer: &str, ring: &KeyRing) -> Signing {
        // What we sign we also believe.
        if !public.contains(signer.public_key()) {
            public.push(signer.public_key().clone());
        }
        ring.keys.store(Arc::new(KeySet::new(public)));
        Signing { issuer: Arc::new(TokenIssuer::new(issuer, signer).with_ring(ring.clone())) }
    }
}

/// As Go writes it.
fn go(duration: Duration) -> GoDuration {
    GoDuration::from_secs(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX))
}

fn read(file: &PathBuf) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|e| unopened(file, &e))
}

/// The key of earlier starts.
fn read_own(path: &Path) -> Result<Option<Signer>, String> {
    let pem = match std::fs::read(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        pem => pem.map_err(|e| e.to_string()),
    };
    pem.and_then(|pem| Signer::from_pem(&pem)).map(Some).map_err(|e| format!("{}: {e}", path.display()))
}

/// A new key that only we may read.
fn make_own(path: &Path) -> Result<Signer, String> {
    let pem = Signer::generate_rsa_pem()?;
    write_private(path, pem.as_bytes()).map_err(|e| format!("{}: {e}", path.display()))?;
    Signer::from_pem(pem.as_bytes())
}

/// Whole or not at all: a key that is cut off by a crash would lock out every token.
fn write_private(path: &Path, content: &[u8]) -> std::io::Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let draft = path.with_extension("key.new");
    let mut file = files::private().write(true).create(true).truncate(true).open(&draft)?;
    file.write_all(content)?;
    file.sync_all()?;
    std::fs::rename(&draft, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn our_key_is_made_once_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data").join(OWN_KEY);
        assert!(read_own(&path).unwrap().is_none());
        let first = make_own(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read_own(&path).unwrap().unwrap().public_key(), first.public_key());
        std::fs::write(&path, "nonsense").unwrap();
        assert!(read_own(&path).is_err(), "a broken key is not replaced: tokens signed with it would die unnoticed");
    }
}
