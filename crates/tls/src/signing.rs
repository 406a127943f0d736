//! Certificates for requests of others (PKCS#10). Subject, key and names are taken over byte for byte from a request whose
//! signature holds; what else the certificate says is up to whoever signs.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use rcgen::PublicKeyData;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use time::{Duration, OffsetDateTime};
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate, X509CertificationRequest};

/// Valid from a little earlier, for clients whose clock is late.
const BACKDATE: Duration = Duration::minutes(5);
/// Certificates with a shorter life do not end earlier for it.
const SHORT: Duration = Duration::hours(8);

const ECDSA_WITH_SHA256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];

/// What a request asks for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    pub common_name: String,
    pub organizations: Vec<String>,
    pub dns_names: Vec<String>,
    pub emails: Vec<String>,
    pub uris: Vec<String>,
    pub addresses: Vec<IpAddr>,
    subject: Vec<u8>,
    key: Vec<u8>,
    /// The extension's value, if names are asked for.
    names: Option<Vec<u8>>,
}

impl Request {
    /// Reads a request in PEM and checks that it is signed with the key that it is for.
    pub fn read(pem: &[u8]) -> Result<Request, String> {
        let (_, pem) = x509_parser::pem::parse_x509_pem(pem)
            .map_err(|_| "PEM block type must be CERTIFICATE REQUEST".to_owned())?;
        if pem.label != "CERTIFICATE REQUEST" {
            return Err("PEM block type must be CERTIFICATE REQUEST".to_owned());
        }
        let (_, request) = X509CertificationRequest::from_der(&pem.contents).map_err(|e| e.to_string())?;
        request.verify_signature().map_err(|e| format!("unable to verify certificate request signature: {e}"))?;
        let info = &request.certification_request_info;
        let texts = |values: Vec<&str>| values.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let subject = &info.subject;
        let mut read = Request {
            common_name: subject.iter_common_name().filter_map(|a| a.as_str().ok()).last().unwrap_or_default().into(),
            organizations: texts(subject.iter_organization().filter_map(|a| a.as_str().ok()).collect()),
            subject: subject.as_raw().to_vec(),
            key: info.subject_pki.raw.to_vec(),
            ..Request::default()
        };
        for extension in request.requested_extensions().into_iter().flatten() {
            if let ParsedExtension::SubjectAlternativeName(names) = extension {
                names.general_names.iter().for_each(|name| read.add(name));
            }
        }
        read.names = read.alternative_names();
        Ok(read)
    }

    /// For a client that is known by a common name, and its groups by organizations; `key` is the public one, in DER.
    fn of_client(name: &str, groups: &[&str], key: Vec<u8>) -> Request {
        const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
        const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];
        let part = |kind: &[u8], text: &str| {
            let attribute = [der(0x06, kind), der(0x0c, text.as_bytes())].concat();
            der(0x31, &der(0x30, &attribute))
        };
        let mut parts: Vec<Vec<u8>> = groups.iter().map(|group| part(ORGANIZATION, group)).collect();
        parts.push(part(COMMON_NAME, name));
        Request {
            common_name: name.to_owned(),
            organizations: groups.iter().map(|group| (*group).to_owned()).collect(),
            subject: der(0x30, &parts.concat()),
            key,
            ..Request::default()
        }
    }

    fn add(&mut self, name: &GeneralName<'_>) {
        match name {
            GeneralName::DNSName(name) => self.dns_names.push((*name).to_owned()),
            GeneralName::RFC822Name(name) => self.emails.push((*name).to_owned()),
            GeneralName::URI(name) => self.uris.push((*name).to_owned()),
            GeneralName::IPAddress(bytes) => {
                let four = <[u8; 4]>::try_from(*bytes).map(|b| IpAddr::V4(Ipv4Addr::from(b)));
                let sixteen = || <[u8; 16]>::try_from(*bytes).map(|b| IpAddr::V6(Ipv6Addr::from(b)));
                self.addresses.extend(four.or_else(|_| sixteen()));
            }
            _ => {}
        }
    }

    fn alternative_names(&self) -> Option<Vec<u8>> {
        let mut names = Vec::new();
        for (tag, texts) in [(0x82, &self.dns_names), (0x81, &self.emails), (0x86, &self.uris)] {
            texts.iter().for_each(|text| names.extend(der(tag, text.as_bytes())));
        }
        for address in &self.addresses {
            match address {
                IpAddr::V4(four) => names.extend(der(0x87, &four.octets())),
                IpAddr::V6(six) => names.extend(der(0x87, &six.octets())),
            }
        }
        (!names.is_empty()).then(|| der(0x30, &names))
    }
}

