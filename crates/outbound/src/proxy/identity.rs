//! How names become header names.

use std::fmt::Write;

/// An extra's key as part of a header name: what may not stand there is percent-encoded, and so is the percent sign.
pub fn escape_extra_key(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_as_header_names() {
        for (key, want) in [
            ("scopes", "scopes"),
            ("example.com/project-id", "example.com%2Fproject-id"),
            ("100%", "100%25"),
            ("ä", "%C3%A4"),
        ] {
            assert_eq!(escape_extra_key(key), want);
        }
    }
}
