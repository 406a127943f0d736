//! DenyServiceExternalIPs: services keep the external addresses that they have, and get no new ones.

use super::list;
use crate::plugin::{Plugin, Verdict};
use kubelith_meta::Value;
use kubelith_registry::admission::Request;

#[derive(Debug, Clone, Copy)]
pub struct DenyServiceExternalIPs;

impl Plugin for DenyServiceExternalIPs {
    fn validate<'a>(&'a self, request: Request<'a>, service: &'a Value) -> Verdict<'a> {
        if !request.is_for("", "services") {
            return Verdict::Idle;
        }
        let known = request.old.map_or(&[][..], |old| list(old, &["spec", "externalIPs"]));
        if list(service, &["spec", "externalIPs"]).iter().all(|address| known.contains(address)) {
            return Verdict::Idle;
        }
        Verdict::Ready(Err(request.forbidden(service, "Use of external IPs is denied by admission control")))
    }
}
