use super::*;
use crate::flags::parse;
use kubelith_schema::Encoding;

fn options(line: &str) -> Result<Options, String> {
    let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    Options::from_flags(&parse(&args).unwrap()).map_err(|e| e.to_string())
}

#[test]
fn no_flag_is_needed() {
    let o = options("").unwrap();
    assert_eq!(o.storage.backend, StorageBackend::Embedded);
    assert_eq!(o.serving.bind.port, 6443);
    assert_eq!(o.network.kubernetes_service_address().to_string(), "10.0.0.1");
    assert!(matches!(&o.authorization, AuthorizationOptions::Modes(m) if m.modes == ["Node", "RBAC"]));
    assert!(o.authentication.anonymous && o.serving.http2);
    assert_eq!(o.authentication.audiences, ["https://kubernetes.default.svc"]);
    let reference = options("--etcd-servers=http://x:1").unwrap();
    assert_eq!(reference.storage.backend, StorageBackend::Etcd3);
    assert!(reference.authorization.allows_always());
    assert!(options("--authorization-mode=AlwaysAllow").unwrap().authorization.allows_always());
}

#[test]
fn without_http2_any_suites_will_do() {
    let suites = "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384";
    assert!(!options(&format!("{suites} --disable-http2-serving")).unwrap().serving.http2);
    assert!(options(&format!("{suites} --tls-min-version=VersionTLS13")).unwrap().serving.http2);
}

