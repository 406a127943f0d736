//! Client certificates: the common name is the user, the organizations are the groups.
//!
//! The TLS handshake takes any certificate; whether it is good is found out here, so that a bad one is a
//! 401 and not a broken connection.

mod certificate;
mod names;
mod signature;
#[cfg(test)]
pub mod testing;
mod verify;

use crate::error::AuthError;
use crate::stats::{CERTIFICATE_BOUNDS, TokenStats};
use crate::traits::{
    Answer, AuthRequest, AuthResponse, Authentication, Authenticator, CertificateDer, PeerCertificates,
};
use crate::user::{EXTRA_CREDENTIAL_ID, User};
use arc_swap::ArcSwapOption;
use aws_lc_rs::digest;
use certificate::{Certificate, SubjectName};
use kubelith_meta::time::{Clock, Time};
use rustls_pki_types::pem::PemObject;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// Verified chains that are remembered per pool: enough for every client of a busy server, small in memory.
const MAX_REMEMBERED: usize = 4096;

/// The authorities whose certificates are believed. Cheap to clone; a reload makes a new one.
#[derive(Debug, Clone)]
pub struct CaPool(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    roots: Vec<Certificate>,
    /// Signatures cost more than all the rest of authentication, and clients come again and again.
    /// Held only for a lookup or an insertion.
    verified: Mutex<HashMap<[u8; 32], Arc<Verified>>>,
}

/// A certificate that chains up to the pool.
#[derive(Debug)]
pub struct Verified {
    pub common_name: String,
    user: Result<Option<Arc<User>>, AuthError>,
    not_before: Time,
    /// The earliest end in the chain; after it the chain is looked at anew.
    not_after: Time,
    leaf_not_after: Time,
}

impl CaPool {
    /// Reads a PEM bundle; other PEM blocks in it are skipped.
    pub fn from_pem(pem: &[u8]) -> Result<CaPool, String> {
        let mut roots = Vec::new();
        for der in CertificateDer::pem_slice_iter(pem) {
            let der = der.map_err(|e| format!("invalid PEM: {e}"))?;
            roots.push(Certificate::parse(&der)?);
        }
        if roots.is_empty() {
            return Err("data does not contain any valid RSA or ECDSA certificates".into());
        }
        Ok(CaPool::new(roots))
    }

    fn new(roots: Vec<Certificate>) -> CaPool {
        CaPool(Arc::new(Pool { roots, verified: Mutex::default() }))
    }

    /// The raw subjects of the authorities, for the TLS certificate request.
    pub fn subjects(&self) -> impl Iterator<Item = &[u8]> {
        self.0.roots.iter().map(|r| r.subject.as_slice())
    }
}

/// Verifies a chain (leaf first), or remembers that it did. Failures are not remembered: they must not push
/// out good clients.
pub fn verify_cached(pool: &CaPool, peer: &PeerCertificates, now: Time) -> Result<Arc<Verified>, AuthError> {
    let remembered = pool.0.verified.lock().expect("no panic while held").get(peer.hash()).cloned();
    if let Some(verified) = remembered.filter(|v| v.not_before <= now && now <= v.not_after) {
        return Ok(verified);
    }
    let verified = Arc::new(verify_chain(pool, peer.chain(), now)?);
    let mut all = pool.0.verified.lock().expect("no panic while held");
    if all.len() >= MAX_REMEMBERED {
        all.retain(|_, v| now <= v.not_after);
        if all.len() >= MAX_REMEMBERED {
            all.clear();
        }
    }
    all.insert(*peer.hash(), verified.clone());
    Ok(verified)
}

fn verify_chain(pool: &CaPool, chain: &[CertificateDer<'static>], now: Time) -> Result<Verified, AuthError> {
    let (leaf, rest) = chain.split_first().ok_or_else(|| AuthError::new("no certificate"))?;
    let leaf = Certificate::parse(leaf)?;
    let intermediates: Vec<Certificate> = rest.iter().filter_map(|c| Certificate::parse(c).ok()).collect();
    let not_after = verify::verify(&leaf, &intermediates, &pool.0.roots, now)
        .map_err(|e| AuthError::new(format!("verifying certificate {} failed: {e}", leaf.identifier())))?;
    let (not_before, leaf_not_after) = (leaf.not_before, leaf.not_after);
    let user = user_of(&leaf.name, &leaf.der).map(|u| u.map(Arc::new));
    Ok(Verified { common_name: leaf.name.common_name, user, not_before, not_after, leaf_not_after })
}

fn user_of(name: &SubjectName, der: &[u8]) -> Result<Option<User>, AuthError> {
    if name.common_name.is_empty() {
        return Ok(None);
    }
    let fingerprint = digest::digest(&digest::SHA256, der);
    let hex: String = fingerprint.as_ref().iter().map(|b| format!("{b:02x}")).collect();
    let uid = match name.uids.as_slice() {
        [] => String::new(),
        [Err(())] => return Err(AuthError::new("unable to parse UID into a string")),
        [Ok(uid)] if uid.is_empty() => return Err(AuthError::new("UID cannot be an empty string")),
        [Ok(uid)] => uid.clone(),
        many => {
            let known: Vec<&str> = many.iter().flatten().map(String::as_str).collect();
            return Err(AuthError::new(format!("expected 1 UID, but found multiple: [{}]", known.join(" "))));
        }
    };
    Ok(Some(User {
        name: name.common_name.as_str().into(),
        uid: uid.into(),
        groups: name.organizations.iter().map(|o| o.as_str().into()).collect(),
        extra: BTreeMap::from([(EXTRA_CREDENTIAL_ID.into(), vec![format!("X509SHA256={hex}").into()])]),
    }))
}

/// Authenticates by client certificate. The pool can be replaced while running; without one nobody is known.
pub struct ClientCertificate {
    pool: Arc<ArcSwapOption<CaPool>>,
    clock: Arc<dyn Clock>,
    stats: Arc<TokenStats>,
}

impl ClientCertificate {
    pub fn new(pool: Arc<ArcSwapOption<CaPool>>, clock: Arc<dyn Clock>) -> ClientCertificate {
        ClientCertificate { pool, clock, stats: Arc::default() }
    }

    /// Counts in `stats` from now on.
    pub fn counted_in(mut self, stats: Arc<TokenStats>) -> ClientCertificate {
        self.stats = stats;
        self
    }

    fn check(&self, request: AuthRequest<'_>) -> Authentication {
        let pool = self.pool.load();
        let (Some(pool), Some(peer)) = (pool.as_deref(), request.peer_certificates) else { return Ok(None) };
        let now = self.clock.now();
        let verified = verify_cached(pool, peer, now);
        let ends = match &verified {
            Ok(verified) => Some(verified.leaf_not_after),
            Err(_) => peer.chain().first().and_then(|leaf| Some(Certificate::parse(leaf).ok()?.not_after)),
        };
        if let Some(ends) = ends {
            let left = ends.unix_seconds().saturating_sub(now.unix_seconds());
            self.stats.certificate_seconds.add(&CERTIFICATE_BOUNDS, left as f64);
        }
        let verified = verified?;
        Ok(verified.user.clone()?.map(AuthResponse::user))
    }
}

impl Authenticator for ClientCertificate {
    fn authenticate<'a>(&'a self, request: AuthRequest<'a>) -> Answer<'a, Authentication> {
        Answer::Ready(self.check(request))
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
