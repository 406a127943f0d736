//! A KMS v2 plugin as a provider.
//!
//! The plugin is asked rarely: once for a seed when the server starts or the plugin's key changes, and once
//! per seed that stored values were written under. Its status is polled. While it fails, values can be read
//! with the seeds at hand for ever and written for three minutes more; then writes fail, so that a key that
//! was rotated cannot be used on unnoticed.

mod envelope;
mod service;
pub(super) mod v1;

use super::ciphers::{Gcm, Seed, random};
use super::config::KmsConfiguration;
use super::observe::{EncryptionObserver, KeyUse};
use super::transformer::Opened;
use arc_swap::ArcSwapOption;
use bytes::Bytes;
use envelope::{EncryptedObject, SourceType, hash_if_not_empty, validate_key_id};
use futures::future::BoxFuture;
use kubelith_meta::time::wall_time;
use kubelith_meta::{Time, random as names, text};
use prost::Message;
use service::{DecryptRequest, KmsService, StatusResponse};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often a healthy and a failing plugin is polled, and for how long a seed may be written with after the
/// plugin was last healthy.
const HEALTHY_INTERVAL: Duration = Duration::from_secs(60);
const FAILING_INTERVAL: Duration = Duration::from_secs(10);
const WRITE_TTL: Duration = Duration::from_secs(180);
/// For how long a health check answers from memory.
const HEALTHY_TTL: Duration = Duration::from_secs(20);
const FAILING_TTL: Duration = Duration::from_secs(3);
/// Seeds that nobody used for this long are forgotten; the plugin is asked again if need be.
const SEED_TTL: Duration = Duration::from_secs(24 * 3600);

pub(super) struct Kms {
    name: String,
    service: KmsService,
    /// What values are written with.
    current: ArcSwapOption<Current>,
    /// What stored values were written with, by `EncryptedObject::source_id`.
    sources: Mutex<HashMap<[u8; 32], KnownSource>>,
    /// Held over the call on purpose: one check at a time, and the others share its answer.
    probe: tokio::sync::Mutex<Probe>,
    observer: Arc<dyn EncryptionObserver>,
}

#[derive(Default)]
struct Probe {
    last: Option<(Instant, Result<(), String>)>,
    /// The plugin's API version, which must not change.
    version: Option<String>,
}

/// A source and when it was learned.
type KnownSource = (Arc<Source>, Instant);

enum Source {
    Seed(Seed),
    Key(Gcm),
}

#[derive(Clone)]
struct Current {
    source: Arc<Source>,
    /// All but the data.
    object: EncryptedObject,
    id: [u8; 32],
    expires: SystemTime,
}

impl Kms {
    /// Connects, asks for a seed, and keeps both up to date until dropped. A plugin that is not there yet is
    /// no error: it may start after the server.
    pub async fn start_observed(
        config: &KmsConfiguration,
        observer: Arc<dyn EncryptionObserver>,
    ) -> Result<Arc<Kms>, String> {
        let timeout = Duration::from_nanos(config.timeout.as_nanos().max(0) as u64);
        let service = KmsService::new(&config.name, &config.endpoint, timeout, observer.clone())
            .map_err(|error| format!("could not configure KMSv2-Plugin's probe {:?}, error: {error}", config.name))?;
        let kms = Arc::new(Kms {
            name: config.name.clone(),
            service,
            current: ArcSwapOption::empty(),
            sources: Mutex::default(),
            probe: tokio::sync::Mutex::default(),
            observer,
        });
        let healthy = kms.check_and_log().await;
        tokio::spawn(poll(Arc::downgrade(&kms), healthy));
        Ok(kms)
    }

    /// The health check: asks the plugin for its status, rotates the seed if its key changed.
    pub async fn check(&self) -> Result<(), String> {
        let mut probe = self.probe.lock().await;
        if let Some((at, result)) = &probe.last {
            let ttl = if result.is_ok() { HEALTHY_TTL } else { FAILING_TTL };
            if at.elapsed() < ttl {
                return result.clone();
            }
        }
        let name = &self.name;
        // As in the reference, what is told from memory does not say what was tried.
        let (kept, result) = match self.service.status().await {
            Ok(status) => {
                let taken = self.take_status(status, &mut probe.version).await;
                (taken.clone(), taken)
            }
            Err(error) => {
                let tried = "failed to perform status section of the healthz check for KMS Provider";
                (Err(error.clone()), Err(format!("{tried} {name}, error: {error}")))
            }
        };
        probe.last = Some((Instant::now(), kept));
        result
    }

