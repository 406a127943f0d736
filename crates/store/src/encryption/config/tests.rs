//! What the reference says of wrong configurations.

use super::*;

fn parse(yaml: &str) -> Result<EncryptionConfiguration, String> {
    let head = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\n";
    EncryptionConfiguration::parse(format!("{head}{yaml}").as_bytes())
}

/// One resource list with these resources and providers, both as flow YAML.
fn problems(resources: &str, providers: &str, mode: ReloadMode) -> Vec<String> {
    let yaml = format!("resources:\n- resources: {resources}\n  providers: {providers}\n");
    parse(&yaml).unwrap().validate(mode).iter().map(|error| error.to_string()).collect()
}

const KEY: &str = "{name: k, secret: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=}";

#[test]
fn a_full_file_is_read() {
    let config = parse(&format!(
        "resources:\n- resources: [secrets, '*.apps']\n  providers:\n  - aesgcm: {{keys: [{KEY}]}}\n  - secretbox: \
         {{keys: [{KEY}]}}\n  - kms: {{apiVersion: v2, name: p, endpoint: 'unix:///s', timeout: 5s}}\n  - kms: {{name: \
         q, endpoint: 'unix:///s'}}\n  - identity: {{}}\n"
    ))
    .unwrap();
    let [resources] = &config.resources[..] else { panic!("{config:?}") };
    assert_eq!(resources.resources, ["secrets", "*.apps"]);
    let providers = &resources.providers;
    assert_eq!(providers[0].aesgcm.as_ref().unwrap()[0].name, "k");
    assert!(providers[4].identity && providers[4].kms.is_none());
    let (v2, v1) = (providers[2].kms.as_ref().unwrap(), providers[3].kms.as_ref().unwrap());
    assert_eq!((v2.timeout, v2.cache_size), (Duration::from_secs(5), None));
    assert_eq!((v1.api_version.as_str(), v1.timeout, v1.cache_size), ("v1", Duration::from_secs(3), Some(1000)));
    assert!(!format!("{config:?}").contains("MDEy"), "keys are not printed");
    let errors = config.validate(ReloadMode::Once);
    assert!(errors.is_empty(), "{errors}");
}

#[test]
fn decoding_is_strict() {
    let cases = [
        ("resources: []\nfoo: 1\n", "strict decoding error: unknown field \"foo\""),
        (
            "resources:\n- resources: [a]\n  providers:\n  - aesgcm: {keys: [{name: k, secrets: x}]}\n",
            "strict decoding error: unknown field \"resources[0].providers[0].aesgcm.keys[0].secrets\"",
        ),
        (
            "resources:\n- resources: [a]\n  providers:\n  - identity: {a: b}\n    kmsv2: {}\n",
            "strict decoding error: unknown field \"resources[0].providers[0].kmsv2\", unknown field \
             \"resources[0].providers[0].identity.a\"",
        ),
    ];
    for (yaml, error) in cases {
        assert_eq!(parse(yaml).unwrap_err(), error);
    }
    assert!(parse("resources: 3\n").is_err());
    let kind = |text: &str| EncryptionConfiguration::parse(text.as_bytes()).unwrap_err();
    assert_eq!(kind("a: b"), "Object 'Kind' is missing in the file");
    assert_eq!(kind("kind: X\napiVersion: v1"), "no kind \"X\" is registered for version \"v1\"");
}

#[test]
fn empty_lists_are_required() {
    let errors = |yaml: &str| parse(yaml).unwrap().validate(ReloadMode::Once).to_string();
    assert_eq!(errors("resources: []"), "resources: Required value: at least one resources is required");
    assert_eq!(
        errors("resources: [{}]"),
        "[resources[0].resources: Required value: at least one resources[0].resources is required, \
         resources[0].providers: Required value: at least one resources[0].providers is required]"
    );
}

