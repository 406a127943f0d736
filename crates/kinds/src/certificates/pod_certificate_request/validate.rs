//! PodCertificateRequests: a kubelet asks for a pod, a signer answers once and for all.

use crate::certificates::shared::bytes;
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{NameUse, name_is_dns_subdomain};
use kubelith_meta::object::{Namespacing, validate_conditions};
use kubelith_meta::time::Time;
use kubelith_rules::common::{self, Fields, SPEC, invalid_all, member, meta, meta_update};
use kubelith_rules::values::{signer_name, user_annotations};
use kubelith_rules::x509::pem::blocks;
use kubelith_rules::x509::{Certificate, Curve, PublicKey, Request};
use kubelith_rules::{Rules, internal};

pub const RULES: Rules = Rules {
    create: |_, request| check(request),
    update: |call, new, old| match call.subresource {
        "status" => check_status(new, old, call.env.now()),
        _ => {
            let mut errors = meta_update(new, old);
            internal::immutable("PodCertificateRequestSpec", new.get("spec"), old.get("spec"), &SPEC, &mut errors);
            errors
        }
    },
};

const MAX_UID: usize = 128;

const HOUR: i64 = 60 * 60;

const DAY: i64 = 24 * HOUR;

/// Of a public key, a proof and a request each.
const MAX_KEY_BYTES: usize = 10 * 1024;

const MAX_CHAIN_BYTES: usize = 100 * 1024;

const MINUTE: i64 = 60;

const STATUS: Path<'static> = Path::new("status");

const FINAL: [&str; 3] = ["Issued", "Denied", "Failed"];

fn check(request: &Value) -> ErrorList {
    let mut errors = meta(request, Namespacing::Required, name_is_dns_subdomain);
    let spec = member(request, "spec");
    let signer = spec.text("signerName");
    signer_name(signer, &SPEC.child("signerName"), &mut errors);
    if spec.has("unverifiedUserAnnotations") {
        user_annotations(spec, "unverifiedUserAnnotations", &SPEC, &mut errors);
    }
    for (name, uid) in [("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID")] {
        let text = spec.text(name);
        invalid_all(name_is_dns_subdomain(text, NameUse::Full), &SPEC.child(name), text, &mut errors);
        let id = spec.text(uid);
        if id.is_empty() {
            errors.push(Error::invalid(&SPEC.child(uid), BadValue::json(""), "must not be empty"));
        }
        if id.len() > MAX_UID {
            errors.push(Error::too_long(&SPEC.child(uid), MAX_UID));
        }
    }
    let path = SPEC.child("maxExpirationSeconds");
    let Some(seconds) = spec.int("maxExpirationSeconds") else {
        errors.push(Error::required(&path, "must be set"));
        return errors;
    };
    let host = signer.split('/').next().unwrap_or_default();
    let is_ours = host == "kubernetes.io" || host.ends_with(".kubernetes.io");
    let most = if is_ours { DAY } else { 91 * DAY };
    if !(HOUR..=most).contains(&seconds) {
        let detail = format!("must be in the range [{HOUR}, {most}]");
        errors.push(Error::invalid(&path, BadValue::json(seconds), detail));
    }
    let has = ["stubPKCS10Request", "pkixPublicKey", "proofOfPossession"].map(|key| !spec.text(key).is_empty());
    match has {
        [true, false, false] => errors.extend(check_stub(&bytes(spec, "stubPKCS10Request")).err()),
        [false, true, true] => errors.extend(check_key(spec).err()),
        _ => {
            let detail = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
            errors.push(Error::invalid(&SPEC, BadValue::Omitted, detail));
        }
    }
    errors
}

fn check_stub(der: &[u8]) -> Result<(), Error> {
    let path = SPEC.child("stubPKCS10Request");
    if der.len() > MAX_KEY_BYTES {
        return Err(Error::too_long(&path, MAX_KEY_BYTES));
    }
    let invalid = |value: BadValue, detail: &str| Error::invalid(&path, value, detail);
    let request = Request::from_der(der).map_err(|_| invalid(BadValue::Omitted, "must be a valid PKCS#10 CSR"))?;
    let curves = "elliptic public keys must use curve P256, P384, or P521";
    if let Some((value, detail)) = weakness(&request.key, curves) {
        return Err(invalid(value.unwrap_or(BadValue::Omitted), detail));
    }
    request.check_signature().map_err(|_| invalid(BadValue::Omitted, "invalid signature"))
}

