//! What was given to a claim, who uses it, and how the devices are.

use crate::resource::resource_claim::validate::{
    MAX_CONFIGURATIONS, MAX_REQUESTS, Parameters, Requests, check_configuration, check_raw,
};
use crate::resource::shared::{binding_conditions, each, each_once, pool_name};
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::validate_interface_address;
use kubelith_meta::object::validate_conditions;
use kubelith_meta::text::{Quoted, json};
use kubelith_pods::validate::node_selector;
use kubelith_rules::common::{Fields, dns_label, member, meta_update, one_of};
use kubelith_rules::internal;
use kubelith_rules::values::driver_name;

pub const STATUS: Path<'static> = Path::new("status");

pub const MAX_CONSUMERS: usize = 256;

pub const MAX_DEVICE_CONDITIONS: usize = 8;

pub const MAX_DEVICE_DATA: usize = 10 * 1024;

pub const MAX_INTERFACE_NAME: usize = 256;

pub const MAX_HARDWARE_ADDRESS: usize = 128;

pub const MAX_IPS: usize = 16;

pub fn check(new: &Value, old: &Value) -> ErrorList {
    let mut errors = meta_update(new, old);
    let (status, before) = (member(new, "status"), member(old, "status"));
    let requests = Requests::of(member(member(new, "spec"), "devices"));
    let uid = |user: &Value| user.text("uid").to_owned();
    let users = STATUS.child("reservedFor");
    each_once(status.list("reservedFor"), MAX_CONSUMERS, &users, &mut errors, uid, |user, path, errors| {
        for key in ["resource", "name", "uid"] {
            if user.text(key).is_empty() {
                errors.push(Error::required(&path.child(key), ""));
            }
        }
    });
    let allocation = status.some("allocation");
    check_devices(status, allocation, &mut errors);
    check_users(status, before, new.meta().is_being_deleted(), &mut errors);
    let path = STATUS.child("allocation");
    match (allocation, before.some("allocation")) {
        (Some(new), Some(old)) => {
            internal::immutable("*AllocationResult", Some(new), Some(old), &path, &mut errors);
        }
        (Some(new), None) => check_allocation(new, &requests, &path, &mut errors),
        _ => {}
    }
    errors
}

pub fn check_users(status: &Value, before: &Value, is_going: bool, errors: &mut ErrorList) {
    let (users, path) = (status.list("reservedFor"), STATUS.child("reservedFor"));
    if users.is_empty() {
        return;
    }
    if !status.has("allocation") {
        errors.push(Error::forbidden(&path, "may not be specified when `allocated` is not set"));
    } else if is_going && users.iter().any(|user| !before.list("reservedFor").contains(user)) {
        let detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
        errors.push(Error::forbidden(&path, detail));
    }
}

/// A device by who drives it, where it is, and which share of it is meant.
pub fn device_id(device: &Value) -> String {
    let part = |key: &str| json(&device.text(key).into());
    let [driver, pool, name, share] = ["driver", "pool", "device", "shareID"].map(part);
    format!("{{\"Driver\":{driver},\"Pool\":{pool},\"Device\":{name},\"ShareID\":{share}}}")
}

pub fn check_devices(status: &Value, allocation: Option<&Value>, errors: &mut ErrorList) {
    let results = allocation.map_or(&[][..], |a| member(a, "devices").list("results"));
    let allocated: Vec<String> = results.iter().map(device_id).collect();
    let (devices, path) = (status.list("devices"), STATUS.child("devices"));
    each(devices, usize::MAX, &path, errors, |device, path, errors| check_device(device, &allocated, path, errors));
    let ids: Vec<String> = devices.iter().map(device_id).collect();
    for (i, id) in ids.iter().enumerate().filter(|(i, id)| ids[..*i].contains(id)) {
        errors.push(Error::duplicate(&path.index(i), BadValue::text(id.as_str())));
    }
}

