use super::testing::*;
use super::*;
use crate::authn::testing::Probe;
use crate::testing::clock_at;
use kubelith_meta::time::Time;
use rcgen::{BasicConstraints, CertificateParams, DnType, DnValue, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose};

fn authenticator(ca_pem: &str, now: i64) -> ClientCertificate {
    let pool = CaPool::from_pem(ca_pem.as_bytes()).unwrap();
    ClientCertificate::new(Arc::new(ArcSwapOption::from_pointee(pool)), clock_at(now))
}

fn ask(ca_pem: &str, now: i64, chain: &[CertificateDer<'static>]) -> Result<Option<String>, String> {
    let result = Probe::new().certificates(chain).ask(&authenticator(ca_pem, now));
    result.map(|r| r.map(|r| r.user.name.to_string())).map_err(|e| e.to_string())
}

#[test]
fn subject_becomes_user() {
    let ca = root(ca_params("ca"));
    let mut params = client_params("jane", &["dev"]);
    let uid = DnType::CustomDnType(vec![1, 3, 6, 1, 4, 1, 57683, 2]);
    params.distinguished_name.push(uid, DnValue::Utf8String("1234".into()));
    let leaf = ca.leaf(params);
    let response = Probe::new().certificates(&[leaf]).ask(&authenticator(&ca.pem, NOW)).unwrap().unwrap();
    assert_eq!((response.user.name.as_str(), response.user.uid.as_str()), ("jane", "1234"));
    assert_eq!(response.user.groups, ["dev"]);
    let id = response.user.extra_first(EXTRA_CREDENTIAL_ID);
    assert!(id.starts_with("X509SHA256=") && id.len() == 11 + 64, "{id}");
}

#[test]
fn chains() {
    let ca = root(ca_params("ca"));
    let other = root(ca_params("ca"));
    let middle = ca.intermediate(ca_params("middle"));
    let low = middle.intermediate(ca_params("low"));
    let jane = || client_params("jane", &[]);
    let with = |change: fn(&mut CertificateParams)| {
        let mut params = jane();
        change(&mut params);
        params
    };
    let not_ca = ca.intermediate(client_params("not-ca", &[]));
    let no_sign = ca.intermediate({
        let mut params = ca_params("no-sign");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params
    });
    let short = ca.intermediate({
        let mut params = ca_params("short");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params
    });
    let below_short = short.intermediate(ca_params("below-short"));
    let server_ca = ca.intermediate({
        let mut params = ca_params("server-ca");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params
    });
    let ok = || Ok(Some("jane"));
    type Case = (&'static str, Vec<CertificateDer<'static>>, Result<Option<&'static str>, &'static str>);
    let cases: Vec<Case> = vec![
        ("direct", vec![ca.leaf(jane())], ok()),
        ("one intermediate", vec![middle.leaf(jane()), middle.der.clone()], ok()),
        ("two intermediates, any order", vec![low.leaf(jane()), middle.der.clone(), low.der.clone()], ok()),
        ("missing intermediate", vec![middle.leaf(jane())], Err("signed by unknown authority")),
        ("same name, other key", vec![other.leaf(jane())], Err("signature verification error")),
        ("self-made root in the chain", vec![other.leaf(jane()), other.der.clone()], Err("unknown authority")),
        ("issuer is no CA", vec![not_ca.leaf(jane()), not_ca.der.clone()], Err("unknown authority")),
        ("issuer may not sign", vec![no_sign.leaf(jane()), no_sign.der.clone()], Err("unknown authority")),
        ("path length kept", vec![short.leaf(jane()), short.der.clone()], ok()),
        (
            "path length exceeded",
            vec![below_short.leaf(jane()), below_short.der.clone(), short.der.clone()],
            Err("unknown authority"),
        ),
        (
            "server certificate",
            vec![ca.leaf(with(|p| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]))],
            Err("incompatible key usage"),
        ),
        ("any usage", vec![ca.leaf(with(|p| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::Any]))], ok()),
        ("no usage listed", vec![ca.leaf(with(|p| p.extended_key_usages.clear()))], ok()),
        ("usage of the issuer", vec![server_ca.leaf(jane()), server_ca.der.clone()], Err("incompatible key usage")),
        (
            "unknown critical extension",
            vec![ca.leaf(with(|p| p.custom_extensions.push(critical_extension())))],
            Err("unhandled critical extension"),
        ),
        ("the root itself", vec![ca.der.clone()], Ok(Some("ca"))),
        ("no common name", vec![ca.leaf(with(|p| p.distinguished_name = Default::default()))], Ok(None)),
        ("garbage", vec![CertificateDer::from(vec![0x30, 0x03, 1, 2, 3])], Err("malformed certificate")),
        ("nothing sent", vec![], Ok(None)),
    ];
    for (name, chain, want) in cases {
        match (ask(&ca.pem, NOW, &chain), want) {
            (Ok(got), Ok(want)) => assert_eq!(got.as_deref(), want, "{name}"),
            (Err(got), Err(want)) => assert!(got.contains(want), "{name}: {got}"),
            (got, want) => panic!("{name}: got {got:?}, want {want:?}"),
        }
    }
}

