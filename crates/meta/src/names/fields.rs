//! Rules that report on a field rather than on a string, because they know whether it is missing.

use super::dns::{is_dns1123_label, is_dns1123_subdomain};
use super::keys::is_qualified_name;
use super::pattern_message;
use crate::field::{Error, ErrorList, Path};

/// A domain of at least three labels, without a dot at the end.
pub fn validate_fully_qualified_name(name: &str, path: &Path<'_>) -> ErrorList {
    if name.is_empty() {
        return Error::required(path, "").into();
    }
    let wrong = is_dns1123_subdomain(name);
    if !wrong.is_empty() {
        return Error::invalid(path, name, wrong.join(",")).into();
    }
    if name.split('.').count() < 3 {
        let detail = "should be a domain with at least three segments separated by dots";
        return Error::invalid(path, name, detail).into();
    }
    ErrorList::new()
}

/// A domain of at least two labels; a dot at the end is welcome.
pub fn validate_fully_qualified_domain_name(name: &str, path: &Path<'_>) -> ErrorList {
    if name.is_empty() {
        return Error::required(path, "").into();
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let wrong = is_dns1123_subdomain(name);
    if !wrong.is_empty() {
        return Error::invalid(path, name, wrong.join(",")).into();
    }
    if !name.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        return Error::invalid(path, name, detail).into();
    }
    for label in name.split('.') {
        let wrong = is_dns1123_label(label);
        if !wrong.is_empty() {
            return Error::invalid(path, label, wrong.join(",")).into();
        }
    }
    ErrorList::new()
}

/// `acme.io/foo/bar`.
pub fn validate_domain_prefixed_path(text: &str, path: &Path<'_>) -> ErrorList {
    const PATTERN: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";
    if text.is_empty() {
        return Error::required(path, "").into();
    }
    let (host, rest) = match text.split_once('/') {
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => (host, rest),
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            return Error::invalid(path, text, detail).into();
        }
    };
    let mut errors: ErrorList =
        is_dns1123_subdomain(host).into_iter().map(|message| Error::invalid(path, host, message)).collect();
    if !rest.bytes().all(|b| b.is_ascii_alphanumeric() || br"/-._~%!$&'()*+,;=:".contains(&b)) {
        errors.push(Error::invalid(path, rest, pattern_message("Invalid path", PATTERN, &[])));
    }
    errors
}

/// `acme.io/foo`.
pub fn validate_domain_prefixed_key(key: &str, path: &Path<'_>) -> ErrorList {
    if key.is_empty() {
        return Error::required(path, "").into();
    }
    let mut errors: ErrorList =
        is_qualified_name(key).into_iter().map(|message| Error::invalid(path, key, message)).collect();
    if errors.is_empty() && !key.contains('/') {
        errors.push(Error::invalid(path, key, "must be a domain-prefixed key (such as \"acme.io/foo\")"));
    }
    errors
}
