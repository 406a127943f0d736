//! Whether one set of rules grants all that another does.

use super::rule::{PolicyRule, url_matches};
use kubelith_meta::Str;
use std::collections::BTreeMap;

/// The smallest pieces of `servant` that no rule of `owner` grants; empty if all is covered.
pub fn uncovered(owner: &[PolicyRule], servant: &[PolicyRule]) -> Vec<PolicyRule> {
    let mut missing = Vec::new();
    for piece in servant.iter().flat_map(break_down) {
        if !owner.iter().any(|rule| covers(rule, &piece)) {
            missing.push(piece);
        }
    }
    missing
}

/// A rule as rules of one verb, group, resource and name each, or of one verb and path each.
fn break_down(rule: &PolicyRule) -> Vec<PolicyRule> {
    let one = |s: &Str| vec![s.clone()];
    let mut pieces = Vec::new();
    for group in &rule.api_groups {
        for resource in &rule.resources {
            for verb in &rule.verbs {
                let piece = PolicyRule {
                    verbs: one(verb),
                    api_groups: one(group),
                    resources: one(resource),
                    ..PolicyRule::default()
                };
                if rule.resource_names.is_empty() {
                    pieces.push(piece);
                    continue;
                }
                let named = rule.resource_names.iter();
                pieces.extend(named.map(|name| PolicyRule { resource_names: one(name), ..piece.clone() }));
            }
        }
    }
    for url in &rule.non_resource_urls {
        for verb in &rule.verbs {
            let verbs = one(verb);
            pieces.push(PolicyRule { verbs, non_resource_urls: one(url), ..PolicyRule::default() });
        }
    }
    pieces
}

/// Whether `owner` grants `piece`, a rule as `break_down` makes them.
fn covers(owner: &PolicyRule, piece: &PolicyRule) -> bool {
    let all_of = |have: &[Str], want: &[Str]| want.iter().all(|w| have.contains(w));
    let any_or_all = |have: &[Str], want: &[Str]| have.iter().any(|h| h == "*") || all_of(have, want);
    let names = owner.resource_names.is_empty()
        || (!piece.resource_names.is_empty() && all_of(&owner.resource_names, &piece.resource_names));
    any_or_all(&owner.verbs, &piece.verbs)
        && any_or_all(&owner.api_groups, &piece.api_groups)
        && piece.resources.iter().all(|r| covers_resource(&owner.resources, r))
        && names
        && piece.non_resource_urls.iter().all(|u| owner.non_resource_urls.iter().any(|o| url_matches(o, u)))
}

fn covers_resource(have: &[Str], resource: &str) -> bool {
    let subresource = resource.split_once('/').map(|(_, sub)| sub);
    have.iter().any(|h| h == "*" || h == resource || subresource.is_some_and(|sub| h.strip_prefix("*/") == Some(sub)))
}

/// Joins rules that differ in their verb only, for messages.
pub fn compact(rules: &[PolicyRule]) -> Vec<PolicyRule> {
    let mut compacted = Vec::new();
    let mut simple: BTreeMap<(Str, Str, Option<Str>), PolicyRule> = BTreeMap::new();
    for rule in rules {
        let (groups, resources, names) = (&rule.api_groups, &rule.resources, &rule.resource_names);
        match (groups.as_slice(), resources.as_slice(), names.as_slice()) {
            ([group], [resource], [] | [_]) if rule.non_resource_urls.is_empty() => {
                let key = (group.clone(), resource.clone(), names.first().cloned());
                match simple.get_mut(&key) {
                    Some(joined) => joined.verbs.extend(rule.verbs.iter().cloned()),
                    None => drop(simple.insert(key, rule.clone())),
                }
            }
            _ => compacted.push(rule.clone()),
        }
    }
    compacted.extend(simple.into_values());
    compacted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authz::rbac::testing::rules;

    #[test]
    fn coverage() {
        // owner | servant | what is missing, compacted
        let cases = [
            ("get core pods", "get core pods", ""),
            ("get,list core pods,services", "list core services", ""),
            ("get core pods", "get,list core pods", "list core pods"),
            ("* * *", "get,list core,apps pods,pods/log a,b", ""),
            ("* * *", "get url /metrics", "get url /metrics"),
            ("* url *", "get url /metrics", ""),
            ("get url /api/*", "get url /api/v1", ""),
            ("get url /api/*", "get url /api/*", ""),
            ("get url /api/*", "get url /api*", "get url /api*"),
            ("get core pods", "* core pods", "* core pods"),
            ("get core pods", "get core *", "get core *"),
            ("get core *", "get core pods/log", ""),
            ("get core */log", "get core pods/log", ""),
            ("get core */log", "get core pods", "get core pods"),
            ("get core */log", "get core pods/status", "get core pods/status"),
            ("get core pods a", "get core pods a", ""),
            ("get core pods a", "get core pods", "get core pods"),
            ("get core pods a", "get core pods a,b", "get core pods b"),
            ("get core pods", "get core pods a", ""),
            ("get core pods;list core pods", "get,list core pods", ""),
            ("", "get,list core pods", "get,list core pods"),
            ("get apps pods;get core deployments", "get core,apps pods", "get core pods"),
        ];
        for (owner, servant, missing) in cases {
            let got = compact(&uncovered(&rules(owner), &rules(servant)));
            assert_eq!(got, rules(missing), "{owner} | {servant}");
        }
    }
}
