//! Identifiers, ports, environment variables, headers and other short strings and numbers.

use super::keys::parent_dir_message;
use super::{Messages, NON_EMPTY, max_len_message, pattern_message};

pub fn range_message(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

/// `my_name`, `MY_NAME`, `MyName`.
pub fn is_c_identifier(s: &str) -> Messages {
    const RULE: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
         alphanumeric characters or '_'";
    let start = |b: &u8| b.is_ascii_alphabetic() || *b == b'_';
    let bytes = s.as_bytes();
    if bytes.first().is_some_and(start) && bytes.iter().all(|b| start(b) || b.is_ascii_digit()) {
        return Messages::new();
    }
    vec![pattern_message(RULE, "[A-Za-z_][A-Za-z0-9_]*", &["my_name", "MY_NAME", "MyName"])]
}

/// A TCP or UDP port other than 0.
pub fn is_port_number(port: i64) -> Messages {
    is_in_range(port, 1, 65535)
}

pub fn is_in_range(n: i64, low: i64, high: i64) -> Messages {
    if (low..=high).contains(&n) { Messages::new() } else { vec![range_message(low, high)] }
}

/// A Unix user or group.
pub fn is_user_or_group_id(id: i64) -> Messages {
    is_in_range(id, 0, i32::MAX.into())
}

/// The name of a port: at most 15 lower-case letters, digits and single hyphens, with a letter among them.
pub fn is_port_name(s: &str) -> Messages {
    let mut messages = Messages::new();
    if s.len() > 15 {
        messages.push(max_len_message(15));
    }
    if s.is_empty() || !s.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        messages.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !s.bytes().any(|b| b.is_ascii_lowercase()) {
        messages.push("must contain at least one letter (a-z)".to_owned());
    }
    if s.contains("--") {
        messages.push("must not contain consecutive hyphens".to_owned());
    }
    if s.starts_with('-') || s.ends_with('-') {
        messages.push("must not begin or end with a hyphen".to_owned());
    }
    messages
}

/// `25%`.
pub fn is_percent(s: &str) -> Messages {
    let digits = s.strip_suffix('%').unwrap_or("");
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return Messages::new();
    }
    let rule = "a valid percent string must be a numeric string followed by an ending '%'";
    vec![pattern_message(rule, "[0-9]+%", &["1%", "93%"])]
}

/// `X-Header-Name`.
pub fn is_http_header_name(s: &str) -> Messages {
    if !s.is_empty() && s.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Messages::new();
    }
    let rule = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![pattern_message(rule, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

/// The strict rule for environment variables.
pub fn is_env_var_name(s: &str) -> Messages {
    const RULE: &str = "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or \
         '.', and must not start with a digit";
    let start = |b: &u8| b.is_ascii_alphabetic() || matches!(b, b'-' | b'.' | b'_');
    let bytes = s.as_bytes();
    let mut messages = Messages::new();
    if !(bytes.first().is_some_and(start) && bytes.iter().all(|b| start(b) || b.is_ascii_digit())) {
        let examples = ["my.env-name", "MY_ENV.NAME", "MyEnvName1"];
        messages.push(pattern_message(RULE, "[-._a-zA-Z][-._a-zA-Z0-9]*", &examples));
    }
    messages.extend(parent_dir_message(s));
    messages
}

/// The rule for environment variables since v1.34: anything printable but `=`.
pub fn is_relaxed_env_var_name(s: &str) -> Messages {
    const RULE: &str =
        "a valid environment variable name must consist only of printable ASCII characters other than '='";
    if s.is_empty() {
        return vec![format!("environment variable name {NON_EMPTY}")];
    }
    let good = |b: u8| (b' '..=b'~').contains(&b) && b != b'=';
    if s.bytes().all(good) { Messages::new() } else { vec![RULE.to_owned()] }
}

/// An integer as people write it: no sign but a minus, no leading zeros.
pub fn is_decimal_integer(s: &str) -> Messages {
    if s.is_empty() {
        return vec![NON_EMPTY.to_owned()];
    }
    let digits = s.strip_prefix('-').unwrap_or(s);
    let canonical = digits.bytes().all(|b| b.is_ascii_digit()) && matches!(digits.as_bytes(), [b'1'..=b'9', ..]);
    if canonical || s == "0" {
        Messages::new()
    } else {
        vec!["must be a valid decimal integer in canonical form".to_owned()]
    }
}