/// What a certificate may be used for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usages {
    /// Bit 0 is the first of the standard.
    key: u16,
    /// By their place in the order in which they are written.
    extended: std::collections::BTreeSet<usize>,
}

const KEY_USAGES: [(&str, u16); 10] = [
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];

/// With their object identifiers, in the order in which they are written.
const EXTENDED_USAGES: [(&[&str], &[u8]); 12] = [
    (&["any"], &[0x55, 0x1d, 0x25, 0x00]),
    (&["server auth"], &[0x2b, 6, 1, 5, 5, 7, 3, 1]),
    (&["client auth"], &[0x2b, 6, 1, 5, 5, 7, 3, 2]),
    (&["code signing"], &[0x2b, 6, 1, 5, 5, 7, 3, 3]),
    (&["email protection", "s/mime"], &[0x2b, 6, 1, 5, 5, 7, 3, 4]),
    (&["ipsec end system"], &[0x2b, 6, 1, 5, 5, 7, 3, 5]),
    (&["ipsec tunnel"], &[0x2b, 6, 1, 5, 5, 7, 3, 6]),
    (&["ipsec user"], &[0x2b, 6, 1, 5, 5, 7, 3, 7]),
    (&["timestamping"], &[0x2b, 6, 1, 5, 5, 7, 3, 8]),
    (&["ocsp signing"], &[0x2b, 6, 1, 5, 5, 7, 3, 9]),
    (&["microsoft sgc"], &[0x2b, 6, 1, 4, 1, 0x82, 0x37, 10, 3, 3]),
    (&["netscape sgc"], &[0x60, 0x86, 0x48, 1, 0x86, 0xf8, 0x42, 4, 1]),
];

impl Usages {
    pub fn read<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Usages, String> {
        let (mut usages, mut unknown) = (Usages::default(), Vec::new());
        for name in names {
            if let Some((_, bit)) = KEY_USAGES.iter().find(|(known, _)| *known == name) {
                usages.key |= 1 << bit;
            } else if let Some(place) = EXTENDED_USAGES.iter().position(|(known, _)| known.contains(&name)) {
                usages.extended.insert(place);
            } else {
                unknown.push(format!("{name:?}"));
            }
        }
        match unknown.is_empty() {
            true => Ok(usages),
            false => Err(format!("unrecognized usage values: [{}]", unknown.join(" "))),
        }
    }

    /// The bits from the left, without what is empty at their end.
    fn key_bits(&self) -> Vec<u8> {
        let bits = self.key.reverse_bits();
        let bytes = bits.to_be_bytes();
        let used = if bytes[1] == 0 { &bytes[..1] } else { &bytes[..] };
        let unused = used.last().map_or(0, |last| last.trailing_zeros().min(7)) as u8;
        std::iter::once(unused).chain(used.iter().copied()).collect()
    }
}

/// Both in PEM.
pub struct ClientPair {
    pub certificate: String,
    pub key: String,
}

/// An authority with an ECDSA P-256 key, as this server makes its own.
pub struct Authority {
    key: EcdsaKeyPair,
    subject: Vec<u8>,
    key_id: Vec<u8>,
    not_after: OffsetDateTime,
}