fn check_key(spec: &Value) -> Result<(), Error> {
    let (path, proof_path) = (SPEC.child("pkixPublicKey"), SPEC.child("proofOfPossession"));
    let (der, proof) = (bytes(spec, "pkixPublicKey"), bytes(spec, "proofOfPossession"));
    for (bytes, path) in [(&der, &path), (&proof, &proof_path)] {
        if bytes.len() > MAX_KEY_BYTES {
            return Err(Error::too_long(path, MAX_KEY_BYTES));
        }
    }
    let shown = || BadValue::json(spec.text("pkixPublicKey"));
    let key = PublicKey::from_der(&der)
        .map_err(|_| Error::invalid(&path, shown(), "must be a valid PKIX-serialized public key"))?;
    if let Some((value, detail)) = weakness(&key, "elliptic public keys must use curve P256 or P384") {
        return Err(Error::invalid(&path, value.unwrap_or_else(shown), detail));
    }
    if key.proves_possession(spec.text("podUID").as_bytes(), &proof) {
        return Ok(());
    }
    Err(Error::invalid(&proof_path, BadValue::Omitted, "could not verify proof-of-possession signature"))
}

/// Why certificates are not made for such a key, and what of it to show.
fn weakness<'a>(key: &PublicKey, curves: &'a str) -> Option<(Option<BadValue>, &'a str)> {
    match key {
        PublicKey::Ecdsa { curve: curve @ Curve::P224, .. } => {
            Some((Some(format!("curve {}", curve.name()).into()), curves))
        }
        PublicKey::Rsa { .. } => {
            let bits = key.rsa_bits().filter(|bits| !matches!(bits, 3072 | 4096))?;
            let detail = "RSA keys must have modulus size 3072 or 4096";
            Some((Some(format!("{bits}-bit modulus").into()), detail))
        }
        PublicKey::Other => Some((None, "unknown public key type; supported types are Ed25519, ECDSA, and RSA")),
        PublicKey::Ecdsa { .. } | PublicKey::Ed25519(_) => None,
    }
}

fn check_status(new: &Value, old: &Value, now: Time) -> ErrorList {
    let mut errors = meta_update(new, old);
    if !errors.is_empty() {
        return errors;
    }
    let (status, before) = (member(new, "status"), member(old, "status"));
    check_conditions(status.list("conditions"), &mut errors);
    if !errors.is_empty() {
        return errors;
    }
    let is = |status: &Value, kind: &str| {
        status.list("conditions").iter().any(|c| c.text("type") == kind && c.text("status") == "True")
    };
    let unchanged = |detail: &str| match common::same(Some(status), Some(before)) {
        true => ErrorList::new(),
        false => Error::invalid(&STATUS, BadValue::Omitted, detail).into(),
    };
    if FINAL.iter().any(|kind| is(before, kind)) {
        return unchanged("immutable after PodCertificateRequest is issued, denied, or failed");
    }
    if is(status, "Denied") || is(status, "Failed") {
        let others = ["certificateChain", "notBefore", "notAfter", "beginRefreshAt"];
        if others.iter().any(|key| status.get(key).is_some_and(|v| !v.is_empty())) {
            let detail = "non-condition status fields must be empty when denying or failing the PodCertificateRequest";
            errors.push(Error::invalid(&STATUS, BadValue::Omitted, detail));
        }
        return errors;
    }
    if is(status, "Issued") {
        return check_issued(status, member(old, "spec"), now);
    }
    unchanged(r#"status is immutable unless transitioning to "Issued", "Denied", or "Failed""#)
}

/// One answer at most, and it is true.
fn check_conditions(conditions: &[Value], errors: &mut ErrorList) {
    let mut count = 0;
    for (i, condition) in conditions.iter().enumerate() {
        let (kind, state) = (condition.text("type"), condition.text("status"));
        // The reference writes the index as if it were a name.
        let index = format!("[{i}]");
        let path = Path::of(&["status", "conditions"]);
        let path = path.child(&index);
        if !FINAL.contains(&kind) {
            errors.push(Error::not_supported(&path.child("type"), kind, FINAL));
            continue;
        }
        count += 1;
        if count > 1 {
            let detail = r#"There may be at most one condition with type "Issued", "Denied", or "Failed""#;
            errors.push(Error::invalid(&path.child("type"), kind, detail));
        }
        if state != "True" {
            errors.push(Error::not_supported(&path.child("status"), BadValue::json(state), ["True"]));
        }
    }
    errors.extend(validate_conditions(conditions, &Path::of(&["status", "conditions"])));
}

fn check_issued(status: &Value, spec: &Value, now: Time) -> ErrorList {
    let path = STATUS.child("certificateChain");
    let chain = status.text("certificateChain");
    if chain.len() > MAX_CHAIN_BYTES {
        return Error::too_long(&path, MAX_CHAIN_BYTES).into();
    }
    let invalid = |detail: &str| Error::invalid(&path, chain, detail);
    let mut blocks = blocks(chain.as_bytes());
    let Some(first) = blocks.next() else {
        return invalid("issued certificate chain must contain at least one certificate").into();
    };
    if first.label != "CERTIFICATE" {
        return invalid("issued certificate chain must consist entirely of CERTIFICATE PEM blocks").into();
    }
    let Ok(leaf) = Certificate::parse(&first.bytes) else {
        return invalid("leaf certificate does not parse as valid X.509").into();
    };
    let mut errors = check_names(&leaf, &path);
    let key = match bytes(spec, "stubPKCS10Request") {
        stub if !stub.is_empty() => Request::from_der(&stub).map(|request| request.key).map_err(|_| {
            let path = SPEC.child("stubPKCS10Request");
            Error::invalid(&path, BadValue::Omitted, "must be a valid PKCS#10 CSR")
        }),
        _ => PublicKey::from_der(&bytes(spec, "pkixPublicKey")).map_err(|_| {
            let path = SPEC.child("pkixPublicKey");
            Error::invalid(&path, BadValue::Omitted, "must be a valid PKIX-serialized public key")
        }),
    };
    match key {
        Err(error) => errors.push(error),
        Ok(key) if key != PublicKey::Other && key != leaf.key => {
            errors.push(invalid("leaf certificate was not issued to the requested public key"));
        }
        Ok(_) => match check_times(status, spec, &leaf, now) {
            wrong if wrong.is_empty() && errors.is_empty() => errors.extend(blocks.find_map(|block| {
                if block.label != "CERTIFICATE" {
                    // Spelt so by the reference.
                    return Some(invalid("issued certificate chain must consist entirely of CERTFICATE PEM blocks"));
                }
                let is_good = Certificate::parse(&block.bytes).is_ok();
                (!is_good).then(|| invalid("intermediate certificate does not parse as valid X.509"))
            })),
            wrong => errors.extend(wrong),
        },
    }
    errors
}

fn check_names(leaf: &Certificate, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in &leaf.names.dns {
        let mut wrong = |detail: &str| errors.push(Error::invalid(path, name.as_str(), detail));
        if name.is_empty() {
            wrong("leaf certificate should not contain empty DNSName");
        }
        if name.contains("..") {
            wrong("leaf certificate's DNSName should not contain '..'");
        }
        if name.starts_with('.') || name.ends_with('.') {
            wrong("leaf certificate's DNSName should not start or end with '.'");
        }
    }
    for email in &leaf.names.emails {
        if !is_address(email) {
            let detail = "leaf certificate should not contain invalid EmailAddress";
            errors.push(Error::invalid(path, email.as_str(), detail));
        }
    }
    errors
}

/// A mailbox at a domain.
fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let is_atom = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~.".contains(&b))
            && part.split('.').all(|atom| !atom.is_empty())
    };
    is_atom(local) && is_atom(domain)
}

