//! The ciphers: AES-GCM, AES-CBC, secretbox, and AES-GCM under keys derived from a seed. Each puts its nonce
//! before the ciphertext.

use aws_lc_rs::aead::{AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hkdf::{HKDF_SHA256, Prk};
use aws_lc_rs::iv::FixedLength;
use bytes::Bytes;
use dryoc::classic::crypto_secretbox::{crypto_secretbox_easy, crypto_secretbox_open_easy};

const GCM_NONCE: usize = 12;
const GCM_TAG: usize = 16;
const BLOCK: usize = 16;
const BOX_NONCE: usize = 24;
const BOX_TAG: usize = 16;
/// Bytes that go into the derivation of a key, stored in front of what it encrypts.
const INFO: usize = 32;

const TOO_SHORT: &str = "the stored data was shorter than the required size";
/// What Go's AEAD says; clients and operators search for it.
const NOT_AUTHENTIC: &str = "cipher: message authentication failed";
const NO_RANDOM: &str = "unable to read sufficient random bytes";

/// Errors are texts: they end up in one message, and they must not carry data.
pub(super) type CipherResult<T> = Result<T, String>;

pub(super) fn random<const N: usize>() -> CipherResult<[u8; N]> {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| NO_RANDOM.to_string())?;
    Ok(bytes)
}

pub(super) fn sha256(data: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, data).as_ref());
    out
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What encrypts with a key from the configuration. There are a handful: their size does not matter.
#[allow(clippy::large_enum_variant)]
pub(super) enum Cipher {
    Gcm(Gcm),
    Cbc(Box<Cbc>),
    Secretbox(Box<[u8; 32]>),
}

impl Cipher {
    /// `key` is the storage key that the value is bound to, where the cipher can do that.
    pub fn open(&self, data: &[u8], key: &[u8]) -> CipherResult<Bytes> {
        match self {
            Cipher::Gcm(gcm) => gcm.open(data, key),
            Cipher::Cbc(cbc) => cbc.open(data),
            Cipher::Secretbox(secret) => open_box(secret, data),
        }
    }

    /// Appends nonce and ciphertext to `out`.
    pub fn seal(&self, plain: &[u8], key: &[u8], out: &mut Vec<u8>) -> CipherResult<()> {
        match self {
            Cipher::Gcm(gcm) => gcm.seal(plain, key, out),
            Cipher::Cbc(cbc) => cbc.seal(plain, out),
            Cipher::Secretbox(secret) => seal_box(secret, plain, out),
        }
    }
}

/// AES-GCM with random nonces.
pub(super) struct Gcm(LessSafeKey);

impl Gcm {
    pub fn new(key: &[u8]) -> CipherResult<Gcm> {
        let algorithm = match key.len() {
            16 => &AES_128_GCM,
            24 => &AES_192_GCM,
            32 => &AES_256_GCM,
            len => return Err(format!("crypto/aes: invalid key size {len}")),
        };
        let key = UnboundKey::new(algorithm, key).map_err(|_| "the key was not accepted".to_string())?;
        Ok(Gcm(LessSafeKey::new(key)))
    }

    pub fn open(&self, data: &[u8], key: &[u8]) -> CipherResult<Bytes> {
        let Some((nonce, sealed)) = data.split_at_checked(GCM_NONCE) else { return Err(TOO_SHORT.into()) };
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| TOO_SHORT.to_string())?;
        let mut plain = sealed.to_vec();
        let opened = self.0.open_in_place(nonce, Aad::from(key), &mut plain);
        let len = opened.map_err(|_| NOT_AUTHENTIC.to_string())?.len();
        plain.truncate(len);
        Ok(plain.into())
    }

    pub fn seal(&self, plain: &[u8], key: &[u8], out: &mut Vec<u8>) -> CipherResult<()> {
        let nonce: [u8; GCM_NONCE] = random()?;
        out.reserve(GCM_NONCE + plain.len() + GCM_TAG);
        out.extend_from_slice(&nonce);
        let start = out.len();
        out.extend_from_slice(plain);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.0.seal_in_place_separate_tag(nonce, Aad::from(key), &mut out[start..]);
        let tag = tag.map_err(|_| "encryption failed".to_string())?;
        out.extend_from_slice(tag.as_ref());
        Ok(())
    }
}

/// AES-CBC with PKCS#7 padding. It does not authenticate; kept for data that is stored so.
pub(super) struct Cbc {
    encrypt: EncryptingKey,
    decrypt: DecryptingKey,
}

impl Cbc {
    pub fn new(key: &[u8]) -> CipherResult<Cbc> {
        let algorithm = match key.len() {
            16 => &AES_128,
            24 => &AES_192,
            32 => &AES_256,
            len => return Err(format!("crypto/aes: invalid key size {len}")),
        };
        let refused = |_| "the key was not accepted".to_string();
        let key = || UnboundCipherKey::new(algorithm, key).map_err(refused);
        Ok(Cbc {
            encrypt: EncryptingKey::cbc(key()?).map_err(refused)?,
            decrypt: DecryptingKey::cbc(key()?).map_err(refused)?,
        })
    }

