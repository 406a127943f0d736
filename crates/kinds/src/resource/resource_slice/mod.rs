//! ResourceSlices.

pub mod validate;

use kubelith_meta::text::Quoted;
use kubelith_meta::time::{Clock, SystemClock};
use kubelith_meta::{Map, Value};
use kubelith_rules::Kind;
use kubelith_rules::defaults::{Defaults, set_absent};
use kubelith_rules::gated::{Feature, feature};
use kubelith_schema::lifecycle::Generation;

pub const RESOURCE_SLICE: Kind = Kind {
    group: "resource.k8s.io",
    plural: "resourceslices",
    defaults: DEFAULTS,
    features: &[(&[], FEATURES)],
    rules: validate::RULES,

    counts_dropped: true,
    generation: Generation::Spec,
    delete_returns_object: true,
    warnings_on_create: |_, slice| slice_warnings(slice),
    warnings_on_update: |_, _, slice, _| slice_warnings(slice),
    ..Kind::PLAIN
};

const FEATURES: &[Feature] = &[
    feature(&["DRADeviceTaints"], &["spec.devices[].taints"]),
    feature(
        &["DRAPartitionableDevices"],
        &[
            "spec.sharedCounters",
            "spec.perDeviceNodeSelection",
            "spec.devices[].consumesCounters",
            "spec.devices[].nodeName",
            "spec.devices[].nodeSelector",
            "spec.devices[].allNodes",
        ],
    ),
    feature(
        &["DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"],
        &["spec.devices[].bindingConditions", "spec.devices[].bindingFailureConditions", "spec.devices[].bindsToNode"],
    ),
    feature(
        &["DRAConsumableCapacity"],
        &["spec.devices[].allowMultipleAllocations", "spec.devices[].capacity{}.requestPolicy"],
    ),
    feature(&["DRANodeAllocatableResources"], &["spec.devices[].nodeAllocatableResourceMappings"]),
    feature(
        &["DRAListTypeAttributes"],
        &[
            "spec.devices[].attributes{}.bools",
            "spec.devices[].attributes{}.ints",
            "spec.devices[].attributes{}.strings",
            "spec.devices[].attributes{}.versions",
        ],
    ),
];

pub const DEFAULTS: Defaults = &[
    ("io.k8s.api.resource.v1.DeviceTaint", taint_time),
    ("io.k8s.api.resource.v1beta2.DeviceTaint", taint_time),
    ("io.k8s.api.resource.v1beta1.DeviceTaint", taint_time),
    ("io.k8s.api.resource.v1alpha3.DeviceTaint", taint_time),
];

/// A taint without a time is of now.
fn taint_time(taint: &mut Map) {
    if taint.get("timeAdded").is_none_or(Value::is_null) {
        set_absent(taint, "timeAdded", SystemClock.now().rfc3339());
    }
}

fn slice_warnings(slice: &Value) -> Vec<String> {
    let driver = slice.str_at(&["spec", "driver"]);
    if driver == driver.to_lowercase() {
        return Vec::new();
    }
    let name = Quoted(driver);
    vec![format!("spec.driver: driver names should be lowercase; {name} contains uppercase characters")]
}
