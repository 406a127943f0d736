use super::key::Curve;
use super::signer::Signer;
use super::*;
use crate::jwt::claims::{Claims, TimeError};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA512, RSA_PSS_SHA256,
};
use std::sync::OnceLock;

fn pem(label: &str, der: &[u8]) -> String {
    use base64::engine::general_purpose::STANDARD;
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}

/// RSA keys are slow to make: one for all tests.
fn rsa_pem() -> &'static str {
    static PEM: OnceLock<String> = OnceLock::new();
    PEM.get_or_init(|| {
        use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
        let key = aws_lc_rs::rsa::KeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
        let der: Pkcs8V1Der<'_> = key.as_der().unwrap();
        pem("PRIVATE KEY", der.as_ref())
    })
}

fn signers() -> Vec<(Signer, &'static str)> {
    let ec = |alg| {
        let key = EcdsaKeyPair::generate(alg).unwrap();
        Signer::from_pem(pem("PRIVATE KEY", key.to_pkcs8v1().unwrap().as_ref()).as_bytes()).unwrap()
    };
    vec![
        (Signer::from_pem(rsa_pem().as_bytes()).unwrap(), "RS256"),
        (Signer::from_pem(Signer::generate_pem().unwrap().as_bytes()).unwrap(), "ES256"),
        (ec(&ECDSA_P384_SHA384_FIXED_SIGNING), "ES384"),
        (ec(&ECDSA_P521_SHA512_FIXED_SIGNING), "ES512"),
    ]
}

#[test]
fn signed_tokens_verify_with_their_key_only() {
    let claims = Value::from([("iss", "me"), ("sub", "you")]);
    let signers = signers();
    for (i, (signer, algorithm)) in signers.iter().enumerate() {
        let text = signer.sign(&claims).unwrap();
        let token = UnverifiedToken::parse(&text).unwrap();
        assert_eq!(token.algorithm().unwrap().name(), *algorithm);
        assert_eq!(token.key_id, signer.public_key().id());
        for (j, (other, _)) in signers.iter().enumerate() {
            assert_eq!(token.verify(other.public_key()), (i == j).then_some(&claims), "{i} {j}");
        }
        let jwk = crate::json::parse(signer.public_key().to_jwk_json().as_bytes()).unwrap();
        assert_eq!(PublicKey::from_jwk(&jwk).as_ref(), Some(signer.public_key()));
    }
}

