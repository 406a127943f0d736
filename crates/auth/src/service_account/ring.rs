//! The keys of a server that can be copied. A copy believes what was signed before it was made, and nothing that is signed after.

use super::KeySet;
use crate::jwt::signer::Signer;
use arc_swap::ArcSwap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Cheap to clone; all clones are of one server.
#[derive(Clone, Default)]
pub struct KeyRing {
    /// What tokens are checked against.
    pub keys: Arc<ArcSwap<KeySet>>,
    /// Since the last key was made. Set and unset under the lock.
    copied: Arc<AtomicBool>,
    turn: Arc<Mutex<()>>,
}

impl KeyRing {
    /// The keys for a copy. What is signed from now on is signed with another one.
    pub fn copy(&self) -> Arc<KeySet> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.copied.store(true, Ordering::Release);
        self.keys.load_full()
    }

    /// Replaces the signer, if somebody else may have its key.
    pub(super) fn renew(&self, signer: &ArcSwap<Signer>) -> Result<(), String> {
        if !self.copied.load(Ordering::Acquire) {
            return Ok(());
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.copied.load(Ordering::Acquire) {
            let new = Signer::from_pem(Signer::generate_pem()?.as_bytes())?;
            let known = self.keys.load_full();
            let all = known.keys().chain([new.public_key()]).cloned().collect();
            self.keys.store(Arc::new(KeySet::new(all)));
            signer.store(Arc::new(new));
            self.copied.store(false, Ordering::Release);
        }
        Ok(())
    }
}
