//! Rules of webhooks and policies: which requests they are about, and an index by what nearly all of them name.

use crate::attributes::{Seen, name_of, namespace_of};
use kubelith_meta::{GroupVersionResource, Str, Value};
use kubelith_registry::Objects;
use kubelith_registry::admission::{Operation, Request};
use std::collections::HashMap;

const OPERATIONS: [Operation; 4] = [Operation::Create, Operation::Update, Operation::Delete, Operation::Connect];

/// One rule: operations on resources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    operations: Vec<Str>,
    groups: Vec<Str>,
    versions: Vec<Str>,
    /// Resource and subresource.
    resources: Vec<(Str, Str)>,
    scope: Scope,
    /// Names of objects; all, if there are none.
    names: Vec<Str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Any,
    Cluster,
    Namespaced,
    /// None that this release knows.
    Unknown,
}

fn texts(rule: &Value, key: &str) -> Vec<Str> {
    let list = rule.get(key).and_then(Value::as_array).unwrap_or(&[]);
    list.iter().filter_map(Value::as_str).map(Str::from).collect()
}

fn any_or(list: &[Str], wanted: &str) -> bool {
    list.iter().any(|item| item == "*" || item == wanted)
}

impl Rule {
    pub fn read(rule: &Value) -> Rule {
        let split = |resource: &Str| match resource.split_once('/') {
            Some((resource, subresource)) => (resource.into(), subresource.into()),
            None => (resource.clone(), Str::default()),
        };
        Rule {
            operations: texts(rule, "operations"),
            groups: texts(rule, "apiGroups"),
            versions: texts(rule, "apiVersions"),
            resources: texts(rule, "resources").iter().map(split).collect(),
            scope: match rule.str_at(&["scope"]) {
                "" | "*" => Scope::Any,
                "Cluster" => Scope::Cluster,
                "Namespaced" => Scope::Namespaced,
                _ => Scope::Unknown,
            },
            names: texts(rule, "resourceNames"),
        }
    }

    pub fn list(object: &Value, key: &str) -> Vec<Rule> {
        object.get(key).and_then(Value::as_array).unwrap_or(&[]).iter().map(Rule::read).collect()
    }

    /// Whether the rule is about the request, were it one for `resource`.
    pub fn matches(&self, request: Request<'_>, resource: &GroupVersionResource) -> bool {
        let is_namespace = (resource.group.as_str(), resource.resource.as_str()) == ("", "namespaces");
        let is_cluster_wide = is_namespace || namespace_of(request).is_empty();
        let in_scope = match self.scope {
            Scope::Any => true,
            Scope::Cluster => is_cluster_wide,
            Scope::Namespaced => !is_cluster_wide,
            Scope::Unknown => false,
        };
        let part = &request.call.subresource;
        let names =
            |(whole, sub): &(Str, Str)| (whole == "*" || *whole == resource.resource) && (sub == "*" || sub == part);
        in_scope
            && any_or(&self.operations, name_of(request.operation))
            && any_or(&self.groups, &resource.group)
            && any_or(&self.versions, &resource.version)
            && self.resources.iter().any(names)
            && (self.names.is_empty() || self.names.contains(&request.call.name))
    }
}

/// How far a rule reaches beyond the version that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchPolicy {
    Exact,
    /// The same objects by another version or group are meant, too.
    Equivalent,
}

impl MatchPolicy {
    pub fn read(object: &Value) -> MatchPolicy {
        match object.str_at(&["matchPolicy"]) {
            "Exact" => MatchPolicy::Exact,
            _ => MatchPolicy::Equivalent,
        }
    }
}

/// The other versions of a request's resource, found when somebody first asks.
pub struct Versions<'a> {
    request: Request<'a>,
    objects: &'a Objects,
    sent: Seen,
    equivalents: std::sync::OnceLock<Vec<Seen>>,
}

impl<'a> Versions<'a> {
    pub fn of(request: Request<'a>, objects: &'a Objects) -> Versions<'a> {
        Versions { request, objects, sent: Seen::as_sent(request), equivalents: std::sync::OnceLock::new() }
    }

    /// As the request came.
    pub fn sent(&self) -> &Seen {
        &self.sent
    }

    /// In which version, if any, the rules mean the request: the first rule that is about another version decides.
    pub fn matching<'v>(&'v self, rules: &[Rule], policy: MatchPolicy) -> Option<&'v Seen> {
        if rules.iter().any(|rule| rule.matches(self.request, &self.sent.resource)) {
            return Some(&self.sent);
        }
        if policy == MatchPolicy::Exact {
            return None;
        }
        let equivalents = self.equivalents.get_or_init(|| Seen::equivalents(self.request, self.objects));
        let of_rule = |rule: &Rule| equivalents.iter().find(|seen| rule.matches(self.request, &seen.resource));
        rules.iter().find_map(of_rule)
    }
}

/// Finds those whose rules may be about a request, in their order, without looking at the others.
#[derive(Debug, Default)]
pub struct Index {
    /// By operation: those that name the resource, and those that name any.
    by_operation: [Named; 4],
}

#[derive(Debug, Default)]
struct Named {
    /// By plural; groups share it, since the same objects may be served in two.
    by_resource: HashMap<Str, Vec<u32>>,
    any: Vec<u32>,
}

impl Index {
    /// `all` are the rules of each, in order.
    pub fn new<'r>(all: impl Iterator<Item = &'r [Rule]>) -> Index {
        let mut index = Index::default();
        for (number, rules) in all.enumerate() {
            for rule in rules {
                index.add(number as u32, rule);
            }
        }
        index
    }

    fn add(&mut self, number: u32, rule: &Rule) {
        let put = |list: &mut Vec<u32>| {
            if list.last() != Some(&number) {
                list.push(number);
            }
        };
        for operation in OPERATIONS {
            if !any_or(&rule.operations, name_of(operation)) {
                continue;
            }
            let named = &mut self.by_operation[operation as usize];
            for (resource, _) in &rule.resources {
                match resource.as_str() {
                    "*" => put(&mut named.any),
                    _ => put(named.by_resource.entry(resource.clone()).or_default()),
                }
            }
        }
    }

    /// Numbers of those to look at, in order.
    pub fn candidates(&self, request: Request<'_>) -> Vec<u32> {
        let named = &self.by_operation[request.operation as usize];
        let own = named.by_resource.get(&request.call.resource.resource).map_or(&[][..], Vec::as_slice);
        let mut found = Vec::with_capacity(own.len() + named.any.len());
        found.extend_from_slice(own);
        found.extend_from_slice(&named.any);
        found.sort_unstable();
        found.dedup();
        found
    }
}