fn check_times(status: &Value, spec: &Value, leaf: &Certificate, now: Time) -> ErrorList {
    let keys = ["notBefore", "notAfter", "beginRefreshAt"];
    let times = keys.map(|key| status.some(key).and_then(Value::as_str).and_then(|text| Time::parse(text).ok()));
    let [Some(not_before), Some(not_after), Some(refresh)] = times else {
        let missing = keys.into_iter().zip(times).filter(|(_, time)| time.is_none()).map(|(key, _)| {
            let detail = match key {
                "beginRefreshAt" => "must be present and in the range [notbefore+10min, notafter-10min]",
                _ => "must be present and consistent with the issued certificate",
            };
            Error::required(&STATUS.child(key), detail)
        });
        return missing.collect();
    };
    let wrong = |key: &str, detail: &str| -> ErrorList {
        Error::invalid(&STATUS.child(key), BadValue::json(status.text(key)), detail).into()
    };
    if not_before != leaf.not_before {
        return wrong("notBefore", "must be set to the NotBefore time encoded in the leaf certificate");
    }
    let nanos = |later: Time, earlier: Time| later.since(earlier).as_nanos();
    const NANOS: i64 = 1_000_000_000;
    if nanos(not_before, now).abs() >= 5 * MINUTE * NANOS {
        return wrong("notBefore", "must be set to within 5 minutes of kube-apiserver's current time");
    }
    if not_after != leaf.not_after {
        return wrong("notAfter", "must be set to the NotAfter time encoded in the leaf certificate");
    }
    let (lifetime, path) = (nanos(not_after, not_before), STATUS.child("certificateChain"));
    if lifetime < HOUR * NANOS {
        let detail = "leaf certificate lifetime must be >= 1 hour";
        return Error::invalid(&path, BadValue::json(lifetime), detail).into();
    }
    let most = spec.number("maxExpirationSeconds");
    if lifetime > most.saturating_mul(NANOS) {
        let detail = format!("leaf certificate lifetime must be <= spec.maxExpirationSeconds ({most})");
        return Error::invalid(&path, BadValue::json(lifetime), detail).into();
    }
    if nanos(refresh, not_before) < 10 * MINUTE * NANOS {
        return wrong("beginRefreshAt", "must be at least 10 minutes after status.notBefore");
    }
    if nanos(not_after, refresh) < 10 * MINUTE * NANOS {
        return wrong("beginRefreshAt", "must be at least 10 minutes before status.notAfter");
    }
    ErrorList::new()
}