    fn open(&self, data: &[u8]) -> CipherResult<Bytes> {
        let Some((iv, sealed)) = data.split_at_checked(BLOCK) else { return Err(TOO_SHORT.into()) };
        if sealed.len() % BLOCK != 0 {
            return Err("the stored data is not a multiple of the block size".into());
        }
        let mut plain = sealed.to_vec();
        if !plain.is_empty() {
            let iv: [u8; BLOCK] = iv.try_into().map_err(|_| TOO_SHORT.to_string())?;
            let context = DecryptionContext::Iv128(FixedLength::from(iv));
            self.decrypt.decrypt(&mut plain, context).map_err(|_| "decryption failed".to_string())?;
        }
        // Padding is n times the byte n; the reference takes any n up to the length.
        let padding = plain.last().map_or(0, |last| usize::from(*last));
        if padding == 0 || padding > plain.len() {
            return Err("invalid PKCS7 data (empty or not padded)".into());
        }
        let len = plain.len() - padding;
        if plain[len..].iter().any(|byte| usize::from(*byte) != padding) {
            return Err("invalid padding on input".into());
        }
        plain.truncate(len);
        Ok(plain.into())
    }

    fn seal(&self, plain: &[u8], out: &mut Vec<u8>) -> CipherResult<()> {
        let iv: [u8; BLOCK] = random()?;
        let padding = BLOCK - plain.len() % BLOCK;
        out.reserve(BLOCK + plain.len() + padding);
        out.extend_from_slice(&iv);
        let start = out.len();
        out.extend_from_slice(plain);
        out.resize(out.len() + padding, padding as u8);
        let context = EncryptionContext::Iv128(FixedLength::from(iv));
        let sealed = self.encrypt.less_safe_encrypt(&mut out[start..], context);
        sealed.map(drop).map_err(|_| "encryption failed".to_string())
    }
}

fn open_box(secret: &[u8; 32], data: &[u8]) -> CipherResult<Bytes> {
    if data.len() < BOX_NONCE + BOX_TAG {
        return Err(TOO_SHORT.into());
    }
    let (nonce, sealed) = data.split_at(BOX_NONCE);
    let nonce: [u8; BOX_NONCE] = nonce.try_into().map_err(|_| TOO_SHORT.to_string())?;
    let mut plain = vec![0; sealed.len() - BOX_TAG];
    // The reference's text for a box that is not authentic, odd as it is.
    crypto_secretbox_open_easy(&mut plain, sealed, &nonce, secret)
        .map_err(|_| "output array was not large enough for encryption".to_string())?;
    Ok(plain.into())
}

fn seal_box(secret: &[u8; 32], plain: &[u8], out: &mut Vec<u8>) -> CipherResult<()> {
    let nonce: [u8; BOX_NONCE] = random()?;
    out.extend_from_slice(&nonce);
    let start = out.len();
    out.resize(start + BOX_TAG + plain.len(), 0);
    crypto_secretbox_easy(&mut out[start..], plain, &nonce, secret).map_err(|_| "encryption failed".to_string())
}

/// AES-GCM under a fresh key for each value, derived from a seed and 32 random bytes that are stored in front:
/// no number of writes wears it out, so a seed may live as long as its key encryption key.
pub(super) struct Seed(Prk);

impl Seed {
    pub const BYTES: usize = 32;

    pub fn new(seed: &[u8]) -> CipherResult<Seed> {
        // More than a hash's worth of seed is cut by nobody; the library has a limit all the same.
        if seed.len() < Seed::BYTES || seed.len() > 64 {
            return Err(format!("invalid seed length {} used for key generation", seed.len()));
        }
        Ok(Seed(Prk::new_less_safe(HKDF_SHA256, seed)))
    }

    pub fn open(&self, data: &[u8], key: &[u8]) -> CipherResult<Bytes> {
        let Some((info, sealed)) = data.split_at_checked(INFO) else { return Err(TOO_SHORT.into()) };
        let derived = self.derive(info);
        derived.map_err(|error| format!("failed to derive read key from KDF: {error}"))?.open(sealed, key)
    }

    pub fn seal(&self, plain: &[u8], key: &[u8], out: &mut Vec<u8>) -> CipherResult<()> {
        let info: [u8; INFO] = random()?;
        out.extend_from_slice(&info);
        let derived = self.derive(&info);
        derived.map_err(|error| format!("failed to derive write key from KDF: {error}"))?.seal(plain, key, out)
    }

    fn derive(&self, info: &[u8]) -> CipherResult<Gcm> {
        let mut key = [0; 32];
        let info = [info];
        let expanded = self.0.expand(&info, HKDF_SHA256).and_then(|okm| okm.fill(&mut key));
        expanded.map_err(|_| "key derivation failed".to_string())?;
        Gcm::new(&key)
    }
}

#[cfg(test)]
mod tests;
