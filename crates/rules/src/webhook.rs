//! Where webhooks are: at a URL or behind a service.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{is_dns1123_subdomain, is_port_number};
use kubelith_meta::url::Url;

const FORM: &str = "; desired format: https://host[/path]";

pub fn validate_url(url: &str, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::default();
    let url = match Url::parse(url) {
        Ok(url) => url,
        Err(why) => {
            errors.push(Error::required(path, format!("url must be a valid URL: {why}{FORM}")));
            return errors;
        }
    };
    let Url { scheme, user, host, query, fragment, .. } = url;
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

pub fn validate_service(service: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::default();
    // The reference mixes the two up.
    for (key, at) in [("name", "namespace"), ("namespace", "name")] {
        if service.str_at(&[at]).is_empty() {
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
