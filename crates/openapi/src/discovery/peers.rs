//! What all servers of a cluster serve, in one list: groups, versions and resources of each, in an order in which each one's
//! own order is kept.

use super::aggregated;
use kubelith_meta::{Str, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::AtomicU64;

/// The groups that other servers describe (APIGroupDiscovery), by the servers' ids.
pub type PeerGroups = BTreeMap<Str, Vec<Value>>;

/// How often what was asked for.
#[derive(Debug, Default)]
pub struct PeerCounts {
    /// The document of this server alone.
    pub alone: AtomicU64,
    /// The document of all, which was there.
    pub hits: AtomicU64,
    /// The document of all, which had to be made.
    pub misses: AtomicU64,
}

/// The groups of this server, which is called `server`, and of the others.
pub fn merge(server: &Str, own: Vec<Value>, peers: &PeerGroups) -> Vec<Value> {
    let mut all: BTreeMap<&Str, &[Value]> = peers.iter().map(|(id, groups)| (id, groups.as_slice())).collect();
    all.insert(server, &own);
    if all.len() <= 1 {
        return own;
    }
    let own_names: Vec<&str> = own.iter().map(group_name).collect();
    let mut merged: HashMap<&str, Value> = HashMap::new();
    let mut orders: Vec<Vec<&str>> = Vec::new();
    let mut same_content = true;
    for groups in all.values() {
        orders.push(groups.iter().map(group_name).collect());
        for group in *groups {
            let joined = merged.get(group_name(group)).map(|known| join_groups(known, group));
            match joined {
                None => drop(merged.insert(group_name(group), group.clone())),
                Some(None) => {}
                Some(Some(joined)) => {
                    same_content = false;
                    merged.insert(group_name(group), joined);
                }
            }
        }
    }
    let same_order = orders.iter().all(|order| *order == own_names);
    match (same_content, same_order) {
        (true, true) => own,
        (false, true) => own_names.iter().filter_map(|name| merged.remove(name)).collect(),
        (_, false) => consensus(&orders).into_iter().filter_map(|name| merged.remove(name)).collect(),
    }
}

fn group_name(group: &Value) -> &str {
    group.str_at(&["metadata", "name"])
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).unwrap_or(&[])
}

/// A group as both say; `None` if that is what `a` says.
fn join_groups(a: &Value, b: &Value) -> Option<Value> {
    let versions = join(list(a, "versions"), list(b, "versions"), "version", |a, b| {
        let resources = join(list(a, "resources"), list(b, "resources"), "resource", join_resources)?;
        let mut joined = a.clone();
        joined.set_at(&["resources"], Value::Array(resources));
        Some(joined)
    })?;
    let mut joined = a.clone();
    joined.set_at(&["versions"], Value::Array(versions));
    Some(joined)
}

/// Verbs and subresources of both.
fn join_resources(a: &Value, b: &Value) -> Option<Value> {
    if a == b {
        return None;
    }
    let mut joined = a.clone();
    let verbs: BTreeSet<&str> =
        [a, b].into_iter().flat_map(|one| list(one, "verbs")).filter_map(Value::as_str).collect();
    joined.set_at(&["verbs"], Value::Array(verbs.into_iter().map(Value::from).collect()));
    let subresources: BTreeMap<&str, &Value> = [a, b]
        .into_iter()
        .flat_map(|one| list(one, "subresources"))
        .map(|sub| (sub.str_at(&["subresource"]), sub))
        .collect();
    if !subresources.is_empty() {
        joined.set_at(&["subresources"], Value::Array(subresources.into_values().cloned().collect()));
    }
    Some(joined)
}

/// Two lists of things that are called by what stands at `key`; `None` if that is `a`.
fn join(a: &[Value], b: &[Value], key: &str, one: impl Fn(&Value, &Value) -> Option<Value>) -> Option<Vec<Value>> {
    let names = |list: &'_ [Value]| list.iter().map(|item| item.str_at(&[key]).to_owned()).collect::<Vec<String>>();
    let (a_names, b_names) = (names(a), names(b));
    let mut merged: HashMap<&str, Value> = a_names.iter().map(String::as_str).zip(a.iter().cloned()).collect();
    let mut same_content = true;
    for (name, item) in b_names.iter().map(String::as_str).zip(b) {
        match merged.get(name).map(|known| one(known, item)) {
            None => drop(merged.insert(name, item.clone())),
            Some(None) => {}
            Some(Some(joined)) => {
                same_content = false;
                merged.insert(name, joined);
            }
        }
    }
    let order: Vec<&str> = match (same_content, a_names == b_names) {
        (true, true) => return None,
        (false, true) => a_names.iter().map(String::as_str).collect(),
        (_, false) => {
            let orders = [&a_names, &b_names].map(|names| names.iter().map(String::as_str).collect::<Vec<&str>>());
            consensus(&orders)
        }
    };
    Some(order.into_iter().filter_map(|name| merged.remove(name)).collect())
}

