//! The words are those of the reference's library, which was asked about the same input.

use super::{Certificate, PublicKey, Request, pem};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PublicKeyData};

fn request(key: &KeyPair) -> Vec<u8> {
    CertificateParams::default().serialize_request(key).unwrap().der().to_vec()
}

#[test]
fn blocks_are_found_among_other_text() {
    let label = |text: &str| {
        pem::next(text.as_bytes())
            .map(|(block, rest)| (block.label, block.bytes, String::from_utf8_lossy(rest).into_owned()))
    };
    let found = |name: &str, bytes: &[u8], rest: &str| Some((name.to_owned(), bytes.to_vec(), rest.to_owned()));
    let cases = [
        ("", None),
        ("-----BEGIN A-----\nAAAA\n-----END A-----", found("A", &[0, 0, 0], "")),
        ("x\n-----BEGIN A-----  \r\nAA AA\r\n-----END A-----\t\r\nrest", found("A", &[0, 0, 0], "rest")),
        ("x -----BEGIN A-----\nAAAA\n-----END A-----\n", None),
        ("-----BEGIN A-----\nAAAA\n-----END B-----\n", None),
        ("-----BEGIN A-----\n-----END A-----\nx", found("A", &[], "x")),
        (
            "-----BEGIN A-----\nnot base64!\n-----END A-----\n-----BEGIN B-----\nAAAA\n-----END B-----\n",
            found("B", &[0; 3], ""),
        ),
        // A beginning without an end is passed over.
        ("-----BEGIN A-----\n-----BEGIN B-----\nAAAA\n-----END B-----\n", found("B", &[0; 3], "")),
        ("-----BEGIN A-----\nAAAA\n-----END A----- x\n", None),
    ];
    for (text, expected) in cases {
        assert_eq!(label(text), expected, "{text:?}");
    }
    let (block, _) = pem::next(b"-----BEGIN A-----\nProc: 4\n\nAAAA\n-----END A-----\n").unwrap();
    assert!(block.has_headers);
}

#[test]
fn keys_sign_their_requests() {
    for key in [
        KeyPair::generate().unwrap(),
        KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap(),
        KeyPair::generate_for(&PKCS_ED25519).unwrap(),
    ] {
        let der = request(&key);
        let read = Request::from_der(&der).unwrap();
        assert_eq!(read.check_signature(), Ok(()));
        assert_eq!(PublicKey::from_der(&key.subject_public_key_info()).unwrap(), read.key);
        let mut other = der.clone();
        // The last byte belongs to the signature.
        *other.last_mut().unwrap() ^= 1;
        let why = Request::from_der(&other).unwrap().check_signature().unwrap_err();
        assert!(why.ends_with("verification failure"), "{why}");
    }
}

#[test]
fn what_is_no_request_is_told_as_the_reference_does() {
    let der = request(&KeyPair::generate().unwrap());
    let mut long = der.clone();
    long.push(0);
    let cases: [(&[u8], &str); 7] = [
        (&[], "asn1: syntax error: sequence truncated"),
        (&[0x30], "asn1: syntax error: truncated tag or length"),
        (&[0x30, 0x80], "asn1: syntax error: indefinite length found (not DER)"),
        (&[0x30, 5, 0], "asn1: syntax error: data truncated"),
        (&[0x30, 0], "asn1: syntax error: sequence truncated"),
        (&long, "asn1: syntax error: trailing data"),
        (
            b"garbage",
            "asn1: structure error: tags don't match (16 vs {class:1 tag:7 length:97 isCompound:true}) {optional:false \
             explicit:false application:false private:false defaultValue:<nil> tag:<nil> stringType:0 timeType:0 \
             set:false omitEmpty:false} certificateRequest @2",
        ),
    ];
    for (der, expected) in cases {
        assert_eq!(Request::from_der(der).unwrap_err(), expected);
    }
}

#[test]
fn certificates_are_read() {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["a.example".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Constrained(1));
    let der = params.self_signed(&key).unwrap().der().to_vec();
    let read = Certificate::parse(&der).unwrap();
    assert_eq!(read.is_ca, Some(true));
    assert_eq!(read.names.dns, ["a.example"]);
    assert_eq!(read.not_before.rfc3339(), "1975-01-01T00:00:00Z");
    assert_eq!(Certificate::parse_all(&[der.clone(), der.clone()].concat()).unwrap().len(), 2);
    assert_eq!(Certificate::parse(&[der.clone(), vec![0]].concat()).unwrap_err(), "x509: trailing data");
    assert_eq!(Certificate::parse(b"nothing").unwrap_err(), "x509: malformed certificate");
    // Nothing that a byte can be turned into makes it panic.
    for i in 0..der.len() {
        for flip in [1, 0x80, 0xff] {
            let mut other = der.clone();
            other[i] ^= flip;
            let _ = Certificate::parse(&other);
            let _ = Request::from_der(&other);
        }
    }
}