#[test]
fn resources() {
    let overlap = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as \
                   they will be masked";
    let cases: [(&str, Vec<String>); 12] = [
        ("[secrets, configmaps, deployments.apps, '*.batch']", vec![]),
        ("[secrets, '*.*']", vec![format!(r#"resources[0].resources: Invalid value: ["secrets","*.*"]: {overlap}"#)]),
        ("[secrets, '*.']", vec![format!(r#"resources[0].resources: Invalid value: ["secrets","*."]: {overlap}"#)]),
        (
            "[a.apps, '*.apps']",
            vec![format!(r#"resources[0].resources: Invalid value: ["a.apps","*.apps"]: {overlap}"#)],
        ),
        (
            "[secrets, secrets]",
            vec![
                r#"resources[0].resources: Invalid value: ["secrets","secrets"]: the same resource cannot be specified multiple times"#
                    .into(),
            ],
        ),
        ("[Secrets]", vec![invalid(0, "Secrets", "resource name should not contain capital letters")]),
        (
            "['*']",
            vec![invalid(
                0,
                "*",
                "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources",
            )],
        ),
        (
            "[serviceipallocations]",
            vec![invalid(
                0,
                "serviceipallocations",
                "resources which do not have REST API/s cannot be encrypted",
            )],
        ),
        (
            "[events.events.k8s.io]",
            vec![invalid(
                0,
                "events.events.k8s.io",
                "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in \
                 the config file",
            )],
        ),
        (
            "['*.extensions']",
            vec![invalid(
                0,
                "*.extensions",
                "'extensions' group has been removed and cannot be used for encryption",
            )],
        ),
        (
            "[secrets, 'secrets.*']",
            vec![invalid(1, "secrets.*", "encrypting the same resource across groups is not supported")],
        ),
        ("['*.']", vec![]),
    ];
    for (resources, expected) in cases {
        assert_eq!(problems(resources, "[{identity: {}}]", ReloadMode::Once), expected, "{resources}");
    }
}

fn invalid(index: usize, value: &str, text: &str) -> String {
    format!("resources[0].resources[{index}]: Invalid value: {value:?}: {text}")
}

#[test]
fn providers_and_keys() {
    let provider = "resources[0].providers[0]";
    let cases = [
        (
            "[{}]",
            format!(
                "{provider}: Invalid value: {{\"AESGCM\":null,\"AESCBC\":null,\"Secretbox\":null,\"Identity\":null,\
                 \"KMS\":null}}: provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, \
                 Secretbox, Identity"
            ),
        ),
        (
            "[{identity: {}, secretbox: {keys: [{name: k, secret: YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXowMTIzNDU=}]}}]",
            format!(
                "{provider}: Invalid value: {{\"AESGCM\":null,\"AESCBC\":null,\"Secretbox\":{{\"Keys\":[{{\"Name\":\"k\"\
                 ,\"Secret\":\"REDACTED\"}}]}},\"Identity\":{{}},\"KMS\":null}}: more than one provider specified in a \
                 single element, should split into different list elements"
            ),
        ),
        ("[{aescbc: {}}]", format!("{provider}.aescbc.keys: Required value: at least one keys is required")),
        (
            "[{aesgcm: {keys: [{}]}}]",
            format!(
                "[{provider}.aesgcm.keys[0].name: Required value: name is a mandatory field for a key, \
                 {provider}.aesgcm.keys[0].secret: Required value: secret is a mandatory field for a key]"
            ),
        ),
        (
            "[{aesgcm: {keys: [{name: k, secret: '*'}]}}]",
            format!("{provider}.aesgcm.keys[0].secret: Invalid value: \"REDACTED\": secrets must be base64 encoded"),
        ),
        (
            "[{aescbc: {keys: [{name: k, secret: YQ==}]}}]",
            format!(
                "{provider}.aescbc.keys[0].secret: Invalid value: \"REDACTED\": secret is not of the expected length, \
                 got 1, expected one of [16 24 32]"
            ),
        ),
        (
            "[{secretbox: {keys: [{name: k, secret: MDEyMzQ1Njc4OTAxMjM0NQ==}]}}]",
            format!(
                "{provider}.secretbox.keys[0].secret: Invalid value: \"REDACTED\": secret is not of the expected \
                 length, got 16, expected one of [32]"
            ),
        ),
    ];
    for (providers, expected) in cases {
        let yaml = format!("resources:\n- resources: [secrets]\n  providers: {providers}\n");
        assert_eq!(parse(&yaml).unwrap().validate(ReloadMode::Once).to_string(), expected, "{providers}");
    }
}

#[test]
fn kms() {
    let path = "resources[0].providers[0].kms";
    let cases = [
        ("{apiVersion: v2, name: p, endpoint: 'unix:///s'}", vec![]),
        (
            "{apiVersion: v2, endpoint: 'unix:///s'}",
            vec![format!("{path}.name: Required value: name is a mandatory field for a provider")],
        ),
        (
            "{apiVersion: v2, name: 'a:b', endpoint: 'unix:///s'}",
            vec![format!("{path}.name: Invalid value: \"a:b\": invalid KMS provider name a:b, must not contain ':'")],
        ),
        (
            "{apiVersion: v2, name: p, endpoint: 'http://s', timeout: 0s}",
            vec![
                format!("{path}.timeout: Invalid value: \"0s\": timeout should be a positive value"),
                format!(
                    "{path}.endpoint: Invalid value: \"http://s\": unsupported scheme \"http\" for KMS provider, only \
                     unix is supported"
                ),
            ],
        ),
        (
            "{apiVersion: v2, name: p, cachesize: 7}",
            vec![
                format!("{path}.endpoint: Invalid value: \"\": endpoint is a mandatory field for a kms"),
                format!("{path}.cachesize: Invalid value: 7: cachesize is not supported in v2"),
            ],
        ),
        (
            "{apiVersion: v3, name: p, endpoint: 'unix:///s'}",
            vec![format!(
                "{path}.apiVersion: Invalid value: \"v3\": unsupported apiVersion apiVersion for KMS provider, only v1 \
                 and v2 are supported"
            )],
        ),
    ];
    for (kms, expected) in cases {
        assert_eq!(problems("[secrets]", &format!("[{{kms: {kms}}}]"), ReloadMode::Once), expected, "{kms}");
    }
    let twice = |version: &str, mode| {
        let one = format!("{{kms: {{apiVersion: {version}, name: p, endpoint: 'unix:///s'}}}}");
        problems("[secrets]", &format!("[{one}, {one}]"), mode)
    };
    let duplicate = "resources[0].providers[1].kms.name: Invalid value: \"p\": duplicate KMS provider name p, names must \
                     be unique";
    assert_eq!(twice("v2", ReloadMode::Once), [duplicate]);
    assert_eq!(twice("v1", ReloadMode::Once), [""; 0]);
    assert_eq!(twice("v1", ReloadMode::OnChange), [duplicate]);
}
