//! PKCS#10: a request for a certificate, signed with the key that it is for.

use super::asn1::{BOOL, BYTES, Fields, list, sequence, syntax};
use super::key::{Algorithm, PublicKey, SignatureAlgorithm};
use super::{extensions, names};

const EXTENSION_REQUEST: &str = "1.2.840.113549.1.9.14";
const SUBJECT_ALT_NAME: &str = "2.5.29.17";

#[derive(Debug)]
pub struct Request {
    pub key: PublicKey,
    algorithm: SignatureAlgorithm,
    signed: Vec<u8>,
    signature: Vec<u8>,
}

impl Request {
    /// The request in a PEM block.
    pub fn from_pem(text: &[u8]) -> Result<Request, String> {
        match super::pem::next(text) {
            Some((block, _)) if block.label == "CERTIFICATE REQUEST" => Request::from_der(&block.bytes),
            _ => Err("PEM block type must be CERTIFICATE REQUEST".into()),
        }
    }

    pub fn from_der(der: &[u8]) -> Result<Request, String> {
        let mut outer = Fields::of(der);
        let mut whole = Fields::of(outer.take(sequence("certificateRequest"))?.content);
        let signed = whole.take(sequence("tbsCertificateRequest"))?;
        let mut inner = Fields::of(signed.content);
        inner.integer()?;
        let subject = inner.any()?;
        let key = inner.take(sequence("publicKeyInfo"))?;
        let (key_algorithm, key_bits) = key_info(key.content)?;
        let attributes = inner.take_context_zero()?;
        let attributes = attribute_list(attributes.content)?;
        let algorithm = algorithm(whole.take(sequence("AlgorithmIdentifier"))?.content)?;
        let signature = whole.bit_string()?;
        if !outer.is_empty() {
            return Err(syntax("trailing data"));
        }
        let key = PublicKey::read(&key_algorithm, key_bits)?;
        names::of_request(subject.whole)?;
        check_extensions(&attributes)?;
        let algorithm = SignatureAlgorithm::of(&algorithm);
        Ok(Request { key, algorithm, signed: signed.whole.to_vec(), signature })
    }

    /// Whether the key that is asked for signed the request.
    pub fn check_signature(&self) -> Result<(), String> {
        self.key.verify(self.algorithm, &self.signed, &self.signature)
    }
}

/// A public key with its algorithm, which stands alone or in a request.
pub fn key_info(content: &[u8]) -> Result<(Algorithm, Vec<u8>), String> {
    let mut info = Fields::of(content);
    let algorithm = algorithm(info.take(sequence("AlgorithmIdentifier"))?.content)?;
    Ok((algorithm, info.bit_string()?))
}

fn algorithm(content: &[u8]) -> Result<Algorithm, String> {
    let mut fields = Fields::of(content);
    let oid = fields.oid()?;
    let parameters = if fields.is_empty() { Vec::new() } else { fields.any()?.whole.to_vec() };
    Ok(Algorithm { oid, parameters })
}

/// The attributes, whatever they are.
fn attribute_list(content: &[u8]) -> Result<Vec<&[u8]>, String> {
    let mut fields = Fields::of(content);
    let mut all = Vec::new();
    while !fields.is_empty() {
        all.push(fields.any().map_err(|why| why.replace("data truncated", "truncated sequence"))?.whole);
    }
    Ok(all)
}

/// The extensions that are asked for must be readable, and each asked for once; attributes of other kinds may be anything.
fn check_extensions(attributes: &[&[u8]]) -> Result<(), String> {
    let mut seen = Vec::new();
    let mut alternative_names = Vec::new();
    for values in attributes.iter().filter_map(|attribute| requested(attribute)) {
        for (oid, value) in read_extensions(values)? {
            if seen.contains(&oid) {
                return Err("x509: certificate request contains duplicate requested extensions".into());
            }
            if oid == SUBJECT_ALT_NAME {
                alternative_names.push(value);
            }
            seen.push(oid);
        }
    }
    alternative_names.into_iter().try_for_each(|value| extensions::alternative_names(value).map(drop))
}

/// The first value of an attribute, if that asks for extensions.
fn requested(attribute: &[u8]) -> Option<&[u8]> {
    let mut fields = Fields::of(attribute);
    let mut pair = Fields::of(fields.take(sequence("pkcs10Attribute")).ok()?.content);
    let oid = pair.oid().ok()?;
    let set = pair.any().ok().filter(|set| set.header.class == 0 && set.header.tag == 17 && set.header.compound)?;
    let value = Fields::of(set.content).any().ok()?;
    (fields.is_empty() && oid == EXTENSION_REQUEST).then_some(value.whole)
}

fn read_extensions(list_of: &[u8]) -> Result<Vec<(String, &[u8])>, String> {
    let items = Fields::of(list_of).take(sequence(""))?;
    let mut all = Vec::new();
    for item in list(items.content, sequence("Extension"))? {
        let mut fields = Fields::of(item.content);
        let oid = fields.oid()?;
        fields.take_if(BOOL)?;
        all.push((oid, fields.take(BYTES)?.content));
    }
    Ok(all)
}
