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

/// The label by which stored events are selected, for a label of a group: `regarding.name` of events.k8s.io is
/// `involvedObject.name` in core/v1.
pub fn stored_label(group: &str, label: &str) -> String {
    if group != "events.k8s.io" {
        return label.into();
    }
    let (first, rest) = label.split_once('.').map_or((label, None), |(first, rest)| (first, Some(rest)));
    let first = NAMES.iter().find(|(_, other)| *other == first).map_or(first, |(core, _)| core);
    rest.map_or_else(|| first.into(), |rest| format!("{first}.{rest}"))
}

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