impl Authority {
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Authority, String> {
        let der = CertificateDer::from_pem_slice(certificate).map_err(|e| e.to_string())?;
        let (_, certificate) = X509Certificate::from_der(&der).map_err(|e| e.to_string())?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| e.to_string())?;
        let key = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_ASN1_SIGNING, key.secret_der())
            .map_err(|e| e.to_string())?;
        let key_id = certificate.iter_extensions().find_map(|extension| match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
            _ => None,
        });
        Ok(Authority {
            key,
            subject: certificate.subject().as_raw().to_vec(),
            key_id: key_id.unwrap_or_default(),
            not_after: certificate.validity().not_after.to_datetime(),
        })
    }

    /// A certificate in PEM, for as long as asked for and this authority itself lasts.
    pub fn sign(
        &self,
        request: &Request,
        usages: &Usages,
        life: Duration,
        now: OffsetDateTime,
    ) -> Result<String, String> {
        let begin = now - BACKDATE;
        let end = if life < SHORT { now + life } else { now + life - BACKDATE };
        let end = end.min(self.not_after);
        if now >= self.not_after {
            return Err(format!(
                "refusing to sign a certificate that expired in the past: NotAfter={}",
                self.not_after
            ));
        }
        let algorithm = der(0x30, ECDSA_WITH_SHA256);
        let mut serial = [0u8; 16];
        aws_lc_rs::rand::fill(&mut serial).map_err(|e| e.to_string())?;
        // A number above zero that needs no more bytes.
        serial[0] = (serial[0] & 0x7f) | 0x40;
        let body = [
            der(0xa0, &der(0x02, &[2])),
            der(0x02, &serial),
            algorithm.clone(),
            self.subject.clone(),
            der(0x30, &[instant(begin), instant(end)].concat()),
            request.subject.clone(),
            request.key.clone(),
            der(0xa3, &der(0x30, &self.extensions(request, usages))),
        ];
        let body = der(0x30, &body.concat());
        let signature = self.key.sign(&SystemRandom::new(), &body).map_err(|e| e.to_string())?;
        let bits = [&[0u8][..], signature.as_ref()].concat();
        let certificate = der(0x30, &[body, algorithm, der(0x03, &bits)].concat());
        Ok(pem_of(&certificate))
    }

    /// A new key, and a certificate by which a client is this user in these groups, for some days.
    pub fn client_pair(&self, name: &str, groups: &[&str], days: u32) -> Result<ClientPair, String> {
        let key = rcgen::KeyPair::generate().map_err(|e| e.to_string())?;
        let request = Request::of_client(name, groups, key.subject_public_key_info());
        let usages = Usages::read(["digital signature", "client auth"])?;
        let certificate = self.sign(&request, &usages, Duration::days(days.into()), OffsetDateTime::now_utc())?;
        Ok(ClientPair { certificate, key: key.serialize_pem() })
    }

    fn extensions(&self, request: &Request, usages: &Usages) -> Vec<u8> {
        let mut all = Vec::new();
        if usages.key != 0 {
            all.extend(extension(15, true, &der(0x03, &usages.key_bits())));
        }
        if !usages.extended.is_empty() {
            let oids: Vec<u8> = usages.extended.iter().flat_map(|i| der(0x06, EXTENDED_USAGES[*i].1)).collect();
            all.extend(extension(37, false, &der(0x30, &oids)));
        }
        all.extend(extension(19, true, &der(0x30, &[])));
        if !self.key_id.is_empty() {
            all.extend(extension(35, false, &der(0x30, &der(0x80, &self.key_id))));
        }
        if let Some(names) = &request.names {
            // Without a subject the names are all there is.
            all.extend(extension(17, request.subject == [0x30, 0], names));
        }
        all
    }
}

/// An extension of the standard, by its number below 2.5.29.
fn extension(number: u8, critical: bool, value: &[u8]) -> Vec<u8> {
    let mut content = der(0x06, &[0x55, 0x1d, number]);
    if critical {
        content.extend(der(0x01, &[0xff]));
    }
    content.extend(der(0x04, value));
    der(0x30, &content)
}

/// UTCTime until 2049, GeneralizedTime after.
fn instant(time: OffsetDateTime) -> Vec<u8> {
    let time = time.to_offset(time::UtcOffset::UTC);
    let (year, month, day) = time.to_calendar_date();
    let (hour, minute, second) = time.to_hms();
    let rest = format!("{:02}{day:02}{hour:02}{minute:02}{second:02}Z", u8::from(month));
    match (1950..2050).contains(&year) {
        true => der(0x17, format!("{:02}{rest}", year % 100).as_bytes()),
        false => der(0x18, format!("{year:04}{rest}").as_bytes()),
    }
}

