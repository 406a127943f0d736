//! Volumes and claims.

use crate::strategies::{Kind, pod_warnings};
use kubelith_meta::Value;
use kubelith_registry::{Call, Part};
use kubelith_validation::Env;

pub const PERSISTENT_VOLUME: Kind = Kind {
    delete_returns_object: true,
    prepare_for_create: |env, _, volume| {
        let mut status = Value::from([("phase", "Pending")]);
        status.set_at(&["lastPhaseTransitionTime"], env.now().rfc3339().into());
        volume.set_at(&["status"], status);
    },
    prepare_for_update: keep_transition_time,
    warnings_on_create: |_, volume| volume_warnings(volume),
    warnings_on_update: |_, part, volume, _| if part == Part::Main { volume_warnings(volume) } else { Vec::new() },
    ..Kind::PLAIN
};

pub const PERSISTENT_VOLUME_CLAIM: Kind = Kind {
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

const TRANSITION: [&str; 2] = ["status", "lastPhaseTransitionTime"];
const DATA_SOURCE: [&str; 2] = ["spec", "dataSource"];
const DATA_SOURCE_REF: [&str; 2] = ["spec", "dataSourceRef"];

/// The time of the last change of phase is the server's to keep, unless the client knows better.
fn keep_transition_time(env: &Env, _: &Call, part: Part<'_>, volume: &mut Value, old: &Value) {
    if part != Part::Status {
        return;
    }
    let same_phase = volume.str_at(&["status", "phase"]) == old.str_at(&["status", "phase"]);
    let given = volume.at(&TRANSITION);
    if same_phase && given.is_none() {
        if let Some(kept) = old.at(&TRANSITION) {
            volume.set_at(&TRANSITION, kept.clone());
        }
    } else if !same_phase && (given.is_none() || given == old.at(&TRANSITION)) {
        volume.set_at(&TRANSITION, env.now().rfc3339().into());
    }
}

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
    warnings.extend(pod_warnings::of_claim_spec("spec", claim.get("spec")));
    warnings
}

/// Sources that are gone.
const OLD_SOURCES: [(&str, &str, &str); 6] = [
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

const OLD_ANNOTATIONS: [(&str, &str); 2] = [
    ("volume.beta.kubernetes.io/storage-class", "deprecated since v1.8; use \"storageClassName\" attribute instead"),
    ("volume.beta.kubernetes.io/mount-options", "deprecated since v1.31; use \"mountOptions\" attribute instead"),
];

fn volume_warnings(volume: &Value) -> Vec<String> {
    let annotated = OLD_ANNOTATIONS.into_iter().filter(|(key, _)| volume.meta().annotation(key).is_some());
    let mut warnings: Vec<String> = annotated.map(|(key, why)| format!("metadata.annotations[{key}]: {why}")).collect();
    if volume.str_at(&["spec", "persistentVolumeReclaimPolicy"]) == "Recycle" {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended \
             approach is to use dynamic provisioning."
                .into(),
        );
    }
    let terms = volume.at(&["spec", "nodeAffinity", "required", "nodeSelectorTerms"]).and_then(Value::as_array);
    for (i, term) in terms.unwrap_or(&[]).iter().enumerate() {
        let path = format!("spec.nodeAffinity.required.nodeSelectorTerms[{i}]");
        warnings.extend(pod_warnings::of_node_selector_term(&path, term, false));
    }
    for (key, shown, state) in OLD_SOURCES {
        if volume.at(&["spec", key]).is_some() {
            warnings.push(format!("spec.{shown}: {state}"));
        }
    }
    warnings
}
