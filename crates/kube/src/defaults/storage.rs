//! Volumes and what is kept of configuration.

use super::{Rules, is_zero, set_absent};
use kubelith_codec::base64;
use kubelith_meta::{Map, Value};

pub const RULES: Rules =
    &[("io.k8s.api.core.v1.PersistentVolume", persistent_volume), ("io.k8s.api.core.v1.Secret", string_data)];

/// Of drivers, which may say that pods wait for them.
pub const LIMIT_SCALING: Rules = &[
    ("io.k8s.api.storage.v1.CSIDriverSpec", |m| set_absent(m, "preventPodSchedulingIfMissing", false)),
    ("io.k8s.api.storage.v1beta1.CSIDriverSpec", |m| set_absent(m, "preventPodSchedulingIfMissing", false)),
];

/// Of volumes only: a spec inside of a VolumeAttachment stays without these.
fn persistent_volume(volume: &mut Map) {
    let spec = volume.entry_or_null("spec").make_object();
    if is_zero(spec, "persistentVolumeReclaimPolicy") {
        spec.insert("persistentVolumeReclaimPolicy", "Retain");
    }
    set_absent(spec, "volumeMode", "Filesystem");
}

/// `stringData` can only be written: it goes into `data` and wins there (core/v1/conversion.go).
fn string_data(secret: &mut Map) {
    let Some(Value::Object(strings)) = secret.remove("stringData") else { return };
    if strings.is_empty() {
        return;
    }
    let data = secret.entry_or_null("data").make_object();
    for (key, value) in strings.iter() {
        data.insert(key, base64::encode(value.as_str().unwrap_or("").as_bytes()));
    }
}
