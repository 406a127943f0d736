//! Writes that change nothing but the time of an entry.

use crate::fieldset::values;
use kubelith_meta::{Map, Value};

/// Takes the times of `old` back into `new` if they are all that differs, so that such a write does not happen. Entries
/// that came, went or own something else are a difference: who writes a value that is there already owns it then.
pub fn revert_unchanged_timestamps(new: &mut Value, old: &Value) {
    let path = ["metadata", "managedFields"];
    let (Some(old_entries), Some(new_entries)) =
        (old.at(&path).and_then(Value::as_array), new.at(&path).and_then(Value::as_array))
    else {
        return;
    };
    if new_entries.is_empty() || new_entries.len() != old_entries.len() {
        return;
    }
    let pairs = || new_entries.iter().zip(old_entries);
    let same_times = pairs().all(|(n, o)| n.get("time") == o.get("time"));
    if same_times || !pairs().all(|(n, o)| equal_except(n, o, &["time"])) {
        return;
    }
    if !equal_except(new, old, &path) {
        return;
    }
    let entries = old_entries.to_vec();
    new.set_at(&path, Value::Array(entries));
}

/// Whether two objects are equal but for the member at `path`.
fn equal_except(a: &Value, b: &Value, path: &[&str]) -> bool {
    let (Value::Object(a), Value::Object(b), Some((head, rest))) = (a, b, path.split_first()) else {
        return path.is_empty() || values::equal(a, b);
    };
    let others = |m: &Map| m.len() - usize::from(rest.is_empty() && m.contains_key(head));
    others(a) == others(b)
        && a.iter().all(|(key, value)| match b.get(key) {
            _ if key == *head && rest.is_empty() => true,
            Some(other) if key == *head => equal_except(value, other, rest),
            Some(other) => values::equal(value, other),
            None => false,
        })
}