#[test]
fn other_rsa_algorithms() {
    let signer = Signer::from_pem(rsa_pem().as_bytes()).unwrap();
    let der = rustls_pki_types::pem::from_buf(&mut rsa_pem().as_bytes()).unwrap().unwrap().1;
    let key = aws_lc_rs::rsa::KeyPair::from_pkcs8(&der).unwrap();
    for (alg, encoding) in [("RS512", &RSA_PKCS1_SHA512), ("PS256", &RSA_PSS_SHA256)] {
        let signed = format!("{}.{}", encode(format!(r#"{{"alg":"{alg}"}}"#)), encode("{}"));
        let mut signature = vec![0; key.public_modulus_len()];
        key.sign(encoding, &SystemRandom::new(), signed.as_bytes(), &mut signature).unwrap();
        let text = format!("{signed}.{}", encode(&signature));
        assert!(UnverifiedToken::parse(&text).unwrap().verify(signer.public_key()).is_some(), "{alg}");
        let lying = text.replacen(&encode(format!(r#"{{"alg":"{alg}"}}"#)), &encode(r#"{"alg":"RS256"}"#), 1);
        assert!(UnverifiedToken::parse(&lying).unwrap().verify(signer.public_key()).is_none());
    }
}

#[test]
fn forgeries() {
    let (signer, _) = signers().remove(1);
    let good = signer.sign(&Value::from([("iss", "me")])).unwrap();
    let [header, payload, signature] = good.split('.').collect::<Vec<_>>().try_into().unwrap();
    let with_header = |json: &str| format!("{}.{payload}.{signature}", encode(json));
    let secret = {
        // The public key used as a shared secret, as the confusion attack does.
        use aws_lc_rs::hmac;
        let signed = format!("{}.{payload}", encode(r#"{"alg":"HS256"}"#));
        let key = hmac::Key::new(hmac::HMAC_SHA256, signer.public_key().to_jwk_json().as_bytes());
        format!("{signed}.{}", encode(hmac::sign(&key, signed.as_bytes())))
    };
    let cases = [
        ("none algorithm", format!("{}.{payload}.", encode(r#"{"alg":"none"}"#))),
        ("none with the old signature", with_header(r#"{"alg":"none"}"#)),
        ("no algorithm", with_header("{}")),
        ("other case", with_header(r#"{"alg":"es256"}"#)),
        ("shared secret", secret),
        ("RSA algorithm for an EC key", with_header(r#"{"alg":"RS256"}"#)),
        ("larger curve's algorithm", with_header(r#"{"alg":"ES512"}"#)),
        ("critical extension", with_header(r#"{"alg":"ES256","crit":["b64"],"b64":false}"#)),
        ("other header, same signature", with_header(r#"{"alg":"ES256","kid":"x"}"#)),
        ("other claims", format!("{header}.{}.{signature}", encode(r#"{"iss":"me","sub":"root"}"#))),
        ("empty signature", format!("{header}.{payload}.")),
        ("zero signature", format!("{header}.{payload}.{}", encode([0; 64]))),
        ("short signature", format!("{header}.{payload}.{}", &signature[..40])),
    ];
    for (name, forged) in cases {
        let token = UnverifiedToken::parse(&forged).unwrap_or_else(|| panic!("{name} parses"));
        assert!(token.verify(signer.public_key()).is_none(), "{name}");
    }
    assert!(UnverifiedToken::parse(&good).unwrap().verify(signer.public_key()).is_some());
}

#[test]
fn what_is_no_token() {
    let header = encode(r#"{"alg":"ES256"}"#);
    let claims = encode("{}");
    for text in [
        "".to_string(),
        "opaque".into(),
        "a.b".into(),
        format!("{header}.{claims}.c2ln.more"),
        format!("{header}.{claims}.not base64!"),
        format!("{header}=.{claims}.c2ln"),
        format!("{}.{claims}.c2ln", encode("[]")),
        format!("{header}.{}.c2ln", encode("[]")),
        format!("{header}.{}.c2ln", encode("{broken")),
        format!("{}.{claims}.c2ln", encode(r#"{"alg":"ES256","kid":7}"#)),
        format!("{header}.{}.c2ln", encode(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)))),
    ] {
        assert!(UnverifiedToken::parse(&text).is_none(), "{}", &text[..text.len().min(80)]);
    }
}

#[test]
fn claims_are_read_strictly() {
    let read = |json: &str| Claims::read(&crate::json::parse(json.as_bytes()).unwrap());
    assert_eq!(read(r#"{"aud":"a"}"#).unwrap().audience, ["a"]);
    assert_eq!(read(r#"{"aud":["a","b"]}"#).unwrap().audience, ["a", "b"]);
    assert_eq!(read(r#"{"exp":1.9e3}"#).unwrap().expires, Some(1900));
    for bad in [r#"{"aud":1}"#, r#"{"aud":[1]}"#, r#"{"exp":"1"}"#, r#"{"iss":1}"#, r#"{"sub":{}}"#, r#"{"nbf":[]}"#] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

#[test]
fn times_have_a_minute_of_leeway() {
    let at = kubelith_meta::time::Time::from_unix;
    let claims = Claims { not_before: Some(1000), issued_at: Some(900), expires: Some(2000), ..Claims::default() };
    let cases = [(939, Err(TimeError::NotYetValid)), (940, Ok(())), (2060, Ok(())), (2061, Err(TimeError::Expired))];
    for (now, want) in cases {
        assert_eq!(claims.check_time(at(now)), want, "{now}");
    }
    let future = Claims { issued_at: Some(1000), ..Claims::default() };
    assert_eq!(future.check_time(at(900)), Err(TimeError::IssuedInTheFuture));
    let extreme = Claims { expires: Some(i64::MIN), ..Claims::default() };
    assert_eq!(extreme.check_time(at(1000)), Err(TimeError::Expired));
}

#[test]
fn keys_of_pem_files() {
    let private = Signer::generate_pem().unwrap();
    let parameters = pem("EC PARAMETERS", &[6, 1, 1]);
    let keys = PublicKey::list_from_pem(format!("{parameters}{private}text\n{}", rsa_pem()).as_bytes()).unwrap();
    assert!(matches!(keys[..], [PublicKey::Ec { curve: Curve::P256, .. }, PublicKey::Rsa { .. }]));
    for none in ["", "nothing here", &parameters] {
        assert_eq!(
            PublicKey::list_from_pem(none.as_bytes()).unwrap_err(),
            "data does not contain any valid RSA or ECDSA public keys"
        );
        assert!(Signer::from_pem(none.as_bytes()).is_err());
    }
    assert!(!format!("{:?}", Signer::from_pem(private.as_bytes()).unwrap()).contains("Pkcs8"));
}
