//! DefaultTolerationSeconds: pods outlive a short trouble of their node, unless they say how long themselves.

use super::{done, list, list_mut};
use futures::future::BoxFuture;
use kubelith_meta::{Status, Value};
use kubelith_registry::admission::{Admission, Operation, Request};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const EFFECT: &str = "NoExecute";

#[derive(Debug, Clone, Copy)]
pub struct DefaultTolerationSeconds {
    seconds: [(&'static str, i64); 2],
}

impl DefaultTolerationSeconds {
    pub fn new(not_ready_seconds: i64, unreachable_seconds: i64) -> DefaultTolerationSeconds {
        DefaultTolerationSeconds { seconds: [(NOT_READY, not_ready_seconds), (UNREACHABLE, unreachable_seconds)] }
    }
}

impl Admission for DefaultTolerationSeconds {
    fn admit<'a>(&'a self, request: Request<'a>, pod: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        let writes = matches!(request.operation, Operation::Create | Operation::Update);
        if !writes || !request.is_for("", "pods") {
            return done(Ok(()));
        }
        const PATH: [&str; 2] = ["spec", "tolerations"];
        for (key, seconds) in self.seconds {
            let tolerates = |toleration: &Value| {
                let of = toleration.str_at(&["key"]);
                (of.is_empty() || of == key) && matches!(toleration.str_at(&["effect"]), "" | EFFECT)
            };
            if !list(pod, &PATH).iter().any(tolerates) {
                let mut toleration = Value::from([("effect", EFFECT), ("key", key), ("operator", "Exists")]);
                toleration.set_at(&["tolerationSeconds"], Value::Int(seconds));
                list_mut(pod, &PATH).push(toleration);
            }
        }
        done(Ok(()))
    }
}
