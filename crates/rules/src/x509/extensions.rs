//! Extensions of certificates that have a known form: each is read, for what is malformed spoils the certificate.

use super::der::{BIT_STRING, Der, INTEGER, OBJECT_IDENTIFIER, OCTET_STRING, SEQUENCE, bits, constructed, context};
use kubelith_meta::text::Quoted;
use std::net::IpAddr;

pub struct Extension<'a> {
    pub oid: String,
    pub is_critical: bool,
    pub value: &'a [u8],
}

/// Whom a certificate is for, beside its subject.
#[derive(Debug, Default)]
pub struct AltNames {
    pub dns: Vec<String>,
    pub emails: Vec<String>,
}

/// What is used of the extensions.
#[derive(Debug, Default)]
pub struct Extensions {
    pub is_ca: Option<bool>,
    pub names: AltNames,
}

const STANDARD: &str = "2.5.29.";
const AUTHORITY_INFORMATION: &str = "1.3.6.1.5.5.7.1.1";

impl Extensions {
    pub fn read(all: &[Extension<'_>]) -> Result<Extensions, String> {
        let mut found = Extensions::default();
        for Extension { oid, is_critical, value } in all {
            let fine = |result: Option<()>, why: &str| result.ok_or_else(|| format!("x509: {why}"));
            let not_critical = |name: &str| match is_critical {
                true => Err(format!("x509: {name} incorrectly marked critical")),
                false => Ok(()),
            };
            if oid == AUTHORITY_INFORMATION {
                not_critical("authority info access")?;
                fine(authority_information(value), "invalid authority info access")?;
            }
            match oid.strip_prefix(STANDARD) {
                Some("14") => {
                    not_critical("subject key identifier")?;
                    fine(Der(value).take(OCTET_STRING).map(drop), "invalid subject key identifier")?;
                }
                Some("15") => {
                    let usage = Der(value).take(BIT_STRING).and_then(|content| bits(content.0));
                    fine(usage.map(drop), "invalid key usage")?;
                }
                Some("17") => found.names = alternative_names(value)?,
                Some("19") => {
                    let is_ca = basic_constraints(value);
                    found.is_ca = Some(is_ca.ok_or("x509: invalid basic constraints")?);
                }
                Some("30") => name_constraints(value)?,
                Some("31") => distribution_points(value)?,
                Some("32") => fine(policies(value), "invalid certificate policies")?,
                Some("33") => fine(policy_mappings(value), "invalid policy mappings extension")?,
                Some("35") => {
                    not_critical("authority key identifier")?;
                    fine(authority_key(value), "invalid authority key identifier")?;
                }
                Some("36") => fine(policy_constraints(value), "invalid policy constraints extension")?,
                Some("37") => fine(each(value, |list| list.oid().map(drop)), "invalid extended key usages")?,
                Some("54") => fine(Der(value).integer().map(drop), "invalid inhibit any policy extension")?,
                _ => {}
            }
        }
        Ok(found)
    }
}

/// Reads a sequence to its end.
fn each<'a>(value: &'a [u8], mut read: impl FnMut(&mut Der<'a>) -> Option<()>) -> Option<()> {
    let mut list = Der(value).take(SEQUENCE)?;
    while !list.is_empty() {
        read(&mut list)?;
    }
    Some(())
}

fn basic_constraints(value: &[u8]) -> Option<bool> {
    let mut fields = Der(value).take(SEQUENCE)?;
    let is_ca = if fields.peek(super::der::BOOLEAN) { fields.boolean()? } else { false };
    if fields.peek(INTEGER) {
        // A path's length: not negative, and a machine's integer.
        fields.integer().filter(|length| length.len() <= 8 && length[0] & 0x80 == 0)?;
    }
    Some(is_ca)
}

fn authority_information(value: &[u8]) -> Option<()> {
    each(value, |list| {
        let mut access = list.take(SEQUENCE)?;
        access.oid()?;
        if access.peek(context(6)) { access.take(context(6)).map(drop) } else { Some(()) }
    })
}

fn authority_key(value: &[u8]) -> Option<()> {
    Der(value).take(SEQUENCE)?.optional(context(0)).map(drop)
}

fn policies(value: &[u8]) -> Option<()> {
    let mut seen: Vec<&[u8]> = Vec::new();
    each(value, |list| {
        let oid = list.take(SEQUENCE)?.take(OBJECT_IDENTIFIER)?.0;
        let is_new = !oid.is_empty() && !seen.contains(&oid);
        seen.push(oid);
        is_new.then_some(())
    })
}

fn policy_mappings(value: &[u8]) -> Option<()> {
    each(value, |list| {
        let mut pair = list.take(SEQUENCE)?;
        pair.take(OBJECT_IDENTIFIER)?;
        pair.take(OBJECT_IDENTIFIER).map(drop)
    })
}

fn policy_constraints(value: &[u8]) -> Option<()> {
    let mut fields = Der(value).take(SEQUENCE)?;
    for number in [0, 1] {
        if fields.peek(context(number)) {
            fields.integer_tagged(context(number)).filter(|bytes| bytes.len() <= 8)?;
        }
    }
    Some(())
}

fn distribution_points(value: &[u8]) -> Result<(), String> {
    let mut points = Der(value).take(SEQUENCE).ok_or("x509: invalid CRL distribution points")?;
    let read = |points: &mut Der<'_>| -> Option<()> {
        let Some(mut name) = points.take(SEQUENCE)?.optional(constructed(0))? else { return Some(()) };
        let mut full = name.take(constructed(0))?;
        while full.peek(context(6)) {
            full.take(context(6))?;
        }
        Some(())
    };
    while !points.is_empty() {
        read(&mut points).ok_or("x509: invalid CRL distribution point")?;
    }
    Ok(())
}

