//! Addresses and ranges of addresses.

use super::{CIDR, IP, Run, global, member, of, text};
use crate::decl::Function;
use crate::types::Type;
use crate::value::{CidrRange, EvalError, Opaque, Val};
use kubelith_meta::text::quote;
use std::net::{IpAddr, Ipv6Addr};

const ADDRESS: Type = Type::Named(IP);
const RANGE: Type = Type::Named(CIDR);

pub fn ip_functions() -> Vec<Function> {
    use Type::{Bool, Int, String};
    let test = |name, id| of(name, [member(id, [ADDRESS], Bool)]);
    vec![
        of("ip", [global("string_to_ip", [String], ADDRESS)]),
        of("family", [member("ip_family", [ADDRESS], Int)]),
        of("ip.isCanonical", [global("ip_is_canonical", [String], Bool)]),
        test("isUnspecified", "ip_is_unspecified"),
        test("isLoopback", "ip_is_loopback"),
        test("isLinkLocalMulticast", "ip_is_link_local_multicast"),
        test("isLinkLocalUnicast", "ip_is_link_local_unicast"),
        test("isGlobalUnicast", "ip_is_global_unicast"),
        of("isIP", [global("is_ip", [String], Bool)]),
        of("string", [global("ip_to_string", [ADDRESS], String)]),
    ]
}

pub fn cidr_functions() -> Vec<Function> {
    use Type::{Bool, Int, String};
    vec![
        of("cidr", [global("string_to_cidr", [String], RANGE)]),
        of(
            "containsIP",
            [
                member("cidr_contains_ip_string", [RANGE, String], Bool),
                member("cidr_contains_ip_ip", [RANGE, ADDRESS], Bool),
            ],
        ),
        of(
            "containsCIDR",
            [
                member("cidr_contains_cidr_string", [RANGE, String], Bool),
                member("cidr_contains_cidr", [RANGE, RANGE], Bool),
            ],
        ),
        of("ip", [member("cidr_ip", [RANGE], ADDRESS)]),
        of("prefixLength", [member("cidr_prefix_length", [RANGE], Int)]),
        of("masked", [member("cidr_masked", [RANGE], RANGE)]),
        of("isCIDR", [global("is_cidr", [String], Bool)]),
        of("string", [global("cidr_to_string", [RANGE], String)]),
    ]
}

pub fn run(id: &str) -> Option<Run> {
    Some(match id {
        "string_to_ip" => Run::Unary(|s| Ok(Val::opaque(Opaque::Ip(parse_ip(text(s)?)?)))),
        "is_ip" => Run::Unary(|s| Ok(Val::Bool(parse_ip(text(s)?).is_ok()))),
        "ip_is_canonical" => Run::Unary(|s| Ok(Val::Bool(parse_ip(text(s)?)?.to_string() == text(s)?))),
        "ip_family" => Run::Unary(|ip| Ok(Val::Int(if address(ip)?.is_ipv4() { 4 } else { 6 }))),
        "ip_is_unspecified" => Run::Unary(|ip| Ok(Val::Bool(address(ip)?.is_unspecified()))),
        "ip_is_loopback" => Run::Unary(|ip| Ok(Val::Bool(address(ip)?.is_loopback()))),
        "ip_is_link_local_multicast" => Run::Unary(|ip| Ok(Val::Bool(is_link_local_multicast(address(ip)?)))),
        "ip_is_link_local_unicast" => Run::Unary(|ip| Ok(Val::Bool(is_link_local_unicast(address(ip)?)))),
        "ip_is_global_unicast" => Run::Unary(|ip| Ok(Val::Bool(is_global_unicast(address(ip)?)))),
        "ip_to_string" | "cidr_to_string" => Run::Unary(|x| Ok(Val::text(x.to_string()))),
        "string_to_cidr" => Run::Unary(|s| Ok(Val::opaque(Opaque::Cidr(cidr(text(s)?)?)))),
        "is_cidr" => Run::Unary(|s| Ok(Val::Bool(parse_cidr(text(s)?).is_ok()))),
        "cidr_contains_ip_string" => Run::Binary(|c, s| Ok(Val::Bool(contains(range(c)?, parse_ip(text(s)?)?)))),
        "cidr_contains_ip_ip" => Run::Binary(|c, ip| Ok(Val::Bool(contains(range(c)?, address(ip)?)))),
        "cidr_contains_cidr_string" => Run::Binary(|c, s| Ok(Val::Bool(covers(range(c)?, cidr(text(s)?)?)))),
        "cidr_contains_cidr" => Run::Binary(|c, other| Ok(Val::Bool(covers(range(c)?, range(other)?)))),
        "cidr_ip" => Run::Unary(|c| Ok(Val::opaque(Opaque::Ip(range(c)?.address)))),
        "cidr_prefix_length" => Run::Unary(|c| Ok(Val::Int(range(c)?.bits.into()))),
        "cidr_masked" => Run::Unary(|c| Ok(Val::opaque(Opaque::Cidr(masked(range(c)?))))),
        _ => return None,
    })
}

