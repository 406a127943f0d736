//! Claims on volumes.

pub mod validate;

use crate::core::persistent_volume::cells::{access_modes, amount};
use kubelith_meta::Value;
use kubelith_pods::warnings;
use kubelith_rules::Kind;
use kubelith_rules::cells::{Cells, Row};
use kubelith_rules::defaults::Defaults;
use kubelith_rules::defaults::amounts::round_up;
use kubelith_rules::gated::{Feature, feature};
use kubelith_schema::lifecycle::Part;

pub const PERSISTENT_VOLUME_CLAIM: Kind = Kind {
    group: "",
    plural: "persistentvolumeclaims",
    defaults: DEFAULTS,
    features: &[(&[], FEATURES)],
    rules: validate::RULES,
    cells: CELLS,

    delete_returns_object: true,
    complete_read: mirror_data_sources,
    prepare_for_create: |_, _, claim| normalize_data_sources(claim, None),
    prepare_for_update: |_, _, part, claim, old| {
        if part == Part::Main {
            normalize_data_sources(claim, Some(old));
        }
    },
    warnings_on_create: |_, claim| claim_warnings(claim),
    warnings_on_update: |_, part, claim, _| if part == Part::Main { claim_warnings(claim) } else { Vec::new() },
    ..Kind::PLAIN
};

pub const DEFAULTS: Defaults =
    &[("io.k8s.api.core.v1.PersistentVolumeClaimStatus", |m| round_up(m, &["allocatedResources", "capacity"]))];

const FEATURES: &[Feature] = &[
    feature(&["VolumeAttributesClass"], &["spec.volumeAttributesClassName"]),
    feature(&["AnyVolumeDataSource"], &["spec.dataSourceRef"]),
    feature(&["CrossNamespaceVolumeDataSource"], &["spec.dataSourceRef"])
        .when(&["spec.dataSourceRef.namespace"])
        .kept_by(&["spec.dataSourceRef"]),
    feature(&["VolumeAttributesClass"], &["status.currentVolumeAttributesClassName"]),
    feature(&["VolumeAttributesClass"], &["status.modifyVolumeStatus"]),
    feature(&["RecoverVolumeExpansionFailure"], &["status.allocatedResources"]),
    feature(&["RecoverVolumeExpansionFailure"], &["status.allocatedResourceStatuses"]),
];

pub const CELLS: Cells = &[
    ("claim_capacity", |row| {
        Some(if is_bound(row) { amount(row, &["status", "capacity", "storage"]) } else { "".into() })
    }),
    ("claim_access_modes", |row| {
        Some(if is_bound(row) { access_modes(row.list(&["status", "accessModes"])) } else { String::new() }.into())
    }),
];

/// A claim has the modes and the capacity of its volume, once it has one.
fn is_bound(row: &Row<'_>) -> bool {
    !row.text(&["spec", "volumeName"]).is_empty()
}

const DATA_SOURCE: [&str; 2] = ["spec", "dataSource"];

const DATA_SOURCE_REF: [&str; 2] = ["spec", "dataSourceRef"];

/// The two ways to name a data source are filled from each other.
fn normalize_data_sources(claim: &mut Value, old: Option<&Value>) {
    // A source of a kind that only the newer field can name must not be lost by a client that knows the older alone.
    let in_use = old.is_some_and(|old| old.at(&DATA_SOURCE).is_some() || old.at(&DATA_SOURCE_REF).is_some());
    if !in_use && claim.at(&DATA_SOURCE_REF).is_none() && !is_known_source(claim.at(&DATA_SOURCE)) {
        claim.remove_at(&DATA_SOURCE);
    }
    mirror_data_sources(claim);
}

/// What one of the two names, the other names as well, as far as it can.
fn mirror_data_sources(claim: &mut Value) {
    let (source, reference) = (claim.at(&DATA_SOURCE).cloned(), claim.at(&DATA_SOURCE_REF).cloned());
    match (source, reference) {
        (Some(source), None) => claim.set_at(&DATA_SOURCE_REF, source),
        (None, Some(reference)) if reference.str_at(&["namespace"]).is_empty() => claim.set_at(&DATA_SOURCE, reference),
        _ => {}
    }
}

/// Claims and volume snapshots: what spec.dataSource may name.
fn is_known_source(source: Option<&Value>) -> bool {
    source.is_none_or(|source| {
        matches!(
            (source.str_at(&["apiGroup"]), source.str_at(&["kind"])),
            ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
        )
    })
}

fn claim_warnings(claim: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    if claim.meta().annotation("volume.beta.kubernetes.io/storage-class").is_some() {
        warnings.push(
            "metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use \
             \"storageClassName\" attribute instead"
                .into(),
        );
    }
    warnings.extend(warnings::of_claim_spec("spec", claim.get("spec")));
    warnings
}
