//! TaintNodesByCondition: a new node is not ready, and says so from its first moment on.

use super::{done, list, list_mut};
use futures::future::BoxFuture;
use kubelith_meta::{Status, Value};
use kubelith_registry::admission::{Admission, Operation, Request};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const EFFECT: &str = "NoSchedule";

#[derive(Debug, Clone, Copy)]
pub struct TaintNodesByCondition;

impl Admission for TaintNodesByCondition {
    fn admit<'a>(&'a self, request: Request<'a>, node: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        if request.operation != Operation::Create || !request.is_for("", "nodes") {
            return done(Ok(()));
        }
        let is_set = |taint: &Value| taint.str_at(&["key"]) == NOT_READY && taint.str_at(&["effect"]) == EFFECT;
        if !list(node, &["spec", "taints"]).iter().any(is_set) {
            let taint = Value::from([("effect", EFFECT), ("key", NOT_READY)]);
            list_mut(node, &["spec", "taints"]).push(taint);
        }
        done(Ok(()))
    }
}
