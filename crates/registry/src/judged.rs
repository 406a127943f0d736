//! What of an object is known to obey all rules, so that an update that leaves it alone need not judge it again. Only what this
//! process judged itself is: what another wrote, or another release of this program, may break rules of today.

use kubelith_meta::Value;

const SPEC: &str = "spec";

/// Keeps in mind that the spec obeys all rules.
pub(crate) fn mark_judged(object: &Value) {
    if let Some(spec) = object.get(SPEC).and_then(Value::as_object) {
        spec.mark_judged();
    }
}

/// Whether the spec is known to, and is as it was then.
pub(crate) fn has_judged_spec(object: &Value) -> bool {
    object.get(SPEC).and_then(Value::as_object).is_some_and(|spec| spec.is_judged())
}
