//! Finalizers and phases.

use kubelith_meta::Value;
use kubelith_meta::field::ErrorList;
use kubelith_meta::names::name_is_dns_label;
use kubelith_meta::object::Namespacing::Forbidden;
use kubelith_rules::Rules;
use kubelith_rules::common::{Fields, SPEC, finalizer_name, member, meta, meta_update};

pub const RULES: Rules = {
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

fn check_namespace(object: &Value) -> ErrorList {
    let mut errors = meta(object, Forbidden, name_is_dns_label);
    for name in member(object, "spec").texts("finalizers") {
        finalizer_name(name, &SPEC.child("finalizers"), &mut errors);
    }
    errors
}
