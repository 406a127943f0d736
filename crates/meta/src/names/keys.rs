//! Keys and values of labels, and the other keys that objects hold.

use super::dns::{DNS1123_SUBDOMAIN_MAX, is_label_key_prefix};
use super::{Messages, NON_EMPTY, is_shaped, max_bytes_message, max_len_message, pattern_message};

pub const LABEL_KEY_NAME_MAX: usize = 63;
pub const LABEL_VALUE_MAX: usize = 63;

const NAME: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

fn alphanumeric(b: u8) -> bool {
    b.is_ascii_alphanumeric()
}

fn name_char(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.')
}

fn matches_name(s: &str) -> bool {
    is_shaped(s, alphanumeric, name_char, alphanumeric)
}

fn label_key_name_message() -> String {
    pattern_message(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
         character",
        NAME,
        &["MyName", "my.name", "123-abc"],
    )
}

/// A label key, which is also what a "qualified name" is: `name` or `example.com/name`.
pub fn is_qualified_name(s: &str) -> Messages {
    let mut messages = Messages::new();
    let name = match s.split_once('/') {
        None => s,
        Some((_, name)) if name.contains('/') => {
            messages.push(format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
                label_key_name_message()
            ));
            return messages;
        }
        Some(("", name)) => {
            messages.push(format!("prefix part {NON_EMPTY}"));
            name
        }
        Some((prefix, name)) => {
            messages.extend(is_label_key_prefix(prefix).into_iter().map(|m| format!("prefix part {m}")));
            name
        }
    };
    if name.is_empty() {
        messages.push(format!("name part {NON_EMPTY}"));
    } else if name.len() > LABEL_KEY_NAME_MAX {
        messages.push(format!("name part {}", max_bytes_message(LABEL_KEY_NAME_MAX)));
    }
    if !matches_name(name) {
        messages.push(format!("name part {}", label_key_name_message()));
    }
    messages
}

pub fn is_label_value(s: &str) -> Messages {
    let mut messages = Messages::new();
    if s.len() > LABEL_VALUE_MAX {
        messages.push(max_bytes_message(LABEL_VALUE_MAX));
    }
    if !s.is_empty() && !matches_name(s) {
        messages.push(pattern_message(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character",
            &format!("({NAME})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    messages
}

/// A key of a ConfigMap or Secret, which becomes a file name.
pub fn is_config_map_key(s: &str) -> Messages {
    let mut messages = Messages::new();
    if s.len() > DNS1123_SUBDOMAIN_MAX {
        messages.push(max_len_message(DNS1123_SUBDOMAIN_MAX));
    }
    if s.is_empty() || !s.bytes().all(name_char) {
        messages.push(pattern_message(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    messages.extend(parent_dir_message(s));
    messages
}

/// Names that a file system would read as a directory.
pub(super) fn parent_dir_message(s: &str) -> Option<String> {
    let message = match s {
        "." => "must not be '.'",
        ".." => "must not be '..'",
        s if s.starts_with("..") => "must not start with '..'",
        _ => return None,
    };
    Some(message.to_owned())
}
