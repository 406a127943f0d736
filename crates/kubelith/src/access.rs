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
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The authorities of client certificates, replaced when their files change.
pub struct ClientCas {
    files: Vec<PathBuf>,
    pub pool: Arc<ArcSwapOption<CaPool>>,
}

impl ClientCas {
    /// Our own authority, and `more` if given.
    pub fn load(own: &Path, more: Option<&Path>) -> Result<ClientCas, String> {
        let files: Vec<PathBuf> = [Some(own), more].into_iter().flatten().map(Path::to_owned).collect();
        let pool = CaPool::from_pem(&read_all(&files)?)?;
        Ok(ClientCas { files, pool: Arc::new(ArcSwapOption::from_pointee(pool)) })
    }

    pub fn files(&self) -> &[PathBuf] {
        &self.files
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
