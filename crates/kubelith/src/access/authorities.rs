//! Authorities that were read before: a server and its copies read the same files.

use kubelith_auth::authn::x509::CaPool;
use std::sync::{Mutex, PoisonError};

/// Those of clients and those of front proxies; more are there only when files are replaced between two copies.
const FEW: usize = 4;

/// By the text that they were read from.
#[derive(Default)]
pub struct Authorities(Mutex<Vec<(Vec<u8>, CaPool)>>);

impl Authorities {
    pub fn read(&self, pem: &[u8]) -> Result<CaPool, String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, pool)) = known.iter().find(|(text, _)| text == pem) {
            return Ok(pool.clone());
        }
        let pool = CaPool::from_pem(pem)?;
        if known.len() == FEW {
            known.remove(0);
        }
        known.push((pem.to_vec(), pool.clone()));
        Ok(pool)
    }
}
