//! How objects are converted: by nobody, or by a webhook.

use super::leniency::Leniency;
use super::walk::list;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{is_dns1035_label, is_dns1123_subdomain, is_port_number};
use kubelith_meta::{Str, Value};
use std::collections::HashSet;

const REVIEWS: [&str; 2] = ["v1", "v1beta1"];
const FORM: &str = "; desired format: https://host[/path]";

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

fn validate_url(url: &str, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::default();
    let (before_fragment, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (before_query, query) = before_fragment.split_once('?').unwrap_or((before_fragment, ""));
    let (scheme, rest) = match before_query.split_once(':') {
        Some((scheme, rest)) if !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric()) => {
            (scheme, rest)
        }
        _ => ("", before_query),
    };
    let authority = rest.strip_prefix("//").map_or("", |r| r.split('/').next().unwrap_or(""));
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if scheme != "https" {
        errors.push(Error::invalid(path, scheme, format!("'https' is the only allowed URL scheme{FORM}")));
    }
    if host.is_empty() {
        errors.push(Error::invalid(path, "", format!("host must be specified{FORM}")));
    }
    if let Some(user) = user {
        errors.push(Error::invalid(path, user, "user information is not permitted in the URL"));
    }
    if !fragment.is_empty() {
        errors.push(Error::invalid(path, fragment, "fragments are not permitted in the URL"));
    }
    if !query.is_empty() {
        errors.push(Error::invalid(path, query, "query parameters are not permitted in the URL"));
    }
    errors
}

fn validate_service(service: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::default();
    // The reference mixes the two up, which shows only in their order.
    for key in ["name", "namespace"] {
        if service.str_at(&[key]).is_empty() {
            errors.push(Error::required(&path.child(key), ""));
        }
    }
    let port = service.get("port").and_then(Value::as_i64).unwrap_or(443);
    let problems = is_port_number(port);
    if !problems.is_empty() {
        errors.push(Error::invalid(&path.child("port"), port, format!("port is not valid: {}", problems.join(", "))));
    }
    let text = service.str_at(&["path"]);
    let at = path.child("path");
    if text.is_empty() || text == "/" {
        return errors;
    }
    if text == "//" {
        errors.push(Error::invalid(&at, text, "segment[0] may not be empty"));
        return errors;
    }
    if !text.starts_with('/') {
        errors.push(Error::invalid(&at, text, "must start with a '/'"));
    }
    let mut chars = text.chars();
    chars.next();
    let below = chars.as_str();
    for (i, step) in below.strip_suffix('/').unwrap_or(below).split('/').enumerate() {
        if step.is_empty() {
            errors.push(Error::invalid(&at, text, format!("segment[{i}] may not be empty")));
        } else {
            let problems = is_dns1123_subdomain(step).into_iter();
            errors.extend(problems.map(|p| Error::invalid(&at, text, format!("segment[{i}]: {p}"))));
        }
    }
    errors
}

/// Whether the stored bundle could not be used: then it need not get better at once.
pub fn has_bad_ca_bundle(object: &Value) -> bool {
    let bundle = Str::from(object.str_at(&["spec", "conversion", "webhookClientConfig", "caBundle"]));
    !bundle.is_empty() && !is_ca_bundle(&bundle)
}

/// Base64 of PEM with at least one certificate.
fn is_ca_bundle(base64: &str) -> bool {
    let Ok(bytes) = kubelith_codec::base64::decode(base64) else { return false };
    String::from_utf8_lossy(&bytes).contains("-----BEGIN CERTIFICATE-----")
}
