//! CertificateSigningRequests. What was stored before a rule came is let be.

use crate::certificates::shared::bytes;
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::object::Namespacing;
use kubelith_rules::Rules;
use kubelith_rules::common::{Fields, SPEC, member, meta, meta_update};
use kubelith_rules::values::signer_name;
use kubelith_rules::x509::pem::blocks;
use kubelith_rules::x509::{Certificate, Request};

pub const RULES: Rules = Rules {
    create: |_, request| check(request, Allowed::default()),
    update: |call, new, old| {
        let part = match call.subresource {
            "status" => Part::Status,
            "approval" => Part::Approval,
            _ => Part::Main,
        };
        check_update(part, new, old)
    },
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Main,
    Status,
    Approval,
}

/// Bad things that stay allowed because they are stored.
#[derive(Default)]
struct Allowed {
    approved_and_denied: bool,
    legacy_signer: bool,
    duplicate_conditions: bool,
    empty_condition_type: bool,
    any_certificate: bool,
    duplicate_usages: bool,
    unknown_usages: bool,
}

const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";

const LEAST_SECONDS: i64 = 600;

const STATUS: Path<'static> = Path::new("status");

const CONDITIONS: Path<'static> = Path::of(&["status", "conditions"]);

/// In the order in which messages list them.
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

impl Allowed {
    fn by(old: &Value, new: &Value) -> Allowed {
        let (spec, status) = (member(old, "spec"), member(old, "status"));
        let usages = spec.texts("usages");
        let types: Vec<&str> = status.list("conditions").iter().map(|c| c.text("type")).collect();
        let repeats = |list: &[&str]| list.iter().enumerate().any(|(i, item)| list[..i].contains(item));
        let is_same = member(new, "status").text("certificate") == status.text("certificate");
        Allowed {
            approved_and_denied: types.contains(&"Approved") && types.contains(&"Denied"),
            legacy_signer: spec.text("signerName") == LEGACY_SIGNER,
            duplicate_conditions: repeats(&types),
            empty_condition_type: types.contains(&""),
            any_certificate: is_same || check_certificate(&bytes(status, "certificate")).is_err(),
            duplicate_usages: repeats(&usages),
            unknown_usages: usages.iter().any(|usage| !USAGES.contains(usage)),
        }
    }
}

fn check(request: &Value, allowed: Allowed) -> ErrorList {
    // Any name will do that can be part of a path.
    let mut errors = meta(request, Namespacing::Forbidden, |_, _| Vec::new());
    let spec = member(request, "spec");
    let signed = Request::from_pem(&bytes(spec, "request")).and_then(|request| request.check_signature());
    if let Err(why) = signed {
        errors.push(Error::invalid(&SPEC.child("request"), shown_bytes(spec, "request"), why));
    }
    check_usages(&spec.texts("usages"), &allowed, &mut errors);
    let (signer, path) = (spec.text("signerName"), SPEC.child("signerName"));
    if !allowed.legacy_signer && signer == LEGACY_SIGNER {
        let detail = "the legacy signerName is not allowed via this API version";
        errors.push(Error::invalid(&path, signer, detail));
    } else {
        signer_name(signer, &path, &mut errors);
    }
    if let Some(seconds) = spec.int("expirationSeconds").filter(|seconds| *seconds < LEAST_SECONDS) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(Error::invalid(&SPEC.child("expirationSeconds"), seconds, detail));
    }
    let status = member(request, "status");
    check_conditions(status.list("conditions"), &allowed, &mut errors);
    if !allowed.any_certificate
        && let Err(why) = check_certificate(&bytes(status, "certificate"))
    {
        errors.push(Error::invalid(&STATUS.child("certificate"), "<certificate data>", why));
    }
    errors
}

/// Bytes as messages show them: in base64, or null.
fn shown_bytes(object: &Value, key: &str) -> BadValue {
    match object.some(key) {
        Some(text) => BadValue::json(text.clone()),
        None => BadValue::text("null"),
    }
}

