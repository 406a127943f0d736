//! Strategies of leader election.

use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::is_qualified_name;
use kubelith_rules::common::supported;

pub const STRATEGIES: [&str; 1] = ["OldestEmulationVersion"];

/// The path names it twice, as in the reference.
pub fn check_strategy(strategy: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child("strategy");
    if strategy.contains('/') {
        let problems = is_qualified_name(strategy).into_iter();
        errors.extend(problems.map(|problem| Error::invalid(&path, BadValue::json(strategy), problem)));
    } else {
        supported(strategy, &STRATEGIES, &path, errors);
    }
}
