//! The formats of strings that custom resources are checked by. All others are taken for words of explanation.

use super::Type;
use kubelith_meta::names::{is_dns1123_label, is_dns1123_subdomain};
use kubelith_meta::{names, time};
use regex::Regex;
use std::sync::LazyLock;

/// Whether a format means anything for values of a type (`None`: of any, or of several types).
pub fn is_known(kind: Option<Type>, format: &str) -> bool {
    match kind {
        None | Some(Type::String) => checker(format).is_some(),
        Some(Type::Integer) => matches!(format, "int32" | "int64"),
        Some(Type::Number) => matches!(format, "float" | "double"),
        _ => false,
    }
}

/// Whether a text has the format. Unknown formats fit everything.
pub fn fits(format: &str, text: &str) -> bool {
    checker(format).is_none_or(|check| check(text))
}

type Check = fn(&str) -> bool;

/// Hyphens in names of formats do not count.
fn checker(format: &str) -> Option<Check> {
    Some(match format.replace('-', "").as_str() {
        "bsonobjectid" => |s| s.len() == 24 && s.bytes().all(|b| b.is_ascii_hexdigit()),
        "uri" => is_request_uri,
        "email" => is_email,
        "hostname" => is_hostname,
        "ipv4" => |s| s.contains('.') && names::parse_ip_sloppy(s).is_some(),
        "ipv6" => |s| s.contains(':') && names::parse_ip_sloppy(s).is_some(),
        "cidr" => |s| names::Cidr::parse_sloppy(s).is_some(),
        "mac" => is_mac,
        "uuid" => |s| UUID.is_match(s),
        "uuid3" => |s| UUID3.is_match(s),
        "uuid4" => |s| UUID4.is_match(s),
        "uuid5" => |s| UUID5.is_match(s),
        "isbn" => |s| is_isbn10(s) || is_isbn13(s),
        "isbn10" => is_isbn10,
        "isbn13" => is_isbn13,
        "creditcard" => is_credit_card,
        "ssn" => |s| s.len() == 11 && SSN.is_match(s),
        "hexcolor" => |s| HEX_COLOR.is_match(s),
        "rgbcolor" => |s| RGB_COLOR.is_match(s),
        "byte" => |s| BASE64.is_match(s),
        "password" => |_| true,
        "date" => is_date,
        "duration" => is_duration,
        "datetime" => is_date_time,
        "k8sshortname" => |s| is_dns1123_label(s).is_empty(),
        "k8slongname" => |s| is_dns1123_subdomain(s).is_empty(),
        _ => return None,
    })
}

macro_rules! patterns {
    ($($name:ident = $pattern:expr;)*) => {
        $(static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($pattern).expect("a valid expression"));)*
    };
}

patterns! {
    HOSTNAME = r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$";
    UUID = r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID3 = r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}$";
    UUID4 = r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    UUID5 = r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}$";
    CREDIT_CARD = r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$";
    SSN = r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$";
    HEX_COLOR = r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$";
    RGB_COLOR = r"^rgb\([\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*,[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*,[\t\n\f\r ]*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])[\t\n\f\r ]*\)$";
    BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$";
    TIME = r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$";
    SCALA_DURATION = r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)";
}

/// As Go's url.ParseRequestURI takes it: a path from the root, or a scheme with something behind it.
fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < b' ' || b == 0x7f) {
        return false;
    }
    let valid_escapes = |s: &str| {
        let bytes = s.as_bytes();
        let hex = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_hexdigit);
        bytes.iter().enumerate().all(|(i, b)| *b != b'%' || (hex(i + 1) && hex(i + 2)))
    };
    if text.starts_with('/') || text == "*" {
        return valid_escapes(text.split('?').next().unwrap_or(""));
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let named = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    if !named {
        return false;
    }
    let before_query = rest.split('?').next().unwrap_or("");
    // Without a slash the rest is opaque, which is taken.
    let Some(after) = before_query.strip_prefix("//") else {
        return !before_query.starts_with('/') || valid_escapes(before_query);
    };
    let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let port = match host.rfind(']') {
        Some(end) => &host[end + 1..],
        None => host.find(':').map_or("", |i| &host[i..]),
    };
    let valid_port = port.is_empty() || port.strip_prefix(':').is_some_and(|p| p.bytes().all(|b| b.is_ascii_digit()));
    let valid_host = !host.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}']);
    valid_port && valid_host && valid_escapes(path)
}

