//! DefaultTolerationSeconds: pods outlive a short trouble of their node, unless they say how long themselves.

use super::{list, list_mut};
use crate::plugin::{Plugin, Verdict};
use kubelith_codec::json;
use kubelith_meta::{Map, Value, members};
use kubelith_registry::admission::{Operation, Request};
use memchr::memmem::Finder;

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const EFFECT: &str = "NoExecute";

#[derive(Debug)]
pub struct DefaultTolerationSeconds {
    /// By key. They lack nothing, and so all pods share them.
    tolerations: [(&'static str, Map); 2],
    /// Their JSON: most pods have had them since they were created.
    texts: [Finder<'static>; 2],
}

impl DefaultTolerationSeconds {
    pub fn new(not_ready_seconds: i64, unreachable_seconds: i64) -> DefaultTolerationSeconds {
        let of = |key: &'static str, seconds: i64| {
            let mut toleration = toleration(key, seconds);
            toleration.seal();
            (key, toleration)
        };
        let tolerations = [of(NOT_READY, not_ready_seconds), of(UNREACHABLE, unreachable_seconds)];
        let texts = tolerations.each_ref().map(|(_, toleration)| {
            let text = json::to_vec(&Value::Object(toleration.clone()));
            Finder::new(&text).into_owned()
        });
        DefaultTolerationSeconds { tolerations, texts }
    }

    /// Whether the spec of a stored pod has both, which can be seen before it is read: nothing but a toleration of a pod looks so.
    fn are_stored(&self, pod: &Value) -> bool {
        let spec = pod.get("spec").and_then(Value::as_object).and_then(Map::unread);
        spec.is_some_and(|text| self.texts.iter().all(|toleration| toleration.find(text).is_some()))
    }

    fn complete(&self, pod: &mut Value) {
        if self.are_stored(pod) {
            return;
        }
        const PATH: [&str; 2] = ["spec", "tolerations"];
        let mut missing = [true; 2];
        for toleration in list(pod, &PATH) {
            members!(toleration => of: "key", effect: "effect");
            if matches!(effect.or_empty(), "" | EFFECT) {
                for (missing, (key, _)) in missing.iter_mut().zip(&self.tolerations) {
                    *missing &= !of.or_empty().is_empty() && of.or_empty() != *key;
                }
            }
        }
        if missing != [false; 2] {
            let tolerations = list_mut(pod, &PATH);
            tolerations.reserve(missing.len());
            for (_, (_, toleration)) in missing.into_iter().zip(&self.tolerations).filter(|(missing, _)| *missing) {
                tolerations.push(Value::Object(toleration.clone()));
            }
        }
    }
}

impl Plugin for DefaultTolerationSeconds {
    fn admit<'a>(&'a self, request: Request<'a>, pod: &'a mut Value) -> Verdict<'a> {
        let writes = matches!(request.operation, Operation::Create | Operation::Update);
        if !writes || !request.is_for("", "pods") {
            return Verdict::Idle;
        }
        self.complete(pod);
        Verdict::PASSED
    }
}

fn toleration(key: &str, seconds: i64) -> Map {
    let mut toleration = Map::with_capacity(4);
    toleration.insert("effect", EFFECT);
    toleration.insert("key", key);
    toleration.insert("operator", "Exists");
    toleration.insert("tolerationSeconds", seconds);
    toleration
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored pods get what new ones get, and are not read where they have it.
    #[test]
    fn stored_pods_are_read_where_they_lack_something() {
        let plugin = DefaultTolerationSeconds::new(300, 300);
        let of = |key: &str, seconds: i64| {
            format!(r#"{{"effect":"NoExecute","key":"{key}","operator":"Exists","tolerationSeconds":{seconds}}}"#)
        };
        let (ready, reached) = (of(NOT_READY, 300), of(UNREACHABLE, 300));
        let quoted = kubelith_meta::text::quote(&format!("{ready}{reached}"));
        for (tolerations, added, stays_text) in [
            (vec![ready.clone(), reached.clone()], 0, true),
            (vec![reached.clone(), r#"{"key":"x"}"#.into(), ready.clone()], 0, true),
            (vec![of(NOT_READY, 30), reached.clone()], 0, false),
            (vec![r#"{"operator":"Exists"}"#.into()], 0, false),
            (vec![ready.replace("NoExecute", "NoSchedule"), reached], 1, false),
            (vec![ready], 1, false),
            (vec![], 2, false),
        ] {
            let image = "x".repeat(200);
            let text = format!(
                r#"{{"spec":{{"containers":[{{"args":[{quoted}],"image":"{image}"}}],"tolerations":[{}]}}}}"#,
                tolerations.join(",")
            );
            let mut stored = json::parse_finished(&text.clone().into()).unwrap();
            let mut fresh = json::parse(text.as_bytes()).unwrap();
            plugin.complete(&mut stored);
            plugin.complete(&mut fresh);
            assert_eq!(stored.get("spec").and_then(Value::as_object).is_some_and(|s| s.unread().is_some()), stays_text);
            assert_eq!(list(&fresh, &["spec", "tolerations"]).len(), tolerations.len() + added, "{text}");
            assert_eq!(stored, fresh);
        }
    }
}
