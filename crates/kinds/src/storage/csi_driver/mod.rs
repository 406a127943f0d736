//! CSIDrivers.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList};
use kubelith_meta::names::name_is_dns_subdomain;
use kubelith_meta::object::Namespacing;
use kubelith_rules::cells::{Cells, Row, joined, strings};
use kubelith_rules::common::{Fields, SPEC, immutable, member, meta, meta_update, supported};
use kubelith_rules::defaults::{Defaults, set_absent};
use kubelith_rules::gated::{Feature, feature};
use kubelith_rules::{Env, Kind, Rules, Switched};
use kubelith_schema::lifecycle::Generation;
use std::collections::BTreeSet;

pub const CSI_DRIVER: Kind = Kind {
    group: "storage.k8s.io",
    plural: "csidrivers",
    switched: &[Switched { gate: "VolumeLimitScaling", on: LIMIT_SCALING, off: &[] }],
    features: &[(&[], FEATURES)],
    rules: RULES,
    cells: CELLS,

    generation: Generation::SpecChanges,
    updates_unconditionally: false,
    delete_returns_object: true,
    warnings_on_create: |_, driver| token_warnings(driver, None),
    warnings_on_update: |_, _, driver, old| token_warnings(driver, Some(old)),
    ..Kind::PLAIN
};

const FEATURES: &[Feature] = &[
    feature(&["SELinuxMountReadWriteOncePod"], &["spec.seLinuxMount"]),
    feature(&["MutableCSINodeAllocatableCount"], &["spec.nodeAllocatableUpdatePeriodSeconds"]),
    feature(&["CSIServiceAccountTokenSecrets"], &["spec.serviceAccountTokenInSecrets"]),
    feature(&["VolumeLimitScaling"], &["spec.preventPodSchedulingIfMissing"]),
];

/// Of drivers, which may say that pods wait for them.
pub const LIMIT_SCALING: Defaults = &[
    ("io.k8s.api.storage.v1.CSIDriverSpec", |m| set_absent(m, "preventPodSchedulingIfMissing", false)),
    ("io.k8s.api.storage.v1beta1.CSIDriverSpec", |m| set_absent(m, "preventPodSchedulingIfMissing", false)),
];

pub const RULES: Rules = Rules {
    create: |request, driver| {
        let mut errors = meta(driver, Namespacing::Forbidden, name_is_dns_subdomain);
        check_driver(request.env, member(driver, "spec"), &mut errors);
        errors
    },
    update: |request, new, old| {
        let mut errors = meta_update(new, old);
        let (spec, old) = (member(new, "spec"), member(old, "spec"));
        check_driver(request.env, spec, &mut errors);
        // The reference spells the first path like this.
        for (key, path) in [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")] {
            immutable(spec.get(key), old.get(key), &SPEC.child(path), &mut errors);
        }
        errors
    },
};

fn check_driver(env: &Env, spec: &Value, errors: &mut ErrorList) {
    for (key, path) in [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ] {
        if !spec.has(key) {
            errors.push(Error::required(&SPEC.child(path), ""));
        }
    }
    if let Some(policy) = spec.some("fsGroupPolicy").and_then(Value::as_str) {
        let known = ["File", "None", "ReadWriteOnceWithFSType"];
        supported(policy, &known, &SPEC.child("fsGroupPolicy"), errors);
    }
    let mut audiences = BTreeSet::new();
    for (i, request) in spec.list("tokenRequests").iter().enumerate() {
        let path = SPEC.item("tokenRequests", i);
        if !audiences.insert(request.text("audience")) {
            errors.push(Error::duplicate(&path.child("audience"), request.text("audience")));
            continue;
        }
        let Some(seconds) = request.int("expirationSeconds") else { continue };
        let path = path.child("expirationSeconds");
        if seconds < 600 {
            errors.push(Error::invalid(&path, seconds, "may not specify a duration less than 10 minutes"));
        }
        if seconds > 1 << 32 {
            errors.push(Error::invalid(&path, seconds, "may not specify a duration larger than 2^32 seconds"));
        }
    }
    for mode in spec.texts("volumeLifecycleModes") {
        supported(mode, &["Persistent", "Ephemeral"], &SPEC.child("volumeLifecycleModes"), errors);
    }
    if !spec.has("seLinuxMount") {
        errors.push(Error::required(&SPEC.child("seLinuxMount"), ""));
    }
    if let Some(period) = spec.int("nodeAllocatableUpdatePeriodSeconds").filter(|p| *p < 10) {
        let detail = "must be greater than or equal to 10 seconds";
        errors.push(Error::invalid(&SPEC.child("nodeAllocatableUpdatePeriodSeconds"), period, detail));
    }
    if let Some(value) = spec.some("serviceAccountTokenInSecrets").filter(|_| spec.list("tokenRequests").is_empty()) {
        let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.push(Error::invalid(&SPEC.child("serviceAccountTokenInSecrets"), value, detail));
    }
    if env.features.volume_limit_scaling && !spec.has("preventPodSchedulingIfMissing") {
        errors.push(Error::required(&SPEC.child("preventPodSchedulingIfMissing"), ""));
    }
}

/// Tokens that are not among the secrets of a volume are among its attributes, which end up in logs.
fn token_warnings(driver: &Value, old: Option<&Value>) -> Vec<String> {
    const TOKENS: [&str; 2] = ["spec", "tokenRequests"];
    let tokens = driver.at(&TOKENS).filter(|tokens| !tokens.is_empty());
    let is_same = old.is_some_and(|old| old.at(&TOKENS) == tokens);
    if tokens.is_none() || is_same || driver.at(&["spec", "serviceAccountTokenInSecrets"]).is_some() {
        return Vec::new();
    }
    vec![
        "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible \
         logging of tokens in volume attributes"
            .into(),
    ]
}

pub const CELLS: Cells =
    &[("csidriver_modes", csidriver_modes), ("csidriver_token_requests", csidriver_token_requests)];

fn csidriver_modes(row: &Row<'_>) -> Option<Value> {
    let modes = joined(strings(row.list(&["spec", "volumeLifecycleModes"])), ",");
    Some(if modes.is_empty() { "<none>".into() } else { modes.into() })
}

fn csidriver_token_requests(row: &Row<'_>) -> Option<Value> {
    let Some(requests) = row.at(&["spec", "tokenRequests"]).and_then(Value::as_array) else {
        return Some("<unset>".into());
    };
    Some(joined(requests.iter().map(|r| r.str_at(&["audience"])), ",").into())
}
