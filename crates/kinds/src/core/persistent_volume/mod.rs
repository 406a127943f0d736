//! Volumes.

pub mod cells;
pub mod defaults;
pub mod validate;

use kubelith_meta::Value;
use kubelith_meta::call::Call;
use kubelith_pods::warnings::of_node_selector_term;
use kubelith_rules::gated::{Feature, feature};
use kubelith_rules::{Env, Kind};
use kubelith_schema::lifecycle::Part;

pub const PERSISTENT_VOLUME: Kind = Kind {
    group: "",
    plural: "persistentvolumes",
    defaults: defaults::RULES,
    features: &[(&[], FEATURES)],
    rules: validate::RULES,
    cells: cells::CELLS,

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

const FEATURES: &[Feature] = &[feature(&["VolumeAttributesClass"], &["spec.volumeAttributesClassName"])];

const TRANSITION: [&str; 2] = ["status", "lastPhaseTransitionTime"];

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
        warnings.extend(of_node_selector_term(&path, term, false));
    }
    for (key, shown, state) in OLD_SOURCES {
        if volume.at(&["spec", key]).is_some() {
            warnings.push(format!("spec.{shown}: {state}"));
        }
    }
    warnings
}
