//! IP addresses and CIDRs. Old fields take addresses with leading zeros and IPv4-mapped IPv6, which other
//! software reads differently; new fields take the canonical form only.

use crate::field::{Error, ErrorList, Path};
use crate::text::Quoted;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How much an old field lets pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpRules {
    /// Leading zeros, mapped addresses, and bits beyond a prefix.
    Legacy,
    /// None of these, but any spelling of an IPv6 address.
    Strict,
}

/// Reads an address as Go did before 1.17: leading zeros in IPv4 octets are ignored. An IPv4-mapped address
/// comes out as IPv6; [`canonical_ip`] tells what it prints as.
pub fn parse_ip_sloppy(s: &str) -> Option<IpAddr> {
    match s.bytes().find(|b| matches!(b, b'.' | b':'))? {
        b'.' => parse_ipv4_sloppy(s).map(IpAddr::V4),
        _ => parse_ipv6_sloppy(s).map(IpAddr::V6),
    }
}

/// The way Go prints an address: IPv4-mapped ones as IPv4.
pub fn canonical_ip(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

fn parse_ipv4_sloppy(s: &str) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut parts = s.split('.');
    for octet in &mut octets {
        *octet = parse_number(parts.next()?, u8::MAX.into())? as u8;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets))
}

/// Decimal digits only, any number of leading zeros.
fn parse_number(s: &str, max: u32) -> Option<u32> {
    if s.is_empty() {
        return None;
    }
    s.bytes().try_fold(0u32, |n, b| {
        let n = n * 10 + char::from(b).to_digit(10)?;
        (n <= max).then_some(n)
    })
}

fn parse_ipv6_sloppy(s: &str) -> Option<Ipv6Addr> {
    let (head, tail) = match s.split_once("::") {
        Some((head, tail)) => (head, Some(tail)),
        None => (s, None),
    };
    let mut groups = [0u16; 8];
    // An IPv4 tail may only end the address.
    let front = parse_groups(head, tail.is_none())?;
    let back = tail.map_or(Some(Vec::new()), |tail| parse_groups(tail, true))?;
    let used = front.len() + back.len();
    // An ellipsis stands for one group at least.
    if used > 8 || (used == 8) == tail.is_some() {
        return None;
    }
    groups[..front.len()].copy_from_slice(&front);
    groups[8 - back.len()..].copy_from_slice(&back);
    Some(Ipv6Addr::from(groups))
}

fn parse_groups(s: &str, ends_address: bool) -> Option<Vec<u16>> {
    let mut groups = Vec::with_capacity(8);
    if s.is_empty() {
        return Some(groups);
    }
    let mut parts = s.split(':').peekable();
    while let Some(part) = parts.next() {
        if groups.len() >= 8 {
            return None;
        }
        if part.contains('.') {
            if parts.peek().is_some() || !ends_address {
                return None;
            }
            let [a, b, c, d] = parse_ipv4_sloppy(part)?.octets();
            groups.extend([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
            continue;
        }
        if part.is_empty() {
            return None;
        }
        let group = part.bytes().try_fold(0u32, |n, b| {
            let n = n * 16 + char::from(b).to_digit(16)?;
            (n <= 0xffff).then_some(n)
        });
        groups.push(group? as u16);
    }
    Some(groups)
}

/// An address with the length of its network's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    /// The address as written, which may have bits beyond the prefix.
    pub address: IpAddr,
    pub prefix: u8,
}

impl Cidr {
    /// Reads a CIDR, with the leniency of [`parse_ip_sloppy`] and leading zeros in the prefix.
    pub fn parse_sloppy(s: &str) -> Option<Cidr> {
        let (address, prefix) = s.split_once('/')?;
        let address = match parse_ipv4_sloppy(address) {
            Some(v4) => IpAddr::V4(v4),
            None => IpAddr::V6(parse_ipv6_sloppy(address)?),
        };
        let prefix = parse_number(prefix, if address.is_ipv4() { 32 } else { 128 })? as u8;
        Some(Cidr { address, prefix })
    }

    /// Reads a CIDR without leading zeros anywhere.
    fn parse_strict(s: &str) -> Option<Cidr> {
        let (address, prefix) = s.rsplit_once('/')?;
        if prefix.len() > 1 && prefix.starts_with('0') {
            return None;
        }
        let address: IpAddr = address.parse().ok()?;
        let prefix = parse_number(prefix, if address.is_ipv4() { 32 } else { 128 })? as u8;
        Some(Cidr { address, prefix })
    }

    /// The network: the address with the bits beyond the prefix cleared.
    pub fn network(self) -> Cidr {
        let address = match self.address {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask))
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask))
            }
        };
        Cidr { address, prefix: self.prefix }
    }

    pub fn contains(self, ip: IpAddr) -> bool {
        let same_family = self.address.is_ipv4() == ip.is_ipv4();
        same_family && Cidr { address: ip, prefix: self.prefix }.network().address == self.network().address
    }

    /// The bits of an address of its family.
    pub fn address_bits(self) -> u8 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }
}

/// As Go prints a network: an IPv4-mapped address as IPv4, with the prefix counted from there.
impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = canonical_ip(self.address);
        let mapped = address.is_ipv4() && self.address.is_ipv6();
        let prefix = if mapped { self.prefix.saturating_sub(96) } else { self.prefix };
        write!(f, "{address}/{prefix}")
    }
}

const IP_RULE: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const CIDR_RULE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

