//! What the flags make of TLS, and connections of each curve.

use super::*;

fn parse(version: &str, suites: &[&str], curves: &[i32]) -> Result<TlsPolicy, String> {
    let suites: Vec<String> = suites.iter().map(|s| s.to_string()).collect();
    TlsPolicy::parse(version, &suites, curves).map_err(|e| e.to_string())
}

#[test]
fn errors_are_the_references() {
    let cases: &[(&str, &[&str], &[i32], &str)] = &[
        ("VersionTLS14", &[], &[], "unknown tls version \"VersionTLS14\""),
        ("", &["NOPE"], &[], "Cipher suite NOPE not supported or doesn't exist"),
        ("", &[], &[0], "curve preference 0 is out of range (must be 1-65535)"),
        ("", &[], &[23, 23], "duplicate curve preference 23"),
        ("", &[], &[7], "curve preference 7 is not supported by the current Go version"),
    ];
    for (version, suites, curves, want) in cases {
        assert_eq!(parse(version, suites, curves).unwrap_err(), *want);
    }
}

#[test]
fn choices() {
    let p = parse("VersionTLS13", &[], &[]).unwrap();
    assert_eq!((p.versions.len(), p.groups.len()), (1, 7));
    let p = parse("", &["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"], &[25, 23]).unwrap();
    assert_eq!((p.suites.len(), p.groups.len(), p.warnings.len()), (4, 2, 0));
}

/// All of them at once, and what may stand there in their place.
#[test]
fn suites_that_the_library_lacks_are_refused_by_name() {
    let listed = [
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "TLS_RSA_WITH_AES_256_GCM_SHA384",
        "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    ];
    assert_eq!(
        parse("", &listed, &[]).unwrap_err(),
        "cipher suites that this server does not offer: TLS_RSA_WITH_AES_256_GCM_SHA384, \
         TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA; those that it offers are \
         TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, \
         TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, \
         TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, \
         TLS_AES_128_GCM_SHA256, TLS_AES_256_GCM_SHA384, TLS_CHACHA20_POLY1305_SHA256"
    );
}

#[test]
fn http2_wants_a_suite_that_all_have() {
    for (version, suites, fits) in [
        ("", &[][..], true),
        ("VersionTLS12", &["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"], false),
        ("VersionTLS13", &["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"], true),
        ("", &["TLS_AES_128_GCM_SHA256"], false),
        ("", &["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"], true),
        ("", &["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"], true),
    ] {
        assert_eq!(parse(version, suites, &[]).unwrap().check_http2().is_ok(), fits, "{version} {suites:?}");
    }
}

/// A client that has only one of the exchanges, in each version of TLS that knows it.
#[test]
fn every_curve_makes_a_connection() {
    for (id, group) in CURVES {
        for version in [&version::TLS12, &version::TLS13] {
            let made = handshake(&parse("", &[], &[*id]).unwrap(), *group, version);
            assert_eq!(made, group.usable_for_version(version.version), "{id} {version:?}");
        }
    }
    let only_p256 = parse("", &[], &[23]).unwrap();
    assert!(!handshake(&only_p256, SECP521R1, &version::TLS13));
}

/// Whether a client with this key exchange alone comes through to a server of `policy`.
fn handshake(
    policy: &TlsPolicy,
    group: &'static dyn SupportedKxGroup,
    version: &'static SupportedProtocolVersion,
) -> bool {
    let made = rcgen::generate_simple_self_signed(vec!["server".to_owned()]).unwrap();
    let (cert, key) = (made.cert.der().clone(), made.signing_key.serialize_der());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(cert.clone()).unwrap();
    let client_side = CryptoProvider { kx_groups: vec![group], ..aws_lc_rs::default_provider() };
    let Ok(client) = rustls::ClientConfig::builder_with_provider(client_side.into()).with_protocol_versions(&[version])
    else {
        return false;
    };
    let client = client.with_root_certificates(roots).with_no_client_auth();
    let server = rustls::ServerConfig::builder_with_provider(policy.provider().into())
        .with_protocol_versions(policy.versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert], key.try_into().unwrap())
        .unwrap();
    let mut client = rustls::ClientConnection::new(client.into(), "server".try_into().unwrap()).unwrap();
    let mut server = rustls::ServerConnection::new(server.into()).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        server.read_tls(&mut bytes.as_slice()).unwrap();
        if server.process_new_packets().is_err() {
            return false;
        }
        bytes.clear();
        server.write_tls(&mut bytes).unwrap();
        client.read_tls(&mut bytes.as_slice()).unwrap();
        if client.process_new_packets().is_err() {
            return false;
        }
    }
    true
}
