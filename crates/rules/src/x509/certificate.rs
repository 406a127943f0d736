//! X.509 certificates: what rules ask of them. Their signatures are not checked.

use super::der::{Der, Element, OCTET_STRING, SEQUENCE, constructed, context};
use super::extensions::{AltNames, Extension, Extensions};
use super::key::{Algorithm, PublicKey};
use super::names;
use kubelith_meta::time::Time;

#[derive(Debug)]
pub struct Certificate {
    pub not_before: Time,
    pub not_after: Time,
    pub key: PublicKey,
    /// Of its basic constraints, if it has any.
    pub is_ca: Option<bool>,
    pub names: AltNames,
}

impl Certificate {
    /// One certificate and nothing else.
    pub fn parse(der: &[u8]) -> Result<Certificate, String> {
        match read(der)? {
            (certificate, []) => Ok(certificate),
            _ => Err("x509: trailing data".into()),
        }
    }

    /// Several, one after the other.
    pub fn parse_all(der: &[u8]) -> Result<Vec<Certificate>, String> {
        let mut rest = der;
        let mut all = Vec::new();
        while !rest.is_empty() {
            let (certificate, after) = read(rest)?;
            all.push(certificate);
            rest = after;
        }
        Ok(all)
    }
}

fn read(der: &[u8]) -> Result<(Certificate, &[u8]), String> {
    let mut input = Der(der);
    let mut outer = input.take(SEQUENCE).ok_or("x509: malformed certificate")?;
    let mut signed = outer.take(SEQUENCE).ok_or("x509: malformed tbs certificate")?;
    let version = version(&mut signed)?;
    let serial = signed.integer().ok_or("x509: malformed serial number")?;
    if serial[0] & 0x80 != 0 {
        return Err("x509: negative serial number".into());
    }
    let inner = signed.take(SEQUENCE).ok_or("x509: malformed signature algorithm identifier")?;
    let algorithm = outer.take(SEQUENCE).ok_or("x509: malformed algorithm identifier")?;
    if inner.0 != algorithm.0 {
        return Err("x509: inner and outer signature algorithm identifiers don't match".into());
    }
    read_algorithm(inner)?;
    names::of_certificate(sequence(&mut signed, "x509: malformed issuer")?.whole)?;
    let mut validity = signed.take(SEQUENCE).ok_or("x509: malformed validity")?;
    let (not_before, not_after) = (time(&mut validity)?, time(&mut validity)?);
    names::of_certificate(sequence(&mut signed, "x509: malformed issuer")?.whole)?;
    let key = public_key(&mut signed)?;
    let extensions = if version > 0 { later_fields(&mut signed, version)? } else { Extensions::default() };
    outer.bit_string().ok_or("x509: malformed signature")?;
    let Extensions { is_ca, names } = extensions;
    Ok((Certificate { not_before, not_after, key, is_ca, names }, input.0))
}

fn sequence<'a>(der: &mut Der<'a>, why: &str) -> Result<Element<'a>, String> {
    der.element(SEQUENCE).ok_or_else(|| why.to_owned())
}

/// Counted from 0.
fn version(signed: &mut Der<'_>) -> Result<u8, String> {
    const MALFORMED: &str = "x509: malformed version";
    let Some(mut explicit) = signed.optional(constructed(0)).ok_or(MALFORMED)? else { return Ok(0) };
    let number = explicit.integer().filter(|_| explicit.is_empty()).ok_or(MALFORMED)?;
    match number {
        [negative, ..] if negative & 0x80 != 0 => Err(MALFORMED.into()),
        [version @ 0..=2] => Ok(*version),
        _ => Err("x509: invalid version".into()),
    }
}

fn read_algorithm(mut der: Der<'_>) -> Result<Algorithm, String> {
    let oid = der.oid().ok_or("x509: malformed OID")?;
    let parameters = match der.is_empty() {
        true => Vec::new(),
        false => der.any().ok_or("x509: malformed parameters")?.whole.to_vec(),
    };
    Ok(Algorithm { oid, parameters })
}