fn address(val: &Val<'_>) -> Result<IpAddr, EvalError> {
    match val.as_opaque() {
        Some(Opaque::Ip(address)) => Ok(*address),
        _ => Err(EvalError::no_overload()),
    }
}

fn range(val: &Val<'_>) -> Result<CidrRange, EvalError> {
    match val.as_opaque() {
        Some(Opaque::Cidr(range)) => Ok(*range),
        _ => Err(EvalError::no_overload()),
    }
}

fn parse_ip(text: &str) -> Result<IpAddr, EvalError> {
    let quoted = quote(text);
    let (address, zone) = parse_address(text)
        .map_err(|e| EvalError::new(format!("IP Address {quoted} parse error during conversion from string: {e}")))?;
    if zone {
        return Err(EvalError::new(format!("IP address {quoted} with zone value is not allowed")));
    }
    if is_mapped(address) {
        return Err(EvalError::new(format!("IPv4-mapped IPv6 address {quoted} is not allowed")));
    }
    Ok(address)
}

fn cidr(text: &str) -> Result<CidrRange, EvalError> {
    const FAILED: &str = "network address parse error during conversion from string";
    parse_cidr(text).map_err(|e| EvalError::new(format!("{FAILED}: {e}")))
}

fn parse_cidr(text: &str) -> Result<CidrRange, String> {
    let range = parse_prefix(text).map_err(|e| {
        format!("network address parse error during conversion from string: netip.ParsePrefix({}): {e}", quote(text))
    })?;
    if is_mapped(range.address) {
        return Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)));
    }
    Ok(range)
}

/// Go's `netip.ParsePrefix`.
fn parse_prefix(text: &str) -> Result<CidrRange, String> {
    let (address, bits) = text.rsplit_once('/').ok_or("no '/'")?;
    let (address, zone) = parse_address(address)?;
    if zone {
        return Err("IPv6 zones cannot be present in a prefix".into());
    }
    let bad = || format!("bad bits after slash: {}", quote(bits));
    if bits.len() > 1 && !(b'1'..=b'9').contains(&bits.as_bytes()[0]) {
        return Err(bad());
    }
    let number: i64 = bits.parse().map_err(|_| bad())?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    match u8::try_from(number) {
        Ok(bits) if bits <= most => Ok(CidrRange { address, bits }),
        _ => Err("prefix length out of range".into()),
    }
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

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

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_global_unicast(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
    !(is_broadcast
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || is_link_local_unicast(address))
}

/// The address as a number, aligned to the left.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) << 96,
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn mask(bits: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)
}

fn contains(range: CidrRange, address: IpAddr) -> bool {
    range.address.is_ipv4() == address.is_ipv4() && (number(range.address) ^ number(address)) & mask(range.bits) == 0
}

fn covers(range: CidrRange, other: CidrRange) -> bool {
    range.bits <= other.bits && contains(range, other.address)
}

fn masked(range: CidrRange) -> CidrRange {
    let number = number(range.address) & mask(range.bits);
    let address = match range.address {
        IpAddr::V4(_) => IpAddr::V4(((number >> 96) as u32).into()),
        IpAddr::V6(_) => IpAddr::V6(number.into()),
    };
    CidrRange { address, bits: range.bits }
}
