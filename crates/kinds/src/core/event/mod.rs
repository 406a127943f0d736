//! Events, which two groups have.

pub mod cells;
pub mod validate;

use kubelith_rules::Kind;
use kubelith_schema::lifecycle::GarbageCollection;

pub const EVENT: Kind =
    Kind { group: "", plural: "events", rules: validate::RULES, cells: cells::CELLS, ..Kind::PLAIN }
        .upserts()
        .collects(GarbageCollection::Unsupported);

/// The same objects by way of their own group.
pub const EVENT_OF_EVENTS: Kind = Kind { group: "events.k8s.io", cells: &[], ..EVENT };
