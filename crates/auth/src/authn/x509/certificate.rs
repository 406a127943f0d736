//! What verification needs of a certificate, read once.

use super::names::{AltName, Constraints};
use kubelith_meta::time::Time;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::oid_registry::{
    OID_X509_COMMON_NAME, OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER, OID_X509_EXT_BASIC_CONSTRAINTS,
    OID_X509_EXT_CERTIFICATE_POLICIES, OID_X509_EXT_EXTENDED_KEY_USAGE, OID_X509_EXT_KEY_USAGE,
    OID_X509_EXT_NAME_CONSTRAINTS, OID_X509_EXT_SUBJECT_ALT_NAME, OID_X509_EXT_SUBJECT_KEY_IDENTIFIER,
    OID_X509_ORGANIZATION_NAME, Oid,
};
use x509_parser::prelude::FromDer;
use x509_parser::x509::{AttributeTypeAndValue, X509Version};

/// The distinguished-name element that holds a user's uid: an arc of the Kubernetes enterprise number.
const OID_USER_UID: &str = "1.3.6.1.4.1.57683.2";

#[derive(Debug, Clone)]
pub struct Certificate {
    pub der: Vec<u8>,
    pub subject: Vec<u8>,
    pub issuer: Vec<u8>,
    pub version3: bool,
    pub serial: String,
    pub not_before: Time,
    pub not_after: Time,
    pub basic_constraints: Option<BasicConstraints>,
    /// `None`: no restriction.
    pub may_sign_certificates: Option<bool>,
    pub extended_usage: ExtendedUsage,
    pub subject_key_id: Vec<u8>,
    pub authority_key_id: Vec<u8>,
    pub public_key: PublicKey,
    /// The part that the issuer signed, with what it signed it.
    pub signed: Vec<u8>,
    pub signature_algorithm: String,
    pub signature_parameters: Vec<u8>,
    pub signature: Vec<u8>,
    pub unknown_critical_extension: bool,
    pub name_constraints: Option<Constraints>,
    pub alternative_names: Vec<AltName>,
    pub name: SubjectName,
}

#[derive(Debug, Clone, Copy)]
pub struct BasicConstraints {
    pub is_ca: bool,
    pub path_length: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtendedUsage {
    /// No list: good for everything.
    Unrestricted,
    /// Lists client authentication, or any usage.
    ClientAuth,
    Other,
}

#[derive(Debug, Clone)]
pub struct PublicKey {
    pub algorithm: String,
    pub curve: String,
    pub key: Vec<u8>,
}

/// The parts of the subject that say who the user is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubjectName {
    pub common_name: String,
    pub organizations: Vec<String>,
    /// `Err` for values that are not strings.
    pub uids: Vec<Result<String, ()>>,
}

/// The signature does not cover the envelope around the signed part, and the parser takes any tags there: only one
/// spelling of a certificate may pass, so that a certificate and its fingerprint stay one.
fn is_canonical_envelope(der: &[u8], signed: &[u8], signature: &[u8]) -> bool {
    const SEQUENCE: u8 = 0x30;
    const OBJECT_IDENTIFIER: u8 = 0x06;
    const BIT_STRING: u8 = 0x03;
    const NO_UNUSED_BITS: u8 = 0;
    // A signed part starts after the outer header; then the algorithm; then the bit string ends the certificate.
    let Some(header) = der.windows(signed.len()).take(8).position(|part| part == signed) else { return false };
    let algorithm = &der[header + signed.len()..];
    let Some(bits) = der.len().checked_sub(signature.len() + 1) else { return false };
    let bit_string_header = match signature.len() + 1 {
        0..=0x7f => 2,
        0x80..=0xff => 3,
        _ => 4,
    };
    der[0] == SEQUENCE
        && matches!(algorithm, [SEQUENCE, _, OBJECT_IDENTIFIER, ..])
        && der[bits] == NO_UNUSED_BITS
        && bits.checked_sub(bit_string_header).is_some_and(|at| der[at] == BIT_STRING)
}

