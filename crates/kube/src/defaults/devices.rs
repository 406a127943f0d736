//! Dynamic resources: requests for devices, and taints of devices.

use super::{Rules, is_zero, set_absent, text};
use kubelith_meta::time::{Clock, SystemClock};
use kubelith_meta::{Map, Value};

pub const RULES: Rules = &[
    ("io.k8s.api.resource.v1.ExactDeviceRequest", count),
    ("io.k8s.api.resource.v1.DeviceSubRequest", count),
    ("io.k8s.api.resource.v1.DeviceTaint", taint_time),
    ("io.k8s.api.resource.v1beta2.ExactDeviceRequest", count),
    ("io.k8s.api.resource.v1beta2.DeviceSubRequest", count),
    ("io.k8s.api.resource.v1beta2.DeviceTaint", taint_time),
    ("io.k8s.api.resource.v1beta1.DeviceRequest", request),
    ("io.k8s.api.resource.v1beta1.DeviceSubRequest", count),
    ("io.k8s.api.resource.v1beta1.DeviceTaint", taint_time),
    ("io.k8s.api.resource.v1alpha3.DeviceTaint", taint_time),
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

/// A taint without a time is of now.
fn taint_time(taint: &mut Map) {
    if taint.get("timeAdded").is_none_or(Value::is_null) {
        set_absent(taint, "timeAdded", SystemClock.now().rfc3339());
    }
}
