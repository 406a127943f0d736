//! PriorityClasses.

pub mod validate;

use kubelith_meta::Status;
use kubelith_rules::Kind;
use kubelith_schema::lifecycle::{Deletion, Generation};

/// The classes that the server itself makes cannot go.
pub const PRIORITY_CLASS: Kind = Kind {
    group: "scheduling.k8s.io",
    plural: "priorityclasses",
    rules: validate::RULES,

    generation: Generation::One,
    // Who deletes all of them is not held up.
    before_delete: |call, _, by| match call.name.as_str() {
        _ if by == Deletion::OfCollection => Ok(()),
        "system-node-critical" | "system-cluster-critical" => {
            let why = "this is a system priority class and cannot be deleted";
            Err(Status::forbidden(&call.resource, &call.name, why))
        }
        _ => Ok(()),
    },
    ..Kind::PLAIN
};