#[test]
fn name_constraints_limit_an_authority() {
    use rcgen::{GeneralSubtree, NameConstraints, SanType};
    let ca = root(ca_params("ca"));
    let limited = ca.intermediate({
        let mut params = ca_params("limited");
        let permitted_subtrees = vec![GeneralSubtree::DnsName("example.com".into())];
        params.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees: vec![] });
        params
    });
    let leaf = |dns: &str| {
        let mut params = client_params("jane", &[]);
        params.subject_alt_names = vec![SanType::DnsName(dns.try_into().unwrap())];
        vec![limited.leaf(params), limited.der.clone()]
    };
    assert_eq!(ask(&ca.pem, NOW, &leaf("a.example.com")), Ok(Some("jane".into())));
    assert!(ask(&ca.pem, NOW, &leaf("a.other.org")).is_err());
    let nameless = vec![limited.leaf(client_params("jane", &[])), limited.der.clone()];
    assert_eq!(ask(&ca.pem, NOW, &nameless), Ok(Some("jane".into())));
}

#[test]
fn validity_is_checked_each_time() {
    let ca = root(ca_params("ca"));
    let peer = PeerCertificates::new([ca.leaf(client_params("jane", &[]))]).unwrap();
    let pool = CaPool::from_pem(ca.pem.as_bytes()).unwrap();
    for (now, good) in
        [(NOT_BEFORE - 1, false), (NOT_BEFORE, true), (NOT_AFTER, true), (NOT_AFTER + 1, false), (NOW, true)]
    {
        let result = verify_cached(&pool, &peer, Time::from_unix(now));
        assert_eq!(result.is_ok(), good, "{now}: {:?}", result.err());
    }
}

#[test]
fn uids_must_be_one_string() {
    let of = |uids: &[Result<&str, ()>]| {
        let uids = uids.iter().map(|u| u.map(str::to_string)).collect();
        let name = SubjectName { common_name: "u".into(), organizations: vec![], uids };
        user_of(&name, b"").map(|u| u.unwrap().uid.to_string()).map_err(|e| e.to_string())
    };
    assert_eq!(of(&[]), Ok(String::new()));
    assert_eq!(of(&[Ok("x")]), Ok("x".into()));
    assert_eq!(of(&[Ok("")]), Err("UID cannot be an empty string".into()));
    assert_eq!(of(&[Err(())]), Err("unable to parse UID into a string".into()));
    assert_eq!(of(&[Ok("x"), Ok("y")]), Err("expected 1 UID, but found multiple: [x y]".into()));
}

#[test]
fn bundles_need_a_certificate() {
    assert_eq!(CaPool::from_pem(b"").unwrap_err(), "data does not contain any valid RSA or ECDSA certificates");
    let ca = root(ca_params("ca"));
    let two = format!("# comment\n{}\n{}", ca.pem, root(ca_params("ca2")).pem);
    assert_eq!(CaPool::from_pem(two.as_bytes()).unwrap().subjects().count(), 2);
}
