//! CertificateSubjectRestriction: nobody is signed into the group that may do everything.

use crate::plugin::{Plugin, Verdict};
use kubelith_codec::base64;
use kubelith_meta::Value;
use kubelith_meta::user::GROUP_MASTERS;
use kubelith_registry::admission::{Operation, Request};
use kubelith_rules::x509;
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
            return Verdict::Idle;
        }
        Verdict::Ready(match CertificateRequest::parse(asked.str_at(&["spec", "request"])) {
            Err(why) => Err(request.forbidden(asked, format!("failed to parse CSR: {why}"))),
            Ok(parsed) if parsed.organizations.iter().any(|group| group == GROUP_MASTERS) => {
                let why = format!("use of {SIGNER} signer with {GROUP_MASTERS} group is not allowed");
                Err(request.forbidden(asked, why))
            }
            Ok(_) => Ok(()),
        })
    }
}

/// Whose certificate is asked for.
pub(super) struct CertificateRequest {
    pub common_name: String,
    /// The groups.
    pub organizations: Vec<String>,
}

impl CertificateRequest {
    /// Reads a request in PEM, as an object has it.
    pub(super) fn parse(request: &str) -> Result<CertificateRequest, String> {
        let bytes = base64::decode(request).map_err(|e| e.to_string())?;
        // What is wrong with it is told in the reference's words.
        x509::Request::from_pem(&bytes)?;
        let (_, pem) = parse_x509_pem(&bytes).map_err(|e| e.to_string())?;
        let (_, parsed) = X509CertificationRequest::from_der(&pem.contents).map_err(|e| e.to_string())?;
        let subject = &parsed.certification_request_info.subject;
        let names = |parts: Vec<Result<&str, _>>| -> Vec<String> {
            parts
                .into_iter()
                .filter_map(|part: Result<&str, x509_parser::error::X509Error>| part.ok())
                .map(str::to_owned)
                .collect()
        };
        Ok(CertificateRequest {
            // The last one counts, as in Go.
            common_name: names(subject.iter_common_name().map(|n| n.as_str()).collect()).pop().unwrap_or_default(),
            organizations: names(subject.iter_organization().map(|n| n.as_str()).collect()),
        })
    }
}
