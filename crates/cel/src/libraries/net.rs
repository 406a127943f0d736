//! Addresses and ranges of addresses.

use super::{CIDR, IP, Run, global, member, of, text};
use crate::decl::Function;
use crate::types::Type;
use crate::value::{CidrRange, EvalError, Opaque, Val};
use kubelith_meta::address::parse_address;
use kubelith_meta::text::quote;
use std::net::IpAddr;

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
