use super::kind::{NamedCertKey, PortRange};
use super::*;
use std::collections::BTreeSet;

fn args(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

fn flags(line: &str) -> Flags {
    parse(&args(line)).unwrap()
}

fn error(line: &str) -> String {
    parse(&args(line)).unwrap_err().to_string()
}

#[test]
fn the_table_is_sound() {
    let mut names = BTreeSet::new();
    for flag in SECTIONS.iter().flat_map(|s| s.flags) {
        assert!(names.insert(flag.name), "--{} twice", flag.name);
        assert!(flag.default.is_empty() || flag.kind.read(flag.default).is_ok(), "--{}: bad default", flag.name);
        assert!(flag.help.ends_with(['.', '…']), "--{}: {}", flag.name, flag.help);
    }
    assert!(names.len() > 170);
}

#[test]
fn ways_to_write_flags() {
    let f = flags("--secure-port=1 --secure-port 2 --anonymous-auth=false --profiling --v 3 --request_timeout=5s");
    assert_eq!((f.int("secure-port"), f.bool("anonymous-auth"), f.int("v")), (2, false, 3));
    assert_eq!(f.duration("request-timeout").to_string(), "5s");
    assert!(f.bool("profiling"));
    for line in ["-v=4", "-v4", "-v 4"] {
        assert_eq!(flags(line).int("v"), 4, "{line}");
    }
    assert!(flags("-h").bool("help"));
    assert_eq!(flags("").text("etcd-prefix"), "/registry");
    assert_eq!(flags("--version=raw").text("version"), "raw");
}

#[test]
fn lists_and_maps_add_up() {
    let f = flags(
        "--authorization-mode=Node,RBAC --authorization-mode=Webhook --service-account-issuer=a,b --service-account-issuer=c",
    );
    assert_eq!(f.list("authorization-mode"), ["Node", "RBAC", "Webhook"]);
    assert_eq!(f.list("service-account-issuer"), ["a,b", "c"]);
    assert_eq!(flags("").list("oidc-signing-algs"), ["RS256"]);
    assert_eq!(flags("--oidc-signing-algs=ES256").list("oidc-signing-algs"), ["ES256"], "replaces the default");
    let f = flags("--runtime-config=api/all=true,a --runtime-config=a=false");
    let want = [("api/all", "true"), ("a", "false")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(f.pairs("runtime-config"), want);
}

/// Each line was given to kube-apiserver v1.36, whose answer stands beside it.
#[test]
fn errors_are_pflags() {
    for (line, want) in [
        ("--foo", "unknown flag: --foo"),
        ("--secure-port", "flag needs an argument: --secure-port"),
        (
            "--secure-port=x",
            r#"invalid argument "x" for "--secure-port" flag: strconv.ParseInt: parsing "x": invalid syntax"#,
        ),
        ("-x", "unknown shorthand flag: 'x' in -x"),
        ("--=x", "bad flag syntax: --=x"),
        (
            "--anonymous-auth=maybe",
            r#"invalid argument "maybe" for "--anonymous-auth" flag: strconv.ParseBool: parsing "maybe": invalid syntax"#,
        ),
        (
            "--request-timeout=5",
            r#"invalid argument "5" for "--request-timeout" flag: time: missing unit in duration "5""#,
        ),
        ("--bind-address=x", r#"invalid argument "x" for "--bind-address" flag: failed to parse IP: "x""#),
        (
            "--service-node-port-range=x",
            r#"invalid argument "x" for "--service-node-port-range" flag: strconv.Atoi: parsing "x": invalid syntax"#,
        ),
        (
            "--oidc-required-claim=a",
            r#"invalid argument "a" for "--oidc-required-claim" flag: malformed pair, expect string=string"#,
        ),
        (
            "--goaway-chance=x",
            r#"invalid argument "x" for "--goaway-chance" flag: strconv.ParseFloat: parsing "x": invalid syntax"#,
        ),
        (
            "--tls-sni-cert-key=a",
            r#"invalid argument "a" for "--tls-sni-cert-key" flag: expected comma separated certificate and key file paths"#,
        ),
        ("--v=x", r#"invalid argument "x" for "-v, --v" flag: strconv.ParseUint: parsing "x": invalid syntax"#),
        ("-v", "flag needs an argument: 'v' in -v"),
        ("-v=x", r#"invalid argument "x" for "-v, --v" flag: strconv.ParseUint: parsing "x": invalid syntax"#),
        ("--vmodule=a", r#"invalid argument "a" for "--vmodule" flag: "a" does not have the pattern=N format"#),
        (
            "--allow-metric-labels=a",
            r#"invalid argument "a" for "--allow-metric-labels" flag: a must be formatted as key=value"#,
        ),
        (
            "--log-json-info-buffer-size=x",
            r#"invalid argument "x" for "--log-json-info-buffer-size" flag: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"#,
        ),
        (
            "--tls-curve-preferences=a",
            r#"invalid argument "a" for "--tls-curve-preferences" flag: strconv.ParseInt: parsing "a": invalid syntax"#,
        ),
        (
            "--log_flush_frequency=x",
            r#"invalid argument "x" for "--log-flush-frequency" flag: time: invalid duration "x""#,
        ),
        ("--version=x", r#"invalid argument "x" for "--version" flag: strconv.ParseBool: parsing "x": invalid syntax"#),
        ("foo", r#""kubelith" does not take any arguments, got ["foo"]"#),
    ] {
        assert_eq!(error(line), want);
    }
}

#[test]
fn port_ranges_and_named_certificates() {
    let range = PortRange::parse("30000-32767").unwrap();
    assert!(range.contains(30000) && range.contains(32767) && !range.contains(32768));
    assert_eq!(PortRange::parse("80+2").unwrap().size, 3);
    assert!(PortRange::parse("2-1").is_err() && PortRange::parse("1-70000").is_err());
    let named = NamedCertKey::parse("foo.crt,foo.key:*.foo.com,foo.com").unwrap();
    assert_eq!((named.cert.as_str(), named.key.as_str(), named.names.len()), ("foo.crt", "foo.key", 2));
}

#[test]
fn flags_without_effect_are_named() {
    let f = flags("--contention-profiling --secure-port=1");
    assert_eq!(f.without_effect().map(|f| f.name).collect::<Vec<_>>(), ["contention-profiling"]);
}

#[test]
fn help_has_every_flag_within_the_width() {
    let text = help([("store", "looks after it")]);
    assert!(text.contains("\nCommands:\n  store       looks after it\n\nExamples:\n"), "{text}");
    for (section, flag) in SECTIONS.iter().flat_map(|s| s.flags.iter().map(move |f| (s, f))) {
        let own = format!("--{}", flag.name);
        let shown = text.lines().any(|line| {
            let line = line.trim_start().trim_start_matches("-v, ").trim_start_matches("-h, ");
            line.strip_prefix(&own).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '[']))
        });
        assert_eq!(shown, !section.title.is_empty(), "--{}", flag.name);
    }
    assert!(text.contains("(DEPRECATED: Log handler functionality is deprecated)"));
    assert!(text.lines().all(|l| l.chars().count() <= 120), "{text}");
}
