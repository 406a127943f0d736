//! Names that DNS can carry.

use super::{Messages, is_shaped, max_bytes_message, max_len_message, pattern_message};

pub const DNS1123_LABEL_MAX: usize = 63;
pub const DNS1123_SUBDOMAIN_MAX: usize = 253;
pub const DNS1035_LABEL_MAX: usize = 63;

const DNS1123_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS1123_LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
     '-', and must start and end with an alphanumeric character";
const DNS1123_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS1123_SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
     characters, '-' or '.', and must start and end with an alphanumeric character";

fn lower_or_digit(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit()
}

fn lower_digit_or_dash(b: u8) -> bool {
    lower_or_digit(b) || b == b'-'
}

pub(super) fn matches_dns1123_label(s: &str) -> bool {
    is_shaped(s, lower_or_digit, lower_digit_or_dash, lower_or_digit)
}

pub(super) fn matches_dns1123_subdomain(s: &str) -> bool {
    s.split('.').all(matches_dns1123_label)
}

/// `my-name`, `123-abc`.
pub fn is_dns1123_label(s: &str) -> Messages {
    let mut messages = Messages::new();
    if s.len() > DNS1123_LABEL_MAX {
        messages.push(max_len_message(DNS1123_LABEL_MAX));
    }
    if !matches_dns1123_label(s) {
        messages.push(if matches_dns1123_subdomain(s) {
            "must not contain dots".to_owned()
        } else {
            pattern_message(DNS1123_LABEL_RULE, DNS1123_LABEL, &["my-name", "123-abc"])
        });
    }
    messages
}

/// `example.com`.
pub fn is_dns1123_subdomain(s: &str) -> Messages {
    subdomain(s, max_len_message)
}

/// The same rule for the prefix of a label key, where the limit is worded in bytes.
pub(super) fn is_label_key_prefix(s: &str) -> Messages {
    subdomain(s, max_bytes_message)
}

fn subdomain(s: &str, too_long: fn(usize) -> String) -> Messages {
    let mut messages = Messages::new();
    if s.len() > DNS1123_SUBDOMAIN_MAX {
        messages.push(too_long(DNS1123_SUBDOMAIN_MAX));
    }
    if !matches_dns1123_subdomain(s) {
        messages.push(pattern_message(DNS1123_SUBDOMAIN_RULE, DNS1123_SUBDOMAIN, &["example.com"]));
    }
    messages
}

/// A subdomain in which upper case passes, too. The message shows the lower-case pattern all the same.
pub fn is_dns1123_subdomain_caseless(s: &str) -> Messages {
    const RULE: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start \
         and end with an alphanumeric character";
    let mut messages = Messages::new();
    if s.len() > DNS1123_SUBDOMAIN_MAX {
        messages.push(max_bytes_message(DNS1123_SUBDOMAIN_MAX));
    }
    let edge = |b: u8| b.is_ascii_alphanumeric();
    let middle = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    // Go folds case by Unicode rules under (?i): the Kelvin sign and the long s count as k and s.
    let folded = s.replace('\u{212a}', "k").replace('\u{17f}', "s");
    if !folded.split('.').all(|label| is_shaped(label, edge, middle, edge)) {
        messages.push(pattern_message(RULE, DNS1123_SUBDOMAIN, &["Example.com"]));
    }
    messages
}

/// A subdomain whose labels may start with, and hold, underscores: `_sip._tcp.example.com`.
pub fn is_dns1123_subdomain_with_underscore(s: &str) -> Messages {
    const RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' \
         or '.', and must start and end with an alphanumeric character";
    const PATTERN: &str = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
    let mut messages = Messages::new();
    if s.len() > DNS1123_SUBDOMAIN_MAX {
        messages.push(max_len_message(DNS1123_SUBDOMAIN_MAX));
    }
    let middle = |b: u8| lower_digit_or_dash(b) || b == b'_';
    let label = |l: &str| is_shaped(l.strip_prefix('_').unwrap_or(l), lower_or_digit, middle, lower_or_digit);
    if !s.split('.').all(label) {
        messages.push(pattern_message(RULE, PATTERN, &["example.com"]));
    }
    messages
}

/// `my-name`, `abc-123`: a label that starts with a letter.
pub fn is_dns1035_label(s: &str) -> Messages {
    const RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
         alphabetic character, and end with an alphanumeric character";
    let mut messages = Messages::new();
    if s.len() > DNS1035_LABEL_MAX {
        messages.push(max_len_message(DNS1035_LABEL_MAX));
    }
    if !is_shaped(s, |b| b.is_ascii_lowercase(), lower_digit_or_dash, lower_or_digit) {
        messages.push(pattern_message(RULE, "[a-z]([-a-z0-9]*[a-z0-9])?", &["my-name", "abc-123"]));
    }
    messages
}

/// `*.example.com`.
pub fn is_wildcard_dns1123_subdomain(s: &str) -> Messages {
    const RULE: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which \
         must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
    let mut messages = Messages::new();
    if s.len() > DNS1123_SUBDOMAIN_MAX {
        messages.push(max_len_message(DNS1123_SUBDOMAIN_MAX));
    }
    if !s.strip_prefix("*.").is_some_and(matches_dns1123_subdomain) {
        let pattern = format!(r"\*\.{DNS1123_SUBDOMAIN}");
        messages.push(pattern_message(RULE, &pattern, &["*.example.com"]));
    }
    messages
}