/// The forms of an address that people write: `a@b`, `Name <a@b>`, `<a@b>`.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.strip_suffix('>') {
        Some(rest) => match rest.rsplit_once('<') {
            Some((name, address)) if !name.contains(['<', '>', ',', '@']) || name.trim().starts_with('"') => address,
            _ => return false,
        },
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let atom = |s: &str| {
        !s.is_empty()
            && s.split('.').all(|part| {
                let fits = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
                !part.is_empty() && part.chars().all(fits)
            })
    };
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let literal = domain.starts_with('[') && domain.ends_with(']');
    (quoted || atom(local)) && (literal || atom(domain))
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255 && HOSTNAME.is_match(text) && text.split('.').all(|part| part.len() <= 63)
}

/// Six, eight or twenty bytes in hexadecimal, with colons or hyphens between bytes or dots between pairs.
fn is_mac(text: &str) -> bool {
    let parts = |separator: char, width: usize| {
        let parts: Vec<&str> = text.split(separator).collect();
        let hex = parts.iter().all(|p| p.len() == width && p.bytes().all(|b| b.is_ascii_hexdigit()));
        hex && matches!(parts.len() * width / 2, 6 | 8 | 20)
    };
    parts(':', 2) || parts('-', 2) || parts('.', 4)
}

fn digits(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '\t' | '\n' | '\x0c' | '\r' | ' ' | '-')).collect()
}

fn is_isbn10(text: &str) -> bool {
    let text = digits(text);
    let bytes = text.as_bytes();
    if bytes.len() != 10 || !bytes[..9].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let last = match bytes[9] {
        b'X' => 10,
        b if b.is_ascii_digit() => u32::from(b - b'0'),
        _ => return false,
    };
    let sum: u32 = bytes[..9].iter().zip(1u32..).map(|(b, i)| i * u32::from(b - b'0')).sum();
    (sum + 10 * last).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let text = digits(text);
    let bytes = text.as_bytes();
    if bytes.len() != 13 || !bytes.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let weigh = |(i, b): (usize, &u8)| u32::from(b - b'0') * if i % 2 == 0 { 1 } else { 3 };
    let sum: u32 = bytes[..12].iter().enumerate().map(weigh).sum();
    u32::from(bytes[12] - b'0') == (10 - sum % 10) % 10
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if !CREDIT_CARD.is_match(&digits) {
        return false;
    }
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(i, b)| match (u32::from(b - b'0'), i % 2) {
            (digit, 0) => digit,
            (digit, _) => digit * 2 / 10 + digit * 2 % 10,
        })
        .sum();
    sum.is_multiple_of(10)
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && time::Time::parse(&format!("{text}T00:00:00Z")).is_ok()
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    let Some(found) = TIME.captures(time) else { return false };
    is_date(date) && &found[1] <= "23" && &found[2] <= "59" && &found[3] <= "59"
}

/// Go's durations, and those of Scala: `3 days`.
fn is_duration(text: &str) -> bool {
    const EXACT: [&str; 20] = [
        "ns", "nano", "us", "µs", "micro", "ms", "milli", "s", "sec", "m", "min", "h", "hr", "hour", "d", "day", "w",
        "wk", "week", "",
    ];
    const PREFIXES: [&str; 8] = ["nano", "micro", "milli", "sec", "min", "hour", "day", "week"];
    if time::Duration::parse(text).is_ok() {
        return true;
    }
    let mut found = false;
    for part in SCALA_DURATION.captures_iter(text) {
        if part[1].parse::<i64>().is_err() {
            return false;
        }
        let unit = part[2].to_lowercase();
        found |= EXACT.contains(&unit.as_str()) || PREFIXES.iter().any(|p| unit.starts_with(p));
    }
    found
}
