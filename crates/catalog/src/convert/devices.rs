//! resource.k8s.io: v1beta1 has the fields of a device request in the request itself, where v1 has them in
//! `exactly`, and the fields of a device in `basic`, where v1 has them in the device itself.

use super::values::{objects_at, put};
use kubelith_meta::{Map, Value};

const REQUEST_FIELDS: [&str; 7] =
    ["adminAccess", "allocationMode", "capacity", "count", "deviceClassName", "selectors", "tolerations"];

const DEVICE_FIELDS: [&str; 12] = [
    "allNodes",
    "allowMultipleAllocations",
    "attributes",
    "bindingConditions",
    "bindingFailureConditions",
    "bindsToNode",
    "capacity",
    "consumesCounters",
    "nodeAllocatableResourceMappings",
    "nodeName",
    "nodeSelector",
    "taints",
];

pub fn claim_to_v1(claim: &mut Value) {
    objects_at(claim, &["spec", "devices", "requests"]).for_each(request_to_v1);
}

pub fn claim_from_v1(claim: &mut Value) {
    objects_at(claim, &["spec", "devices", "requests"]).for_each(request_from_v1);
}

pub fn template_to_v1(template: &mut Value) {
    objects_at(template, &["spec", "spec", "devices", "requests"]).for_each(request_to_v1);
}

pub fn template_from_v1(template: &mut Value) {
    objects_at(template, &["spec", "spec", "devices", "requests"]).for_each(request_from_v1);
}

fn request_to_v1(request: &mut Map) {
    let mut exactly = Map::new();
    for field in REQUEST_FIELDS {
        put(&mut exactly, field, request.remove(field));
    }
    // A request with alternatives (`firstAvailable`) has none of them; v1beta1 prints the class even then.
    let plain = ["allocationMode", "count", "deviceClassName"];
    if exactly.iter().any(|(field, value)| !value.is_empty() || !plain.contains(&field)) {
        request.insert("exactly", exactly);
    }
}

fn request_from_v1(request: &mut Map) {
    if let Some(Value::Object(exactly)) = request.remove("exactly") {
        for (field, value) in exactly {
            request.insert(field, value);
        }
    }
}

pub fn slice_to_v1(slice: &mut Value) {
    for device in objects_at(slice, &["spec", "devices"]) {
        if let Some(Value::Object(basic)) = device.remove("basic") {
            for (field, value) in basic {
                device.insert(field, value);
            }
        }
    }
    // Pointers in v1 and plain values here: "" and false mean absent.
    if let Some(spec) = slice.get_mut("spec").and_then(Value::as_object_mut) {
        spec.retain(|key, value| !(["nodeName", "allNodes"].contains(&key) && value.is_empty()));
    }
}

pub fn slice_from_v1(slice: &mut Value) {
    for device in objects_at(slice, &["spec", "devices"]) {
        let mut basic = Map::new();
        for field in DEVICE_FIELDS {
            put(&mut basic, field, device.remove(field));
        }
        device.insert("basic", basic);
    }
}
