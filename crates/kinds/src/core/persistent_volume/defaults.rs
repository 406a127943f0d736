//! Phases, claims and rounded amounts.

use kubelith_meta::Map;
use kubelith_rules::defaults::amounts::round_up;
use kubelith_rules::defaults::{Defaults, is_zero, set_absent};

pub const RULES: Defaults = &[
    ("io.k8s.api.core.v1.PersistentVolume", persistent_volume),
    ("io.k8s.api.core.v1.PersistentVolumeSpec", |m| round_up(m, &["capacity"])),
];

/// Of volumes only: a spec inside of a VolumeAttachment stays without these.
fn persistent_volume(volume: &mut Map) {
    let spec = volume.entry_or_null("spec").make_object();
    if is_zero(spec, "persistentVolumeReclaimPolicy") {
        spec.insert("persistentVolumeReclaimPolicy", "Retain");
    }
    set_absent(spec, "volumeMode", "Filesystem");
}
