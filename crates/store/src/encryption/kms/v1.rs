//! A KMS v1 plugin as a provider: deprecated, and only where the gate KMSv1 is on.
//!
//! Each value has a key of its own, which the plugin encrypts and which is stored in front of the value: two bytes of
//! length, the encrypted key, the value. A write waits for the plugin; a read only for keys that are not in memory.

use super::service::KmsService;
use crate::encryption::ciphers::{Cbc, Cipher, CipherResult, Gcm, random};
use crate::encryption::config::KmsConfiguration;
use crate::encryption::observe::EncryptionObserver;
use crate::encryption::transformer::Opened;
use bytes::Bytes;
use futures::future::BoxFuture;
use kubelith_meta::text;
use prost::Message;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const VERSION: &str = "v1beta1";
/// For how long a health check answers from memory.
const HEALTHY_TTL: Duration = Duration::from_secs(20);
const FAILING_TTL: Duration = Duration::from_secs(3);
const KEY_BYTES: usize = 32;
const NO_KEY: &str = "invalid data encountered by envelope transformer: failed to read uint16 length prefixed data";

#[derive(Clone, PartialEq, Message)]
pub struct VersionRequest {
    #[prost(string, tag = "1")]
    pub version: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct VersionResponse {
    #[prost(string, tag = "1")]
    pub version: String,
}

/// Both requests, and an answer of either, have the same form.
#[derive(Clone, PartialEq, Message)]
pub struct KeyRequest {
    #[prost(string, tag = "1")]
    pub version: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub key: Bytes,
}

#[derive(Clone, PartialEq, Message)]
pub struct KeyResponse {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
}

pub(in crate::encryption) struct KmsV1 {
    name: String,
    service: KmsService,
    keys: Mutex<Keys>,
    /// Held over the call on purpose: one check at a time, and the others share its answer.
    probe: tokio::sync::Mutex<Option<(Instant, Result<(), String>)>>,
    /// Whether the plugin has said that it speaks our version.
    checked: tokio::sync::Mutex<bool>,
    observer: Arc<dyn EncryptionObserver>,
}

/// The keys in memory, by their encrypted form.
struct Keys {
    known: HashMap<Bytes, Arc<DataKey>>,
    /// In the order in which they came.
    order: VecDeque<Bytes>,
    /// None are kept if it is 0.
    limit: usize,
}

/// Values are written with the first one; older servers wrote with the second.
struct DataKey([Cipher; 2]);

impl DataKey {
    fn new(key: &[u8]) -> CipherResult<DataKey> {
        Ok(DataKey([Cipher::Gcm(Gcm::new(key)?), Cipher::Cbc(Box::new(Cbc::new(key)?))]))
    }
}

impl KmsV1 {
    pub fn start(config: &KmsConfiguration, observer: Arc<dyn EncryptionObserver>) -> Result<Arc<KmsV1>, String> {
        let timeout = Duration::from_nanos(config.timeout.as_nanos().max(0) as u64);
        // Calls of these plugins are not counted.
        let service = KmsService::new(&config.name, &config.endpoint, timeout, Arc::new(()))
            .map_err(|error| format!("could not configure KMSv1-Plugin's probe {:?}, error: {error}", config.name))?;
        tracing::info!("KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.");
        let limit = config.cache_size.and_then(|size| usize::try_from(size).ok()).unwrap_or_default();
        Ok(Arc::new(KmsV1 {
            name: config.name.clone(),
            service,
            keys: Mutex::new(Keys { known: HashMap::new(), order: VecDeque::new(), limit }),
            probe: tokio::sync::Mutex::default(),
            checked: tokio::sync::Mutex::default(),
            observer,
        }))
    }

    /// The health check: something is encrypted and decrypted.
    pub async fn check(&self) -> Result<(), String> {
        let mut probe = self.probe.lock().await;
        if let Some((at, result)) = &*probe {
            let ttl = if result.is_ok() { HEALTHY_TTL } else { FAILING_TTL };
            if at.elapsed() < ttl {
                return result.clone();
            }
        }
        let result = match self.encrypt(Bytes::from_static(b"ping")).await {
            Err(error) => Err(("encrypt", error)),
            Ok(sealed) => self.decrypt(sealed).await.map(drop).map_err(|error| ("decrypt", error)),
        };
        // As in the reference, what is told from memory does not say what was tried.
        *probe = Some((Instant::now(), result.clone().map_err(|(_, error)| error)));
        result.map_err(|(section, error)| {
            let name = &self.name;
            format!("failed to perform {section} section of the healthz check for KMS Provider {name}, error: {error}")
        })
    }

