//! Requests for certificates, and bundles of those to trust.

mod pod_request;
mod signing_request;
mod trust_bundle;

pub use pod_request::user_annotations;

use crate::Rules;
use crate::common::Fields;
use kubelith_codec::base64;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{is_dns1123_label, is_dns1123_subdomain};
use kubelith_meta::text::Quoted;

pub fn rules(plural: &str) -> Option<Rules> {
    Some(match plural {
        "certificatesigningrequests" => signing_request::SIGNING_REQUEST,
        "clustertrustbundles" => trust_bundle::TRUST_BUNDLE,
        "podcertificaterequests" => pod_request::POD_REQUEST,
        _ => return None,
    })
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

/// Bytes, which are text in base64 on the wire.
fn bytes(object: &Value, key: &str) -> Vec<u8> {
    base64::decode(object.text(key)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
