//! ClusterTrustBundles: authorities to trust, of one signer or of none.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{Messages, NameUse, name_is_dns_subdomain};
use kubelith_meta::object::Namespacing;
use kubelith_rules::Rules;
use kubelith_rules::common::{Fields, SPEC, immutable_member, member, meta, meta_update};
use kubelith_rules::values::signer_name;
use kubelith_rules::x509::Certificate;
use kubelith_rules::x509::pem::{Block, blocks};

pub const RULES: Rules = Rules {
    create: |_, bundle| check(bundle, true),
    update: |_, new, old| {
        let text = |bundle: &Value| member(bundle, "spec").text("trustBundle").to_owned();
        let mut errors = check(new, text(new) != text(old));
        errors.extend(meta_update(new, old));
        let (new, old) = (member(new, "spec"), member(old, "spec"));
        immutable_member(new, old, "signerName", &SPEC, &mut errors);
        errors
    },
};

const MAX_BYTES: usize = 1024 * 1024;

/// A bundle that is not changed is not read again: readers grow stricter.
fn check(bundle: &Value, is_new: bool) -> ErrorList {
    let spec = member(bundle, "spec");
    let signer = spec.text("signerName");
    let mut errors = meta(bundle, Namespacing::Forbidden, |name, name_use| name_rule(signer, name, name_use));
    if !signer.is_empty() {
        signer_name(signer, &SPEC.child("signerName"), &mut errors);
    }
    if is_new {
        check_anchors(spec.text("trustBundle"), &SPEC.child("trustBundle"), &mut errors);
    }
    errors
}

/// Bundles of a signer have its name in front of their own.
fn name_rule(signer: &str, name: &str, name_use: NameUse) -> Messages {
    if signer.is_empty() {
        if name.contains(':') {
            return vec!["ClusterTrustBundle without signer name must not have \":\" in its name".into()];
        }
        return name_is_dns_subdomain(name, name_use);
    }
    let prefix = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&prefix) {
        Some(own) => name_is_dns_subdomain(own, name_use),
        None => vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}")],
    }
}

fn check_anchors(text: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if text.len() > MAX_BYTES {
        return errors.push(Error::too_long(path, MAX_BYTES));
    }
    let invalid = |detail: String| Error::invalid(path, "<value omitted>", detail);
    let blocks: Vec<Block> = blocks(text.as_bytes()).collect();
    let wrong = blocks.iter().enumerate().filter_map(|(i, block)| Some(format!("entry {i} {}", problem(block)?)));
    let wrong: Vec<Error> = wrong.map(invalid).collect();
    if !wrong.is_empty() {
        return errors.extend(wrong);
    }
    if blocks.is_empty() {
        errors.push(invalid("at least one trust anchor must be provided".into()));
    }
    for (i, block) in blocks.iter().enumerate() {
        if blocks[..i].iter().any(|other| other.bytes == block.bytes) {
            continue;
        }
        let same = (i..blocks.len()).filter(|j| blocks[*j].bytes == block.bytes).map(|j| j.to_string());
        let same: Vec<String> = same.collect();
        if same.len() > 1 {
            errors.push(invalid(format!("duplicate trust anchor (indices [{}])", same.join(" "))));
        }
    }
}

/// Why a block is no anchor.
fn problem(block: &Block) -> Option<String> {
    if block.label != "CERTIFICATE" {
        return Some(format!("has bad block type: {}", block.label));
    }
    if block.has_headers {
        return Some("has PEM block headers".into());
    }
    match Certificate::parse(&block.bytes) {
        Err(_) => Some("does not parse as X.509".into()),
        Ok(certificate) if certificate.is_ca != Some(true) => Some("does not have the CA bit set".into()),
        Ok(_) => None,
    }
}
