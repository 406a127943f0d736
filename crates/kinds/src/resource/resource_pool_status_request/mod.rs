//! ResourcePoolStatusRequests.

pub mod cells;
pub mod validate;

use kubelith_rules::Kind;
use kubelith_rules::sealed::sealed;

pub const RESOURCE_POOL_STATUS_REQUEST: Kind = sealed(
    Kind {
        group: "resource.k8s.io",
        plural: "resourcepoolstatusrequests",
        rules: validate::RULES,
        cells: cells::CELLS,
        ..Kind::PLAIN
    }
    .guarded()
    .returned(),
);