/// The reference's messages, where it has the rule.
#[test]
fn errors() {
    for (line, want) in [
        ("--emulated-version=kube=1.37", "emulation version 1.37 is not between [1.33, 1.36.0]"),
        (
            "--emulated-version=kube=1.30",
            "[emulation version 1.30 is not between [1.33, 1.36.0], minCompatibilityVersion version 1.33 is not between [1.33, 1.30]]",
        ),
        ("--emulated-version=foo=1.35", "component not registered: foo"),
        ("--emulated-version=kube=1.35.1", "patch version not allowed, got: kube=1.35.1"),
        ("--emulated-version=kube=x", "could not parse \"x\" as version"),
        ("--emulated-version=kube=1.35,kube=1.34", "duplicate version flag, kube=1.35 and kube=1.34"),
        (
            "--emulated-version=1.33 --min-compatibility-version=kube=1.35",
            "minCompatibilityVersion version 1.35 is not between [1.33, 1.33]",
        ),
        (
            "--emulation-forward-compatible",
            "ServerRunOptions.EmulationForwardCompatible cannot be set to true if the emulation version is the same as the binary version",
        ),
        (
            "--coordinated-leadership-renew-deadline=20s",
            "--coordinated-leadership-lease-duration must be greater than --coordinated-leadership-renew-deadline",
        ),
        (
            "--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            "error configuring http2: http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher (need \
             at least one of TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)",
        ),
        ("--vmodule=api=3 --logging-format=json", "vmodule: Forbidden: Only supported for text log format"),
        (
            "--log-json-split-stream --log-text-info-buffer-size=1Ki",
            "[options.text.infoBufferSize: Forbidden: Feature LoggingAlphaOptions is disabled, options.json.splitStream: Forbidden: \
             Feature LoggingAlphaOptions is disabled]",
        ),
        (
            "--show-hidden-metrics-for-version=1.20",
            "metrics.showHiddenMetricsForVersion: Invalid value: \"1.20\": must be omitted or have the value '1.35'; only the \
             previous minor version is allowed",
        ),
        (
            "--tracing-config-file=/nope",
            "failed to read tracing config: unable to read tracing configuration from \"/nope\": open /nope: no such file or \
             directory",
        ),
        (
            "--allow-metric-labels-manifest=/nope",
            "metrics.allowListMappingManifest: Invalid value: \"/nope\": failed to read allow list manifest: open /nope: no such \
             file or directory",
        ),
        (
            "--audit-log-path=- --audit-log-mode=batch --audit-log-batch-throttle-enable --audit-log-batch-throttle-burst=0",
            "invalid audit batch log throttle QPS 0, must be a positive number",
        ),
        ("--secure-port=0", "--secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0"),
        ("--goaway-chance=0.5", "--goaway-chance can not be less than 0 or greater than 0.02"),
        ("--request-timeout=-1s", "--request-timeout can not be negative value"),
        ("--livez-grace-period=-1s", "--livez-grace-period can not be a negative value"),
        ("--max-requests-inflight=-1", "--max-requests-inflight can not be negative value"),
        ("--storage-backend=etcd3", "--etcd-servers must be specified"),
        (
            "--storage-media-type=x",
            "--storage-media-type \"x\" invalid, allowed values: application/json, application/vnd.kubernetes.protobuf, application/yaml",
        ),
        ("--service-cluster-ip-range=x", "service-cluster-ip-range[0] is not a valid cidr"),
        ("--service-cluster-ip-range=10.0.0.0/24,x", "service-cluster-ip-range[1] is not an ip net"),
        (
            "--service-cluster-ip-range=10.0.0.0/30",
            "error determining service IP ranges for primary service cidr: the service cluster IP range must be at least 8 IP addresses",
        ),
        (
            "--service-cluster-ip-range=10.0.0.0/8 --emulated-version=1.33",
            "specified --service-cluster-ip-range is too large; for 32-bit addresses, the mask must be >= 12",
        ),
        ("--apiserver-count=0", "--apiserver-count should be a positive number, but value '0' provided"),
        (
            "--runtime-config=api/all=false,api/v1=true",
            "--runtime-config=api/all=false conflicts with --enable-priority-and-fairness=true",
        ),
        ("--authorization-mode=X", "authorization-mode \"X\" is not a valid mode"),
        ("--authorization-mode=RBAC,RBAC", "authorization-mode [\"RBAC\" \"RBAC\"] has mode specified more than once"),
        ("--authorization-mode=ABAC", "authorization-mode ABAC's authorization policy file not passed"),
        (
            "--authorization-config=x --authorization-mode=RBAC",
            "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined",
        ),
        ("--service-account-issuer=a --service-account-issuer=a", "service-account-issuer \"a\" is already specified"),
        ("--service-account-jwks-uri=http://x", "service-account-jwks-uri requires https scheme, parsed as: http://x"),
        (
            "--service-account-max-token-expiration=1m",
            "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds",
        ),
        (
            "--oidc-issuer-url=https://x",
            "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set",
        ),
        (
            "--authentication-config=x --oidc-client-id=y",
            "authentication-config file and oidc-* flags are mutually exclusive",
        ),
        (
            "--requestheader-uid-headers=X",
            "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation will not work",
        ),
        (
            "--audit-log-path=x --audit-log-mode=x",
            "invalid audit log mode x, allowed modes are \"batch,blocking,blocking-strict\"",
        ),
        ("--audit-log-path=x --audit-log-format=x", "invalid audit log format x, allowed formats are \"legacy,json\""),
        ("--audit-log-path=x --audit-log-maxage=-1", "--audit-log-maxage -1 can't be a negative number"),
        (
            "--audit-webhook-config-file=x --audit-webhook-batch-max-size=0",
            "invalid audit batch webhook max batch size 0, must be a positive number",
        ),
        (
            "--audit-log-path=x --audit-log-truncate-enabled --audit-log-truncate-max-event-size=0",
            "invalid audit truncate log max event size 0, must be a positive number",
        ),
        (
            "--admission-control=Priority --enable-admission-plugins=Priority",
            "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive",
        ),
        ("--admission-control=Odd", "admission-control plugin \"Odd\" is unknown"),
        (
            "--enable-admission-plugins=Priority,Odd --disable-admission-plugins=MutatingAdmissionPolicy",
            "enable-admission-plugins plugin \"Odd\" is unknown",
        ),
        (
            "--admission-control-config-file=/nowhere",
            "failed to apply admission: failed to read plugin config: unable to read admission control configuration from \"/nowhere\" [open /nowhere: no such file or directory]",
        ),
        (
            "--egress-selector-config-file=/nowhere",
            "failed to read egress selector config: unable to read egress selector configuration from \"/nowhere\" [open /nowhere: no such file or directory]",
        ),
        (
            "--service-account-signing-endpoint=/x --service-account-key-file=/y",
            "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with `--service-account-signing-endpoint` (They are mutually exclusive)",
        ),
        (
            "--service-account-signing-endpoint=@a..b",
            "invalid value \"@a..b\" passed for `--service-account-signing-endpoint`, when prefixed with @ must be a valid abstract socket name",
        ),
        (
            "--feature-gates=UnknownVersionInteroperabilityProxy=false --peer-ca-file=x --peer-advertise-ip=1.2.3.4",
            "[--peer-ca-file requires UnknownVersionInteroperabilityProxy feature to be turned on, --peer-advertise-ip requires UnknownVersionInteroperabilityProxy feature to be turned on]",
        ),
        (
            "--emulated-version=1.35 --feature-gates=AtomicFIFO=true",
            "cannot set feature gate AtomicFIFO to true, feature is PreAlpha at emulated version 1.35, min compatibility version 1.34",
        ),
        ("--logging-format=x", "format: Invalid value: \"x\": Unsupported log format"),
        (
            "--kubernetes-service-node-port=70000",
            "[--kubernetes-service-node-port 70000 must be between 0 and 65535, inclusive. If 0, the Kubernetes master service \
             will be of type ClusterIP, kubernetes service node port range 30000-32767 doesn't contain 70000]",
        ),
        ("--kubernetes-service-node-port=1", "kubernetes service node port range 30000-32767 doesn't contain 1"),
        ("--advertise-address=::1", "service IP family \"10.0.0.0/24\" must match public address family \"::1\""),
        ("--tls-min-version=x", "unknown tls version \"x\""),
        ("--feature-gates=Nope=true", "unrecognized feature gate: Nope"),
        (
            "--secure-port=0 --goaway-chance=1",
            "[--goaway-chance can not be less than 0 or greater than 0.02, --secure-port 0 must be between 1 and 65535, inclusive. It cannot be turned off with 0]",
        ),
    ] {
        assert_eq!(options(line).unwrap_err(), want, "{line}");
    }
    assert!(options("--cors-allowed-origins=a").unwrap_err().contains("does not pin to start/end"));
    assert!(options("--cors-allowed-origins=//a$").is_ok());
}

