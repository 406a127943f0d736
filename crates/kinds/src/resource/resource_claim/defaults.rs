//! How many devices are asked for.

use kubelith_meta::Map;
use kubelith_rules::defaults::{Defaults, is_zero, text};

pub const RULES: Defaults = &[
    ("io.k8s.api.resource.v1.ExactDeviceRequest", count),
    ("io.k8s.api.resource.v1.DeviceSubRequest", count),
    ("io.k8s.api.resource.v1beta2.ExactDeviceRequest", count),
    ("io.k8s.api.resource.v1beta2.DeviceSubRequest", count),
    ("io.k8s.api.resource.v1beta1.DeviceRequest", request),
    ("io.k8s.api.resource.v1beta1.DeviceSubRequest", count),
];

/// Who asks for an exact number of devices asks for one.
fn count(request: &mut Map) {
    if text(request, "allocationMode") == "ExactCount" && is_zero(request, "count") {
        request.insert("count", 1i64);
    }
}

/// A request without a class is a list of alternatives, which have their own mode and count.
fn request(request: &mut Map) {
    if is_zero(request, "deviceClassName") {
        return;
    }
    if is_zero(request, "allocationMode") {
        request.insert("allocationMode", "ExactCount");
    }
    count(request);
}
