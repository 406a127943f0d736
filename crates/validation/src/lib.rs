//! What the server asks of objects of built-in kinds beyond their schema: pure rules over values, which collect every
//! violation with its path, in the reference's order. Maps are checked in the order of their keys, which is random there.

mod admissionregistration;
mod apps;
mod autoscaling;
mod batch;
mod certificates;
mod common;
mod coordination;
mod core;
mod declared;
mod discovery;
mod env;
pub mod expression;
mod flowcontrol;
mod internal;
mod networking;
mod node;
mod policy;
mod rbac;
mod resource;
mod scheduling;
mod seen;
mod semver;
mod storage;
mod storage_version;
pub mod webhook;
mod workloads;
pub mod x509;

pub use core::pod::qos_class;
pub use env::{Env, Features};
use kubelith_meta::Value;
use kubelith_meta::field::ErrorList;
pub use resource::admin_access;
pub use seen::Seen;

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

/// The rules for a resource.
pub fn rules(group: &str, plural: &str) -> Rules {
    let rules = match group {
        "" | "events.k8s.io" => core::rules(plural),
        "admissionregistration.k8s.io" => admissionregistration::rules(plural),
        "apps" => apps::rules(plural),
        "autoscaling" => autoscaling::rules(plural),
        "batch" => batch::rules(plural),
        "certificates.k8s.io" => certificates::rules(plural),
        "coordination.k8s.io" => coordination::rules(plural),
        "discovery.k8s.io" => discovery::rules(plural),
        "flowcontrol.apiserver.k8s.io" => flowcontrol::rules(plural),
        "networking.k8s.io" => networking::rules(plural),
        "node.k8s.io" => node::rules(plural),
        "policy" => policy::rules(plural),
        "rbac.authorization.k8s.io" => rbac::rules(plural),
        "resource.k8s.io" => resource::rules(plural),
        "scheduling.k8s.io" => scheduling::rules(plural),
        "storage.k8s.io" => storage::rules(plural),
        "internal.apiserver.k8s.io" | "storagemigration.k8s.io" => storage_version::rules(plural),
        _ => None,
    };
    rules.unwrap_or(Rules::NONE)
}

#[cfg(test)]
mod tests;
