//! The certificate by which we say who we are to other servers, from files that may be replaced while we run.

use arc_swap::ArcSwapOption;
use kubelith_tls::files::unopened;
use kubelith_tls::pair::certified_key;
use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
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

    /// A certificate and its key, in PEM, that never change.
    pub fn fixed(cert: &[u8], key: &[u8]) -> Result<Arc<ClientCertificate>, String> {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let certified = certified_key(cert, key, &provider)?;
        let loaded = Loaded { contents: (cert.to_vec(), key.to_vec()), key: Arc::new(certified) };
        Ok(Arc::new(ClientCertificate { current: ArcSwapOption::from_pointee(loaded), ..ClientCertificate::default() }))
    }

    pub fn load(cert: PathBuf, key: PathBuf) -> Result<Arc<ClientCertificate>, String> {
        let this = ClientCertificate { files: Some((cert, key)), ..ClientCertificate::default() };
        this.reload()?;
        Ok(Arc::new(this))
    }

    /// As [`ClientCertificate::load`], of files that were good when another one read them: they are read when a certificate is asked for.
    pub fn later(cert: PathBuf, key: PathBuf) -> Arc<ClientCertificate> {
        Arc::new(ClientCertificate { files: Some((cert, key)), ..ClientCertificate::default() })
    }

    /// Reads the files again; says whether they hold something new.
    pub fn reload(&self) -> Result<bool, String> {
        let Some((cert, key)) = &self.files else { return Ok(false) };
        let read = |path: &PathBuf| std::fs::read(path).map_err(|e| unopened(path, &e));
        let contents = (read(cert)?, read(key)?);
        if self.current.load().as_ref().is_some_and(|now| now.contents == contents) {
            return Ok(false);
        }
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let key = certified_key(&contents.0, &contents.1, &provider)?;
        let before = self.current.swap(Some(Arc::new(Loaded { contents, key: Arc::new(key) })));
        // Nobody has a connection from before the first one.
        if before.is_some() {
            self.generation.fetch_add(1, Ordering::Release);
        }
        Ok(true)
    }

    /// Grows with every change: connections made with an older certificate are to be left.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }
}

impl ResolvesClientCert for ClientCertificate {
    fn resolve(&self, _issuers: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        if self.current.load().is_none() {
            // What is wrong with the files says who reads them again from time to time.
            let _ = self.reload();
        }
        let loaded = self.current.load_full()?;
        // A key that can sign nothing the server takes is no certificate.
        loaded.key.key.choose_scheme(schemes).map(|_| loaded.key.clone())
    }

    fn has_certs(&self) -> bool {
        self.files.is_some() || self.current.load().is_some()
    }
}