/// All names, each behind those that stand before it in some list, and by name where nothing says more. Lists that
/// contradict each other give the order of names.
fn consensus<'a>(lists: &[Vec<&'a str>]) -> Vec<&'a str> {
    let all: BTreeSet<&str> = lists.iter().flatten().copied().collect();
    let is_all =
        |list: &&Vec<&'a str>| list.len() == all.len() && list.iter().collect::<BTreeSet<_>>().len() == all.len();
    if let Some(whole) = lists.iter().find(is_all) {
        return whole.clone();
    }
    let mut after: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for pair in lists.iter().flat_map(|list| list.windows(2)) {
        after.entry(pair[0]).or_default().insert(pair[1]);
    }
    let mut before: HashMap<&str, usize> = HashMap::new();
    for name in after.values().flatten() {
        *before.entry(name).or_default() += 1;
    }
    let mut free: BTreeSet<&str> = all.iter().copied().filter(|name| !before.contains_key(name)).collect();
    let mut order = Vec::with_capacity(all.len());
    while let Some(name) = free.pop_first() {
        order.push(name);
        for next in after.get(name).into_iter().flatten() {
            if let Some(left) = before.get_mut(next) {
                *left -= 1;
                if *left == 0 {
                    free.insert(next);
                }
            }
        }
    }
    if order.len() == all.len() { order } else { all.into_iter().collect() }
}

/// The document of merged groups.
pub(super) fn document(groups: Vec<Value>) -> Value {
    aggregated::list_of(groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;

    fn groups(text: &str) -> Vec<Value> {
        // `group/version/resource:verb+verb` …
        let mut groups: Vec<Value> = Vec::new();
        for item in text.split_whitespace() {
            let parts: Vec<&str> = item.split(['/', ':']).collect();
            let verbs: Vec<String> = parts[3].split('+').map(|verb| format!("\"{verb}\"")).collect();
            let resource = format!(r#"{{"resource":"{}","verbs":[{}]}}"#, parts[2], verbs.join(","));
            let group = json::parse(
                format!(
                    r#"{{"metadata":{{"name":"{}"}},"versions":[{{"version":"{}","resources":[{resource}]}}]}}"#,
                    parts[0], parts[1]
                )
                .as_bytes(),
            )
            .unwrap();
            match groups.iter_mut().find(|known| group_name(known) == parts[0]) {
                Some(known) => {
                    let mut versions = list(known, "versions").to_vec();
                    let version = list(&group, "versions")[0].clone();
                    match versions.iter_mut().find(|v| v.str_at(&["version"]) == parts[1]) {
                        Some(same) => {
                            let resources = [list(same, "resources"), list(&version, "resources")].concat();
                            same.set_at(&["resources"], Value::Array(resources));
                        }
                        None => versions.push(version),
                    }
                    known.set_at(&["versions"], Value::Array(versions));
                }
                None => groups.push(group),
            }
        }
        groups
    }

    fn shown(groups: &[Value]) -> String {
        let mut out = Vec::new();
        for group in groups {
            for version in list(group, "versions") {
                for resource in list(version, "resources") {
                    let verbs: Vec<&str> = list(resource, "verbs").iter().filter_map(Value::as_str).collect();
                    let (version, resource) = (version.str_at(&["version"]), resource.str_at(&["resource"]));
                    out.push(format!("{}/{version}/{resource}:{}", group_name(group), verbs.join("+")));
                }
            }
        }
        out.join(" ")
    }

    #[test]
    fn servers_are_joined() {
        for (own, others, want) in [
            ("b/v1/x:get a/v1/y:get", vec![], "b/v1/x:get a/v1/y:get"),
            ("b/v1/x:get a/v1/y:get", vec!["b/v1/x:get a/v1/y:get"], "b/v1/x:get a/v1/y:get"),
            ("b/v1/x:get", vec!["b/v1/x:get a/v1/y:get"], "b/v1/x:get a/v1/y:get"),
            ("b/v1/x:get", vec!["c/v1/x:get", "a/v1/x:get"], "a/v1/x:get b/v1/x:get c/v1/x:get"),
            ("a/v2/x:get a/v1/x:get", vec!["a/v2/x:list+get"], "a/v2/x:get+list a/v1/x:get"),
            ("a/v1/x:get a/v1/z:get", vec!["a/v1/x:get a/v1/y:get"], "a/v1/x:get a/v1/y:get a/v1/z:get"),
            (
                "a/v1/x:get b/v1/x:get c/v1/x:get",
                vec!["b/v1/x:get a/v1/x:get d/v1/x:get"],
                "a/v1/x:get b/v1/x:get c/v1/x:get d/v1/x:get",
            ),
        ] {
            let peers = others.iter().enumerate().map(|(i, text)| (Str::from(format!("peer-{i}")), groups(text)));
            let merged = merge(&"own".into(), groups(own), &peers.collect());
            assert_eq!(shown(&merged), want, "{own} with {others:?}");
        }
    }
}