impl Certificate {
    pub fn parse(der: &[u8]) -> Result<Certificate, String> {
        let (rest, cert) = X509Certificate::from_der(der).map_err(|e| format!("x509: malformed certificate: {e}"))?;
        if !rest.is_empty() {
            return Err("x509: trailing data".into());
        }
        let tbs = &cert.tbs_certificate;
        let key = tbs.public_key();
        let oid_of = |p: Option<&x509_parser::der_parser::asn1_rs::Any<'_>>| {
            p.and_then(|p| p.clone().oid().ok()).map(|o| o.to_id_string()).unwrap_or_default()
        };
        let mut certificate = Certificate {
            der: der.to_vec(),
            subject: tbs.subject.as_raw().to_vec(),
            issuer: tbs.issuer.as_raw().to_vec(),
            version3: tbs.version == X509Version::V3,
            serial: tbs.serial.to_string(),
            not_before: Time::from_unix(tbs.validity.not_before.timestamp()),
            not_after: Time::from_unix(tbs.validity.not_after.timestamp()),
            basic_constraints: None,
            may_sign_certificates: None,
            extended_usage: ExtendedUsage::Unrestricted,
            subject_key_id: Vec::new(),
            authority_key_id: Vec::new(),
            public_key: PublicKey {
                algorithm: key.algorithm.algorithm.to_id_string(),
                curve: oid_of(key.algorithm.parameters.as_ref()),
                key: key.subject_public_key.data.to_vec(),
            },
            signed: tbs.as_ref().to_vec(),
            signature_algorithm: cert.signature_algorithm.algorithm.to_id_string(),
            signature_parameters: cert
                .signature_algorithm
                .parameters
                .as_ref()
                .map(|p| p.data.to_vec())
                .unwrap_or_default(),
            signature: cert.signature_value.data.to_vec(),
            unknown_critical_extension: false,
            name_constraints: None,
            alternative_names: Vec::new(),
            name: SubjectName::of(tbs.subject.iter_attributes()),
        };
        // The outer and the signed algorithm must agree, or the signature says nothing about how it was made.
        if tbs.signature.algorithm != cert.signature_algorithm.algorithm {
            return Err("x509: inner and outer signature algorithm identifiers don't match".into());
        }
        if !is_canonical_envelope(der, tbs.as_ref(), &cert.signature_value.data) {
            return Err("x509: malformed certificate".into());
        }
        certificate.read_extensions(&cert)?;
        Ok(certificate)
    }

    fn read_extensions(&mut self, cert: &X509Certificate<'_>) -> Result<(), String> {
        let mut seen: Vec<&Oid<'_>> = Vec::new();
        for extension in cert.tbs_certificate.extensions() {
            if seen.contains(&&extension.oid) {
                return Err("x509: certificate contains duplicate extensions".into());
            }
            seen.push(&extension.oid);
            match extension.parsed_extension() {
                ParsedExtension::BasicConstraints(c) => {
                    self.basic_constraints = Some(BasicConstraints { is_ca: c.ca, path_length: c.path_len_constraint });
                }
                ParsedExtension::KeyUsage(usage) => self.may_sign_certificates = Some(usage.key_cert_sign()),
                ParsedExtension::ExtendedKeyUsage(usage) => {
                    let fits = usage.any || usage.client_auth;
                    self.extended_usage = if fits { ExtendedUsage::ClientAuth } else { ExtendedUsage::Other };
                }
                ParsedExtension::SubjectKeyIdentifier(id) => self.subject_key_id = id.0.to_vec(),
                ParsedExtension::AuthorityKeyIdentifier(id) => {
                    self.authority_key_id = id.key_identifier.as_ref().map(|k| k.0.to_vec()).unwrap_or_default();
                }
                ParsedExtension::NameConstraints(c) => self.name_constraints = Some(Constraints::of(c)),
                ParsedExtension::SubjectAlternativeName(names) => {
                    self.alternative_names = names.general_names.iter().filter_map(AltName::of).collect();
                }
                ParsedExtension::ParseError { .. } if is_known(&extension.oid) => {
                    return Err(format!("x509: invalid extension {}", extension.oid.to_id_string()));
                }
                _ => {}
            }
            if extension.critical && !is_known(&extension.oid) {
                self.unknown_critical_extension = true;
            }
        }
        Ok(())
    }

    /// How error messages name a certificate.
    pub fn identifier(&self) -> String {
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02X}")).collect::<Vec<_>>().join(":");
        let (subject, authority) = (hex(&self.subject_key_id), hex(&self.authority_key_id));
        format!("SN={}, SKID={subject}, AKID={authority}", self.serial)
    }
}

fn is_known(oid: &Oid<'_>) -> bool {
    [
        OID_X509_EXT_SUBJECT_KEY_IDENTIFIER,
        OID_X509_EXT_KEY_USAGE,
        OID_X509_EXT_SUBJECT_ALT_NAME,
        OID_X509_EXT_BASIC_CONSTRAINTS,
        OID_X509_EXT_NAME_CONSTRAINTS,
        OID_X509_EXT_CERTIFICATE_POLICIES,
        OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER,
        OID_X509_EXT_EXTENDED_KEY_USAGE,
    ]
    .contains(oid)
}

impl SubjectName {
    fn of<'a>(attributes: impl Iterator<Item = &'a AttributeTypeAndValue<'a>>) -> SubjectName {
        let mut name = SubjectName::default();
        for attribute in attributes {
            let value = attribute.as_str().map(str::to_string).or_else(|_| utf16_or_latin(attribute));
            let kind = attribute.attr_type();
            if *kind == OID_X509_COMMON_NAME {
                // The last one counts, as in the reference's parser.
                name.common_name = value.unwrap_or_default();
            } else if *kind == OID_X509_ORGANIZATION_NAME {
                name.organizations.extend(value);
            } else if kind.to_id_string() == OID_USER_UID {
                name.uids.push(value);
            }
        }
        name
    }
}

/// Strings in the encodings that `as_str` does not read: BMPString is UTF-16.
fn utf16_or_latin(attribute: &AttributeTypeAndValue<'_>) -> Result<String, ()> {
    use x509_parser::der_parser::asn1_rs::Tag;
    let value = attribute.attr_value();
    match value.tag() {
        Tag::BmpString if value.data.len() % 2 == 0 => {
            let units: Vec<u16> = value.data.chunks_exact(2).map(|c| u16::from_be_bytes([c[0], c[1]])).collect();
            String::from_utf16(&units).map_err(drop)
        }
        Tag::T61String if value.data.is_ascii() => String::from_utf8(value.data.to_vec()).map_err(drop),
        _ => Err(()),
    }
}
