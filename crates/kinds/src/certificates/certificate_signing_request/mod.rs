//! CertificateSigningRequests.

pub mod validate;

use kubelith_meta::call::Call;
use kubelith_meta::time::{Duration, human_duration};
use kubelith_meta::{Map, Value};
use kubelith_rules::cells::{Cells, Row, condition};
use kubelith_rules::{Env, Kind};
use kubelith_schema::lifecycle::Part;

pub const SIGNING_REQUEST: Kind = Kind {
    group: "certificates.k8s.io",
    plural: "certificatesigningrequests",
    rules: validate::RULES,
    cells: CELLS,

    prepare_for_create,
    prepare_for_update,
    reset_fields: |part| match part {
        Part::Main => &[&["spec"], &["status"]],
        Part::Status => &[&["spec"], &["status", "conditions"]],
        Part::Other(_) => &[&["spec"], &["status", "certificate"]],
    },
    ..Kind::PLAIN
};

pub const CELLS: Cells = &[("csr_condition", csr_condition), ("csr_requested_duration", requested_duration)];

/// `Approved,Issued`.
fn csr_condition(row: &Row<'_>) -> Option<Value> {
    let has = |kind| condition(row.conditions(), kind).is_some();
    let mut status = if has("Denied") {
        "Denied".to_owned()
    } else if has("Approved") {
        "Approved".to_owned()
    } else {
        "Pending".to_owned()
    };
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !row.text(&["status", "certificate"]).is_empty() {
        status.push_str(",Issued");
    }
    Some(status.into())
}

fn requested_duration(row: &Row<'_>) -> Option<Value> {
    let seconds = row.at(&["spec", "expirationSeconds"]).and_then(Value::as_i64);
    Some(seconds.map_or_else(|| "<none>".to_owned(), |s| human_duration(Duration::from_secs(s))).into())
}

fn prepare_for_create(_env: &Env, call: &Call, request: &mut Value) {
    let user = &call.user;
    let spec = request.make_object().entry_or_null("spec").make_object();
    for key in ["username", "uid", "groups", "extra"] {
        spec.remove(key);
    }
    if !user.name.is_empty() {
        spec.insert("username", user.name.clone());
    }
    if !user.uid.is_empty() {
        spec.insert("uid", user.uid.clone());
    }
    if !user.groups.is_empty() {
        spec.insert("groups", user.groups.to_vec());
    }
    if !user.extra.is_empty() {
        let extra: Map = user.extra.iter().map(|(key, values)| (key.clone(), Value::from(values.to_vec()))).collect();
        spec.insert("extra", extra);
    }
    request.make_object().remove("status");
}

fn prepare_for_update(env: &Env, _call: &Call, part: Part<'_>, request: &mut Value, old: &Value) {
    request.copy_at(&["spec"], old);
    match part {
        Part::Main => request.copy_at(&["status"], old),
        Part::Status => {
            for kind in ["Approved", "Denied"] {
                keep_conditions(request, old, kind);
            }
            fill_times(env, request, old);
        }
        Part::Other(_) => {
            fill_times(env, request, old);
            let conditions = request.at(&["status", "conditions"]).cloned();
            request.copy_at(&["status"], old);
            request.put_at(&["status", "conditions"], conditions);
        }
    }
}

/// Approvals and denials stay as they are, unless one was added or removed: that is for validation to refuse.
fn keep_conditions(request: &mut Value, old: &Value, kind: &str) {
    let is_kind = |c: &&Value| c.str_at(&["type"]) == kind;
    let kept: Vec<Value> = conditions(old).iter().filter(is_kind).cloned().collect();
    if conditions(request).iter().filter(is_kind).count() != kept.len() {
        return;
    }
    let Some(list) = request.at_mut(&["status", "conditions"]).and_then(Value::as_array_mut) else { return };
    let mine = list.iter_mut().filter(|c| c.str_at(&["type"]) == kind);
    for (condition, kept) in mine.zip(kept) {
        *condition = kept;
    }
}

/// Times that the client left out are now, or those of the same condition in the same state.
fn fill_times(env: &Env, request: &mut Value, old: &Value) {
    let now = env.now().rfc3339();
    let Some(list) = request.at_mut(&["status", "conditions"]).and_then(Value::as_array_mut) else { return };
    for condition in list {
        let is_set = |c: &Value, key: &str| c.get(key).is_some_and(|time| !time.is_null());
        if !is_set(condition, "lastUpdateTime") {
            condition.set_at(&["lastUpdateTime"], now.as_str().into());
        }
        if !is_set(condition, "lastTransitionTime") {
            let same = |c: &&Value| {
                let equal = |key: &str| c.str_at(&[key]) == condition.str_at(&[key]);
                equal("type") && equal("status") && is_set(c, "lastTransitionTime")
            };
            let since = conditions(old).iter().find(same).and_then(|c| c.get("lastTransitionTime")).cloned();
            condition.set_at(&["lastTransitionTime"], since.unwrap_or_else(|| now.as_str().into()));
        }
    }
}

fn conditions(request: &Value) -> &[Value] {
    request.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Value {
        kubelith_codec::json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn times_are_filled_in_and_kept() {
        let old = parse(
            r#"{"status":{"conditions":[{"type":"Approved","status":"True","lastTransitionTime":"2020-01-01T00:00:00Z"}]}}"#,
        );
        let mut new = parse(
            r#"{"status":{"conditions":[{"type":"Approved","status":"True"},{"type":"Failed","status":"True"}]}}"#,
        );
        fill_times(&Env::default(), &mut new, &old);
        let conditions = conditions(&new);
        assert_eq!(conditions[0].str_at(&["lastTransitionTime"]), "2020-01-01T00:00:00Z");
        assert!(!conditions[0].str_at(&["lastUpdateTime"]).is_empty());
        assert!(!conditions[1].str_at(&["lastTransitionTime"]).is_empty());
    }

    #[test]
    fn status_cannot_change_an_approval() {
        let old = parse(r#"{"status":{"conditions":[{"type":"Approved","reason":"a"}]}}"#);
        let mut new = parse(r#"{"status":{"conditions":[{"type":"Approved","reason":"b"},{"type":"Denied"}]}}"#);
        keep_conditions(&mut new, &old, "Approved");
        keep_conditions(&mut new, &old, "Denied");
        assert_eq!(conditions(&new)[0].str_at(&["reason"]), "a");
        assert_eq!(conditions(&new).len(), 2, "an added denial stays for validation to see");
    }
}
