//! What projected volumes show of certificates: bundles of authorities, and a certificate of the pod's own.

use super::volumes::{DUPLICATE, required};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::is_dns1123_subdomain;
use kubelith_rules::common::{Fields, invalid_all, label_selector, supported, unreserved_path};
use kubelith_rules::internal;
use kubelith_rules::values::{is_kubernetes_signer, signer_name, user_annotations};
use std::collections::BTreeSet;

const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
const MIN_SECONDS: i64 = 60 * 60;
const MAX_SECONDS: i64 = 91 * 24 * 60 * 60;
/// For signers of Kubernetes' own.
const MAX_SECONDS_OF_KUBERNETES: i64 = 24 * 60 * 60;

pub fn check_bundle(bundle: &Value, path: &Path<'_>, errors: &mut ErrorList) {
    match (bundle.has("name"), bundle.has("signerName")) {
        (true, true) => {
            errors.push(Error::invalid(
                path,
                internal::shown("*ClusterTrustBundleProjection", Some(bundle)),
                "only one of name and signerName may be used",
            ));
        }
        (true, false) => {
            let name = bundle.text("name");
            if name.is_empty() {
                errors.push(Error::required(&path.child("name"), "must be a valid object name"));
            }
            let plain = name.rsplit(':').next().unwrap_or_default();
            let messages = is_dns1123_subdomain(plain).into_iter();
            let messages = messages.map(|m| format!("not a valid clustertrustbundlename: {m}"));
            invalid_all(messages.collect(), &path.child("name"), name, errors);
            if let Some(selector) = bundle.some("labelSelector") {
                let detail = "labelSelector must be unset if name is specified";
                errors.push(Error::invalid(&path.child("labelSelector"), selector, detail));
            }
        }
        (false, true) => {
            let (name, at) = (bundle.text("signerName"), path.child("signerName"));
            if name.is_empty() {
                errors.push(Error::required(&at, "must be a valid signer name"));
            }
            signer_name(name, &at, errors);
            label_selector(bundle.get("labelSelector"), &path.child("labelSelector"), errors);
        }
        (false, false) => errors.push(Error::required(path, "either name or signerName must be specified")),
    }
    required(bundle, &["path"], path, errors);
    unreserved_path(bundle.text("path"), &path.child("path"), errors);
}

/// `volume` is the path of the whole volume, whose `paths` are told apart.
pub fn check_certificate<'a>(
    certificate: &'a Value,
    paths: &mut BTreeSet<&'a str>,
    path: &Path<'_>,
    volume: &Path<'_>,
    errors: &mut ErrorList,
) {
    let signer = certificate.text("signerName");
    signer_name(signer, &path.child("signerName"), errors);
    user_annotations(certificate, "userAnnotations", path, errors);
    supported(certificate.text("keyType"), &KEY_TYPES, &path.child("keyType"), errors);
    if let Some(seconds) = certificate.int("maxExpirationSeconds") {
        let path = path.child("maxExpirationSeconds");
        let max = if is_kubernetes_signer(signer) { MAX_SECONDS_OF_KUBERNETES } else { MAX_SECONDS };
        if seconds < MIN_SECONDS {
            let detail = format!("if provided, maxExpirationSeconds must be >= {MIN_SECONDS}");
            errors.push(Error::invalid(&path, seconds, detail));
        }
        if seconds > max {
            errors.push(Error::invalid(&path, seconds, format!("if provided, maxExpirationSeconds must be <= {max}")));
        }
    }
    let mut count = 0;
    for key in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
        let text = certificate.text(key);
        if text.is_empty() {
            continue;
        }
        count += 1;
        unreserved_path(text, &path.child(key), errors);
        if !paths.insert(text) {
            errors.push(Error::invalid(volume, text, DUPLICATE));
        }
    }
    if count == 0 {
        let detail = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        errors.push(Error::required(path, detail));
    }
}
