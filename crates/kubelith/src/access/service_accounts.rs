//! The keys of service account tokens: those of the flags, or one of our own, made on the first start.

use crate::options::ServiceAccountOptions;
use arc_swap::ArcSwap;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use kubelith_auth::clock::SystemClock;
use kubelith_auth::jwt::key::PublicKey;
use kubelith_auth::jwt::signer::Signer;
use kubelith_auth::objects::ObjectGetter;
use kubelith_auth::reviews::token_request::TokenRequests;
use kubelith_auth::service_account::{KeySet, TokenIssuer, keys};
use kubelith_kube::actions::TokenService;
use kubelith_meta::Str;
use kubelith_server::routes::{OpenIdDocuments, Routes, install_openid};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The key of our own, below the data folder.
const OWN_KEY: &str = "service-account.key";

/// Keys and the issuer, once they are there: making a key takes longer than starting the server, so it is done beside.
pub struct ServiceAccountKeys {
    /// Empty until `ready`; a token that we have signed can only come after that.
    pub verify: Arc<ArcSwap<KeySet>>,
    ready: Shared<BoxFuture<'static, Result<Arc<Signing>, Arc<str>>>>,
    issuer: String,
    jwks_uri: String,
}

struct Signing {
    issuer: Arc<TokenIssuer>,
    /// What is published; the keys themselves are in `verify`.
    keys: Arc<KeySet>,
}

/// What tokens are given out by, beside the key.
pub struct TokenPolicy {
    pub objects: Arc<dyn ObjectGetter>,
    pub api_audiences: Vec<Str>,
}

impl ServiceAccountKeys {
    /// Reads the keys that the flags name, at once; our own is read or made in the background.
    pub fn load(options: &ServiceAccountOptions, data_dir: &Path) -> Result<ServiceAccountKeys, String> {
        let issuer = options.issuers[0].clone();
        let verify: Arc<ArcSwap<KeySet>> = Arc::default();
        let mut public = Vec::new();
        for file in &options.key_files {
            let pem = read(file)?;
            let keys = PublicKey::list_from_pem(&pem).map_err(|e| format!("{}: {e}", file.display()))?;
            public.extend(keys);
        }
        let given = options.signing_key_file.as_ref().map(|file| {
            let signer = Signer::from_pem(&read(file)?);
            signer.map_err(|e| format!("failed to parse service-account-issuer-key-file: {e}"))
        });
        let ready: BoxFuture<'static, Result<Arc<Signing>, Arc<str>>> = match given.transpose()? {
            Some(signer) => {
                let signing = Ok(Arc::new(Signing::new(signer, public, &issuer, &verify)));
                Box::pin(std::future::ready(signing))
            }
            None => {
                let (path, issuer, verify) = (data_dir.join(OWN_KEY), issuer.clone(), verify.clone());
                // A token that a key file vouches for is good from the start.
                verify.store(Arc::new(KeySet::new(public.clone())));
                let made = tokio::task::spawn_blocking(move || {
                    let signer = own_key(&path).map_err(|e| Arc::<str>::from(format!("{}: {e}", path.display())))?;
                    Ok(Arc::new(Signing::new(signer, public, &issuer, &verify)))
                });
                Box::pin(async move { made.await.unwrap_or_else(|e| Err(Arc::from(e.to_string()))) })
            }
        };
        Ok(ServiceAccountKeys { verify, ready: ready.shared(), issuer, jwks_uri: options.jwks_uri.clone() })
    }

    pub fn tokens(&self, options: &ServiceAccountOptions, policy: TokenPolicy) -> TokenService {
        let ready = self.ready.clone();
        let (max, extended) = (options.max_expiration.as_secs(), options.extended_expiration.as_secs());
        let service: BoxFuture<'static, _> = Box::pin(async move {
            let signing = ready.await?;
            Ok(Arc::new(TokenRequests {
                issuer: signing.issuer.clone(),
                objects: policy.objects,
                clock: Arc::new(SystemClock),
                api_audiences: policy.api_audiences,
                max_expiration_seconds: i64::try_from(max).unwrap_or(i64::MAX),
                extended_expiration_seconds: i64::try_from(extended).unwrap_or(i64::MAX),
            }))
        });
        service.shared()
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
        let (ready, issuer) = (self.ready.clone(), self.issuer.clone());
        let documents = async move {
            let signing = ready.await.map_err(|e| e.to_string())?;
            Ok(OpenIdDocuments {
                configuration: signing.keys.openid_config_json(&issuer, &uri).into(),
                keys: signing.keys.jwks_json().into(),
            })
        };
        install_openid(routes, documents.boxed().shared());
    }
}

impl Signing {
    fn new(signer: Signer, mut public: Vec<PublicKey>, issuer: &str, verify: &ArcSwap<KeySet>) -> Signing {
        // What we sign we also believe.
        if !public.contains(signer.public_key()) {
            public.push(signer.public_key().clone());
        }
        let keys = Arc::new(KeySet::new(public));
        verify.store(keys.clone());
        Signing { issuer: Arc::new(TokenIssuer::new(issuer, signer)), keys }
    }
}

fn read(file: &PathBuf) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))
}

/// The key of earlier starts, or a new one that only we may read.
fn own_key(path: &Path) -> Result<Signer, String> {
    match std::fs::read(path) {
        Ok(pem) => Signer::from_pem(&pem),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let pem = Signer::generate_rsa_pem()?;
            write_private(path, pem.as_bytes()).map_err(|e| e.to_string())?;
            Signer::from_pem(pem.as_bytes())
        }
        Err(e) => Err(e.to_string()),
    }
}

/// Whole or not at all: a key that is cut off by a crash would lock out every token.
fn write_private(path: &Path, content: &[u8]) -> std::io::Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let draft = path.with_extension("key.new");
    let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
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
        let first = own_key(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(own_key(&path).unwrap().public_key(), first.public_key());
        std::fs::write(&path, "nonsense").unwrap();
        assert!(own_key(&path).is_err(), "a broken key is not replaced: tokens signed with it would die unnoticed");
    }
}
