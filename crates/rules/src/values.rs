//! Values that several kinds have: protocols, addresses, percentages, names of drivers and signers.

use crate::common::{Fields, invalid_all, name_full, not_negative, supported};
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{
    is_dns1123_label, is_dns1123_subdomain, is_percent, is_qualified_name, name_is_path_segment, parse_ip_sloppy,
};
use kubelith_meta::object::ANNOTATIONS_MAX_BYTES;
use kubelith_meta::text::Quoted;
use std::net::IpAddr;

pub const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// An address that endpoints may have: not one that means something else on every machine.
pub fn endpoint_ip(text: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let Some(ip) = parse_ip_sloppy(text) else {
        return invalid_all(vec!["must be a valid IP address".into()], path, text, errors);
    };
    // An IPv4 address that is written as IPv6 leads to the same place.
    let ip = ip.to_canonical();
    let (link_local, link_local_multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    if ip.is_unspecified() {
        errors.push(Error::invalid(path, text, format!("may not be unspecified ({text})")));
    }
    if ip.is_loopback() {
        errors.push(Error::invalid(path, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)"));
    }
    if link_local {
        let detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        errors.push(Error::invalid(path, text, detail));
    }
    if link_local_multicast {
        let detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        errors.push(Error::invalid(path, text, detail));
    }
}

pub fn positive_int_or_percent(value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match value {
        Value::Null => {}
        Value::Int(number) => not_negative(*number, path, errors),
        _ => {
            let text = value.as_str().unwrap_or_default();
            errors.extend(is_percent(text).into_iter().map(|m| Error::invalid(path, BadValue::json(text), m)));
        }
    }
}

/// The number before the `%`.
pub fn percent(value: &Value) -> Option<i64> {
    let text = value.as_str().filter(|t| is_percent(t).is_empty())?;
    // Only digits are left: what does not fit is too large.
    Some(text.trim_end_matches('%').parse().unwrap_or(i64::MAX))
}

/// The number that is meant, as far as one can be read; also of a text without `%`, which is an error of its own.
pub fn int_or_percent(value: &Value) -> i64 {
    let number = || value.as_i64().or_else(|| value.as_str()?.parse().ok());
    percent(value).or_else(number).unwrap_or_default()
}

pub fn not_over_100_percent(value: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    if percent(value).is_some_and(|p| p > 100) {
        let text = BadValue::json(value.as_str().unwrap_or_default());
        errors.push(Error::invalid(path, text, "must not be greater than 100%"));
    }
}

pub fn int_or_string(value: &Value) -> BadValue {
    match value {
        Value::Null => BadValue::from(0),
        other => BadValue::text(kubelith_meta::text::json(other)),
    }
}

/// The name of a driver, in any case.
pub fn driver_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if name.is_empty() {
        errors.push(Error::required(path, ""));
        return;
    }
    if name.len() > 63 {
        errors.push(Error::too_long(path, 63));
    }
    let lower = name.to_lowercase();
    errors.extend(is_dns1123_subdomain(&lower).into_iter().map(|m| Error::invalid(path, name, m)));
}

const MAX_DOMAIN: usize = 253;

/// A namespace, a dot and the name of a resource.
const MAX_PATH: usize = 253 + 63 + 1;

const MAX_SIGNER_NAME: usize = MAX_DOMAIN + MAX_PATH + 1;

/// `example.com/signer-name`.
/// Whether a signer is one of Kubernetes' own.
pub fn is_kubernetes_signer(name: &str) -> bool {
    let domain = name.split('/').next().unwrap_or_default();
    domain == "kubernetes.io" || domain.ends_with(".kubernetes.io")
}

pub fn signer_name(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if name.is_empty() {
        return errors.push(Error::required(path, ""));
    }
    let parts: Vec<&str> = name.split('/').collect();
    let &[domain, own] = parts.as_slice() else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return errors.push(Error::invalid(path, name, detail));
    };
    if domain.len() > MAX_DOMAIN {
        errors.push(Error::too_long(path, MAX_DOMAIN));
    }
    labels(domain, is_dns1123_label, path, errors);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(Error::invalid(path, domain, detail));
    }
    labels(own, is_dns1123_subdomain, path, errors);
    if name.len() > MAX_SIGNER_NAME {
        errors.push(Error::too_long(path, MAX_SIGNER_NAME));
    }
}

/// The first of the labels that is none; what else is wrong would read the same.
fn labels(text: &str, rule: fn(&str) -> Vec<String>, path: &Path<'_>, errors: &mut ErrorList) {
    let wrong = text.split('.').map(|label| (label, rule(label))).find(|(_, problems)| !problems.is_empty());
    let Some((label, problems)) = wrong else { return };
    for problem in problems {
        errors.push(Error::invalid(path, text, format!("validating label {}: {problem}", Quoted(label))));
    }
}

/// Annotations that a user brings, which signers may look at.
pub fn user_annotations(owner: &Value, key: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child(key);
    let mut size = 0;
    for (key, value) in owner.entries(key) {
        size += key.len() + value.as_str().map_or(0, str::len);
        let key = key.to_lowercase();
        if key.is_empty() {
            errors.push(Error::required(&path, ""));
            continue;
        }
        let problems = is_qualified_name(&key);
        if problems.is_empty() && !key.contains('/') {
            let detail = "must be a domain-prefixed key (such as \"acme.io/foo\")";
            errors.push(Error::invalid(&path, key.as_str(), detail));
        }
        invalid_all(problems, &path, &key, errors);
    }
    if size > ANNOTATIONS_MAX_BYTES {
        errors.push(Error::too_long(&path, ANNOTATIONS_MAX_BYTES));
    }
}

/// The policy of a class or a pod, if it names one.
pub fn preemption_policy(object: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child("preemptionPolicy");
    match object.some("preemptionPolicy").and_then(Value::as_str) {
        None => {}
        Some("") => errors.push(Error::required(&path, "")),
        Some(policy) => supported(policy, &["PreemptLowerPriority", "Never"], &path, errors),
    }
}

/// What a reference needs: a kind and a name, either of which can be a step of a path.
pub fn kind_and_name(reference: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    for key in ["kind", "name"] {
        let value = reference.text(key);
        if value.is_empty() {
            errors.push(Error::required(&path.child(key), ""));
        } else {
            name_full(name_is_path_segment, value, &path.child(key), errors);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_endpoints_are_judged_by_where_they_lead() {
        for (text, want) in [
            ("10.0.0.1", vec![]),
            ("::ffff:10.0.0.1", vec![]),
            ("127.0.0.1", vec!["may not be in the loopback range (127.0.0.0/8, ::1/128)"]),
            ("::ffff:127.0.0.1", vec!["may not be in the loopback range (127.0.0.0/8, ::1/128)"]),
            ("::ffff:a9fe:a9fe", vec!["may not be in the link-local range (169.254.0.0/16, fe80::/10)"]),
            ("::ffff:0.0.0.0", vec!["may not be unspecified (::ffff:0.0.0.0)"]),
            ("::ffff:224.0.0.1", vec!["may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"]),
        ] {
            let mut errors = ErrorList::default();
            endpoint_ip(text, &Path::new("ip"), &mut errors);
            let details: Vec<String> = errors.iter().map(|e| e.detail.to_string()).collect();
            assert_eq!(details, want, "{text}");
        }
    }
}
