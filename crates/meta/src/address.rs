//! IP addresses as Go's net/netip reads them: what it refuses, and in which words, is part of messages of the API.

use crate::text::quote;
use std::net::{IpAddr, Ipv6Addr};

/// Go's `netip.ParseAddr`: the address, and whether it has a zone.
pub fn parse_address(text: &str) -> Result<(IpAddr, bool), String> {
    let failed = |why: &str, at: &str| {
        let at = if at.is_empty() { String::new() } else { format!(" (at {})", quote(at)) };
        format!("ParseAddr({}): {why}{at}", quote(text))
    };
    match text.bytes().find(|b| matches!(b, b'.' | b':' | b'%')) {
        Some(b'.') => {
            let fields = v4_fields(text).map_err(|(why, at)| failed(why, at))?;
            Ok((IpAddr::V4(fields.into()), false))
        }
        Some(b':') => v6(text).map_err(|(why, at)| failed(why, at)),
        Some(_) => Err(failed("missing IPv6 address", "")),
        None => Err(failed("unable to parse IP", "")),
    }
}

type Failure<'t> = (&'static str, &'t str);

fn v4_fields(text: &str) -> Result<[u8; 4], Failure<'_>> {
    let bytes = text.as_bytes();
    let (mut fields, mut at, mut value, mut digits) = ([0u8; 4], 0, 0u32, 0);
    for (i, b) in bytes.iter().enumerate() {
        match b {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err(("IPv4 field has octet with leading zero", ""));
                }
                value = value * 10 + u32::from(b - b'0');
                digits += 1;
                if value > 255 {
                    return Err(("IPv4 field has value >255", ""));
                }
            }
            b'.' => {
                if i == 0 || i == bytes.len() - 1 || bytes[i - 1] == b'.' {
                    return Err(("IPv4 field must have at least one digit", &text[i..]));
                }
                if at == 3 {
                    return Err(("IPv4 address too long", ""));
                }
                fields[at] = value as u8;
                (at, value, digits) = (at + 1, 0, 0);
            }
            _ => return Err(("unexpected character", text.get(i..).unwrap_or_default())),
        }
    }
    if at < 3 {
        return Err(("IPv4 address too short", ""));
    }
    fields[3] = value as u8;
    Ok(fields)
}

fn v6(text: &str) -> Result<(IpAddr, bool), Failure<'_>> {
    let (mut rest, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(("zone must be a non-empty string", "")),
        Some((address, _)) => (address, true),
        None => (text, false),
    };
    let mut bytes = [0u8; 16];
    let (mut at, mut gap) = (0, None);
    if let Some(after) = rest.strip_prefix("::") {
        (gap, rest) = (Some(0), after);
        if rest.is_empty() {
            return Ok((IpAddr::V6(Ipv6Addr::UNSPECIFIED), zone));
        }
    }
    while at < 16 {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 4 {
            return Err(("each group must have 4 or less digits", rest));
        }
        if digits == 0 {
            return Err(("each colon-separated field must have at least one digit", rest));
        }
        if rest[digits..].starts_with('.') {
            if gap.is_none() && at != 12 {
                return Err(("embedded IPv4 address must replace the final 2 fields of the address", rest));
            }
            if at + 4 > 16 {
                return Err(("too many hex fields to fit an embedded IPv4 at the end of the address", rest));
            }
            bytes[at..at + 4].copy_from_slice(&v4_fields(rest)?);
            (at, rest) = (at + 4, "");
            break;
        }
        let group = u16::from_str_radix(&rest[..digits], 16).unwrap_or(0);
        bytes[at..at + 2].copy_from_slice(&group.to_be_bytes());
        (at, rest) = (at + 2, &rest[digits..]);
        if rest.is_empty() {
            break;
        }
        if !rest.starts_with(':') {
            return Err(("unexpected character, want colon", rest));
        }
        if rest.len() == 1 {
            return Err(("colon must be followed by more characters", rest));
        }
        rest = &rest[1..];
        if rest.starts_with(':') {
            if gap.is_some() {
                return Err(("multiple :: in address", rest));
            }
            (gap, rest) = (Some(at), &rest[1..]);
            if rest.is_empty() {
                break;
            }
        }
    }
    if !rest.is_empty() {
        return Err(("trailing garbage after address", rest));
    }
    match gap {
        None if at < 16 => return Err(("address string too short", "")),
        Some(_) if at == 16 => return Err(("the :: must expand to at least one field of zeros", "")),
        Some(gap) => {
            bytes.copy_within(gap..at, 16 - (at - gap));
            bytes[gap..16 - (at - gap)].fill(0);
        }
        None => {}
    }
    Ok((IpAddr::V6(bytes.into()), zone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (text, address, zone) in [
            ("1.2.3.4", "1.2.3.4", false),
            ("::", "::", false),
            ("::ffff:1.2.3.4", "::ffff:1.2.3.4", false),
            ("fe80::1%eth0", "fe80::1", true),
            ("1:2::7:8", "1:2::7:8", false),
        ] {
            assert_eq!(parse_address(text), Ok((address.parse().unwrap(), zone)), "{text}");
        }
        for (text, why) in [
            ("", "unable to parse IP"),
            ("1.2.3", "IPv4 address too short"),
            ("1.2.3.04", "IPv4 field has octet with leading zero"),
            ("1.2.3.256", "IPv4 field has value >255"),
            ("1:2", "address string too short"),
            ("1::2::3", "multiple :: in address (at \":3\")"),
            ("%eth0", "missing IPv6 address"),
        ] {
            assert_eq!(parse_address(text), Err(format!("ParseAddr({}): {why}", quote(text))), "{text}");
        }
    }
}
