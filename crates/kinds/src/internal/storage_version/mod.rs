//! StorageVersions.

pub mod validate;

use kubelith_meta::Value;
use kubelith_rules::Kind;
use kubelith_rules::cells::network::first_of;
use kubelith_rules::cells::{Cells, Row};
use kubelith_rules::sealed::sealed;

pub const STORAGE_VERSION: Kind = sealed(
    Kind {
        group: "internal.apiserver.k8s.io",
        plural: "storageversions",
        rules: validate::RULES,
        cells: CELLS,
        ..Kind::PLAIN
    }
    .guarded(),
);

pub const CELLS: Cells = &[("storage_versions", storage_versions)];

fn storage_versions(row: &Row<'_>) -> Option<Value> {
    let versions = row.list(&["status", "storageVersions"]).iter();
    let versions =
        versions.map(|v| format!("{}={}", v.str_at(&["apiServerID"]), v.str_at(&["encodingVersion"])).into());
    Some(first_of(versions).into())
}
