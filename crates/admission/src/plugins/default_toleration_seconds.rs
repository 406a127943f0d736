//! DefaultTolerationSeconds: pods outlive a short trouble of their node, unless they say how long themselves.

use super::{list, list_mut};
use crate::plugin::{Plugin, Verdict};
use kubelith_meta::{Map, Value, members};
use kubelith_registry::admission::{Operation, Request};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const EFFECT: &str = "NoExecute";

#[derive(Debug)]
pub struct DefaultTolerationSeconds {
    /// By key. They lack nothing, and so all pods share them.
    tolerations: [(&'static str, Map); 2],
}

impl DefaultTolerationSeconds {
    pub fn new(not_ready_seconds: i64, unreachable_seconds: i64) -> DefaultTolerationSeconds {
        let of = |key: &'static str, seconds: i64| {
            let mut toleration = toleration(key, seconds);
            toleration.seal();
            (key, toleration)
        };
        DefaultTolerationSeconds {
            tolerations: [of(NOT_READY, not_ready_seconds), of(UNREACHABLE, unreachable_seconds)],
        }
    }
}

impl Plugin for DefaultTolerationSeconds {
    fn admit<'a>(&'a self, request: Request<'a>, pod: &'a mut Value) -> Verdict<'a> {
        let writes = matches!(request.operation, Operation::Create | Operation::Update);
        if !writes || !request.is_for("", "pods") {
            return Verdict::Idle;
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
