//! How objects are converted: by nobody, or by a webhook.

use super::leniency::Leniency;
use super::walk::list;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::is_dns1035_label;
use kubelith_meta::{Str, Value};
use kubelith_rules::webhook::{validate_service, validate_url};
use std::collections::HashSet;

const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

pub fn is_known_review(version: &Value) -> bool {
    version.as_str().is_some_and(|v| REVIEWS.contains(&v))
}

pub fn validate(conversion: Option<&Value>, leniency: &Leniency, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::default();
    let Some(conversion) = conversion.filter(|c| !c.is_null()) else { return errors };
    let strategy = conversion.str_at(&["strategy"]);
    match strategy {
        "" => errors.push(Error::required(&path.child("strategy"), "")),
        "None" | "Webhook" => {}
        other => errors.push(Error::not_supported(&path.child("strategy"), other, ["None", "Webhook"])),
    }
    let client = conversion.get("webhookClientConfig").filter(|c| !c.is_null());
    if strategy != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        if client.is_some() {
            errors.push(Error::forbidden(&path.child("webhookClientConfig"), why));
        }
        if !list(conversion, "conversionReviewVersions").is_empty() {
            errors.push(Error::forbidden(&path.child("conversionReviewVersions"), why));
        }
        return errors;
    }
    let at = path.child("webhookClientConfig");
    match client {
        None => errors.push(Error::required(&at, "required when strategy is set to Webhook")),
        Some(client) => {
            let url = client.get("url").and_then(Value::as_str);
            let service = client.get("service").filter(|s| !s.is_null());
            match (url, service) {
                (Some(url), None) => errors.extend(validate_url(url, &at.child("url"))),
                (None, Some(service)) => errors.extend(validate_service(service, &at.child("service"))),
                _ => errors.push(Error::required(&at, "exactly one of url or service is required")),
            }
            let bundle = client.str_at(&["caBundle"]);
            if !bundle.is_empty() && !leniency.bad_ca_bundle && !is_ca_bundle(bundle) {
                let why = "unable to load root certificates: unable to parse bytes as PEM block";
                errors.push(Error::invalid(&at.child("caBundle"), bundle, why));
            }
        }
    }
    errors.extend(review_versions(conversion, leniency, &path.child("conversionReviewVersions")));
    errors
}

fn review_versions(conversion: &Value, leniency: &Leniency, path: &Path<'_>) -> ErrorList {
    let versions = list(conversion, "conversionReviewVersions");
    if versions.is_empty() {
        return Error::required(path, "").into();
    }
    let mut errors = ErrorList::default();
    let mut seen = HashSet::new();
    for (i, version) in versions.iter().map(|v| v.as_str().unwrap_or("")).enumerate() {
        if !seen.insert(version) {
            errors.push(Error::invalid(&path.index(i), version, "duplicate version"));
            continue;
        }
        for problem in is_dns1035_label(version) {
            errors.push(Error::invalid(&path.index(i), version, problem));
        }
    }
    if !leniency.unknown_review_versions && !versions.iter().any(is_known_review) {
        let why = format!("must include at least one of {}", REVIEWS.join(", "));
        errors.push(Error::invalid(path, Value::Array(versions.to_vec()), why));
    }
    errors
}

/// Whether the stored bundle could not be used: then it need not get better at once.
pub fn has_bad_ca_bundle(object: &Value) -> bool {
    let bundle = Str::from(object.str_at(&["spec", "conversion", "webhookClientConfig", "caBundle"]));
    !bundle.is_empty() && !is_ca_bundle(&bundle)
}

/// Base64 of PEM with at least one certificate.
pub fn is_ca_bundle(base64: &str) -> bool {
    let Ok(bytes) = kubelith_codec::base64::decode(base64) else { return false };
    String::from_utf8_lossy(&bytes).contains("-----BEGIN CERTIFICATE-----")
}
