//! Events: core/v1, in which they are stored, and events.k8s.io, which gave many fields better names.

use super::values::rename;
use kubelith_meta::Value;

/// Names in core/v1 and in events.k8s.io.
const NAMES: [(&str, &str); 7] = [
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("involvedObject", "regarding"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
];

pub fn to_core(event: &mut Value) {
    if let Some(map) = event.as_object_mut() {
        NAMES.iter().for_each(|(core, other)| rename(map, other, core));
    }
}

pub fn from_core(event: &mut Value) {
    if let Some(map) = event.as_object_mut() {
        NAMES.iter().for_each(|(core, other)| rename(map, core, other));
    }
}
