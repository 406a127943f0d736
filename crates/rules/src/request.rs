//! The rules of a kind, and what they may know of the request.

use crate::Env;
use kubelith_meta::Value;
use kubelith_meta::field::ErrorList;

/// What a rule may know of the request.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The group and version in the URL; few rules depend on it.
    pub group: &'a str,
    pub version: &'a str,
    /// Empty for the resource itself.
    pub subresource: &'a str,
    /// Of the server.
    pub env: &'a Env,
}

pub type OnCreate = fn(Request<'_>, &Value) -> ErrorList;

/// The new object, then the old one.
pub type OnUpdate = fn(Request<'_>, &Value, &Value) -> ErrorList;

/// The rules of a kind.
#[derive(Clone, Copy)]
pub struct Rules {
    pub create: OnCreate,
    pub update: OnUpdate,
}

impl Rules {
    /// No rules but those for all kinds, which the caller checks by itself.
    pub const NONE: Rules = Rules { create: |_, _| ErrorList::new(), update: |_, _, _| ErrorList::new() };
}
