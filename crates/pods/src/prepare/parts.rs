//! What a write to pods/ephemeralcontainers and pods/resize may change: these parts of the spec, and nothing else.

use kubelith_meta::Value;
use kubelith_rules::Env;

pub fn prepare_ephemeral_containers(pod: &mut Value, old: &Value) {
    let added = pod.at(&["spec", "ephemeralContainers"]).cloned();
    keep_the_rest(pod, old);
    pod.put_at(&["spec", "ephemeralContainers"], added);
}

/// Containers that were added, removed, renamed or reordered are left for validation to refuse.
pub fn prepare_resize(env: &Env, pod: &mut Value, old: &Value) {
    let count = |pod: &Value, key: &str| containers(pod, key).len();
    if ["containers", "initContainers"].iter().any(|key| count(pod, key) != count(old, key)) {
        return;
    }
    let resources = pod.at(&["spec", "resources"]).cloned();
    let [main, init] = ["containers", "initContainers"].map(|key| resized(containers(pod, key), containers(old, key)));
    keep_the_rest(pod, old);
    if env.features.pod_level_resize {
        pod.put_at(&["spec", "resources"], resources);
    }
    pod.put_at(&["spec", "containers"], main);
    pod.put_at(&["spec", "initContainers"], init);
}

fn containers<'p>(pod: &'p Value, key: &str) -> &'p [Value] {
    pod.at(&["spec", key]).and_then(Value::as_array).unwrap_or_default()
}

/// The old containers with the new ones' resources and resize policies.
fn resized(new: &[Value], old: &[Value]) -> Option<Value> {
    if new.is_empty() {
        return None;
    }
    let named = |c: &Value| c.str_at(&["name"]).to_owned();
    if new.iter().zip(old).any(|(new, old)| named(new) != named(old)) {
        return Some(Value::Array(new.to_vec()));
    }
    let merged = new.iter().zip(old).map(|(new, old)| {
        let mut container = old.clone();
        for key in ["resources", "resizePolicy"] {
            container.copy_at(&[key], new);
        }
        container
    });
    Some(Value::Array(merged.collect()))
}

/// Spec, status and all metadata that a status update cannot change either.
fn keep_the_rest(pod: &mut Value, old: &Value) {
    for key in ["spec", "status"] {
        pod.copy_at(&[key], old);
    }
    for key in ["deletionTimestamp", "generation", "selfLink", "labels", "annotations", "finalizers", "ownerReferences"]
    {
        pod.copy_at(&["metadata", key], old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Value {
        kubelith_codec::json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn only_the_part_changes() {
        let old = parse(
            r#"{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}],"nodeName":"n"},
                "status":{"phase":"Running"}}"#,
        );
        let mut new = parse(
            r#"{"metadata":{"labels":{"x":"y"}},"spec":{"containers":[{"name":"c","image":"j","resources":{"limits":
                {"cpu":"1"}}}],"ephemeralContainers":[{"name":"e"}]},"status":{"phase":"Failed"}}"#,
        );
        let mut resized = new.clone();
        prepare_ephemeral_containers(&mut new, &old);
        let mut want = old.clone();
        want.set_at(&["spec", "ephemeralContainers"], parse(r#"[{"name":"e"}]"#));
        assert_eq!(new, want);

        prepare_resize(&Env::default(), &mut resized, &old);
        let mut want = old.clone();
        want.set_at(&["spec", "containers"], parse(r#"[{"name":"c","image":"i","resources":{"limits":{"cpu":"1"}}}]"#));
        assert_eq!(resized, want);
    }

    #[test]
    fn renamed_containers_are_left_to_validation() {
        let old = parse(r#"{"metadata":{},"spec":{"containers":[{"name":"c"}]}}"#);
        let mut renamed = parse(r#"{"metadata":{},"spec":{"containers":[{"name":"d"}]}}"#);
        let before = renamed.clone();
        prepare_resize(&Env::default(), &mut renamed, &old);
        assert_eq!(renamed, before);
    }
}
