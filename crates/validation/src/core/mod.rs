//! The core group.

mod config;
mod controller;
mod endpoints;
mod event;
mod node;
pub mod pod;
pub mod quota;
mod service;
pub mod volume;

use crate::Rules;
use crate::common::{meta, meta_update};
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

const NAMESPACE: Rules = {
    use crate::common::{Fields, SPEC, member};
    use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
    use kubelith_meta::object::{validate_finalizer_name, validate_kube_finalizer};

    fn finalizer(name: &str, path: &Path<'_>, errors: &mut ErrorList) {
        errors.extend(validate_finalizer_name(name, path));
        errors.extend(validate_kube_finalizer(name, path));
    }

    fn whole(object: &kubelith_meta::Value) -> ErrorList {
        let mut errors = meta(object, Forbidden, name_is_dns_label);
        for name in member(object, "spec").texts("finalizers") {
            finalizer(name, &SPEC.child("finalizers"), &mut errors);
        }
        errors
    }

    Rules {
        create: |_, object| whole(object),
        update: |request, new, old| {
            let mut errors = if request.subresource.is_empty() { whole(new) } else { ErrorList::new() };
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
                        finalizer(name, &SPEC.item("finalizers", i), &mut errors);
                    }
                }
                _ => {}
            }
            errors
        },
    }
};
