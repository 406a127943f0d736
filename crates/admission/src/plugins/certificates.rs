//! CertificateApproval, CertificateSigning and ClusterTrustBundleAttest: to let a signer act takes a right to that signer,
//! beside the right to the object.

use crate::plugin::{Plugin, Verdict};
use kubelith_auth::authz::rbac::escalation::only_housekeeping;
use kubelith_auth::{Attributes, Authorizer};
use kubelith_meta::text::Quoted;
use kubelith_meta::{Str, Value};
use kubelith_registry::admission::{Operation, Request};
use std::sync::Arc;

const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";
const BUNDLES: &str = "clustertrustbundles";
const SIGNER: [&str; 2] = ["spec", "signerName"];

/// Asks for rights to signers.
#[derive(Clone)]
pub struct Signers(pub Arc<dyn Authorizer>);

impl Signers {
    /// Refuses unless the user may do `verb` with the signer, or with all signers of its domain.
    fn check<'a>(&'a self, request: Request<'a>, object: &'a Value, act: Act, signer: &'a str) -> Verdict<'a> {
        Verdict::pending(async move {
            let domain = format!("{}/*", signer.split('/').next().unwrap_or_default());
            for name in [signer, &domain] {
                let attributes = Attributes {
                    user: request.call.user.clone(),
                    verb: act.verb().into(),
                    name: Str::from(name),
                    group: GROUP.into(),
                    version: "*".into(),
                    resource: "signers".into(),
                    resource_request: true,
                    ..Attributes::default()
                };
                let decision = self.0.authorize(&attributes).await;
                if decision.allowed() && decision.error.is_none() {
                    return Ok(());
                }
            }
            Err(request.forbidden(object, format!("user not permitted to {} {}", act.words(), Quoted(signer))))
        })
    }
}

#[derive(Clone, Copy)]
enum Act {
    Approve,
    Sign,
    Attest,
}

impl Act {
    fn verb(self) -> &'static str {
        match self {
            Act::Approve => "approve",
            Act::Sign => "sign",
            Act::Attest => "attest",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Act::Approve => "approve requests with signerName",
            Act::Sign => "sign requests with signerName",
            Act::Attest => "attest for signerName",
        }
    }
}

pub struct CertificateApproval(pub Signers);

impl Plugin for CertificateApproval {
    fn validate<'a>(&'a self, request: Request<'a>, asked: &'a Value) -> Verdict<'a> {
        match request.old.filter(|_| is_for_part(request, "approval")) {
            // The signer that stands there counts, not the one that somebody slips in.
            Some(old) => self.0.check(request, asked, Act::Approve, old.str_at(&SIGNER)),
            None => Verdict::Idle,
        }
    }
}

pub struct CertificateSigning(pub Signers);

impl Plugin for CertificateSigning {
    fn validate<'a>(&'a self, request: Request<'a>, asked: &'a Value) -> Verdict<'a> {
        let Some(old) = request.old.filter(|_| is_for_part(request, "status")) else { return Verdict::Idle };
        let same = |field: &str| {
            let of = |object: &'a Value| object.at(&["status", field]).filter(|v| !v.is_empty());
            of(old) == of(asked)
        };
        if same("certificate") && same("conditions") {
            return Verdict::Idle;
        }
        self.0.check(request, asked, Act::Sign, old.str_at(&SIGNER))
    }
}

pub struct ClusterTrustBundleAttest(pub Signers);

impl Plugin for ClusterTrustBundleAttest {
    fn validate<'a>(&'a self, request: Request<'a>, bundle: &'a Value) -> Verdict<'a> {
        let signer = bundle.str_at(&SIGNER);
        if !request.is_for_any_part(GROUP, BUNDLES) || signer.is_empty() {
            return Verdict::Idle;
        }
        // Garbage collection and storage migration need no right to the signer.
        if request.operation == Operation::Update && request.old.is_some_and(|old| only_housekeeping(bundle, old)) {
            return Verdict::Idle;
        }
        self.0.check(request, bundle, Act::Attest, signer)
    }
}

fn is_for_part(request: Request<'_>, part: &str) -> bool {
    request.call.subresource == part && request.is_for_any_part(GROUP, REQUESTS)
}