/// One value with its tag and length.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    if length < 0x80 {
        out.push(length as u8);
    } else {
        let bytes = length.to_be_bytes();
        let first = bytes.iter().position(|b| *b != 0).unwrap_or(bytes.len() - 1);
        out.push(0x80 | (bytes.len() - first) as u8);
        out.extend_from_slice(&bytes[first..]);
    }
    out.extend_from_slice(content);
    out
}

fn pem_of(der: &[u8]) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap_or_default()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, IsCa, KeyPair, KeyUsagePurpose, SanType};

    fn authority() -> (Authority, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.distinguished_name.push(DnType::CommonName, "ca");
        let cert = params.self_signed(&key).unwrap();
        let authority = Authority::from_pem(cert.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap();
        (authority, cert.pem())
    }

    #[test]
    fn a_request_becomes_a_certificate() {
        let (authority, ca) = authority();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "system:node:n");
        params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
        params.subject_alt_names =
            vec![SanType::DnsName("n.example".try_into().unwrap()), SanType::IpAddress("10.0.0.1".parse().unwrap())];
        let pem = params.serialize_request(&key).unwrap().pem().unwrap();
        let request = Request::read(pem.as_bytes()).unwrap();
        assert_eq!(
            (request.common_name.as_str(), &request.organizations[..]),
            ("system:node:n", &["system:nodes".to_owned()][..])
        );
        assert_eq!((&request.dns_names[..], request.addresses.len()), (&["n.example".to_owned()][..], 1));
        let usages = Usages::read(["digital signature", "key encipherment", "server auth", "client auth"]).unwrap();
        let now = OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap();
        let signed = authority.sign(&request, &usages, Duration::hours(1), now).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(signed.as_bytes()).unwrap();
        let cert = pem.parse_x509().unwrap();
        let (_, ca) = x509_parser::pem::parse_x509_pem(ca.as_bytes()).unwrap();
        let ca = ca.parse_x509().unwrap();
        cert.verify_signature(Some(ca.public_key())).unwrap();
        assert_eq!(cert.issuer(), ca.subject());
        assert_eq!(cert.validity().not_before.timestamp(), 1_800_000_000 - 300);
        assert_eq!(cert.validity().not_after.timestamp(), 1_800_000_000 + 3600);
        let key_usage = cert.key_usage().unwrap().unwrap().value;
        assert!(key_usage.digital_signature() && key_usage.key_encipherment() && !key_usage.key_cert_sign());
        let extended = cert.extended_key_usage().unwrap().unwrap().value;
        assert!(extended.client_auth && extended.server_auth && !extended.any);
        assert!(!cert.is_ca());
        assert_eq!(cert.subject_alternative_name().unwrap().unwrap().value.general_names.len(), 2);
    }

    #[test]
    fn clients_are_users_in_groups() {
        let (authority, ca) = authority();
        let pair = authority.client_pair("jane", &["devs", "ops"], 30).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(pair.certificate.as_bytes()).unwrap();
        let cert = pem.parse_x509().unwrap();
        let (_, ca) = x509_parser::pem::parse_x509_pem(ca.as_bytes()).unwrap();
        cert.verify_signature(Some(ca.parse_x509().unwrap().public_key())).unwrap();
        assert_eq!(cert.subject().to_string(), "O=devs, O=ops, CN=jane");
        assert!(cert.extended_key_usage().unwrap().unwrap().value.client_auth && !cert.is_ca());
        let days = (cert.validity().not_after.timestamp() - OffsetDateTime::now_utc().unix_timestamp()) / 86_400;
        assert_eq!(days, 29);
        let key = KeyPair::from_pem(&pair.key).unwrap();
        assert_eq!(cert.public_key().raw, key.subject_public_key_info());
    }

    #[test]
    fn unknown_usages_are_named() {
        assert_eq!(Usages::read(["any", "x", "y"]).unwrap_err(), r#"unrecognized usage values: ["x" "y"]"#);
        assert_eq!(Usages::read(["decipher only"]).unwrap().key_bits(), [7, 0, 0x80]);
        assert_eq!(Usages::read(["signing", "key encipherment"]).unwrap().key_bits(), [5, 0xa0]);
    }
}
