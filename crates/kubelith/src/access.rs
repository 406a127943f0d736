//! Who is who and who may what, put together from the options.

use crate::options::AccessOptions;
use arc_swap::ArcSwapOption;
use kubelith_auth::authn::anonymous::Anonymous;
use kubelith_auth::authn::bearer::BearerToken;
use kubelith_auth::authn::groups::AuthenticatedGroupAdder;
use kubelith_auth::authn::token_file::TokenFile;
use kubelith_auth::authn::union::{OnError, Union};
use kubelith_auth::authn::x509::{CaPool, ClientCertificate};
use kubelith_auth::authz::builtin::{AllowedPaths, AlwaysAllow, PrivilegedGroup};
use kubelith_auth::authz::rbac::{RbacAuthorizer, RbacIndex};
use kubelith_auth::authz::union::AuthorizerUnion;
use kubelith_auth::clock::SystemClock;
use kubelith_auth::{Authenticator, Authorizer};
use kubelith_kube::bootstrap::authentication::AuthenticationInfo;
use kubelith_server::lifecycle::Tasks;
use kubelith_server::tls::server_config::RELOAD_INTERVAL;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The authorities of client certificates, replaced when their files change.
pub struct ClientCas {
    files: Vec<PathBuf>,
    pem: Vec<u8>,
    pub pool: Arc<ArcSwapOption<CaPool>>,
}

impl ClientCas {
    /// Our own authority, and `more` if given.
    pub fn load(own: &Path, more: Option<&Path>) -> Result<ClientCas, String> {
        let files: Vec<PathBuf> = [Some(own), more].into_iter().flatten().map(Path::to_owned).collect();
        let pem = read_all(&files)?;
        let pool = CaPool::from_pem(&pem)?;
        Ok(ClientCas { files, pem, pool: Arc::new(ArcSwapOption::from_pointee(pool)) })
    }

    /// Reads the files again and again. A file that cannot be read leaves what was there.
    pub fn follow(mut self, tasks: &Tasks) {
        tasks.spawn_until_stopped("client-ca-reload", async move {
            loop {
                tokio::time::sleep(RELOAD_INTERVAL).await;
                if let Err(why) = self.reload() {
                    tracing::warn!(err = why, "client authorities not reloaded");
                }
            }
        });
    }

    fn reload(&mut self) -> Result<(), String> {
        let pem = read_all(&self.files)?;
        if pem != self.pem {
            self.pool.store(Some(Arc::new(CaPool::from_pem(&pem)?)));
            self.pem = pem;
            tracing::info!("client authorities reloaded");
        }
        Ok(())
    }

    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// What extension servers are told: the authorities as they are on disk when asked for.
    pub fn published(&self) -> Arc<dyn Fn() -> AuthenticationInfo + Send + Sync> {
        let files = self.files.clone();
        Arc::new(move || {
            let pem = read_all(&files).unwrap_or_default();
            AuthenticationInfo { client_ca: String::from_utf8(pem).unwrap_or_default(), request_header: None }
        })
    }
}

fn read_all(files: &[PathBuf]) -> Result<Vec<u8>, String> {
    let mut pem = Vec::new();
    for file in files {
        pem.extend(std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?);
        pem.push(b'\n');
    }
    Ok(pem)
}

pub fn authenticator(options: &AccessOptions, client_cas: &ClientCas) -> Result<Arc<dyn Authenticator>, String> {
    let certificates = ClientCertificate::new(client_cas.pool.clone(), Arc::new(SystemClock));
    let mut members: Vec<Arc<dyn Authenticator>> = vec![Arc::new(certificates)];
    if let Some(file) = &options.token_file {
        let path = file.display().to_string();
        let text = std::fs::read_to_string(file).map_err(|e| format!("open {path}: {e}"))?;
        members.push(Arc::new(BearerToken::new(Arc::new(TokenFile::parse(&text, &path)?))));
    } else {
        // A token that nobody knows is refused, not taken for no token.
        members.push(Arc::new(BearerToken::new(Arc::new(TokenFile::default()))));
    }
    let credentials = AuthenticatedGroupAdder(Union::new(members, OnError::Continue));
    if !options.anonymous {
        return Ok(Arc::new(credentials));
    }
    let anyone: Vec<Arc<dyn Authenticator>> = vec![Arc::new(credentials), Arc::new(Anonymous::new([]))];
    Ok(Arc::new(Union::new(anyone, OnError::Fail)))
}

/// Paths that everybody may read; with RBAC the role system:public-info-viewer says the same.
const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

pub fn authorizer(options: &AccessOptions, roles: &Arc<RbacIndex>) -> Result<Arc<dyn Authorizer>, String> {
    let paths = AllowedPaths::new(&PUBLIC).map_err(|e| e.to_string())?;
    let mut members: Vec<Arc<dyn Authorizer>> = vec![Arc::new(PrivilegedGroup), Arc::new(paths)];
    for mode in &options.authorization_modes {
        match mode.as_str() {
            "AlwaysAllow" => members.push(Arc::new(AlwaysAllow)),
            "RBAC" => members.push(Arc::new(RbacAuthorizer::new(roles.clone()))),
            _ => {}
        }
    }
    Ok(Arc::new(AuthorizerUnion::new(members)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_server::tls::{Pki, PkiOptions};

    #[test]
    fn new_authorities_are_taken_over_and_bad_ones_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let ca = |name: &str| Pki::open(dir.path().join(name), PkiOptions::default()).unwrap().ca_cert();
        let (own, more) = (ca("own"), dir.path().join("more.crt"));
        std::fs::copy(ca("first"), &more).unwrap();
        let mut cas = ClientCas::load(&own, Some(&more)).unwrap();
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