pub fn check_device(device: &Value, allocated: &[String], path: &Path<'_>, errors: &mut ErrorList) {
    driver_name(device.text("driver"), &path.child("driver"), errors);
    pool_name(device.text("pool"), &path.child("pool"), errors);
    dns_label(device.text("device"), &path.child("device"), errors);
    if let Some(share) = device.some("shareID").and_then(Value::as_str) {
        check_uuid(share, &path.child("shareID"), errors);
    }
    let id = device_id(device);
    if !allocated.contains(&id) {
        errors.push(Error::invalid(path, BadValue::text(id), "must be an allocated device in the claim"));
    }
    let conditions = device.list("conditions");
    if conditions.len() > MAX_DEVICE_CONDITIONS {
        errors.push(Error::too_many(&path.child("conditions"), conditions.len(), MAX_DEVICE_CONDITIONS));
    }
    errors.extend(validate_conditions(conditions, &path.child("conditions")));
    if let Some(data) = device.some("data") {
        check_raw(Some(data), Parameters::New, MAX_DEVICE_DATA, &path.child("data"), errors);
    }
    if let Some(network) = device.some("networkData") {
        let path = path.child("networkData");
        for (key, max) in [("interfaceName", MAX_INTERFACE_NAME), ("hardwareAddress", MAX_HARDWARE_ADDRESS)] {
            if network.text(key).len() > max {
                errors.push(Error::too_long(&path.child(key), max));
            }
        }
        let text = |ip: &Value| ip.as_str().unwrap_or_default().to_owned();
        each_once(network.list("ips"), MAX_IPS, &path.child("ips"), errors, text, |ip, path, errors| {
            errors.extend(validate_interface_address(&text(ip), path));
        });
    }
}

pub fn check_allocation(allocation: &Value, requests: &Requests<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    let devices = member(allocation, "devices");
    let at = path.child("devices");
    each(devices.list("results"), MAX_REQUESTS, &at.child("results"), errors, |result, path, errors| {
        requests.check(result.text("request"), &path.child("request"), errors);
        driver_name(result.text("driver"), &path.child("driver"), errors);
        pool_name(result.text("pool"), &path.child("pool"), errors);
        dns_label(result.text("device"), &path.child("device"), errors);
        binding_conditions(result, path, errors);
        if let Some(share) = result.some("shareID").and_then(Value::as_str) {
            check_uuid(share, &path.child("shareID"), errors);
        }
    });
    // Those of the class, and those of the claim.
    let max = 2 * MAX_CONFIGURATIONS;
    each(devices.list("config"), max, &at.child("config"), errors, |config, path, errors| {
        one_of(config.text("source"), &["FromClaim", "FromClass"], &path.child("source"), errors);
        requests.check_list(config, path, errors);
        check_configuration(config, Parameters::New, path, errors);
    });
    if let Some(selector) = allocation.some("nodeSelector") {
        node_selector(selector, &path.child("nodeSelector"), errors);
    }
}

/// Only the usual form of a UUID is taken; other known forms are told from what is none.
pub fn check_uuid(text: &str, path: &Path<'_>, errors: &mut ErrorList) {
    if let Err(why) = read_uuid(text) {
        errors.push(Error::invalid(path, text, format!("error validating uid: {why}")));
    } else if text.len() != 36 || text.bytes().any(|b| b.is_ascii_uppercase()) {
        let detail = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase \
                      hexadecimal characters";
        errors.push(Error::invalid(path, text, detail));
    }
}

pub fn read_uuid(text: &str) -> Result<(), String> {
    const FORM: &str = "invalid UUID format";
    let bytes = text.as_bytes();
    let plain = match bytes.len() {
        36 => bytes,
        45 => match text.get(..9).filter(|prefix| prefix.eq_ignore_ascii_case("urn:uuid:")) {
            Some(_) => &bytes[9..],
            None => return Err(format!("invalid urn prefix: {}", Quoted(&String::from_utf8_lossy(&bytes[..9])))),
        },
        38 if bytes[0] == b'{' && bytes[37] == b'}' => &bytes[1..37],
        38 => return Err("invalid bracketed UUID format".into()),
        32 if bytes.iter().all(u8::is_ascii_hexdigit) => return Ok(()),
        32 => return Err(FORM.into()),
        length => return Err(format!("invalid UUID length: {length}")),
    };
    let is_right = plain.iter().enumerate().all(|(i, b)| match i {
        8 | 13 | 18 | 23 => *b == b'-',
        _ => b.is_ascii_hexdigit(),
    });
    if is_right { Ok(()) } else { Err(FORM.into()) }
}