    async fn check_and_log(&self) -> bool {
        let result = self.check().await;
        if let Err(error) = &result {
            tracing::warn!(name = self.name, error, "kms plugin failed health check probe");
        }
        result.is_ok()
    }

    async fn take_status(&self, status: StatusResponse, version: &mut Option<String>) -> Result<(), String> {
        let mut errors = Vec::new();
        if status.healthz != "ok" {
            errors.push(format!("got unexpected healthz status: {}", status.healthz));
        }
        if status.version != "v2" && status.version != "v2beta1" {
            errors.push(format!("expected KMSv2 API version v2, got {}", status.version));
        } else {
            let first = version.get_or_insert_with(|| status.version.clone());
            if *first != status.version {
                let now = &status.version;
                errors.push(format!(
                    "KMSv2 API version should not change after the initial status response version {first}, got {now}"
                ));
            }
        }
        match validate_key_id(&status.key_id) {
            Err(error) => {
                self.observer.key_refused(&self.name, if status.key_id.is_empty() { "empty" } else { "too_long" });
                let hash = hash_if_not_empty(&status.key_id);
                errors.push(format!("got invalid KMSv2 KeyID hash {hash:?}: {error}"));
            }
            Ok(()) => {
                self.observer.key_confirmed(&self.name, &hash_if_not_empty(&status.key_id));
                errors.extend(self.rotate_if_changed(&status.key_id).await.err());
            }
        }
        if errors.is_empty() {
            return Ok(());
        }
        Err(format!("kmsv2 Provider {} is not healthy, error: {}", self.name, text::aggregate(errors)))
    }

    /// Keeps the seed while the plugin's key is the same; otherwise gets a new one. A failure leaves the old
    /// seed in use until it expires.
    async fn rotate_if_changed(&self, status_key_id: &str) -> Result<(), String> {
        // Counted from before the call: the time is an upper bound.
        let expires = wall_time() + WRITE_TTL;
        let before = self.current.load_full();
        if let Some(current) = &before
            && current.object.key_id == status_key_id
        {
            self.current.store(Some(Arc::new(Current { expires, ..Current::clone(current) })));
            return Ok(());
        }
        let uid = names::uid(names::random_bits).to_string();
        let made = self.new_seed(uid.clone(), expires).await;
        match made {
            Ok(current) if current.object.key_id == status_key_id => {
                self.remember(current.id, current.source.clone());
                self.current.store(Some(Arc::new(current)));
                Ok(())
            }
            made => {
                let no_state = if before.is_none() { "got unexpected nil transformer" } else { "<nil>" };
                let (failed, encrypt_key_id) = match &made {
                    Ok(current) => ("<nil>".to_string(), current.object.key_id.clone()),
                    Err(error) => (error.clone(), String::new()),
                };
                let (status, encrypt) = (hash_if_not_empty(status_key_id), hash_if_not_empty(&encrypt_key_id));
                let (state, expires) = match &before {
                    Some(current) => (hash_if_not_empty(&current.object.key_id), rfc3339(current.expires)),
                    None => (String::new(), "0001-01-01T00:00:00Z".to_string()),
                };
                Err(format!(
                    "failed to rotate DEK uid={uid:?}, useSeed=true, errState={no_state}, errGen={failed}, \
                     statusKeyIDHash={status:?}, encryptKeyIDHash={encrypt:?}, stateKeyIDHash={state:?}, \
                     expirationTimestamp={expires}"
                ))
            }
        }
    }

    async fn new_seed(&self, uid: String, expires: SystemTime) -> Result<Current, String> {
        let started = Instant::now();
        let seed: Result<[u8; Seed::BYTES], _> = random();
        self.observer.seed_made(seed.as_ref().map(drop).map_err(drop), started.elapsed());
        let seed = seed?;
        let response = self.service.encrypt(uid, Bytes::copy_from_slice(&seed)).await;
        let response = response.map_err(|error| format!("failed to encrypt DEK, error: {error}"))?;
        let mut object = EncryptedObject {
            // Anything, to be valid.
            encrypted_data: Bytes::from_static(&[0]),
            key_id: response.key_id,
            encrypted_dek_source: response.ciphertext,
            annotations: response.annotations,
            source_type: SourceType::Seed as i32,
        };
        object.validate()?;
        object.encrypted_data = Bytes::new();
        let id = object.source_id();
        Ok(Current { source: Arc::new(Source::Seed(Seed::new(&seed)?)), object, id, expires })
    }

