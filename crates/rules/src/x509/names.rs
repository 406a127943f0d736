//! Distinguished names and the texts in them.

use super::asn1::{self, Fields, SET, list, sequence, syntax};
use super::der::{self, Der};

const UTF8: u8 = 12;
const NUMERIC: u8 = 18;
const PRINTABLE: u8 = 19;
const T61: u8 = 20;
const IA5: u8 = 22;
const BMP: u8 = 30;

/// A name of a certificate: issuer or subject.
pub fn of_certificate(whole: &[u8]) -> Result<(), String> {
    const MALFORMED: &str = "x509: invalid RDNSequence";
    let wrong = |what: &str| format!("{MALFORMED}: invalid attribute{what}");
    let mut sets = Der(whole).take(der::SEQUENCE).ok_or(MALFORMED)?;
    while !sets.is_empty() {
        let mut set = sets.take(der::SET).ok_or(MALFORMED)?;
        while !set.is_empty() {
            let mut pair = set.take(der::SEQUENCE).ok_or_else(|| wrong(""))?;
            pair.oid().ok_or_else(|| wrong(" type"))?;
            let value = pair.any().ok_or_else(|| wrong(" value"))?;
            text(value.tag, value.content).map_err(|why| wrong(&format!(" value: {why}")))?;
        }
    }
    Ok(())
}

fn text(tag: u8, bytes: &[u8]) -> Result<(), String> {
    let (is_good, name) = match tag {
        T61 => (true, ""),
        PRINTABLE => (bytes.iter().all(|b| is_printable(*b)), "PrintableString"),
        UTF8 => (std::str::from_utf8(bytes).is_ok(), "UTF-8 string"),
        BMP => (is_basic_plane(bytes), "BMPString"),
        IA5 => (bytes.is_ascii(), "IA5String"),
        NUMERIC => (bytes.iter().all(|b| b.is_ascii_digit() || *b == b' '), "NumericString"),
        other => return Err(format!("unsupported string type: {other}")),
    };
    if is_good { Ok(()) } else { Err(format!("invalid {name}")) }
}

fn is_printable(byte: u8) -> bool {
    // The last two are no part of the type, but common in practice.
    byte.is_ascii_alphanumeric() || b" '()+,-./:=?*&".contains(&byte)
}

/// Two bytes for each character, none of which says how others are to be read.
fn is_basic_plane(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_suffix(&[0, 0]).unwrap_or(bytes);
    let is_good = |point: u16| !matches!(point, 0xd800..=0xdfff | 0xfdd0..=0xfdef | 0xfffe | 0xffff);
    bytes.len().is_multiple_of(2) && bytes.chunks_exact(2).all(|c| is_good(u16::from_be_bytes([c[0], c[1]])))
}

/// The subject of a request, which another reader judges.
pub fn of_request(whole: &[u8]) -> Result<(), String> {
    let mut fields = Fields::of(whole);
    let sets = fields.take(sequence("RDNSequence"))?;
    for set in list(sets.content, SET)? {
        for pair in list(set.content, sequence("AttributeTypeAndValue"))? {
            let mut pair = Fields::of(pair.content);
            pair.oid()?;
            plain_value(pair.any()?)?;
        }
    }
    if fields.is_empty() { Ok(()) } else { Err("x509: trailing data after X.509 Subject".into()) }
}

fn plain_value(item: asn1::Item<'_>) -> Result<(), String> {
    if item.header.class != 0 || item.header.compound {
        return Ok(());
    }
    let bytes = item.content;
    let invalid = |name: &str| Err(syntax(format!("{name} contains invalid character")));
    match u8::try_from(item.header.tag) {
        Ok(PRINTABLE) if !bytes.iter().all(|b| is_printable(*b)) => invalid("PrintableString"),
        Ok(NUMERIC) if !bytes.iter().all(|b| b.is_ascii_digit() || *b == b' ') => invalid("NumericString"),
        Ok(IA5) if !bytes.is_ascii() => invalid("IA5String"),
        Ok(UTF8) if std::str::from_utf8(bytes).is_err() => Err("asn1: invalid UTF-8 string".into()),
        Ok(BMP) if !bytes.len().is_multiple_of(2) => Err("invalid BMPString".into()),
        _ => Ok(()),
    }
}
