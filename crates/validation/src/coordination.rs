//! Leases, and who stands for election.

use crate::Rules;
use crate::common::{Fields, METADATA, SPEC, immutable_text, member, supported};
use crate::semver::Version;
use kubelith_meta::Value;
use kubelith_meta::field::{BadValue, Error, ErrorList, Path};
use kubelith_meta::names::{Messages, NameUse, is_config_map_key, is_qualified_name, name_is_dns_subdomain};
use kubelith_meta::object::{Namespacing, validate_object_meta, validate_object_meta_update};

const STRATEGIES: [&str; 1] = ["OldestEmulationVersion"];

pub fn rules(plural: &str) -> Option<Rules> {
    match plural {
        "leases" => Some(LEASE),
        "leasecandidates" => Some(CANDIDATE),
        _ => None,
    }
}

const LEASE: Rules = Rules {
    create: |_, lease| {
        let mut errors = validate_object_meta(lease.meta(), Namespacing::Required, name_is_dns_subdomain, &METADATA);
        check_lease(member(lease, "spec"), &mut errors);
        errors
    },
    update: |_, new, old| {
        let mut errors = validate_object_meta_update(new.meta(), old.meta(), &METADATA);
        check_lease(member(new, "spec"), &mut errors);
        errors
    },
};

const CANDIDATE: Rules = Rules {
    create: |_, candidate| {
        let mut errors = validate_object_meta(candidate.meta(), Namespacing::Required, candidate_name, &METADATA);
        check_candidate(member(candidate, "spec"), &mut errors);
        errors
    },
    update: |_, new, old| {
        let mut errors = validate_object_meta_update(new.meta(), old.meta(), &METADATA);
        check_candidate(member(new, "spec"), &mut errors);
        immutable_text(member(new, "spec"), member(old, "spec"), "leaseName", &SPEC, &mut errors);
        errors
    },
};

fn candidate_name(name: &str, _: NameUse) -> Messages {
    is_config_map_key(name)
}

fn check_lease(spec: &Value, errors: &mut ErrorList) {
    if let Some(seconds) = spec.int("leaseDurationSeconds").filter(|s| *s <= 0) {
        errors.push(Error::invalid(&SPEC.child("leaseDurationSeconds"), seconds, "must be greater than 0"));
    }
    if let Some(count) = spec.int("leaseTransitions").filter(|c| *c < 0) {
        let detail = "must be greater than or equal to 0";
        errors.push(Error::invalid(&SPEC.child("leaseTransitions"), count, detail));
    }
    if let Some(strategy) = spec.some("strategy") {
        check_strategy(strategy.or_empty(), &SPEC.child("strategy"), errors);
    }
    if !spec.text("preferredHolder").is_empty() && spec.text("strategy").is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.push(Error::forbidden(&SPEC.child("preferredHolder"), detail));
    }
}

fn check_candidate(spec: &Value, errors: &mut ErrorList) {
    if spec.text("leaseName").is_empty() {
        errors.push(Error::required(&SPEC.child("leaseName"), ""));
    }
    let version = |key: &str, errors: &mut ErrorList| {
        let text = spec.text(key);
        let version = Version::parse(text);
        if !text.is_empty() && version.is_none() {
            errors.push(Error::invalid(&SPEC.child(key), text, "must be a valid semantic version"));
        }
        // What cannot be read counts as the lowest, as in the reference.
        version.unwrap_or_default()
    };
    let emulated = version("emulationVersion", errors);
    if spec.text("binaryVersion").is_empty() {
        errors.push(Error::required(&SPEC.child("binaryVersion"), ""));
    }
    let binary = version("binaryVersion", errors);
    if !spec.text("binaryVersion").is_empty() && !spec.text("emulationVersion").is_empty() && binary < emulated {
        let detail = "must be greater than or equal to `emulationVersion`";
        errors.push(Error::invalid(&SPEC.child("binaryVersion"), spec.text("binaryVersion"), detail));
    }
    let strategy = spec.text("strategy");
    if strategy.is_empty() {
        return errors.push(Error::required(&SPEC.child("strategy"), ""));
    }
    if STRATEGIES.contains(&strategy) && emulated == Version::default() {
        let detail = "must be specified when `strategy` is 'OldestEmulationVersion'";
        errors.push(Error::required(&SPEC.child("emulationVersion"), detail));
    }
    check_strategy(strategy, &SPEC.child("strategy"), errors);
}

/// The path names it twice, as in the reference.
fn check_strategy(strategy: &str, path: &Path<'_>, errors: &mut ErrorList) {
    let path = path.child("strategy");
    if strategy.contains('/') {
        let problems = is_qualified_name(strategy).into_iter();
        errors.extend(problems.map(|problem| Error::invalid(&path, BadValue::json(strategy), problem)));
    } else {
        supported(strategy, &STRATEGIES, &path, errors);
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{check_create, check_update};

    #[test]
    fn leases() {
        let cases = [
            ("{}", vec![]),
            (
                r#"{"leaseDurationSeconds":0,"leaseTransitions":-1}"#,
                vec![
                    "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                    "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
                ],
            ),
            (
                r#"{"strategy":"x"}"#,
                vec!["spec.strategy.strategy: Unsupported value: \"x\": supported values: \"OldestEmulationVersion\""],
            ),
            (
                r#"{"preferredHolder":"x"}"#,
                vec!["spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined"],
            ),
        ];
        for (spec, expected) in cases {
            let object = format!(r#"{{"metadata":{{"name":"x","namespace":"n","finalizers":["x"]}},"spec":{spec}}}"#);
            assert_eq!(check_create("coordination.k8s.io", "leases", &object), expected, "{spec}");
        }
    }

    #[test]
    fn candidates() {
        let cases = [
            (
                "{}",
                vec![
                    "spec.leaseName: Required value",
                    "spec.binaryVersion: Required value",
                    "spec.strategy: Required value",
                ],
            ),
            (
                r#"{"leaseName":"l","binaryVersion":"x","emulationVersion":"1.2.0","strategy":"OldestEmulationVersion"}"#,
                vec![
                    "spec.binaryVersion: Invalid value: \"x\": must be a valid semantic version",
                    "spec.binaryVersion: Invalid value: \"x\": must be greater than or equal to `emulationVersion`",
                ],
            ),
            (
                r#"{"leaseName":"l","binaryVersion":"1.3.0","emulationVersion":"y","strategy":"OldestEmulationVersion"}"#,
                vec![
                    "spec.emulationVersion: Invalid value: \"y\": must be a valid semantic version",
                    "spec.emulationVersion: Required value: must be specified when `strategy` is 'OldestEmulationVersion'",
                ],
            ),
        ];
        for (spec, expected) in cases {
            let object = format!(r#"{{"metadata":{{"name":"x","namespace":"n"}},"spec":{spec}}}"#);
            assert_eq!(check_create("coordination.k8s.io", "leasecandidates", &object), expected, "{spec}");
        }
        let object = |lease: &str| {
            let spec = r#""binaryVersion":"1.2.3","strategy":"a.b/c""#;
            let metadata = r#"{"name":"x","namespace":"n","resourceVersion":"1"}"#;
            format!(r#"{{"metadata":{metadata},"spec":{{"leaseName":"{lease}",{spec}}}}}"#)
        };
        let errors = check_update("coordination.k8s.io", "leasecandidates", "", &object("b"), &object("a"));
        assert_eq!(errors, ["spec.leaseName: Invalid value: \"b\": field is immutable"]);
    }
}
