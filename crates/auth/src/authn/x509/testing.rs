//! Certificates made on the spot.

use crate::traits::CertificateDer;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};

pub const NOT_BEFORE: i64 = 1_735_689_600; // 2025-01-01
pub const NOT_AFTER: i64 = 1_767_225_600; // 2026-01-01
pub const NOW: i64 = 1_750_000_000;

pub struct Authority {
    pub issuer: Issuer<'static, KeyPair>,
    pub der: CertificateDer<'static>,
    pub pem: String,
}

pub fn params(common_name: &str, organizations: &[&str]) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    for organization in organizations {
        params.distinguished_name.push(DnType::OrganizationName, *organization);
    }
    params.not_before = rcgen::date_time_ymd(2025, 1, 1);
    params.not_after = rcgen::date_time_ymd(2026, 1, 1);
    params
}

pub fn client_params(common_name: &str, organizations: &[&str]) -> CertificateParams {
    let mut params = params(common_name, organizations);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params
}

pub fn ca_params(common_name: &str) -> CertificateParams {
    let mut params = params(common_name, &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

pub fn root(params: CertificateParams) -> Authority {
    let key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&key).unwrap();
    Authority { der: cert.der().clone(), pem: cert.pem(), issuer: Issuer::new(params, key) }
}

impl Authority {
    pub fn intermediate(&self, params: CertificateParams) -> Authority {
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        Authority { der: cert.der().clone(), pem: cert.pem(), issuer: Issuer::new(params, key) }
    }

    pub fn leaf(&self, params: CertificateParams) -> CertificateDer<'static> {
        let key = KeyPair::generate().unwrap();
        params.signed_by(&key, &self.issuer).unwrap().der().clone()
    }
}

pub fn critical_extension() -> CustomExtension {
    let mut extension = CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0]);
    extension.set_criticality(true);
    extension
}
