//! A serving certificate that is replaced while the server runs, as whoever renews certificates does it.

use crate::wire::address;
use kubelith_conformance::http::served;
use rcgen::{CertificateParams, KeyPair};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The files that a server was told of.
pub struct Serving {
    folder: TempDir,
}

impl Serving {
    /// With a first certificate.
    pub fn new() -> Result<Serving, String> {
        let folder = TempDir::new().map_err(|error| format!("temporary folder: {error}"))?;
        let serving = Serving { folder };
        serving.replace()?;
        Ok(serving)
    }

    pub fn flags(&self) -> [String; 2] {
        let [cert, key] = self.files();
        [format!("--tls-cert-file={}", cert.display()), format!("--tls-private-key-file={}", key.display())]
    }

    /// Puts another one in place, and says which. For a moment the key does not fit the certificate, as for anybody who replaces two files.
    pub fn replace(&self) -> Result<Vec<u8>, String> {
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let params = CertificateParams::new(names).map_err(|error| error.to_string())?;
        let certificate = params.self_signed(&key).map_err(|error| error.to_string())?;
        let [cert_file, key_file] = self.files();
        for (file, text) in [(cert_file, certificate.pem()), (key_file, key.serialize_pem())] {
            put(&file, &text).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        Ok(certificate.der().to_vec())
    }

    fn files(&self) -> [PathBuf; 2] {
        ["serving.crt", "serving.key"].map(|name| self.folder.path().join(name))
    }
}

/// Nobody sees half of a file.
fn put(file: &Path, text: &str) -> std::io::Result<()> {
    let new = file.with_extension("new");
    std::fs::write(&new, text)?;
    std::fs::rename(new, file)
}

/// Whether a new connection is served with this certificate.
pub fn is_served(port: u16, certificate: &[u8]) -> bool {
    served(&address(port)).is_ok_and(|served| served == certificate)
}
