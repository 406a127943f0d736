//! CertificateSubjectRestriction: nobody is signed into the group that may do everything.

use crate::plugin::{Plugin, Verdict};
use kubelith_codec::base64;
use kubelith_meta::Value;
use kubelith_meta::user::GROUP_MASTERS;
use kubelith_registry::admission::{Operation, Request};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;

const SIGNER: &str = "kubernetes.io/kube-apiserver-client";

#[derive(Debug, Clone, Copy)]
pub struct CertificateSubjectRestriction;

impl Plugin for CertificateSubjectRestriction {
    fn validate<'a>(&'a self, request: Request<'a>, asked: &'a Value) -> Verdict<'a> {
        let applies = request.operation == Operation::Create
            && request.is_for("certificates.k8s.io", "certificatesigningrequests")
            && asked.str_at(&["spec", "signerName"]) == SIGNER;
        if !applies {
            return Verdict::PASSED;
        }
        Verdict::Ready(match organizations(asked.str_at(&["spec", "request"])) {
            Err(why) => Err(request.forbidden(asked, format!("failed to parse CSR: {why}"))),
            Ok(groups) if groups.iter().any(|group| group == GROUP_MASTERS) => {
                let why = format!("use of {SIGNER} signer with {GROUP_MASTERS} group is not allowed");
                Err(request.forbidden(asked, why))
            }
            Ok(_) => Ok(()),
        })
    }
}

/// The groups that a request in PEM, as an object has it, asks for.
fn organizations(request: &str) -> Result<Vec<String>, String> {
    const NO_REQUEST: &str = "PEM block type must be CERTIFICATE REQUEST";
    let bytes = base64::decode(request).map_err(|e| e.to_string())?;
    let (_, pem) = parse_x509_pem(&bytes).map_err(|_| NO_REQUEST.to_owned())?;
    if pem.label != "CERTIFICATE REQUEST" {
        return Err(NO_REQUEST.into());
    }
    let (_, parsed) = X509CertificationRequest::from_der(&pem.contents).map_err(|e| e.to_string())?;
    let subject = &parsed.certification_request_info.subject;
    Ok(subject.iter_organization().filter_map(|group| group.as_str().ok().map(str::to_owned)).collect())
}
