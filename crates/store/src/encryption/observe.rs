//! What encryption tells whoever counts.

use std::time::Duration;

/// What a key is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// A value was written under it.
    Sealed,
    Opened,
}

/// Whoever counts. By default, nobody does. Ids of keys come as hashes: `sha256:…`.
pub trait EncryptionObserver: Send + Sync + 'static {
    /// A call of a KMS plugin, with the gRPC code of its answer.
    fn plugin_called(&self, _provider: &str, _method: &str, _code: &str, _took: Duration) {}

    /// A provider, named by the prefix of what it stores, was handed the value of a storage key.
    fn transformed(&self, _how: KeyUse, _key: &[u8], _prefix: &str, _took: Duration, _outcome: Result<(), &str>) {}

    fn key_used(&self, _how: KeyUse, _provider: &str, _key_id_hash: &str) {}

    /// The plugin says that this is its key.
    fn key_confirmed(&self, _provider: &str, _key_id_hash: &str) {}

    /// The plugin named a key by an id that cannot be: `empty` or `too_long`.
    fn key_refused(&self, _provider: &str, _why: &str) {}

    /// Random bytes for a new seed of data keys were asked of the system.
    fn seed_made(&self, _outcome: Result<(), ()>, _took: Duration) {}

    /// A value was written under a seed that is not in memory: the plugin is asked.
    fn seed_missed(&self) {}

    fn seeds_known(&self, _provider: &str, _count: usize) {}

    /// How much of the memory for keys of KMS v1 is used, 0 to 1.
    fn keys_share(&self, _share: f64) {}
}

impl EncryptionObserver for () {}
