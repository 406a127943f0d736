//! Claims on devices: who may look after devices that others use is said by their namespace.

use super::{Kind, other};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_registry::objects::parse;
use kubelith_registry::{Objects, Part};
use kubelith_validation::admin_access;

pub const CLAIM: Kind = {
    let mut kind = other::sealed(Kind::PLAIN.returned());
    kind.prepare_for_update = |_, _, part, claim, old| {
        if part == Part::Status {
            other::keep_metadata(claim, old);
            drop_deallocated(claim, old);
        }
    };
    kind
};

const ADMIN_LABEL: &str = "resource.kubernetes.io/admin-access";
const RESULTS: [&str; 4] = ["status", "allocation", "devices", "results"];

/// What stands against the access that a new claim or template asks for.
pub fn check_requested(objects: &Objects, object: &Value) -> ErrorList {
    let lists: [&[&str]; 2] = [&["spec", "devices", "requests"], &["spec", "spec", "devices", "requests"]];
    let found = lists.into_iter().find_map(|list| admin_access(object, list, &["exactly"]));
    // The reference names the field so, wherever it is.
    found.map_or_else(ErrorList::new, |i| check_namespace(objects, object, lists[0], i))
}

/// What stands against the access that a claim is given.
pub fn check_given(objects: &Objects, claim: &Value, old: &Value) -> ErrorList {
    if admin_access(old, &RESULTS, &[]).is_some() {
        return ErrorList::new();
    }
    let found = admin_access(claim, &RESULTS, &[]);
    found.map_or_else(ErrorList::new, |i| check_namespace(objects, claim, &RESULTS, i))
}

fn check_namespace(objects: &Objects, object: &Value, list: &[&str], index: usize) -> ErrorList {
    let path = Path::of(list);
    let path = path.index(index);
    let path = path.child("adminAccess");
    let name = object.meta().namespace();
    let Some(namespace) = objects.cached("", "namespaces", "", name).and_then(|namespace| parse(&namespace)) else {
        let why = format!("could not retrieve namespace to verify admin access: namespaces \"{name}\" not found");
        return Error::internal(&path, why).into();
    };
    if namespace.meta().label(ADMIN_LABEL) == Some("true") {
        return ErrorList::new();
    }
    let detail =
        format!("admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace");
    Error::forbidden(&path, detail).into()
}

/// What was said of devices that the claim no longer has is forgotten with them.
fn drop_deallocated(claim: &mut Value, old: &Value) {
    let id = |device: &Value| ["driver", "pool", "device", "shareID"].map(|key| device.str_at(&[key]).to_owned());
    let given = |claim: &Value| -> Vec<[String; 4]> {
        claim.at(&RESULTS).and_then(Value::as_array).unwrap_or_default().iter().map(id).collect()
    };
    let (before, now) = (given(old), given(claim));
    const DEVICES: [&str; 2] = ["status", "devices"];
    let Some(devices) = claim.at_mut(&DEVICES).and_then(Value::as_array_mut) else { return };
    devices.retain(|device| !before.contains(&id(device)) || now.contains(&id(device)));
    if devices.is_empty() {
        claim.remove_at(&DEVICES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        kubelith_codec::json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn statuses_of_devices_go_with_them() {
        let given = r#""allocation":{"devices":{"results":[{"driver":"d","pool":"p","device":"a"}]}}"#;
        let devices = r#""devices":[{"driver":"d","pool":"p","device":"a"}]"#;
        let old = value(&format!(r#"{{"status":{{{given}}}}}"#));
        let mut kept = value(&format!(r#"{{"status":{{{given},{devices}}}}}"#));
        drop_deallocated(&mut kept, &old);
        assert!(kept.at(&["status", "devices"]).is_some());
        let mut gone = value(&format!(r#"{{"status":{{{devices}}}}}"#));
        drop_deallocated(&mut gone, &old);
        assert_eq!(gone, value(r#"{"status":{}}"#));
        // One that was never given is left for validation to refuse.
        let mut foreign = value(r#"{"status":{"devices":[{"driver":"d","pool":"p","device":"b"}]}}"#);
        drop_deallocated(&mut foreign, &old);
        assert!(foreign.at(&["status", "devices"]).is_some());
    }
}
