//! Which providers a storage key's value goes through: the key's prefix tells the resource.

use super::reload::Encryption;
use super::transformer::{ResourceTransformer, Transformer};
use crate::layout::KeyLayout;
use std::sync::Arc;

/// Chooses by key. What it answers is for one request: providers must not change in the middle of one.
pub trait Transformers: Send + Sync + 'static {
    fn of(&self, key: &[u8]) -> Arc<Transformer>;
}

impl Transformers for ResourceTransformer {
    fn of(&self, _key: &[u8]) -> Arc<Transformer> {
        self.current()
    }
}

/// Nothing is encrypted, and what is encrypted all the same is an error.
pub struct Unconfigured(Arc<Transformer>);

impl Default for Unconfigured {
    fn default() -> Self {
        Unconfigured(Arc::new(Transformer::unconfigured()))
    }
}

impl Transformers for Unconfigured {
    fn of(&self, _key: &[u8]) -> Arc<Transformer> {
        self.0.clone()
    }
}

/// The transformers of all resources.
pub struct Keyring {
    layout: Arc<KeyLayout>,
    encryption: Arc<Encryption>,
    none: Unconfigured,
}

impl Keyring {
    pub fn new(layout: Arc<KeyLayout>, encryption: Arc<Encryption>) -> Keyring {
        Keyring { layout, encryption, none: Unconfigured::default() }
    }
}

impl Transformers for Keyring {
    fn of(&self, key: &[u8]) -> Arc<Transformer> {
        match self.layout.resource(key) {
            Some(resource) => self.encryption.transformer(&resource),
            None => self.none.of(key),
        }
    }
}
