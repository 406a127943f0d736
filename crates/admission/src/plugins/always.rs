//! AlwaysAdmit and AlwaysDeny: for trying things out.

use crate::plugin::{Plugin, Verdict};
use kubelith_meta::Value;
use kubelith_registry::admission::Request;

#[derive(Debug, Clone, Copy)]
pub struct AlwaysAdmit;

impl Plugin for AlwaysAdmit {}

#[derive(Debug, Clone, Copy)]
pub struct AlwaysDeny;

const DENIED: &str = "admission control is denying all modifications";

impl Plugin for AlwaysDeny {
    fn admit<'a>(&'a self, request: Request<'a>, object: &'a mut Value) -> Verdict<'a> {
        Verdict::Ready(Err(request.forbidden(object, DENIED)))
    }

    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> Verdict<'a> {
        Verdict::Ready(Err(request.forbidden(object, DENIED)))
    }
}
