//! Choosing the provider: by the prefix of what is stored, first to last; the first one for what is written.

use super::ciphers::{Cipher, CipherResult};
use super::kms::Kms;
use super::kms::v1::KmsV1;
use super::observe::{EncryptionObserver, KeyUse};
use super::reload::Encryption;
use bytes::Bytes;
use kubelith_meta::{GroupResource, text};
use std::sync::Arc;
use std::time::Instant;

/// No plain value begins with this: JSON begins with `{`, protobuf with `k8s\0`.
const ENCRYPTED_PREFIX: &[u8] = b"k8s:enc:";
const ENCRYPTED_FOR_IDENTITY: &str = "identity transformer tried to read encrypted data";

/// The providers of one resource.
pub struct Transformer {
    providers: Vec<ProviderTransformer>,
    /// Who counts; nobody if no rule names the resource.
    observer: Option<Arc<dyn EncryptionObserver>>,
}

pub(super) struct ProviderTransformer {
    pub prefix: Vec<u8>,
    pub kind: Kind,
}

pub(super) enum Kind {
    /// Stored as it is.
    Identity,
    /// Named keys, the first of which encrypts.
    Keys {
        keys: Vec<NamedCipher>,
        none_matches: &'static str,
    },
    Kms(Arc<Kms>),
    KmsV1(Arc<KmsV1>),
}

pub(super) struct NamedCipher {
    /// `name:`
    pub prefix: Vec<u8>,
    pub cipher: Cipher,
}

impl NamedCipher {
    fn name(&self) -> &str {
        std::str::from_utf8(&self.prefix).unwrap_or_default()
    }
}

/// What is under way with one value, for who counts. As in the reference both a provider and its key count it.
struct Transformation<'a> {
    observer: &'a dyn EncryptionObserver,
    how: KeyUse,
    /// Under which the value is stored.
    key: &'a [u8],
    began: Instant,
}

impl Transformation<'_> {
    fn ended(&self, prefix: &str, outcome: Result<(), &str>) {
        self.observer.transformed(self.how, self.key, prefix, self.began.elapsed(), outcome);
    }
}

/// A value as it was before it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    pub value: Bytes,
    /// See [`crate::KeyValue::stale`].
    pub stale: bool,
}

impl Transformer {
    pub(super) fn new(providers: Vec<ProviderTransformer>, observer: Arc<dyn EncryptionObserver>) -> Transformer {
        Transformer { providers, observer: Some(observer) }
    }

    /// For what no rule names: stored as it is, and encrypted data is an error.
    pub(super) fn unconfigured() -> Transformer {
        let identity = ProviderTransformer { prefix: Vec::new(), kind: Kind::Identity };
        Transformer { providers: vec![identity], observer: None }
    }

    /// Undoes `seal`. `key` is the storage key. Waits only where a KMS plugin must be asked.
    pub async fn open(&self, stored: &Bytes, key: &[u8]) -> Result<Opened, String> {
        let Some(observer) = &self.observer else {
            return match stored.starts_with(ENCRYPTED_PREFIX) {
                true => Err(ENCRYPTED_FOR_IDENTITY.into()),
                false => Ok(Opened { value: stored.clone(), stale: false }),
            };
        };
        let transformation = Transformation { observer: &**observer, how: KeyUse::Opened, key, began: Instant::now() };
        let mut errors = Vec::new();
        for (i, provider) in self.providers.iter().enumerate() {
            if !stored.starts_with(&provider.prefix) {
                continue;
            }
            match provider.open(stored, &transformation).await {
                Ok(opened) => {
                    transformation.ended(provider.name(), Ok(()));
                    return Ok(Opened { stale: opened.stale || i != 0, ..opened });
                }
                // Before an encrypting provider, identity is tried first and must not fail what it cannot read.
                Err(_) if matches!(provider.kind, Kind::Identity) => {}
                // Two providers can share a prefix, with different keys: keep trying.
                Err(reasons) => {
                    transformation.ended(provider.name(), Err(&text::aggregate(reasons.clone())));
                    errors.extend(reasons);
                }
            }
        }
        if errors.is_empty() {
            let why = "no matching prefix found";
            transformation.ended("unknown", Err(why));
            return Err(why.into());
        }
        Err(text::aggregate(errors))
    }

