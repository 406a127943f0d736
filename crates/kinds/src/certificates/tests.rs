use crate::tests::kind;
use kubelith_codec::base64;
use kubelith_meta::Value;
use kubelith_rules::Request;
use kubelith_rules::testing::{env, value};
use rcgen::{CertificateParams, IsCa, KeyPair};

fn errors(plural: &str, object: &Value) -> Vec<String> {
    let request = Request { group: "certificates.k8s.io", version: "v1", subresource: "", env: env() };
    let rules = kind("certificates.k8s.io", plural).rules;
    (rules.create)(request, object).iter().map(ToString::to_string).collect()
}

fn update_errors(plural: &str, subresource: &str, new: &Value, old: &Value) -> Vec<String> {
    let request = Request { group: "certificates.k8s.io", version: "v1", subresource, env: env() };
    let rules = kind("certificates.k8s.io", plural).rules;
    let [new, old] = [new, old].map(|object| with(object, &["metadata", "resourceVersion"], "\"1\""));
    (rules.update)(request, &new, &old).iter().map(ToString::to_string).collect()
}

fn signing_request() -> Value {
    let key = KeyPair::generate().unwrap();
    let pem = CertificateParams::default().serialize_request(&key).unwrap().pem().unwrap();
    let mut object =
        value(r#"{"metadata":{"name":"a"},"spec":{"signerName":"example.com/a.b","usages":["client auth"]}}"#);
    object.set_at(&["spec", "request"], base64::encode(pem.as_bytes()).into());
    object
}

fn with(object: &Value, path: &[&str], json: &str) -> Value {
    let mut object = object.clone();
    object.set_at(path, value(json));
    object
}

fn certificate(is_ca: bool) -> String {
    let mut params = CertificateParams::default();
    if is_ca {
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    }
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
}

const CSR: &str = "certificatesigningrequests";

#[test]
fn a_request_is_checked_whole() {
    let good = signing_request();
    assert_eq!(errors(CSR, &good), [""; 0]);
    let bad = value(
        r#"{"metadata":{"name":"a"},"spec":{"request":"Z2FyYmFnZQ==","signerName":"x","usages":["fly","any","any"],
            "expirationSeconds":599}}"#,
    );
    let usages = "\"any\", \"cert sign\", \"client auth\", \"code signing\", \"content commitment\", \"crl sign\", \"data \
                  encipherment\", \"decipher only\", \"digital signature\", \"email protection\", \"encipher only\", \
                  \"ipsec end system\", \"ipsec tunnel\", \"ipsec user\", \"key agreement\", \"key encipherment\", \
                  \"microsoft sgc\", \"netscape sgc\", \"ocsp signing\", \"s/mime\", \"server auth\", \"signing\", \
                  \"timestamping\"";
    assert_eq!(
        errors(CSR, &bad),
        [
            "spec.request: Invalid value: \"Z2FyYmFnZQ==\": PEM block type must be CERTIFICATE REQUEST",
            &format!("spec.usages[0]: Unsupported value: \"fly\": supported values: {usages}"),
            "spec.usages[2]: Duplicate value: \"any\"",
            "spec.signerName: Invalid value: \"x\": must be a fully qualified domain and path of the form \
             'example.com/signer-name'",
            "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)",
        ]
    );
    assert_eq!(
        errors(CSR, &value(r#"{"metadata":{"name":"a"}}"#)),
        [
            "spec.request: Invalid value: null: PEM block type must be CERTIFICATE REQUEST",
            "spec.usages: Required value",
            "spec.signerName: Required value",
        ]
    );
}

#[test]
fn names_of_signers() {
    let cases: [(&str, &[&str]); 5] = [
        ("a.b/c", &[]),
        ("kubernetes.io/legacy-unknown", &["the legacy signerName is not allowed via this API version"]),
        ("a/c", &["should be a domain with at least two segments separated by dots"]),
        ("a.b/c/d", &["must be a fully qualified domain and path of the form 'example.com/signer-name'"]),
        (
            "A.b/",
            &[
                "validating label \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
                 '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used \
                 for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                "validating label \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                 characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
                 regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
            ],
        ),
    ];
    for (name, expected) in cases {
        let mut object = signing_request();
        object.set_at(&["spec", "signerName"], name.into());
        let found = errors(CSR, &object);
        assert_eq!(found.len(), expected.len(), "{name}: {found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.ends_with(expected), "{found}");
        }
    }
}

#[test]
fn who_may_write_what() {
    let old = signing_request();
    let conditions = ["status", "conditions"];
    let approved = with(&old, &conditions, r#"[{"type":"Approved","status":"True"}]"#);
    let failed = with(&old, &conditions, r#"[{"type":"Failed","status":"True"}]"#);
    let both = with(
        &old,
        &conditions,
        r#"[{"type":"Approved","status":"True"},{"type":"Denied","status":"False"},{"type":"Denied"},{}]"#,
    );
    let add = "status.conditions: Forbidden: updates may not add a condition of type \"Approved\"";
    let remove = "status.conditions: Forbidden: updates may not remove a condition of type \"Approved\"";
    let exclusive =
        "status.conditions: Invalid value: \"Denied\": Approved and Denied conditions are mutually exclusive";
    let cases: [(&str, &Value, &Value, &[&str]); 7] = [
        ("", &approved, &old, &[add]),
        ("status", &approved, &old, &[add]),
        ("approval", &approved, &old, &[]),
        ("approval", &old, &approved, &[remove]),
        ("status", &failed, &old, &[]),
        (
            "approval",
            &both,
            &old,
            &[
                "status.conditions[1].status: Unsupported value: \"False\": supported values: \"True\"",
                exclusive,
                "status.conditions[2].status: Required value",
                exclusive,
                "status.conditions[2].type: Duplicate value: \"Denied\"",
                "status.conditions[3].type: Required value",
                "status.conditions[3].status: Required value",
            ],
        ),
        // What is stored may stay as it is.
        (
            "approval",
            &both,
            &both,
            &[
                "status.conditions[1].status: Unsupported value: \"False\": supported values: \"True\"",
                "status.conditions[2].status: Required value",
                "status.conditions[3].status: Required value",
            ],
        ),
    ];
    for (subresource, new, old, expected) in cases {
        assert_eq!(update_errors(CSR, subresource, new, old), expected, "{subresource}");
    }
}

#[test]
fn certificates_of_requests() {
    let old = signing_request();
    let path = ["status", "certificate"];
    let holding = |text: &str| {
        let mut object = old.clone();
        object.set_at(&path, base64::encode(text.as_bytes()).into());
        object
    };
    let (one, other) = (holding(&certificate(false)), holding(&certificate(true)));
    assert_eq!(update_errors(CSR, "status", &one, &old), [""; 0]);
    let prefix = "status.certificate: ";
    let refused = |text: &str| update_errors(CSR, "status", &holding(text), &old).concat();
    let shown = "status.certificate: Invalid value: \"<certificate data>\": ";
    for (text, why) in [
        ("x", "must contain at least one CERTIFICATE PEM block"),
        ("-----BEGIN A-----\nAAAA\n-----END A-----\n", "only CERTIFICATE PEM blocks are allowed, found \"A\""),
        (
            "-----BEGIN CERTIFICATE-----\na: b\n\nAAAA\n-----END CERTIFICATE-----\n",
            "no PEM block headers are permitted",
        ),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "x509: malformed certificate"),
        (
            "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
            "found CERTIFICATE PEM block containing 0 certificates",
        ),
    ] {
        assert_eq!(refused(text), format!("{shown}{why}"));
    }
    let set = format!("{prefix}Forbidden: updates may not set certificate content");
    assert_eq!(update_errors(CSR, "approval", &one, &old), [set]);
    let modify = format!("{prefix}Forbidden: updates may not modify existing certificate content");
    assert_eq!(update_errors(CSR, "status", &other, &one), [modify]);
}

#[test]
fn bundles_hold_authorities() {
    let authority = certificate(true);
    let bundle = |name: &str, signer: &str, text: &str| {
        let mut object = value(r#"{"metadata":{},"spec":{}}"#);
        object.set_at(&["metadata", "name"], name.into());
        object.set_at(&["spec", "signerName"], signer.into());
        object.set_at(&["spec", "trustBundle"], text.into());
        object
    };
    let found = |object: &Value| errors("clustertrustbundles", object).concat();
    assert_eq!(found(&bundle("a", "", &authority)), "");
    assert_eq!(found(&bundle("a.b:c:d", "a.b/c", &authority)), "");
    let shown = "spec.trustBundle: Invalid value: \"<value omitted>\": ";
    for (text, why) in [
        ("", "at least one trust anchor must be provided"),
        ("-----BEGIN A-----\nAAAA\n-----END A-----\n", "entry 0 has bad block type: A"),
        (&certificate(false), "entry 0 does not have the CA bit set"),
        (&format!("{authority}{authority}"), "duplicate trust anchor (indices [0 1])"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "entry 0 does not parse as X.509"),
    ] {
        assert_eq!(found(&bundle("a", "", text)), format!("{shown}{why}"));
    }
    assert_eq!(
        found(&bundle("a", "a.b/c", &authority)),
        "metadata.name: Invalid value: \"a\": ClusterTrustBundle for signerName a.b/c must be named with prefix a.b:c:"
    );
    assert_eq!(
        found(&bundle("a:b", "", &authority)),
        "metadata.name: Invalid value: \"a:b\": ClusterTrustBundle without signer name must not have \":\" in its name"
    );
    let (old, new) = (bundle("a", "", "gone bad"), bundle("a", "", "gone bad"));
    assert_eq!(update_errors("clustertrustbundles", "", &new, &old), [""; 0], "what is stored is not read again");
}

fn pod_request(key: &KeyPair) -> Value {
    let stub = CertificateParams::default().serialize_request(key).unwrap();
    let mut object = value(
        r#"{"metadata":{"name":"a","namespace":"n"},"spec":{"signerName":"a.b/c","podName":"p","podUID":"1",
            "serviceAccountName":"s","serviceAccountUID":"2","nodeName":"n","nodeUID":"3",
            "maxExpirationSeconds":86400}}"#,
    );
    object.set_at(&["spec", "stubPKCS10Request"], base64::encode(stub.der()).into());
    object
}

#[test]
fn pods_ask_for_certificates() {
    const PLURAL: &str = "podcertificaterequests";
    let key = KeyPair::generate().unwrap();
    let good = pod_request(&key);
    assert_eq!(errors(PLURAL, &good), [""; 0]);
    let bad = with(&good, &["spec", "maxExpirationSeconds"], "3599");
    assert_eq!(
        errors(PLURAL, &bad),
        ["spec.maxExpirationSeconds: Invalid value: 3599: must be in the range [3600, 7862400]"]
    );
    let bad = with(&good, &["spec", "stubPKCS10Request"], r#""AAAA""#);
    assert_eq!(errors(PLURAL, &bad), ["spec.stubPKCS10Request: Invalid value: must be a valid PKCS#10 CSR"]);
    let bad = with(&good, &["spec", "pkixPublicKey"], r#""AAAA""#);
    assert_eq!(
        errors(PLURAL, &bad),
        ["spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"]
    );
    let bad = with(&good, &["spec", "unverifiedUserAnnotations"], r#"{"a":"b"}"#);
    assert_eq!(
        errors(PLURAL, &bad),
        [
            "spec.unverifiedUserAnnotations: Invalid value: \"a\": must be a domain-prefixed key (such as \"acme.io/foo\")"
        ]
    );
    let condition = |kind: &str| {
        let text = format!(
            r#"[{{"type":"{kind}","status":"True","reason":"R","message":"","lastTransitionTime":"2020-01-01T00:00:00Z"}}]"#
        );
        with(&good, &["status", "conditions"], &text)
    };
    assert_eq!(update_errors(PLURAL, "status", &condition("Denied"), &good), [""; 0]);
    assert_eq!(
        update_errors(PLURAL, "status", &condition("Failed"), &condition("Denied")),
        ["status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed"]
    );
    assert_eq!(
        update_errors(PLURAL, "status", &condition("Other"), &good),
        [
            "status.conditions.[0].type: Unsupported value: \"Other\": supported values: \"Issued\", \"Denied\", \"Failed\""
        ]
    );
    assert_eq!(
        update_errors(PLURAL, "status", &condition("Issued"), &good),
        [
            "status.certificateChain: Invalid value: \"\": issued certificate chain must contain at least one certificate"
        ]
    );
    let mut issued = condition("Issued");
    let leaf = CertificateParams::default().self_signed(&key).unwrap();
    issued.set_at(&["status", "certificateChain"], leaf.pem().into());
    assert_eq!(
        update_errors(PLURAL, "status", &issued, &good),
        [
            "status.notBefore: Required value: must be present and consistent with the issued certificate",
            "status.notAfter: Required value: must be present and consistent with the issued certificate",
            "status.beginRefreshAt: Required value: must be present and in the range [notbefore+10min, notafter-10min]",
        ]
    );
    let changed = with(&good, &["spec", "podName"], r#""q""#);
    let found = update_errors(PLURAL, "", &changed, &good).concat();
    assert!(found.starts_with(r#"spec: Invalid value: {"SignerName":"a.b/c","PodName":"q","PodUID":"1","#), "{found}");
    assert!(found.ends_with("field is immutable"));
}
