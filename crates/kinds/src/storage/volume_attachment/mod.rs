//! VolumeAttachments.

use crate::core::persistent_volume::validate::{Place, check_volume};
use crate::storage::storage_class::validate::bytes_of;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::names::{name_is_dns_subdomain, range_message};
use kubelith_meta::object::Namespacing;
use kubelith_rules::common::{Fields, SPEC, dns_subdomain, member, meta, name_full};
use kubelith_rules::gated::{Feature, feature};
use kubelith_rules::sealed::sealed;
use kubelith_rules::values::driver_name;
use kubelith_rules::{Kind, Rules, internal};

pub const VOLUME_ATTACHMENT: Kind = sealed(
    Kind {
        group: "storage.k8s.io",
        plural: "volumeattachments",
        features: &[(&[], FEATURES)],
        rules: RULES,
        ..Kind::PLAIN
    }
    .guarded()
    .returned(),
);

const FEATURES: &[Feature] = &[
    feature(&["MutableCSINodeAllocatableCount"], &["status.attachError.errorCode"]),
    feature(&["MutableCSINodeAllocatableCount"], &["status.detachError.errorCode"]),
];

pub const RULES: Rules = Rules {
    create: |_, attachment| self::attachment(attachment),
    update: |_, new, old| {
        let mut errors = self::attachment(new);
        internal::immutable("VolumeAttachmentSpec", new.get("spec"), old.get("spec"), &SPEC, &mut errors);
        errors
    },
};

const MAX_METADATA_BYTES: usize = 256 << 10;

const MAX_ERROR_BYTES: usize = 1024;

fn attachment(attachment: &Value) -> ErrorList {
    let mut errors = meta(attachment, Namespacing::Forbidden, name_is_dns_subdomain);
    let spec = member(attachment, "spec");
    driver_name(spec.text("attacher"), &SPEC.child("attacher"), &mut errors);
    let source = member(spec, "source");
    let path = SPEC.child("source");
    const ONE: &str = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    let volume = source.some("persistentVolumeName").and_then(Value::as_str);
    match (source.some("inlineVolumeSpec"), volume) {
        (None, None) => errors.push(Error::required(&path, ONE)),
        (Some(_), Some(_)) => errors.push(Error::forbidden(&path, ONE)),
        (None, Some("")) => {
            let detail = "must specify non empty persistentVolumeName";
            errors.push(Error::required(&path.child("persistentVolumeName"), detail));
        }
        (Some(inline), None) => {
            check_volume(inline, "", Place::Inline, &path.child("inlineVolumeSpec"), &mut errors);
        }
        (None, Some(_)) => {}
    }
    name_full(name_is_dns_subdomain, spec.text("nodeName"), &SPEC.child("nodeName"), &mut errors);
    check_attachment_status(member(attachment, "status"), &mut errors);
    if let Some(volume) = volume {
        dns_subdomain(volume, &Path::new("spec.source.persistentVolumeName"), &mut errors);
    }
    errors
}

fn check_attachment_status(status: &Value, errors: &mut ErrorList) {
    let path = Path::new("status");
    if status.map("attachmentMetadata").is_some_and(|m| bytes_of(m) > MAX_METADATA_BYTES) {
        errors.push(Error::too_long(&path.child("attachmentMetadata"), MAX_METADATA_BYTES));
    }
    for key in ["attachError", "detachError"] {
        let Some(error) = status.some(key) else { continue };
        if error.text("message").len() > MAX_ERROR_BYTES {
            errors.push(Error::too_long(&path.child(key).child("message"), MAX_METADATA_BYTES));
        }
        if let Some(code) = error.int("errorCode").filter(|c| *c < 0) {
            let detail = range_message(0, i64::from(i32::MAX));
            errors.push(Error::invalid(&path.child(key).child("errorCode"), code, detail));
        }
    }
}
