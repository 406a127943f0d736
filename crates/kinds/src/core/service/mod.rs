//! Services. Their addresses and ports come from pools, which are not here.

pub mod cells;
pub mod defaults;
pub mod prepare;
pub mod validate;
pub mod view;
mod warnings;

use crate::core::service::prepare::{drop_traffic_inside, drop_type_dependent};
use crate::core::service::warnings::{status_warnings, warnings};
use kubelith_rules::Kind;
use kubelith_schema::lifecycle::Part;

pub const SERVICE: Kind = Kind {
    group: "",
    plural: "services",
    defaults: defaults::RULES,
    rules: validate::RULES,
    cells: cells::CELLS,

    creates_on_update: true,
    delete_returns_object: true,
    prepare_for_update: |_, _, part, service, old| {
        if part == Part::Main {
            drop_type_dependent(service, old);
        }
    },
    canonicalize: drop_traffic_inside,
    warnings_on_create: |_, service| warnings(service),
    warnings_on_update: |_, part, service, _| match part {
        Part::Main => warnings(service),
        _ => status_warnings(service),
    },
    ..Kind::PLAIN
};