fn check_ip(value: &str, rules: IpRules, path: &Path<'_>) -> (Option<IpAddr>, ErrorList) {
    let mut errors = ErrorList::new();
    let Some(ip) = parse_ip_sloppy(value) else {
        return (None, Error::invalid(path, value, IP_RULE).into());
    };
    if rules == IpRules::Strict {
        match value.parse::<IpAddr>() {
            Err(_) => errors.push(Error::invalid(path, value, "must not have leading 0s")),
            Ok(strict) if is_mapped(strict) => {
                errors.push(Error::invalid(path, value, "must not be an IPv4-mapped IPv6 address"));
            }
            Ok(_) => {}
        }
    }
    (Some(ip), errors)
}

/// What is wrong with the value of a field that came before strict rules. Values that were there before
/// (`old`) pass.
pub fn validate_ip_of_legacy_field(value: &str, rules: IpRules, old: &[&str], path: &Path<'_>) -> ErrorList {
    if old.contains(&value) { ErrorList::new() } else { check_ip(value, rules, path).1 }
}

/// What is wrong with an address, which must be in canonical form.
pub fn validate_ip(value: &str, path: &Path<'_>) -> ErrorList {
    let (ip, mut errors) = check_ip(value, IpRules::Strict, path);
    if let (Some(ip), true) = (ip, errors.is_empty()) {
        errors.extend(check_canonical(value, &canonical_ip(ip).to_string(), path));
    }
    errors
}

fn check_canonical(value: &str, canonical: &str, path: &Path<'_>) -> Option<Error> {
    (value != canonical)
        .then(|| Error::invalid(path, value, format!("must be in canonical form ({})", Quoted(canonical))))
}

fn check_cidr(value: &str, rules: IpRules, path: &Path<'_>) -> (Option<Cidr>, ErrorList) {
    let Some(cidr) = Cidr::parse_sloppy(value) else {
        return (None, Error::invalid(path, value, CIDR_RULE).into());
    };
    let mut errors = ErrorList::new();
    if rules == IpRules::Strict {
        let wrong = match Cidr::parse_strict(value) {
            None => Some("must not have leading 0s in IP or prefix length"),
            Some(strict) if is_mapped(strict.address) => Some("must not have an IPv4-mapped IPv6 address"),
            Some(strict) if strict.network() != strict => Some("must not have bits set beyond the prefix length"),
            Some(_) => None,
        };
        errors.extend(wrong.map(|detail| Error::invalid(path, value, detail)));
    }
    (Some(cidr), errors)
}

/// What is wrong with the value of a field that came before strict rules. Values that were there before
/// (`old`) pass.
pub fn validate_cidr_of_legacy_field(value: &str, rules: IpRules, old: &[&str], path: &Path<'_>) -> ErrorList {
    if old.contains(&value) { ErrorList::new() } else { check_cidr(value, rules, path).1 }
}

/// What is wrong with a network, which must be in canonical form.
pub fn validate_cidr(value: &str, path: &Path<'_>) -> ErrorList {
    let (cidr, mut errors) = check_cidr(value, IpRules::Strict, path);
    if let (Some(cidr), true) = (cidr, errors.is_empty()) {
        errors.extend(check_canonical(value, &cidr.network().to_string(), path));
    }
    errors
}

/// What is wrong with an address with its network's prefix, which must be in canonical form: `10.9.8.7/24`.
pub fn validate_interface_address(value: &str, path: &Path<'_>) -> ErrorList {
    let Some(cidr) = Cidr::parse_sloppy(value) else {
        let detail = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        return Error::invalid(path, value, detail).into();
    };
    let address = canonical_ip(cidr.address);
    // Unlike for a network, a prefix that ends within the mapping is printed as it is.
    let prefix = if address.is_ipv4() && cidr.prefix > 32 { cidr.prefix - 96 } else { cidr.prefix };
    check_canonical(value, &format!("{address}/{prefix}"), path).into_iter().collect()
}

/// Warnings for an address in a field that takes more than the canonical form.
pub fn ip_warnings(value: &str, path: &Path<'_>) -> Vec<String> {
    let Some(ip) = parse_ip_sloppy(value) else {
        return Vec::new();
    };
    let value_quoted = Quoted(value);
    match value.parse::<IpAddr>() {
        Ok(strict) if !is_mapped(strict) => {
            let canonical = strict.to_string();
            if strict.is_ipv4() || canonical == value {
                return Vec::new();
            }
            vec![format!(
                "{path}: IPv6 address {value_quoted} should be in RFC 5952 canonical format ({})",
                Quoted(&canonical)
            )]
        }
        _ => {
            let canonical = canonical_ip(ip).to_string();
            vec![format!("{path}: non-standard IP address {value_quoted} is invalid: use {}", Quoted(&canonical))]
        }
    }
}

/// Warnings for a network in a field that takes more than the canonical form.
pub fn cidr_warnings(value: &str, path: &Path<'_>) -> Vec<String> {
    let Some(cidr) = Cidr::parse_sloppy(value) else {
        return Vec::new();
    };
    let (value_quoted, network) = (Quoted(value), cidr.network().to_string());
    let network = Quoted(&network);
    let mut warnings = Vec::new();
    if cidr.network() != cidr {
        let single = format!("{}/{}", canonical_ip(cidr.address), cidr.address_bits());
        warnings.push(format!(
            "{path}: CIDR value {value_quoted} is ambiguous in this context (should be {network} or {}?)",
            Quoted(&single)
        ));
    }
    match Cidr::parse_strict(value) {
        Some(strict) if !is_mapped(strict.address) => {
            let canonical = strict.to_string();
            if warnings.is_empty() && strict.address.is_ipv6() && canonical != value {
                warnings.push(format!(
                    "{path}: IPv6 CIDR value {value_quoted} should be in RFC 5952 canonical format ({})",
                    Quoted(&canonical)
                ));
            }
        }
        _ => warnings.push(format!("{path}: non-standard CIDR value {value_quoted} is invalid: use {network}")),
    }
    warnings
}
