//! Claims on devices.

pub mod defaults;
pub mod gated;
mod status;
pub mod validate;

use kubelith_meta::Value;
use kubelith_rules::Kind;
use kubelith_rules::cells::{Cells, Row};
use kubelith_rules::sealed::{keep_metadata, sealed};
use kubelith_schema::lifecycle::Part;

pub const RESOURCE_CLAIM: Kind = Kind {
    defaults: defaults::RULES,
    features: &[(&[], gated::CLAIM)],
    prepare_for_update: |_, _, part, claim, old| {
        if part == Part::Status {
            keep_metadata(claim, old);
            drop_deallocated(claim, old);
        }
    },
    rules: validate::RULES,
    cells: CELLS,
    ..sealed(Kind { group: "resource.k8s.io", plural: "resourceclaims", ..Kind::PLAIN }.returned())
};

pub const CELLS: Cells = &[("claim_state", claim_state)];

/// `allocated,reserved`.
fn claim_state(row: &Row<'_>) -> Option<Value> {
    let mut states = Vec::new();
    if row.is_deleted() {
        states.push("deleted");
    }
    if row.at(&["status", "allocation"]).is_some() {
        states.push("allocated");
        if !row.list(&["status", "reservedFor"]).is_empty() {
            states.push("reserved");
        }
    } else if !row.is_deleted() {
        states.push("pending");
    }
    Some(states.join(",").into())
}

const RESULTS: [&str; 4] = ["status", "allocation", "devices", "results"];

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
