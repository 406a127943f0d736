//! Versions and times of who would lead.

use crate::coordination::shared::{STRATEGIES, check_strategy};
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList};
use kubelith_meta::names::{Messages, NameUse, is_config_map_key};
use kubelith_meta::object::{Namespacing, validate_object_meta, validate_object_meta_update};
use kubelith_rules::Rules;
use kubelith_rules::common::{Fields, METADATA, SPEC, immutable_text, member};
use kubelith_rules::semver::Version;

pub const RULES: Rules = Rules {
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
