//! The core group.

mod config;
mod controller;
mod endpoints;
mod event;
mod node;
mod node_config;
pub mod pod;
pub mod quota;
mod service;
pub mod volume;

use crate::Rules;
use crate::common::{Fields, SPEC, finalizer_name, member, meta, meta_update};
use kubelith_meta::Value;
use kubelith_meta::field::ErrorList;
use kubelith_meta::names::{name_is_dns_label, name_is_dns_subdomain};
use kubelith_meta::object::Namespacing::{Forbidden, Required};

pub use endpoints::endpoint_ip;

pub fn rules(plural: &str) -> Option<Rules> {
    Some(match plural {
        "configmaps" => config::CONFIG_MAP,
        "secrets" => config::SECRET,
        "endpoints" => endpoints::ENDPOINTS,
        "events" => event::EVENT,
        "limitranges" => quota::LIMIT_RANGE,
        "resourcequotas" => quota::RESOURCE_QUOTA,
        "namespaces" => NAMESPACE,
        "nodes" => node::NODE,
        "podtemplates" => controller::POD_TEMPLATE,
        "replicationcontrollers" => controller::REPLICATION_CONTROLLER,
        "persistentvolumes" => volume::VOLUME,
        "persistentvolumeclaims" => volume::CLAIM,
        "pods" => pod::POD,
        "services" => service::SERVICE,
        "serviceaccounts" => Rules {
            create: |_, object| meta(object, Required, name_is_dns_subdomain),
            update: |_, new, old| {
                let mut errors = meta_update(new, old);
                errors.extend(meta(new, Required, name_is_dns_subdomain));
                errors
            },
        },
        _ => return None,
    })
}

fn check_namespace(object: &Value) -> ErrorList {
    let mut errors = meta(object, Forbidden, name_is_dns_label);
    for name in member(object, "spec").texts("finalizers") {
        finalizer_name(name, &SPEC.child("finalizers"), &mut errors);
    }
    errors
}

const NAMESPACE: Rules = {
    use kubelith_meta::field::{BadValue, Error, Path};
    Rules {
        create: |_, object| check_namespace(object),
        update: |request, new, old| {
            let mut errors = if request.subresource.is_empty() { check_namespace(new) } else { ErrorList::new() };
            errors.extend(meta_update(new, old));
            match request.subresource {
                "status" => {
                    let phase = new.str_at(&["status", "phase"]);
                    let (expected, when) = match new.meta().is_being_deleted() {
                        false => ("Active", "empty"),
                        true => ("Terminating", "not empty"),
                    };
                    if phase != expected {
                        let detail = format!("may only be '{expected}' if `deletionTimestamp` is {when}");
                        errors.push(Error::invalid(&Path::of(&["status", "Phase"]), BadValue::json(phase), detail));
                    }
                }
                "finalize" => {
                    for (i, name) in member(new, "spec").texts("finalizers").into_iter().enumerate() {
                        finalizer_name(name, &SPEC.item("finalizers", i), &mut errors);
                    }
                }
                _ => {}
            }
            errors
        },
    }
};
