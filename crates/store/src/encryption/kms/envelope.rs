//! What is stored for a value that a KMS plugin guards: the value under a data key, and with it the data key
//! (or the seed of data keys) as the plugin encrypted it.

use crate::encryption::ciphers::{hex, sha256};
use bytes::Bytes;
use kubelith_meta::field::Path;
use kubelith_meta::names::validate_fully_qualified_domain_name;
use kubelith_meta::text;
use prost::{Enumeration, Message};
use std::collections::BTreeMap;

const ANNOTATIONS_MAX_BYTES: usize = 32 << 10;
const KEY_ID_MAX_BYTES: usize = 1 << 10;
const ENCRYPTED_SOURCE_MAX_BYTES: usize = 1 << 10;

/// How the plaintext of `encrypted_dek_source` becomes the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub(super) enum SourceType {
    /// It is the AES-GCM key. Written by releases before 1.29.
    AesGcmKey = 0,
    /// It is a seed; each value has a key of its own.
    Seed = 1,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct EncryptedObject {
    #[prost(bytes = "bytes", tag = "1")]
    pub encrypted_data: Bytes,
    #[prost(string, tag = "2")]
    pub key_id: String,
    #[prost(bytes = "bytes", tag = "3")]
    pub encrypted_dek_source: Bytes,
    #[prost(btree_map = "string, bytes", tag = "4")]
    pub annotations: BTreeMap<String, Bytes>,
    #[prost(enumeration = "SourceType", tag = "5")]
    pub source_type: i32,
}

impl EncryptedObject {
    pub fn decode_valid(data: &[u8]) -> Result<EncryptedObject, String> {
        let object = EncryptedObject::decode(data).map_err(|error| error.to_string())?;
        object.validate()?;
        Ok(object)
    }

    pub fn validate(&self) -> Result<(), String> {
        if SourceType::try_from(self.source_type).is_err() {
            return Err(format!("unknown encryptedDEKSourceType: {}", self.source_type));
        }
        if self.encrypted_data.is_empty() {
            return Err("encrypted data is empty".into());
        }
        validate_source(&self.encrypted_dek_source)
            .map_err(|error| format!("failed to validate encrypted DEK source: {error}"))?;
        validate_key_id(&self.key_id).map_err(|error| format!("failed to validate key id: {error}"))?;
        validate_annotations(&self.annotations).map_err(|error| format!("failed to validate annotations: {error}"))
    }

    /// Identifies the data key: a digest of all that the plugin needs to give it back.
    pub fn source_id(&self) -> [u8; 32] {
        let mut input = Vec::with_capacity(128);
        let mut part = |bytes: &[u8]| {
            input.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
            input.extend_from_slice(bytes);
        };
        part(&self.source_type.to_be_bytes());
        part(&self.encrypted_dek_source);
        part(self.key_id.as_bytes());
        for (name, value) in &self.annotations {
            part(name.as_bytes());
            part(value);
        }
        sha256(&input)
    }
}

fn validate_source(source: &[u8]) -> Result<(), String> {
    match source.len() {
        0 => Err("encrypted DEK source is empty".into()),
        len if len > ENCRYPTED_SOURCE_MAX_BYTES => Err(format!(
            "encrypted DEK source is {len} bytes, which exceeds the max size of {ENCRYPTED_SOURCE_MAX_BYTES}"
        )),
        _ => Ok(()),
    }
}

pub(super) fn validate_key_id(key_id: &str) -> Result<(), String> {
    match key_id.len() {
        0 => Err("keyID is empty".into()),
        len if len > KEY_ID_MAX_BYTES => {
            Err(format!("keyID is {len} bytes, which exceeds the max size of {KEY_ID_MAX_BYTES}"))
        }
        _ => Ok(()),
    }
}

fn validate_annotations(annotations: &BTreeMap<String, Bytes>) -> Result<(), String> {
    let mut errors = Vec::new();
    let mut total = 0;
    for (name, value) in annotations {
        let wrong = validate_fully_qualified_domain_name(name, &Path::new("annotations"));
        errors.extend(wrong.into_iter().map(|error| error.to_string()));
        total += name.len() + value.len();
    }
    if total > ANNOTATIONS_MAX_BYTES {
        let max = ANNOTATIONS_MAX_BYTES;
        errors.push(format!("total size of annotations is {total}, which exceeds the max size of {max}"));
    }
    if errors.is_empty() { Ok(()) } else { Err(text::aggregate(errors)) }
}

/// Key IDs are not shown in full.
pub(super) fn hash_if_not_empty(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("sha256:{}", hex(&sha256(text.as_bytes()))) }
}
