//! Rules for the names of objects, and for the prefixes that names are generated from.

use super::Messages;
use super::dns::{is_dns1035_label, is_dns1123_label, is_dns1123_subdomain};
use std::borrow::Cow;

/// What a name is checked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameUse {
    /// It is the name.
    Full,
    /// Something will be appended to it.
    Prefix,
}

/// The rule of a resource for its objects' names.
pub type NameRule = fn(&str, NameUse) -> Messages;

/// The rule of most resources.
pub fn name_is_dns_subdomain(name: &str, name_use: NameUse) -> Messages {
    is_dns1123_subdomain(&masked(name, name_use))
}

/// The rule of namespaces.
pub fn name_is_dns_label(name: &str, name_use: NameUse) -> Messages {
    is_dns1123_label(&masked(name, name_use))
}

/// The rule of services.
pub fn name_is_dns1035_label(name: &str, name_use: NameUse) -> Messages {
    is_dns1035_label(&masked(name, name_use))
}

/// The rule of roles and bindings, and the least that every name must meet: it can be part of a URL.
pub fn name_is_path_segment(name: &str, name_use: NameUse) -> Messages {
    match name {
        "." if name_use == NameUse::Full => vec!["may not be '.'".to_owned()],
        ".." if name_use == NameUse::Full => vec!["may not be '..'".to_owned()],
        _ => ['/', '%'].iter().filter(|c| name.contains(**c)).map(|c| format!("may not contain '{c}'")).collect(),
    }
}

/// A prefix may end in a dash. Upstream replaces the last two bytes, not one, by a letter; the lengths in its
/// messages depend on it.
fn masked(name: &str, name_use: NameUse) -> Cow<'_, str> {
    match name.strip_suffix('-') {
        Some(rest) if name_use == NameUse::Prefix && !rest.is_empty() => {
            // Half a character is no part of a name, and neither is the whole of it.
            let kept = rest.get(..rest.len() - 1).unwrap_or(rest);
            Cow::Owned(format!("{kept}a"))
        }
        _ => Cow::Borrowed(name),
    }
}