fn public_key(signed: &mut Der<'_>) -> Result<PublicKey, String> {
    let mut info = signed.take(SEQUENCE).ok_or("x509: malformed spki")?;
    let algorithm = info.take(SEQUENCE).ok_or("x509: malformed public key algorithm identifier")?;
    let algorithm = read_algorithm(algorithm)?;
    let bits = info.bit_string().ok_or("x509: malformed subjectPublicKey")?;
    PublicKey::read(&algorithm, bits)
}

/// What versions after the first may have.
fn later_fields(signed: &mut Der<'_>, version: u8) -> Result<Extensions, String> {
    const WITH_EXTENSIONS: u8 = 2;
    signed.optional(context(1)).ok_or("x509: malformed issuerUniqueID")?;
    signed.optional(context(2)).ok_or("x509: malformed subjectUniqueID")?;
    if version < WITH_EXTENSIONS {
        return Ok(Extensions::default());
    }
    const MALFORMED: &str = "x509: malformed extensions";
    let Some(mut explicit) = signed.optional(constructed(3)).ok_or(MALFORMED)? else {
        return Ok(Extensions::default());
    };
    let mut list = explicit.take(SEQUENCE).ok_or(MALFORMED)?;
    let mut all: Vec<Extension<'_>> = Vec::new();
    while !list.is_empty() {
        let extension = extension(list.take(SEQUENCE).ok_or("x509: malformed extension")?)?;
        if all.iter().any(|other| other.oid == extension.oid) {
            let oid = extension.oid;
            return Err(format!("x509: certificate contains duplicate extension with OID \"{oid}\""));
        }
        all.push(extension);
    }
    Extensions::read(&all)
}

fn extension(mut der: Der<'_>) -> Result<Extension<'_>, String> {
    let oid = der.oid().ok_or("x509: malformed extension OID field")?;
    let is_critical = match der.peek(super::der::BOOLEAN) {
        true => der.boolean().ok_or("x509: malformed extension critical field")?,
        false => false,
    };
    let value = der.take(OCTET_STRING).ok_or("x509: malformed extension value field")?;
    Ok(Extension { oid, is_critical, value: value.0 })
}

fn time(der: &mut Der<'_>) -> Result<Time, String> {
    const UTC_TIME: u8 = 23;
    const GENERALIZED_TIME: u8 = 24;
    if der.peek(UTC_TIME) {
        let text = der.take(UTC_TIME).and_then(|text| std::str::from_utf8(text.0).ok());
        return text.and_then(utc_time).ok_or_else(|| "x509: malformed UTCTime".into());
    }
    if der.peek(GENERALIZED_TIME) {
        let text = der.take(GENERALIZED_TIME).and_then(|text| std::str::from_utf8(text.0).ok());
        let found = text.and_then(|text| written_time(text.get(..4)?, text.get(4..)?));
        return found.ok_or_else(|| "x509: malformed GeneralizedTime".into());
    }
    Err("x509: unsupported time format".into())
}

/// Two digits of a year: from 1950 to 2049.
fn utc_time(text: &str) -> Option<Time> {
    let (year, rest) = text.split_at_checked(2)?;
    let century = if year < "50" { "20" } else { "19" };
    // Seconds may be left out.
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let rest = if digits == 8 { format!("{}00{}", &rest[..8], &rest[8..]) } else { rest.to_owned() };
    written_time(&format!("{century}{year}"), &rest)
}

/// A year, then month to second as ten digits, then the zone.
fn written_time(year: &str, rest: &str) -> Option<Time> {
    let (digits, zone) = rest.split_at_checked(10)?;
    let zone = match zone {
        "Z" => "Z".to_owned(),
        "+0000" | "-0000" => return None,
        _ if zone.len() == 5 && zone.is_ascii() => format!("{}:{}", &zone[..3], &zone[3..]),
        _ => return None,
    };
    if !year.bytes().chain(digits.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let part = |i: usize| &digits[2 * i..2 * i + 2];
    let text = format!("{year}-{}-{}T{}:{}:{}{zone}", part(0), part(1), part(2), part(3), part(4));
    Time::parse(&text).ok()
}