    /// Appends the stored form of `plain` to `out`.
    pub fn seal(&self, plain: &[u8], key: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let Some(current) = self.current.load_full() else {
            return Err("got unexpected nil transformer".into());
        };
        let now = wall_time();
        if now > current.expires {
            let (hash, at) = (hash_if_not_empty(&current.object.key_id), rfc3339(current.expires));
            let now = rfc3339(now);
            return Err(format!("encryptedDEKSource with keyID hash {hash:?} expired at {at} (current time is {now})"));
        }
        let mut sealed = Vec::with_capacity(plain.len() + 64);
        match &*current.source {
            Source::Seed(seed) => seed.seal(plain, key, &mut sealed)?,
            Source::Key(_) => return Err("a plain data key is not used for writing".into()),
        }
        let object = EncryptedObject { encrypted_data: sealed.into(), ..current.object.clone() };
        self.observer.key_used(KeyUse::Sealed, &self.name, &hash_if_not_empty(&object.key_id));
        object.encode(out).map_err(|error| error.to_string())
    }

    /// Boxed, as with KMS v1: otherwise every crate that reads or writes objects compiles the talk with the plugin again.
    pub fn open<'a>(&'a self, data: &'a [u8], key: &'a [u8]) -> BoxFuture<'a, Result<Opened, String>> {
        Box::pin(self.open_by_plugin(data, key))
    }

    async fn open_by_plugin(&self, data: &[u8], key: &[u8]) -> Result<Opened, String> {
        let object = EncryptedObject::decode_valid(data)?;
        let Some(current) = self.current.load_full() else {
            return Err("got unexpected nil transformer".into());
        };
        let source = self.source(&object).await?;
        let value = match &*source {
            Source::Seed(seed) => seed.open(&object.encrypted_data, key)?,
            Source::Key(gcm) => gcm.open(&object.encrypted_data, key)?,
        };
        self.observer.key_used(KeyUse::Opened, &self.name, &hash_if_not_empty(&object.key_id));
        let stale = object.key_id != current.object.key_id || object.source_type != current.object.source_type;
        Ok(Opened { value, stale })
    }

    async fn source(&self, object: &EncryptedObject) -> Result<Arc<Source>, String> {
        let id = object.source_id();
        let known = self.sources.lock().expect("no panic while locked").get(&id).map(|(source, _)| source.clone());
        if let Some(source) = known {
            return Ok(source);
        }
        self.observer.seed_missed();
        let request = DecryptRequest {
            ciphertext: object.encrypted_dek_source.clone(),
            uid: names::uid(names::random_bits).to_string(),
            key_id: object.key_id.clone(),
            annotations: object.annotations.clone(),
        };
        let plain = self.service.decrypt(request).await;
        let plain = plain.map_err(|error| format!("failed to decrypt DEK, error: {error}"))?;
        let source = if object.source_type == SourceType::Seed as i32 {
            Source::Seed(Seed::new(&plain)?)
        } else {
            Source::Key(Gcm::new(&plain)?)
        };
        let source = Arc::new(source);
        self.remember(id, source.clone());
        Ok(source)
    }

    fn remember(&self, id: [u8; 32], source: Arc<Source>) {
        let mut sources = self.sources.lock().expect("no panic while locked");
        let now = Instant::now();
        sources.retain(|_, (_, since)| now.duration_since(*since) < SEED_TTL);
        sources.insert(id, (source, now));
        self.observer.seeds_known(&self.name, sources.len());
    }
}

/// Keeps key and seed fresh. Ends with the provider.
async fn poll(kms: Weak<Kms>, mut healthy: bool) {
    loop {
        tokio::time::sleep(if healthy { HEALTHY_INTERVAL } else { FAILING_INTERVAL }).await;
        let Some(kms) = kms.upgrade() else { return };
        healthy = kms.check_and_log().await;
    }
}

fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Time::from_unix(seconds as i64).rfc3339()
}

#[cfg(test)]
pub(super) mod tests;
