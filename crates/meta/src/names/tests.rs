use super::*;
use crate::field::{ErrorList, Path};

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const KEY: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn check(rule: fn(&str) -> Messages, table: &[(&str, &[&str])]) {
    for (input, want) in table {
        assert_eq!(rule(input), *want, "{input:?}");
    }
}

fn accepts(rule: fn(&str) -> Messages, good: &[&str], bad: &[&str]) {
    for s in good {
        assert_eq!(rule(s), Messages::new(), "{s:?}");
    }
    for s in bad {
        assert_ne!(rule(s), Messages::new(), "{s:?}");
    }
}

#[test]
fn dns_names() {
    let long_label = "a".repeat(64);
    let long_domain = format!("{}.a", "a".repeat(252));
    check(
        is_dns1123_label,
        &[
            ("a", &[]),
            ("0-a", &[]),
            (&"a".repeat(63), &[]),
            ("", &[LABEL]),
            ("-a", &[LABEL]),
            ("a-", &[LABEL]),
            ("A", &[LABEL]),
            ("é", &[LABEL]),
            ("a.b", &["must not contain dots"]),
            (&long_label, &["must be no more than 63 characters"]),
        ],
    );
    check(
        is_dns1123_subdomain,
        &[
            ("a.b-c.0", &[]),
            ("", &[SUBDOMAIN]),
            ("a..b", &[SUBDOMAIN]),
            (".a", &[SUBDOMAIN]),
            ("a.", &[SUBDOMAIN]),
            ("a_b", &[SUBDOMAIN]),
            (&long_domain, &["must be no more than 253 characters"]),
        ],
    );
    check(is_dns1035_label, &[("a0", &[]), ("0a", &[DNS1035]), ("", &[DNS1035]), ("a.b", &[DNS1035])]);
    accepts(is_dns1123_subdomain_with_underscore, &["_a.b_c", "a"], &["__a", "a_", "_", ""]);
    accepts(is_dns1123_subdomain_caseless, &["A.b", "a", "\u{212a}"], &["A_", ".", ""]);
    accepts(is_wildcard_dns1123_subdomain, &["*.a.b", "*.a"], &["*", "*.", "a.b", "*.*.a", "*a"]);
    assert!(is_wildcard_dns1123_subdomain("")[0].ends_with(
        "(e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    ));
}

#[test]
fn label_keys_and_values() {
    let long = "a".repeat(64);
    let long_prefix = format!("{}/a", "a".repeat(254));
    let name_part = format!("name part {KEY}");
    check(
        is_qualified_name,
        &[
            ("a", &[]),
            ("A.b_c-1", &[]),
            ("k8s.io/a", &[]),
            ("", &["name part must be non-empty", &name_part]),
            ("/a", &["prefix part must be non-empty"]),
            ("a/", &["name part must be non-empty", &name_part]),
            (
                "a/b/c",
                &[&format!(
                    "a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
                )],
            ),
            ("-a", &[&name_part]),
            ("A/a", &[&format!("prefix part {SUBDOMAIN}")]),
            (&long, &["name part must be no more than 63 bytes"]),
            (&long_prefix, &["prefix part must be no more than 253 bytes"]),
        ],
    );
    check(
        is_label_value,
        &[
            ("", &[]),
            ("a", &[]),
            ("A_b.c-1", &[]),
            ("-a", &[VALUE]),
            ("a b", &[VALUE]),
            (&long, &["must be no more than 63 bytes"]),
        ],
    );
}

#[test]
fn config_map_keys() {
    const RULE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
    check(
        is_config_map_key,
        &[
            ("a.b", &[]),
            (".a", &[]),
            ("", &[RULE]),
            ("a/b", &[RULE]),
            (".", &["must not be '.'"]),
            ("..", &["must not be '..'"]),
            ("..a", &["must not start with '..'"]),
            (&"a".repeat(254), &["must be no more than 253 characters"]),
        ],
    );
}

#[test]
fn identifiers_and_numbers() {
    check(
        is_c_identifier,
        &[
            ("_a1", &[]),
            (
                "1a",
                &[
                    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')",
                ],
            ),
        ],
    );
    accepts(is_c_identifier, &["A", "a_b"], &["", "a-b"]);
    check(
        is_port_name,
        &[
            ("http-80", &[]),
            (
                "",
                &[
                    "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                    "must contain at least one letter (a-z)",
                ],
            ),
            ("80", &["must contain at least one letter (a-z)"]),
            ("a--b", &["must not contain consecutive hyphens"]),
            ("-a", &["must not begin or end with a hyphen"]),
            ("aaaaaaaaaaaaaaaa", &["must be no more than 15 characters"]),
        ],
    );
    assert_eq!(is_port_number(0), ["must be between 1 and 65535, inclusive"]);
    assert_eq!((is_port_number(1), is_port_number(65535)), (Messages::new(), Messages::new()));
    assert_eq!(is_user_or_group_id(-1), ["must be between 0 and 2147483647, inclusive"]);
    check(
        is_percent,
        &[
            ("1%", &[]),
            (
                "%",
                &[
                    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
                ],
            ),
        ],
    );
    accepts(is_http_header_name, &["X-A", "1"], &["", "a b", "a:"]);
    accepts(is_decimal_integer, &["0", "12", "-3"], &["", "-", "-0", "01", "+1", "1a"]);
}

#[test]
fn environment_variables() {
    accepts(is_env_var_name, &["a", "_A.b-1", ".a"], &["", "1a", "a=b", ".", "..", "..a"]);
    accepts(is_relaxed_env_var_name, &["1a", "a b", "-", ".."], &["", "a=b", "é", "\t"]);
    assert_eq!(is_relaxed_env_var_name(""), ["environment variable name must be non-empty"]);
}

#[test]
fn object_names() {
    use NameUse::*;
    assert_eq!(name_is_dns_subdomain("a-", Full), [SUBDOMAIN]);
    assert_eq!(name_is_dns_subdomain("a-", Prefix), Messages::new());
    assert_eq!(name_is_dns_subdomain("-", Prefix), [SUBDOMAIN]);
    // Masking drops the character before the dash as well.
    assert_eq!(name_is_dns_subdomain("a.-", Prefix), Messages::new());
    assert_eq!(name_is_dns_subdomain("é-", Prefix), [SUBDOMAIN]);
    assert_eq!(name_is_dns_label("a.b", Full), ["must not contain dots"]);
    assert_eq!(name_is_dns1035_label("1", Full), [DNS1035]);
    assert_eq!(name_is_path_segment(".", Full), ["may not be '.'"]);
    assert_eq!(name_is_path_segment("..", Prefix), Messages::new());
    assert_eq!(name_is_path_segment("a%/b", Full), ["may not contain '/'", "may not contain '%'"]);
    assert_eq!(name_is_path_segment("system:a b", Full), Messages::new());
}

fn texts(errors: ErrorList) -> Vec<String> {
    errors.iter().map(|e| e.body()).collect()
}

#[test]
fn domains_in_fields() {
    let p = Path::new("f");
    assert_eq!(texts(validate_fully_qualified_name("", &p)), ["Required value"]);
    assert_eq!(
        texts(validate_fully_qualified_name("a.b", &p)),
        ["Invalid value: \"a.b\": should be a domain with at least three segments separated by dots"]
    );
    assert_eq!(texts(validate_fully_qualified_name("a.b.c", &p)), Vec::<String>::new());
    assert_eq!(texts(validate_fully_qualified_domain_name("a.b.", &p)), Vec::<String>::new());
    assert_eq!(
        texts(validate_fully_qualified_domain_name("a", &p)),
        ["Invalid value: \"a\": should be a domain with at least two segments separated by dots"]
    );
    assert_eq!(texts(validate_domain_prefixed_path("acme.io/a%20", &p)), Vec::<String>::new());
    assert_eq!(
        texts(validate_domain_prefixed_path("acme.io", &p)),
        ["Invalid value: \"acme.io\": must be a domain-prefixed path (such as \"acme.io/foo\")"]
    );
    assert_eq!(
        texts(validate_domain_prefixed_path("acme.io/a b", &p)),
        ["Invalid value: \"a b\": Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"]
    );
    assert_eq!(
        texts(validate_domain_prefixed_key("foo", &p)),
        ["Invalid value: \"foo\": must be a domain-prefixed key (such as \"acme.io/foo\")"]
    );
}

#[test]
fn addresses_are_read_sloppily() {
    for (text, want) in [
        ("1.2.3.4", Some("1.2.3.4")),
        ("001.2.03.4", Some("1.2.3.4")),
        ("::ffff:1.2.3.4", Some("1.2.3.4")),
        ("::", Some("::")),
        ("::1", Some("::1")),
        ("FE80::0abc", Some("fe80::abc")),
        ("1:2:3:4:5:6:7:8", Some("1:2:3:4:5:6:7:8")),
        ("1:2:3:4:5:6:7::", Some("1:2:3:4:5:6:7:0")),
        ("00001::", Some("1::")),
        ("::1.2.3.04", Some("::102:304")),
        ("1:2:3:4:5:6:1.2.3.4", Some("1:2:3:4:5:6:102:304")),
        ("", None),
        ("1", None),
        ("1.2.3", None),
        ("1.2.3.4.5", None),
        ("1.2.3.256", None),
        ("1.2..4", None),
        ("::1::", None),
        (":::", None),
        (":1", None),
        ("1:", None),
        ("1:2:3:4:5:6:7:8:9", None),
        ("::1:2:3:4:5:6:7:8", None),
        ("1:2:3:4:5:6:7:1.2.3.4", None),
        ("1.2.3.4::", None),
        ("fe80::1%eth0", None),
        ("g::", None),
        ("10000::", None),
    ] {
        let got = parse_ip_sloppy(text).map(|ip| canonical_ip(ip).to_string());
        assert_eq!(got.as_deref(), want, "{text:?}");
    }
}

#[test]
fn addresses_are_validated() {
    let p = Path::new("ip");
    const RULE: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
    for (value, legacy, strict, canonical) in [
        ("1.2.3.4", "", "", ""),
        ("x", RULE, RULE, RULE),
        ("01.2.3.4", "", "must not have leading 0s", "must not have leading 0s"),
        ("::ffff:1.2.3.4", "", "must not be an IPv4-mapped IPv6 address", "must not be an IPv4-mapped IPv6 address"),
        ("FE80::1", "", "", "must be in canonical form (\"fe80::1\")"),
    ] {
        let show = |errors: ErrorList| errors.first().map(|e| e.detail.clone()).unwrap_or_default();
        assert_eq!(show(validate_ip_of_legacy_field(value, IpRules::Legacy, &[], &p)), legacy, "{value}");
        assert_eq!(show(validate_ip_of_legacy_field(value, IpRules::Strict, &[], &p)), strict, "{value}");
        assert_eq!(show(validate_ip(value, &p)), canonical, "{value}");
        assert!(validate_ip_of_legacy_field(value, IpRules::Strict, &[value], &p).is_empty());
    }
    for (value, want) in [
        ("1.2.3.4", vec![]),
        ("x", vec![]),
        ("01.2.3.4", vec!["ip: non-standard IP address \"01.2.3.4\" is invalid: use \"1.2.3.4\""]),
        ("::ffff:1.2.3.4", vec!["ip: non-standard IP address \"::ffff:1.2.3.4\" is invalid: use \"1.2.3.4\""]),
        ("FE80::1", vec!["ip: IPv6 address \"FE80::1\" should be in RFC 5952 canonical format (\"fe80::1\")"]),
    ] {
        assert_eq!(ip_warnings(value, &p), want);
    }
}

#[test]
fn networks_are_validated() {
    let p = Path::new("cidr");
    const RULE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    const ZEROS: &str = "must not have leading 0s in IP or prefix length";
    const BITS: &str = "must not have bits set beyond the prefix length";
    const MAPPED: &str = "must not have an IPv4-mapped IPv6 address";
    for (value, legacy, strict, canonical) in [
        ("10.9.8.0/24", "", "", ""),
        ("0.0.0.0/0", "", "", ""),
        ("::/0", "", "", ""),
        ("10.9.8.0", RULE, RULE, RULE),
        ("10.9.8.0/33", RULE, RULE, RULE),
        ("10.9.8.0/", RULE, RULE, RULE),
        ("10.9.8.0/+8", RULE, RULE, RULE),
        ("010.9.8.0/24", "", ZEROS, ZEROS),
        ("10.9.8.0/024", "", ZEROS, ZEROS),
        ("10.9.8.7/24", "", BITS, BITS),
        ("::ffff:10.9.8.0/120", "", MAPPED, MAPPED),
        ("2001:DB8::/64", "", "", "must be in canonical form (\"2001:db8::/64\")"),
    ] {
        let show = |errors: ErrorList| errors.first().map(|e| e.detail.clone()).unwrap_or_default();
        assert_eq!(show(validate_cidr_of_legacy_field(value, IpRules::Legacy, &[], &p)), legacy, "{value}");
        assert_eq!(show(validate_cidr_of_legacy_field(value, IpRules::Strict, &[], &p)), strict, "{value}");
        assert_eq!(show(validate_cidr(value, &p)), canonical, "{value}");
    }
    for (value, want) in [
        ("10.9.8.0/24", vec![]),
        (
            "10.9.8.7/24",
            vec![
                "cidr: CIDR value \"10.9.8.7/24\" is ambiguous in this context (should be \"10.9.8.0/24\" or \"10.9.8.7/32\"?)",
            ],
        ),
        (
            "::ffff:10.9.8.0/120",
            vec!["cidr: non-standard CIDR value \"::ffff:10.9.8.0/120\" is invalid: use \"10.9.8.0/24\""],
        ),
        (
            "2001:DB8::/64",
            vec!["cidr: IPv6 CIDR value \"2001:DB8::/64\" should be in RFC 5952 canonical format (\"2001:db8::/64\")"],
        ),
    ] {
        assert_eq!(cidr_warnings(value, &p), want);
    }
    assert_eq!(texts(validate_interface_address("10.9.8.7/24", &p)), Vec::<String>::new());
    assert_eq!(
        texts(validate_interface_address("::ffff:10.9.8.7/120", &p)),
        ["Invalid value: \"::ffff:10.9.8.7/120\": must be in canonical form (\"10.9.8.7/24\")"]
    );
    let cidr = Cidr::parse_sloppy("10.9.8.0/23").unwrap();
    let contains = |ip: &str| cidr.contains(parse_ip_sloppy(ip).unwrap());
    assert!(contains("10.9.9.255") && !contains("10.9.10.0") && !contains("::1"));
}
