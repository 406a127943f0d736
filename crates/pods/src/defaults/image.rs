//! Which tag an image name has, for the pull policy.

/// `Always` for the tag `latest`, be it given or meant; else `IfNotPresent`, also for names that make no sense.
pub fn pull_policy(image: &str) -> &'static str {
    if means_latest(image) { "Always" } else { "IfNotPresent" }
}

/// The length of a repository's path, at most.
const PATH_LENGTH: usize = 255;

/// Whether the tag of an image name is `latest`. It is not if the name has only a digest, or is not well-formed.
fn means_latest(image: &str) -> bool {
    let (named, digest) = match image.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (image, None),
    };
    // 64 hexadecimal digits are an image's identifier, not its name.
    if image.len() == 64 && image.bytes().all(is_lower_hex) {
        return false;
    }
    // A tag has no slash, a port is followed by one.
    let last = named.rfind('/').map_or(0, |i| i + 1);
    let (name, tag) = match named[last..].split_once(':') {
        Some((component, tag)) => (&named[..last + component.len()], Some(tag)),
        None => (named, None),
    };
    let is_meant = match tag {
        Some(tag) => tag == "latest",
        None => digest.is_none(),
    };
    is_meant && is_name(name) && digest.is_none_or(is_digest)
}

/// A path, or one below a domain. What could be a domain but is not one may still be part of a path.
fn is_name(name: &str) -> bool {
    let (domain, path) = match name.split_once('/') {
        Some((first, rest)) if first == "localhost" || first.contains(['.', ':']) || has_uppercase(first) => {
            (Some(first), rest)
        }
        _ => (None, name),
    };
    match domain {
        // The length counts without the domain, but with what an official image leaves out.
        None if !name.contains('/') => is_path(name) && "library/".len() + name.len() <= PATH_LENGTH,
        None => is_path(name) && name.len() <= PATH_LENGTH,
        Some(domain) if is_domain(domain) => is_path(path) && path.len() <= PATH_LENGTH,
        Some(_) => is_path(name) && name.len() <= PATH_LENGTH,
    }
}

fn has_uppercase(text: &str) -> bool {
    text.chars().any(char::is_uppercase)
}

fn is_path(path: &str) -> bool {
    path.split('/').all(is_path_component)
}

/// Lower-case letters and digits, with single dots, one or two underscores or any dashes between them.
fn is_path_component(component: &str) -> bool {
    let is_alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let (Some(first), Some(last)) = (component.bytes().next(), component.bytes().last()) else { return false };
    if !is_alphanumeric(first) || !is_alphanumeric(last) {
        return false;
    }
    let separators = component.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    separators.filter(|s| !s.is_empty()).all(|s| matches!(s, "." | "_" | "__") || s.bytes().all(|b| b == b'-'))
}

fn is_domain(domain: &str) -> bool {
    let host = match domain.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => domain,
    };
    if let Some(address) = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')) {
        return !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':');
    }
    host.split('.').all(|part| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    })
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == length && hex.bytes().all(is_lower_hex)
}

fn is_lower_hex(b: u8) -> bool {
    matches!(b, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_latest_is_always_pulled() {
        let digest = format!("nginx@sha256:{}", "a".repeat(64));
        let both = format!("nginx:latest@sha256:{}", "a".repeat(64));
        let cases = [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.27", "IfNotPresent"),
            ("library/nginx", "Always"),
            ("registry.example.com:5000/team/app", "Always"),
            ("registry.example.com:5000/team/app:v1", "IfNotPresent"),
            ("localhost/app:latest", "Always"),
            ("UPPER/app:latest", "Always"),
            ("[::1]:5000/app", "Always"),
            ("foo_bar.com/app", "Always"),
            ("foo_bar:80/app", "IfNotPresent"),
            ("a__b/c--d.e", "Always"),
            ("a..b", "IfNotPresent"),
            ("", "IfNotPresent"),
            ("Nginx", "IfNotPresent"),
            ("nginx:", "IfNotPresent"),
            ("nginx latest", "IfNotPresent"),
            ("nginx@sha256:short", "IfNotPresent"),
            (&digest, "IfNotPresent"),
            (&both, "Always"),
            (&"a".repeat(64), "IfNotPresent"),
            (&"a".repeat(300), "IfNotPresent"),
        ];
        for (image, expected) in cases {
            assert_eq!(pull_policy(image), expected, "{image}");
        }
    }
}
