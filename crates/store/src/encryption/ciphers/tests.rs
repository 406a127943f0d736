//! Round trips, tampering and the texts of errors. Values that kube-apiserver wrote are read in `reload`'s tests.

use super::*;

fn ciphers() -> Vec<(&'static str, Cipher)> {
    vec![
        ("gcm 128", Cipher::Gcm(Gcm::new(&[1; 16]).unwrap())),
        ("gcm 192", Cipher::Gcm(Gcm::new(&[2; 24]).unwrap())),
        ("gcm 256", Cipher::Gcm(Gcm::new(&[3; 32]).unwrap())),
        ("cbc 128", Cipher::Cbc(Box::new(Cbc::new(&[4; 16]).unwrap()))),
        ("cbc 192", Cipher::Cbc(Box::new(Cbc::new(&[5; 24]).unwrap()))),
        ("cbc 256", Cipher::Cbc(Box::new(Cbc::new(&[6; 32]).unwrap()))),
        ("secretbox", Cipher::Secretbox(Box::new([7; 32]))),
    ]
}

#[test]
fn values_come_back() {
    for (name, cipher) in ciphers() {
        for len in [0, 1, 15, 16, 17, 1000, 100_000] {
            let plain: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let mut sealed = b"prefix".to_vec();
            cipher.seal(&plain, b"/registry/a", &mut sealed).unwrap();
            assert_eq!(&sealed[..6], b"prefix", "{name}: what was there stays");
            let opened = cipher.open(&sealed[6..], b"/registry/a").unwrap();
            assert!(opened == plain, "{name}, {len} bytes");
        }
    }
}

#[test]
fn the_same_value_is_never_stored_the_same_way() {
    for (name, cipher) in ciphers() {
        let seal = || {
            let mut out = Vec::new();
            cipher.seal(b"value", b"k", &mut out).unwrap();
            out
        };
        assert_ne!(seal(), seal(), "{name}");
    }
}

#[test]
fn authenticated_ciphers_notice_changes_and_moves() {
    for (name, cipher) in ciphers().into_iter().filter(|(name, _)| !name.starts_with("cbc")) {
        let mut sealed = Vec::new();
        cipher.seal(b"value", b"/registry/a", &mut sealed).unwrap();
        for i in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[i] ^= 1;
            assert!(cipher.open(&changed, b"/registry/a").is_err(), "{name}, byte {i}");
        }
        if name.starts_with("gcm") {
            assert_eq!(cipher.open(&sealed, b"/registry/b").unwrap_err(), NOT_AUTHENTIC, "{name}");
        }
    }
}

#[test]
fn short_and_odd_data_is_an_error() {
    for (name, cipher) in ciphers() {
        for len in 0..40 {
            assert!(cipher.open(&vec![0; len], b"k").is_err(), "{name}, {len} bytes");
        }
        assert_eq!(cipher.open(b"short", b"k").unwrap_err(), TOO_SHORT, "{name}");
    }
    let cbc = Cbc::new(&[1; 32]).unwrap();
    let error = |data: &[u8]| cbc.open(data).unwrap_err();
    assert_eq!(error(&[0; 17]), "the stored data is not a multiple of the block size");
    assert_eq!(error(&[0; 16]), "invalid PKCS7 data (empty or not padded)");
}

#[test]
fn seeds_derive_a_key_per_value() {
    let seed = Seed::new(&[9; 32]).unwrap();
    let mut sealed = Vec::new();
    seed.seal(b"value", b"/registry/a", &mut sealed).unwrap();
    assert_eq!(sealed.len(), INFO + GCM_NONCE + 5 + GCM_TAG);
    assert_eq!(seed.open(&sealed, b"/registry/a").unwrap(), &b"value"[..]);
    assert!(seed.open(&sealed, b"/registry/b").is_err());
    assert!(Seed::new(&[9; 33]).unwrap().open(&sealed, b"/registry/a").is_err());
    assert_eq!(Seed::new(&[9; 31]).err().unwrap(), "invalid seed length 31 used for key generation");
    assert_eq!(seed.open(&[0; 31], b"k").unwrap_err(), TOO_SHORT);
}

#[test]
fn keys_of_other_sizes_are_refused() {
    for len in [0, 15, 31, 33] {
        assert_eq!(Gcm::new(&vec![0; len]).err().unwrap(), format!("crypto/aes: invalid key size {len}"));
        assert_eq!(Cbc::new(&vec![0; len]).err().unwrap(), format!("crypto/aes: invalid key size {len}"));
    }
}