    /// Appends the stored form of `plain` to `out`.
    pub fn seal<'a>(
        &'a self,
        plain: &'a [u8],
        key: &'a [u8],
        out: &'a mut Vec<u8>,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(self.seal_by_plugin(plain, key, out))
    }

    pub fn open<'a>(&'a self, data: &'a [u8], key: &'a [u8]) -> BoxFuture<'a, Result<Opened, String>> {
        Box::pin(self.open_by_plugin(data, key))
    }

    async fn seal_by_plugin(&self, plain: &[u8], key: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let started = Instant::now();
        let data_key: CipherResult<[u8; KEY_BYTES]> = random();
        self.observer.seed_made(data_key.as_ref().map(drop).map_err(drop), started.elapsed());
        let data_key = data_key?;
        let sealed_key = self.encrypt(Bytes::copy_from_slice(&data_key)).await?;
        let data_key = self.remember(&sealed_key, DataKey::new(&data_key)?);
        let length = u16::try_from(sealed_key.len()).map_err(|_| "the encrypted key is too long".to_owned())?;
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&sealed_key);
        data_key.0[0].seal(plain, key, out)
    }

    async fn open_by_plugin(&self, data: &[u8], key: &[u8]) -> Result<Opened, String> {
        let (length, rest) = data.split_first_chunk::<2>().ok_or(NO_KEY)?;
        let (sealed_key, sealed) = rest.split_at_checked(u16::from_be_bytes(*length).into()).ok_or(NO_KEY)?;
        let known = self.keys.lock().expect("no panic while locked").known.get(sealed_key).cloned();
        let data_key = match known {
            Some(known) => known,
            None => {
                self.observer.seed_missed();
                let sealed_key = Bytes::copy_from_slice(sealed_key);
                let plain = self.decrypt(sealed_key.clone()).await?;
                self.remember(&sealed_key, DataKey::new(&plain)?)
            }
        };
        let mut errors = Vec::new();
        for (i, cipher) in data_key.0.iter().enumerate() {
            match cipher.open(sealed, key) {
                Ok(value) => return Ok(Opened { value, stale: i != 0 }),
                Err(error) => errors.push(error),
            }
        }
        Err(text::aggregate(errors))
    }

    fn remember(&self, sealed: &Bytes, key: DataKey) -> Arc<DataKey> {
        let key = Arc::new(key);
        let mut keys = self.keys.lock().expect("no panic while locked");
        if keys.limit == 0 {
            return key;
        }
        if keys.known.insert(sealed.clone(), key.clone()).is_none() {
            keys.order.push_back(sealed.clone());
        }
        if keys.known.len() > keys.limit
            && let Some(oldest) = keys.order.pop_front()
        {
            keys.known.remove(&oldest);
        }
        self.observer.keys_share(keys.known.len() as f64 / keys.limit as f64);
        key
    }

    async fn encrypt(&self, key: Bytes) -> Result<Bytes, String> {
        self.ask("/v1beta1.KeyManagementService/Encrypt", key).await
    }

    async fn decrypt(&self, key: Bytes) -> Result<Bytes, String> {
        self.ask("/v1beta1.KeyManagementService/Decrypt", key).await
    }

    async fn ask(&self, method: &'static str, key: Bytes) -> Result<Bytes, String> {
        self.check_version().await?;
        let response: KeyResponse = self.service.call(method, KeyRequest { version: VERSION.into(), key }).await?;
        Ok(response.key)
    }

    async fn check_version(&self) -> Result<(), String> {
        let mut checked = self.checked.lock().await;
        if *checked {
            return Ok(());
        }
        let request = VersionRequest { version: VERSION.into() };
        let response = self.service.call("/v1beta1.KeyManagementService/Version", request).await;
        let response: VersionResponse =
            response.map_err(|error| format!("failed get version from remote KMS provider: {error}"))?;
        if response.version != VERSION {
            let version = response.version;
            return Err(format!(
                "KMS provider api version {version} is not supported, only {VERSION} is supported now"
            ));
        }
        *checked = true;
        Ok(())
    }
}