    /// The form in which `plain` is stored under `key`. Waits only for plugins of KMS v1.
    pub async fn seal(&self, plain: Bytes, key: &[u8]) -> Result<Bytes, String> {
        let Some(provider) = self.providers.first() else { return Err("no providers are configured".into()) };
        let observer: &dyn EncryptionObserver = self.observer.as_deref().unwrap_or(&());
        let transformation = Transformation { observer, how: KeyUse::Sealed, key, began: Instant::now() };
        let sealed = provider.seal(plain, &transformation).await;
        transformation.ended(provider.stored_prefix(), sealed.as_ref().map(drop).map_err(String::as_str));
        sealed
    }

    /// Whether values are stored as they are and none can be stale.
    pub fn is_identity_only(&self) -> bool {
        matches!(&self.providers[..], [only] if matches!(only.kind, Kind::Identity))
    }
}

impl ProviderTransformer {
    /// In the words of metrics, of what was read.
    fn name(&self) -> &str {
        match self.kind {
            Kind::Identity => "identity",
            _ => self.stored_prefix(),
        }
    }

    /// What stored values begin with; nothing, if they are stored as they are.
    fn stored_prefix(&self) -> &str {
        std::str::from_utf8(&self.prefix).unwrap_or_default()
    }

    async fn seal(&self, plain: Bytes, transformation: &Transformation<'_>) -> Result<Bytes, String> {
        let key = transformation.key;
        let mut out = Vec::with_capacity(self.prefix.len() + plain.len() + 128);
        out.extend_from_slice(&self.prefix);
        match &self.kind {
            Kind::Identity => return Ok(plain),
            Kind::Keys { keys, none_matches } => {
                let named = keys.first().ok_or_else(|| none_matches.to_string())?;
                out.extend_from_slice(&named.prefix);
                let sealed = named.cipher.seal(&plain, key, &mut out);
                transformation.ended(named.name(), sealed.as_ref().map(drop).map_err(String::as_str));
                sealed?;
            }
            Kind::Kms(kms) => kms.seal(&plain, key, &mut out)?,
            Kind::KmsV1(kms) => kms.seal(&plain, key, &mut out).await?,
        }
        Ok(out.into())
    }

    async fn open(&self, stored: &Bytes, transformation: &Transformation<'_>) -> Result<Opened, Vec<String>> {
        let key = transformation.key;
        let rest = &stored[self.prefix.len()..];
        match &self.kind {
            Kind::Identity if stored.starts_with(ENCRYPTED_PREFIX) => Err(vec![ENCRYPTED_FOR_IDENTITY.into()]),
            Kind::Identity => Ok(Opened { value: stored.clone(), stale: false }),
            Kind::Keys { keys, none_matches } => open_with_keys(keys, none_matches, rest, transformation),
            Kind::Kms(kms) => kms.open(rest, key).await.map_err(|error| vec![error]),
            Kind::KmsV1(kms) => kms.open(rest, key).await.map_err(|error| vec![error]),
        }
    }
}

fn open_with_keys(
    keys: &[NamedCipher],
    none_matches: &str,
    data: &[u8],
    transformation: &Transformation<'_>,
) -> Result<Opened, Vec<String>> {
    let mut errors = Vec::new();
    for (i, named) in keys.iter().enumerate() {
        let Some(sealed) = data.strip_prefix(&named.prefix[..]) else { continue };
        let opened: CipherResult<Bytes> = named.cipher.open(sealed, transformation.key);
        transformation.ended(named.name(), opened.as_ref().map(drop).map_err(String::as_str));
        match opened {
            Ok(value) => return Ok(Opened { value, stale: i != 0 }),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() {
        transformation.ended("unknown", Err(none_matches));
        errors.push(none_matches.to_string());
    }
    Err(errors)
}

/// The transformer of one resource, whatever the configuration is by now.
#[derive(Clone)]
pub struct ResourceTransformer {
    encryption: Option<Arc<Encryption>>,
    resource: GroupResource,
}

impl ResourceTransformer {
    pub(super) fn new(encryption: Arc<Encryption>, resource: GroupResource) -> ResourceTransformer {
        ResourceTransformer { encryption: Some(encryption), resource }
    }

    /// Without a configuration: nothing is encrypted, and encrypted data is an error.
    pub fn unconfigured(resource: GroupResource) -> ResourceTransformer {
        ResourceTransformer { encryption: None, resource }
    }

    pub fn resource(&self) -> &GroupResource {
        &self.resource
    }

    /// To use for one request: providers must not change in the middle of one.
    pub fn current(&self) -> Arc<Transformer> {
        match &self.encryption {
            Some(encryption) => encryption.transformer(&self.resource),
            None => Arc::new(Transformer::unconfigured()),
        }
    }
}
