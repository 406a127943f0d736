//! Encryption at rest, as EncryptionConfiguration describes it and byte for byte as kube-apiserver stores it.
//!
//! A stored value is `k8s:enc:<provider>:v1:<key name>:` and the ciphertext. The first provider of a
//! resource encrypts; any of them decrypts, and what another than the first one (or than its first key)
//! decrypts is *stale*: the next write stores it anew even if nothing else changed. A value is bound to its
//! storage key, which is authenticated with it, so that it cannot be moved.

mod ciphers;
mod config;
mod keyring;
mod kms;
mod observe;
mod reload;
mod store;
mod transformer;

pub use config::{EncryptionConfiguration, Key, KmsConfiguration, Provider, ReloadMode, ResourceConfiguration};
pub use keyring::{Keyring, Transformers, Unconfigured};
pub use observe::{EncryptionObserver, KeyUse};
pub use reload::{Encryption, HealthCheck, LegacyKms, Reloaded};
pub use store::EncryptedStore;
pub use transformer::{ResourceTransformer, Transformer};
