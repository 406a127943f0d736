//! Authorities of client certificates, read from files and followed.

use super::authorities::Authorities;
use super::files::{self, Followed};
use arc_swap::ArcSwapOption;
use kubelith_auth::authn::x509::CaPool;
use kubelith_server::lifecycle::Tasks;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A pool of authorities that is replaced when its files change.
pub struct ClientCas {
    files: Followed,
    pub pool: Arc<ArcSwapOption<CaPool>>,
}

impl ClientCas {
    /// The authorities in `file`; without one no client certificate is believed.
    pub fn load(file: Option<&Path>, known: &Authorities) -> Result<ClientCas, String> {
        let files = Followed::read(file.into_iter().map(Path::to_owned).collect())?;
        let of_file = |file: &Path| {
            let bundle = kubelith_meta::text::quote(&format!("client-ca-bundle::{}", file.display()));
            known.read(files.content()).map_err(|why| format!("error loading CA bundle for {bundle}: {why}"))
        };
        let pool = file.map(of_file).transpose()?;
        Ok(ClientCas { files, pool: Arc::new(ArcSwapOption::from_pointee(pool)) })
    }

    /// Reads the files again and again. A file that cannot be read leaves what was there.
    pub fn follow(mut self, tasks: &Tasks) {
        files::every_interval(tasks, "client-ca-reload", move || self.reload());
    }

    fn reload(&mut self) -> Result<(), String> {
        let Some(pem) = self.files.changed()? else { return Ok(()) };
        self.pool.store(Some(Arc::new(CaPool::from_pem(&pem)?)));
        self.files.accept(pem);
        tracing::info!("client authorities reloaded");
        Ok(())
    }

    pub fn files(&self) -> &[PathBuf] {
        self.files.paths()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_tls::{Pki, PkiOptions};

    #[test]
    fn new_authorities_are_taken_over_and_bad_ones_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let ca = |name: &str| Pki::open(dir.path().join(name), PkiOptions::all([], [])).unwrap().ca_cert();
        let more = dir.path().join("more.crt");
        std::fs::copy(ca("first"), &more).unwrap();
        let mut cas = ClientCas::load(Some(&more), &Authorities::default()).unwrap();
        let current = |cas: &ClientCas| Arc::as_ptr(&cas.pool.load_full().unwrap());
        let first = current(&cas);
        cas.reload().unwrap();
        assert_eq!(current(&cas), first);
        std::fs::write(&more, "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n").unwrap();
        assert!(cas.reload().is_err());
        assert_eq!(current(&cas), first);
        std::fs::copy(ca("second"), &more).unwrap();
        cas.reload().unwrap();
        assert_ne!(current(&cas), first);
    }
}
