//! TaintNodesByCondition: a new node is not ready, and says so from its first moment on.

use super::{list, list_mut};
use crate::plugin::{Plugin, Verdict};
use kubelith_meta::Value;
use kubelith_registry::admission::{Operation, Request};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const EFFECT: &str = "NoSchedule";

#[derive(Debug, Clone, Copy)]
pub struct TaintNodesByCondition;

impl Plugin for TaintNodesByCondition {
    fn admit<'a>(&'a self, request: Request<'a>, node: &'a mut Value) -> Verdict<'a> {
        if request.operation != Operation::Create || !request.is_for("", "nodes") {
            return Verdict::Idle;
        }
        let is_set = |taint: &Value| taint.str_at(&["key"]) == NOT_READY && taint.str_at(&["effect"]) == EFFECT;
        if !list(node, &["spec", "taints"]).iter().any(is_set) {
            let taint = Value::from([("effect", EFFECT), ("key", NOT_READY)]);
            list_mut(node, &["spec", "taints"]).push(taint);
        }
        Verdict::PASSED
    }
}
