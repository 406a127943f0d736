//! Strategies by resource. Most kinds differ only in the few facts of `Facts`.

mod facts;

pub use facts::Facts;

use kubelith_registry::Strategy;
use std::sync::Arc;

/// The strategy of a built-in resource.
pub fn of(group: &str, plural: &str) -> Arc<dyn Strategy> {
    Arc::new(Facts::of(group, plural))
}
