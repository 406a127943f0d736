//! The certificate by which we say who we are to other servers, from files that may be replaced while we run.

use arc_swap::ArcSwapOption;
use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A certificate and key from files. Without files there is none.
#[derive(Debug, Default)]
pub struct ClientCertificate {
    files: Option<(PathBuf, PathBuf)>,
    current: ArcSwapOption<Loaded>,
    generation: AtomicU64,
}

#[derive(Debug)]
struct Loaded {
    contents: (Vec<u8>, Vec<u8>),
    key: Arc<CertifiedKey>,
}

impl ClientCertificate {
    /// No certificate.
    pub fn none() -> Arc<ClientCertificate> {
        Arc::default()
    }

    pub fn load(cert: PathBuf, key: PathBuf) -> Result<Arc<ClientCertificate>, String> {
        let this = ClientCertificate { files: Some((cert, key)), ..ClientCertificate::default() };
        this.reload()?;
        Ok(Arc::new(this))
    }

    /// Reads the files again; says whether they hold something new.
    pub fn reload(&self) -> Result<bool, String> {
        let Some((cert, key)) = &self.files else { return Ok(false) };
        let read = |path: &PathBuf| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
        let contents = (read(cert)?, read(key)?);
        if self.current.load().as_ref().is_some_and(|now| now.contents == contents) {
            return Ok(false);
        }
        let key = certified(&contents.0, &contents.1)?;
        self.current.store(Some(Arc::new(Loaded { contents, key: Arc::new(key) })));
        self.generation.fetch_add(1, Ordering::Release);
        Ok(true)
    }

    /// Grows with every change: connections made with an older certificate are to be left.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}

fn certified(cert: &[u8], key: &[u8]) -> Result<CertifiedKey, String> {
    let chain = CertificateDer::pem_slice_iter(cert).collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
    if chain.is_empty() {
        return Err("tls: failed to find any PEM data in certificate input".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| e.to_string())?;
    let signer = rustls::crypto::aws_lc_rs::sign::any_supported_type(&key).map_err(|e| e.to_string())?;
    let certified = CertifiedKey::new(chain, signer);
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => Ok(certified),
        Err(_) => Err("tls: private key does not match public key".to_owned()),
    }
}

impl ResolvesClientCert for ClientCertificate {
    fn resolve(&self, _issuers: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let loaded = self.current.load_full()?;
        // A key that can sign nothing the server takes is no certificate.
        loaded.key.key.choose_scheme(schemes).map(|_| loaded.key.clone())
    }

    fn has_certs(&self) -> bool {
        self.current.load().is_some()
    }
}