fn check_usages(usages: &[&str], allowed: &Allowed, errors: &mut ErrorList) {
    if usages.is_empty() {
        errors.push(Error::required(&SPEC.child("usages"), ""));
    }
    for (i, usage) in usages.iter().enumerate().filter(|(_, usage)| !allowed.unknown_usages && !USAGES.contains(usage))
    {
        errors.push(Error::not_supported(&SPEC.item("usages", i), BadValue::json(*usage), USAGES));
    }
    for (i, usage) in usages.iter().enumerate().filter(|_| !allowed.duplicate_usages) {
        if usages[..i].contains(usage) {
            errors.push(Error::duplicate(&SPEC.item("usages", i), BadValue::json(*usage)));
        }
    }
}

fn check_conditions(conditions: &[Value], allowed: &Allowed, errors: &mut ErrorList) {
    let mut seen: Vec<&str> = Vec::new();
    for (i, condition) in conditions.iter().enumerate() {
        let path = CONDITIONS.index(i);
        let (kind, status) = (condition.text("type"), condition.text("status"));
        if kind.is_empty() && !allowed.empty_condition_type {
            errors.push(Error::required(&path.child("type"), ""));
        }
        let statuses: &[&str] = match kind {
            "Approved" | "Denied" | "Failed" => &["True"],
            _ => &["False", "True", "Unknown"],
        };
        if status.is_empty() {
            errors.push(Error::required(&path.child("status"), ""));
        } else if !statuses.contains(&status) {
            errors.push(Error::not_supported(&path.child("status"), BadValue::json(status), statuses));
        }
        let other = match kind {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !other.is_empty() && !allowed.approved_and_denied && seen.contains(&other) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(Error::invalid(&CONDITIONS, BadValue::json(kind), detail));
        }
        if !allowed.duplicate_conditions && seen.contains(&kind) {
            errors.push(Error::duplicate(&path.child("type"), BadValue::json(kind)));
        }
        seen.push(kind);
    }
}

fn check_certificate(text: &[u8]) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let mut count = 0;
    for block in blocks(text) {
        if block.label != "CERTIFICATE" {
            let label = kubelith_meta::text::Quoted(&block.label);
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {label}"));
        }
        if block.has_headers {
            return Err("no PEM block headers are permitted".into());
        }
        count += 1;
        if Certificate::parse_all(&block.bytes)?.is_empty() {
            return Err("found CERTIFICATE PEM block containing 0 certificates".into());
        }
    }
    if count == 0 { Err("must contain at least one CERTIFICATE PEM block".into()) } else { Ok(()) }
}

fn check_update(part: Part, new: &Value, old: &Value) -> ErrorList {
    let mut errors = check(new, Allowed::by(old, new));
    let count = |request: &Value, kind: &str| {
        member(request, "status").list("conditions").iter().filter(|c| c.text("type") == kind).count()
    };
    for kind in ["Approved", "Denied", "Failed"] {
        if count(new, kind) < count(old, kind) {
            let detail = format!("updates may not remove a condition of type \"{kind}\"");
            errors.push(Error::forbidden(&CONDITIONS, detail));
        }
    }
    // What is there of these cannot be changed but by an approver: it was put back before.
    for kind in ["Approved", "Denied"] {
        if part != Part::Approval && count(new, kind) > count(old, kind) {
            let detail = format!("updates may not add a condition of type \"{kind}\"");
            errors.push(Error::forbidden(&CONDITIONS, detail));
        }
    }
    let certificate = |request: &Value| member(request, "status").text("certificate").to_owned();
    if certificate(new) != certificate(old) {
        let path = STATUS.child("certificate");
        if part != Part::Status {
            errors.push(Error::forbidden(&path, "updates may not set certificate content"));
        } else if !certificate(old).is_empty() {
            errors.push(Error::forbidden(&path, "updates may not modify existing certificate content"));
        }
    }
    errors.extend(meta_update(new, old));
    errors
}
