//! A pod behind scheduling gates may still be bound to fewer nodes, never to others.

use super::put;
use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList};
use kubelith_rules::common::{Fields, NULL, SPEC, member};
use kubelith_rules::internal;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// Checks the selection of nodes and makes it what it was, so that nothing but the rest is left to compare.
pub fn check(spec: &mut Value, before: &Value, errors: &mut ErrorList) {
    if !internal::same("map[string]", spec.get("nodeSelector"), before.get("nodeSelector")) {
        let own = member(spec, "nodeSelector");
        let kept = before.entries("nodeSelector").all(|(key, value)| own.get(key) == Some(value));
        if !kept {
            let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            let shown = internal::shown("map[string]", spec.get("nodeSelector"));
            errors.push(Error::invalid(&SPEC.child("nodeSelector"), shown, detail));
        }
        put(spec, &["nodeSelector"], before.get("nodeSelector"));
    }
    let of = |spec: &Value| member(spec, "affinity").some("nodeAffinity").cloned();
    let (own, old) = (of(spec), of(before));
    if internal::same("*NodeAffinity", own.as_ref(), old.as_ref()) {
        return;
    }
    check_affinity(own.as_ref().unwrap_or(&NULL), old.as_ref().unwrap_or(&NULL), errors);
    let has_other = ["podAffinity", "podAntiAffinity"].iter().any(|key| member(spec, "affinity").has(key));
    match (spec.has("affinity"), &old) {
        (false, None) => {}
        (true, _) if !before.has("affinity") && !has_other => put(spec, &["affinity"], None),
        _ => put(spec, &["affinity", "nodeAffinity"], old.as_ref()),
    }
}

fn check_affinity(own: &Value, old: &Value, errors: &mut ErrorList) {
    let terms = |affinity: &Value| member(affinity, REQUIRED).list("nodeSelectorTerms").to_vec();
    let (new, old) = (terms(own), terms(old));
    let path = SPEC.children(&["affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"]);
    if !old.is_empty() && old.len() != new.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        let shown = member(own, REQUIRED).get("nodeSelectorTerms");
        return errors.push(Error::invalid(&path, internal::shown("[]NodeSelectorTerm", shown), detail));
    }
    for (i, (term, old)) in new.iter().zip(&old).enumerate() {
        if !has_only_additions(term, old) {
            let detail = "only additions are allowed (no mutations or deletions)";
            errors.push(Error::invalid(&path.index(i), internal::shown("NodeSelectorTerm", Some(term)), detail));
        }
    }
}

/// Requirements narrow a term down, unless it had none: then it matched nothing.
fn has_only_additions(term: &Value, old: &Value) -> bool {
    const LISTS: [&str; 2] = ["matchExpressions", "matchFields"];
    let matched_nothing = LISTS.iter().all(|list| old.list(list).is_empty());
    if matched_nothing && LISTS.iter().any(|list| !term.list(list).is_empty()) {
        return false;
    }
    LISTS.iter().all(|list| {
        let (own, old) = (term.list(list), old.list(list));
        own.len() >= old.len()
            && own.iter().zip(old).all(|(own, old)| internal::same("NodeSelectorRequirement", Some(own), Some(old)))
    })
}