pub fn alternative_names(value: &[u8]) -> Result<AltNames, String> {
    const EMAIL: u8 = context(1);
    const DNS: u8 = context(2);
    const URI: u8 = context(6);
    const IP: u8 = context(7);
    let mut list = Der(value).take(SEQUENCE).ok_or("x509: invalid subject alternative names")?;
    let mut names = AltNames::default();
    let ascii = |bytes: &[u8], what: &str| match std::str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() => Ok(text.to_owned()),
        _ => Err(format!("x509: SAN {what} is malformed")),
    };
    while !list.is_empty() {
        let name = list.any().ok_or("x509: invalid subject alternative name")?;
        match name.tag {
            EMAIL => names.emails.push(ascii(name.content, "rfc822Name")?),
            DNS => names.dns.push(ascii(name.content, "dNSName")?),
            URI => check_uri(&ascii(name.content, "uniformResourceIdentifier")?)?,
            IP if !matches!(name.content.len(), 4 | 16) => {
                return Err(format!("x509: cannot parse IP address of length {}", name.content.len()));
            }
            _ => {}
        }
    }
    Ok(names)
}

fn check_uri(uri: &str) -> Result<(), String> {
    let shown = Quoted(uri);
    let wrong = |why: &str| Err(format!("x509: cannot parse URI {shown}: {why}"));
    if uri.bytes().any(|b| b.is_ascii_control()) {
        return wrong(&format!("parse {shown}: net/url: invalid control character in URL"));
    }
    if uri.starts_with(':') {
        return wrong(&format!("parse {shown}: missing protocol scheme"));
    }
    let authority = uri.split_once("//").map_or("", |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if is_domain(host) { Ok(()) } else { wrong("invalid domain") }
}

/// Printable, and no label empty.
fn is_domain(name: &str) -> bool {
    let is_printable = name.bytes().all(|b| (33..=126).contains(&b));
    name.is_empty() || (is_printable && name.split('.').all(|label| !label.is_empty()))
}

fn name_constraints(value: &[u8]) -> Result<(), String> {
    const MALFORMED: &str = "x509: invalid NameConstraints extension";
    let mut outer = Der(value);
    let mut top = outer.take(SEQUENCE).filter(|_| outer.is_empty()).ok_or(MALFORMED)?;
    let permitted = top.optional(constructed(0)).ok_or(MALFORMED)?;
    let excluded = top.optional(constructed(1)).filter(|_| top.is_empty()).ok_or(MALFORMED)?;
    let subtrees = [permitted, excluded].map(|list| list.unwrap_or(Der(&[])));
    if subtrees.iter().all(Der::is_empty) {
        return Err("x509: empty name constraints extension".into());
    }
    for mut list in subtrees {
        while !list.is_empty() {
            let base = list.take(SEQUENCE).and_then(|mut subtree| subtree.any()).ok_or(MALFORMED)?;
            name_constraint(base.tag, base.content)?;
        }
    }
    Ok(())
}

fn name_constraint(tag: u8, value: &[u8]) -> Result<(), String> {
    const EMAIL: u8 = context(1);
    const DNS: u8 = context(2);
    const URI: u8 = context(6);
    const IP: u8 = context(7);
    let text = || match std::str::from_utf8(value) {
        Ok(text) if text.is_ascii() => Ok(text),
        _ => {
            let shown = Quoted(&String::from_utf8_lossy(value)).to_string();
            Err(format!("x509: invalid constraint value: x509: {shown} cannot be encoded as an IA5String"))
        }
    };
    let is_base = |name: &str| is_domain(name.strip_prefix('.').filter(|rest| !rest.is_empty()).unwrap_or(name));
    let failed = |what: &str, text: &str| Err(format!("x509: failed to parse {what} constraint {}", Quoted(text)));
    match tag {
        DNS if !is_base(text()?) => failed("dnsName", text()?),
        EMAIL if !text()?.contains('@') && !is_base(text()?) => failed("rfc822Name", text()?),
        URI if text()?.parse::<IpAddr>().is_ok() => {
            failed("URI", text()?).map_err(|why| format!("{why}: cannot be IP address"))
        }
        URI if !is_base(text()?) => failed("URI", text()?),
        IP => {
            let length = value.len();
            if !matches!(length, 8 | 32) {
                return Err(format!("x509: IP constraint contained value of length {length}"));
            }
            let mask = &value[length / 2..];
            let ones: u32 = mask.iter().map(|b| b.count_ones()).sum();
            let leading = mask.iter().take_while(|b| **b == 0xff).count() as u32 * 8
                + mask.iter().find(|b| **b != 0xff).map_or(0, |b| b.leading_ones());
            let hex: String = mask.iter().map(|b| format!("{b:02x}")).collect();
            if ones == leading { Ok(()) } else { Err(format!("x509: IP constraint contained invalid mask {hex}")) }
        }
        _ => Ok(()),
    }
}
