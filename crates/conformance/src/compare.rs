//! Finds every place where two normalised documents differ.

use serde_json::Value;
use std::collections::BTreeSet;

#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub path: String,
    /// `None` where the side has nothing at this path.
    pub want: Option<Value>,
    pub got: Option<Value>,
}

pub fn compare(want: &Value, got: &Value) -> Vec<Difference> {
    let mut differences = Vec::new();
    descend(Some(want), Some(got), String::new(), &mut differences);
    differences
}

fn descend(want: Option<&Value>, got: Option<&Value>, path: String, out: &mut Vec<Difference>) {
    match (want, got) {
        (Some(Value::Object(want)), Some(Value::Object(got))) => {
            let keys: BTreeSet<&String> = want.keys().chain(got.keys()).collect();
            for key in keys {
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                descend(want.get(key), got.get(key), inner, out);
            }
        }
        (Some(Value::Array(want)), Some(Value::Array(got))) => {
            let sorted = |list: &[Value]| match path.ends_with("managedFields") {
                true => by_manager(list),
                false => list.to_vec(),
            };
            let (want, got) = (sorted(want), sorted(got));
            for index in 0..want.len().max(got.len()) {
                descend(want.get(index), got.get(index), format!("{path}[{index}]"), out);
            }
        }
        (want, got) if want == got => {}
        (want, got) => out.push(Difference { path, want: want.cloned(), got: got.cloned() }),
    }
}

/// Managers are listed by the second of their last change: which of two comes first depends on whether a second passed
/// between two requests.
fn by_manager(list: &[Value]) -> Vec<Value> {
    let mut sorted = list.to_vec();
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    sorted
        .sort_by_cached_key(|entry| ["operation", "manager", "subresource", "apiVersion"].map(|key| text(entry, key)));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_each_place() {
        let want = json!({"a": 1, "b": [1, 2, {"c": null}], "d": "x", "f": 1});
        let got = json!({"a": 1.0, "b": [1, 3, {}, 4], "d": "x", "e": true, "f": true});
        let found: Vec<_> = compare(&want, &got).into_iter().map(|d| (d.path, d.want, d.got)).collect();
        assert_eq!(
            found,
            [
                ("a".into(), Some(json!(1)), Some(json!(1.0))),
                ("b[1]".into(), Some(json!(2)), Some(json!(3))),
                ("b[2].c".into(), Some(json!(null)), None),
                ("b[3]".into(), None, Some(json!(4))),
                ("e".into(), None, Some(json!(true))),
                ("f".into(), Some(json!(1)), Some(json!(true))),
            ]
        );
        assert!(compare(&want, &want).is_empty());
        let managers = |names: [&str; 2]| json!({"managedFields": names.map(|name| json!({"manager": name}))});
        assert!(compare(&managers(["a", "b"]), &managers(["b", "a"])).is_empty(), "a second may have passed");
        assert_eq!(compare(&managers(["a", "b"]), &managers(["a", "c"])).len(), 1);
    }
}
