//! What tests share.

use kubelith_rules::testing::{env, value};
use kubelith_rules::{Kind, Request};

/// A built-in kind.
pub fn kind(group: &str, plural: &str) -> Kind {
    crate::kind(crate::BUILTIN, group, plural)
}

/// What is wrong with a new object, as messages.
pub fn check_create(group: &str, plural: &str, object: &str) -> Vec<String> {
    let request = Request { group, version: "v1", subresource: "", env: env() };
    let errors = (kind(group, plural).rules.create)(request, &value(object));
    errors.iter().map(ToString::to_string).collect()
}

/// What is wrong with a change, as messages.
pub fn check_update(group: &str, plural: &str, subresource: &str, new: &str, old: &str) -> Vec<String> {
    let request = Request { group, version: "v1", subresource, env: env() };
    let errors = (kind(group, plural).rules.update)(request, &value(new), &value(old));
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn kinds_are_of_resources_that_exist_and_stand_here_once() {
    let catalog = kubelith_catalog::builtin();
    for (i, kind) in crate::KINDS.iter().enumerate() {
        let is_same = |other: &&crate::Kind| (other.group, other.plural) == (kind.group, kind.plural);
        assert!(!crate::KINDS[..i].iter().copied().any(|other| is_same(&other)), "{} twice", kind.plural);
        assert!(catalog.descriptor(kind.group, kind.plural).is_some(), "{} {}", kind.group, kind.plural);
    }
}

#[test]
fn names_of_cells_are_given_once() {
    let mut names: Vec<&str> = crate::cells(crate::BUILTIN).map(|(name, _)| name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}
