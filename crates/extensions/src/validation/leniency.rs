//! Which rules an old definition breaks already, so that its successor may, too.

use super::walk::{any, flag, has, schemas};
use super::{conversion, defaults, schema, structural, walk};
use crate::definition::Definition;
use kubelith_meta::field::Path;
use kubelith_meta::{Str, Value};
use kubelith_rules::expression::Expressions;
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct Leniency {
    pub no_schema: bool,
    pub bad_types: bool,
    pub non_structural: bool,
    pub unpruned_defaults: bool,
    pub non_atomic_sets: bool,
    pub bad_list_keys: bool,
    pub unknown_review_versions: bool,
    /// The CA bundle of a webhook may be none.
    pub bad_ca_bundle: bool,
    /// Versions (empty for what is common to all) that have more selectable fields than is allowed.
    pub many_selectable: Vec<Str>,
    /// Versions whose schema is the one that it was.
    pub unchanged: Vec<Str>,
    /// One rule in CEL may cost more than is allowed: the schema that is looked at did not change.
    pub expensive_rules: bool,
    /// The expressions in CEL that the old definition has, of rules and of messages.
    pub rules: BTreeSet<Str>,
    pub messages: BTreeSet<Str>,
    /// What others are compiled with.
    pub expressions: Arc<Expressions>,
}

impl Leniency {
    /// For new definitions, whose CA bundle may come later.
    pub fn none(expressions: &Arc<Expressions>) -> Leniency {
        Leniency {
            no_schema: false,
            bad_types: false,
            non_structural: false,
            unpruned_defaults: false,
            non_atomic_sets: false,
            bad_list_keys: false,
            unknown_review_versions: false,
            bad_ca_bundle: true,
            many_selectable: Vec::new(),
            unchanged: Vec::new(),
            expensive_rules: false,
            rules: BTreeSet::new(),
            messages: BTreeSet::new(),
            expressions: expressions.clone(),
        }
    }

    pub fn of(old: &Value, new: &Value, expressions: &Arc<Expressions>) -> Leniency {
        let broken = |wanted: fn(&Value) -> bool| schemas(old).any(|s| any(s, &mut |s| wanted(s)));
        let reviews = old.at(&["spec", "conversion", "conversionReviewVersions"]);
        let reviews = reviews.and_then(Value::as_array).unwrap_or(&[]);
        Leniency {
            no_schema: !has_all_schemas(old),
            bad_types: broken(schema::has_bad_type),
            non_structural: schemas(old)
                .any(|s| walk::unsupported(s).is_some() || !structural::validate(s, &Path::ROOT).is_empty()),
            unpruned_defaults: schemas(old).any(defaults::has_unpruned),
            non_atomic_sets: broken(schema::is_non_atomic_set),
            bad_list_keys: broken(|s| !schema::list_keys(s, &Path::ROOT).is_empty()),
            unknown_review_versions: !reviews.is_empty() && !reviews.iter().any(conversion::is_known_review),
            bad_ca_bundle: !Definition(old).is("Established") || conversion::has_bad_ca_bundle(old),
            many_selectable: many_selectable(old, new),
            unchanged: unchanged(old, new),
            expensive_rules: false,
            rules: texts(old, "rule"),
            messages: texts(old, "messageExpression"),
            expressions: expressions.clone(),
        }
    }

    /// For the schema of one version.
    pub fn of_version(&self, version: &str) -> Leniency {
        let expensive_rules = self.unchanged.iter().any(|name| name == version);
        Leniency { expensive_rules, ..self.clone() }
    }
}

/// The texts that rules in CEL have under a key.
fn texts(old: &Value, key: &str) -> BTreeSet<Str> {
    let mut found = BTreeSet::new();
    for schema in schemas(old) {
        any(schema, &mut |s| {
            let texts = walk::list(s, super::rules::KEY).iter().map(|rule| rule.str_at(&[key]));
            found.extend(texts.filter(|text| !text.is_empty()).map(Str::from));
            false
        });
    }
    found
}

fn unchanged(old: &Value, new: &Value) -> Vec<Str> {
    let names =
        new.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or(&[]).iter().map(|v| v.str_at(&["name"]));
    names.filter(|name| schema_of(old, name).is_some_and(|s| schema_of(new, name) == Some(s))).map(Str::from).collect()
}

/// The schema of a version, wherever it stands; `None` if there is no such version, or it has two.
fn schema_of<'a>(object: &'a Value, version: &str) -> Option<Option<&'a Value>> {
    let common = object.at(&["spec", "validation"]);
    let versions = object.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or(&[]);
    if !versions.iter().any(|v| has(v, "schema")) {
        return Some(common);
    }
    if common.is_some() {
        return None;
    }
    versions.iter().find(|v| v.str_at(&["name"]) == version).map(|v| v.get("schema"))
}

fn has_all_schemas(object: &Value) -> bool {
    let versions = || object.at(&["spec", "versions"]).and_then(Value::as_array).unwrap_or(&[]).iter();
    object.at(&["spec", "validation", "openAPIV3Schema"]).is_some()
        || versions().all(|v| v.at(&["schema", "openAPIV3Schema"]).is_some())
}

fn many_selectable(old: &Value, new: &Value) -> Vec<Str> {
    let fields = |v: &Value| v.get("selectableFields").cloned().unwrap_or_default();
    let many = |v: &Value| fields(v).as_array().is_some_and(|f| f.len() > super::parts::MAX_SELECTABLE);
    let mut found = Vec::new();
    if let (Some(old), Some(new)) = (old.get("spec"), new.get("spec")) {
        if many(old) && fields(old) == fields(new) {
            found.push(Str::default());
        }
        for version in walk::list(new, "versions") {
            let name = version.str_at(&["name"]);
            let before = walk::list(old, "versions").iter().find(|v| v.str_at(&["name"]) == name);
            if before.is_some_and(|before| many(before) && fields(before) == fields(version)) {
                found.push(name.into());
            }
        }
    }
    found
}

/// Extensions that only structural schemas may use.
pub fn uses_extensions(schema: &Value) -> bool {
    any(schema, &mut |s| {
        flag(s, "x-kubernetes-embedded-resource")
            || has(s, "x-kubernetes-preserve-unknown-fields")
            || flag(s, "x-kubernetes-int-or-string")
            || walk::has_some(s, "x-kubernetes-list-map-keys")
            || has(s, "x-kubernetes-list-type")
            || walk::has_some(s, "x-kubernetes-validations")
    })
}
