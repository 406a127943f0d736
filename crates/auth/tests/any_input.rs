//! Whatever comes in from outside is refused or read, and never a panic.

use arc_swap::ArcSwapOption;
use http::{HeaderMap, HeaderName, HeaderValue};
use kubelith_auth::authn::token_file::TokenFile;
use kubelith_auth::authn::x509::{CaPool, ClientCertificate};
use kubelith_auth::authz::abac::AbacPolicies;
use kubelith_auth::clock::SystemClock;
use kubelith_auth::jwt::UnverifiedToken;
use kubelith_auth::jwt::key::PublicKey;
use kubelith_auth::jwt::signer::Signer;
use kubelith_auth::traits::CertificateDer;
use kubelith_auth::{AuthRequest, Authenticator, PeerCertificates, impersonation};
use proptest::prelude::*;
use std::sync::{Arc, LazyLock};

struct Pki {
    ca_pem: String,
    leaf: Vec<u8>,
}

static PKI: LazyLock<Pki> = LazyLock::new(|| {
    let mut ca_params = rcgen::CertificateParams::default();
    ca_params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let ca_key = rcgen::KeyPair::generate().unwrap();
    let ca_pem = ca_params.self_signed(&ca_key).unwrap().pem();
    let issuer = rcgen::Issuer::new(ca_params, ca_key);
    let mut leaf_params = rcgen::CertificateParams::new(vec!["a.example.com".into()]).unwrap();
    leaf_params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
    let leaf = leaf_params.signed_by(&rcgen::KeyPair::generate().unwrap(), &issuer).unwrap();
    Pki { ca_pem, leaf: leaf.der().to_vec() }
});

static SIGNER: LazyLock<Signer> =
    LazyLock::new(|| Signer::from_pem(Signer::generate_pem().unwrap().as_bytes()).unwrap());

fn authenticate(der: Vec<u8>) -> bool {
    let pool = CaPool::from_pem(PKI.ca_pem.as_bytes()).unwrap();
    let certificates = ClientCertificate::new(Arc::new(ArcSwapOption::from_pointee(pool)), Arc::new(SystemClock));
    let headers = HeaderMap::new();
    let peer = PeerCertificates::new([CertificateDer::from(der)]);
    let request = AuthRequest { headers: &headers, peer_certificates: peer.as_ref(), path: "/", audiences: &[] };
    matches!(certificates.authenticate(request), kubelith_auth::Answer::Ready(Ok(Some(_))))
}

/// Every bit of it counts: of the signed part, of the signature, and of the envelope that nobody signed.
#[test]
fn certificates_with_a_changed_bit_are_not_trusted() {
    assert!(authenticate(PKI.leaf.clone()));
    for at in 0..PKI.leaf.len() {
        for bit in 0..8 {
            let mut der = PKI.leaf.clone();
            der[at] ^= 1 << bit;
            assert!(!authenticate(der), "bit {bit} of byte {at} of {:02x?}", PKI.leaf);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn certificates_of_noise(der in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(!authenticate(der));
    }

    #[test]
    fn tokens(text in ".*", header in ".{0,40}", claims in ".{0,40}") {
        use base64::Engine;
        let encode = |s: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(s);
        for token in [text, format!("{}.{}.eA", encode(&header), encode(&claims))] {
            if let Some(token) = UnverifiedToken::parse(&token) {
                prop_assert!(token.verify(SIGNER.public_key()).is_none());
            }
        }
    }

    #[test]
    fn signatures_with_a_changed_byte(at in 0usize..64, bits in 1u8..) {
        use base64::Engine;
        let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
        let token = SIGNER.sign(&kubelith_meta::Value::object()).unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let mut signature = engine.decode(signature).unwrap();
        signature[at] ^= bits;
        let forged = format!("{signed}.{}", engine.encode(signature));
        prop_assert!(UnverifiedToken::parse(&forged).unwrap().verify(SIGNER.public_key()).is_none());
    }

    #[test]
    fn files(text in "[a-z,\"\\n\\r {}:#-]*") {
        let _ = TokenFile::parse(&text, "f");
        let _ = AbacPolicies::parse(&text, "f");
        let _ = PublicKey::list_from_pem(text.as_bytes());
        let _ = CaPool::from_pem(text.as_bytes());
    }

    #[test]
    fn impersonation_headers(name in "[a-zA-Z0-9%-]{0,12}", value in proptest::collection::vec(32u8.., 0..20)) {
        let mut headers = HeaderMap::new();
        for prefix in ["impersonate-extra-", "impersonate-user", "impersonate-group", "impersonate-uid"] {
            let header = HeaderName::from_bytes(format!("{prefix}{name}").as_bytes());
            if let (Ok(header), Ok(value)) = (header, HeaderValue::from_bytes(&value)) {
                headers.append(header, value);
            }
        }
        let _ = impersonation::wanted_user(&headers);
        impersonation::remove_headers(&mut headers);
        prop_assert!(!headers.keys().any(|k| k.as_str().starts_with("impersonate-extra-")));
    }
}