#[test]
fn cidrs() {
    let cidr = network::Cidr::parse("10.1.2.3/16").unwrap();
    assert_eq!((cidr.to_string(), cidr.nth(1).to_string()), ("10.1.0.0/16".into(), "10.1.0.1".into()));
    assert_eq!(network::Cidr::parse("fd00::5/108").unwrap().nth(1).to_string(), "fd00::1");
    assert_eq!(network::Cidr::parse("0.0.0.0/0").unwrap().to_string(), "0.0.0.0/0");
    for bad in ["", "10.0.0.0", "10.0.0.0/33", "x/1"] {
        assert_eq!(network::Cidr::parse(bad), None);
    }
}

#[test]
fn an_emulated_release_moves_the_oldest_compatible_one() {
    for (line, emulation, oldest) in
        [("", 36, 35), ("--emulated-version=kube=1.35", 35, 34), ("--emulated-version=1.33", 33, 33)]
    {
        let o = options(line).unwrap().compatibility;
        assert_eq!((o.emulation.minor, o.min_compatibility.minor), (emulation, oldest), "{line}");
    }
    let o = options("--emulated-version=1.35 --min-compatibility-version=1.33 --emulation-forward-compatible").unwrap();
    assert_eq!(o.compatibility.min_compatibility.minor, 33);
    let o = options("--vmodule=feed=6,store/*=3").unwrap();
    assert_eq!(o.logging.modules, [("feed".to_owned(), 6), ("store/*".to_owned(), 3)]);
}

#[test]
fn admission_and_storage() {
    let o = options("--admission-control=Priority,AlwaysAdmit").unwrap();
    assert_eq!(o.admission.switches.enabled, ["Priority", "AlwaysAdmit"]);
    assert!(o.admission.switches.disabled.iter().any(|name| name == "NamespaceLifecycle"));
    assert!(!o.admission.switches.disabled.iter().any(|name| name == "Priority"));
    for (flag, encoding) in [
        ("", Encoding::Protobuf),
        ("--storage-media-type=application/json", Encoding::Json),
        ("--storage-media-type=application/yaml", Encoding::Json),
        ("--storage-media-type=", Encoding::Json),
    ] {
        assert_eq!(options(flag).unwrap().storage.encoding, encoding, "{flag}");
    }
    let o = options(
        "--emulated-version=1.34 --runtime-config-emulation-forward-compatible --runtime-config=a/v1=true,b/v1=false",
    );
    let emulation = o.map(|o| o.emulation());
    assert!(emulation.is_ok_and(|e| e.minor == 34 && !e.forward && e.explicit == ["a/v1"]));
}

#[test]
fn only_a_store_of_our_own_has_objects_as_they_are_served() {
    let rules = |flags: &str| options(flags).unwrap().served_by();
    for foreign in [
        "--etcd-servers=http://127.0.0.1:2379",
        "--storage-backend=memory --etcd-servers-overrides=/secrets#http://127.0.0.1:2379",
        "--storage-media-type=application/vnd.kubernetes.protobuf",
        "--storage-media-type=application/json",
    ] {
        assert_eq!(rules(foreign), None, "{foreign}");
    }
    let usual = rules("");
    assert!(usual.is_some());
    assert_eq!(rules("--storage-backend=memory"), usual);
    // Defaults and what is served depend on these.
    assert_ne!(rules("--emulated-version=1.35"), usual);
    assert_ne!(rules("--feature-gates=AllAlpha=true"), usual);
}

#[test]
fn apis_have_old_names() {
    for (given, want) in [
        ("api/v1", "/v1="),
        ("v1=true", "/v1=true"),
        ("v1/pods=false", "/v1=false"),
        ("api/v1/pods=false", "/v1=false"),
        ("api/legacy=true,", ""),
        ("api/legacy=false,apps/v1=true", "apps/v1=true"),
        ("v1beta1=true", "v1beta1=true"),
    ] {
        let read = options(&format!("--runtime-config={given}")).unwrap().storage.runtime_config;
        let read: Vec<String> = read.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(read.join(","), want, "{given}");
    }
}
