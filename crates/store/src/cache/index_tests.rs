//! What an index finds is what a walk finds, in every state that can be read; and a watcher sees the same whether it is told of
//! everything or only of what concerns it.

use super::index::{Clause, Term};
use super::object::{CachedObject, EventKind, Rendered};
use super::{Change, Interest, ResourceCache, Scope, Snapshot, Watcher};
use futures::FutureExt;
use kubelith_meta::Str;
use proptest::prelude::*;
use std::sync::Arc;

#[derive(Debug, Clone)]
enum Step {
    Put(String, Vec<(Str, Str)>, Str),
    Delete(String),
}

/// Whom a list or a watch is about: a namespace or all, one of these values of a label, this value of the field.
#[derive(Debug, Clone)]
struct Query {
    namespace: Option<u8>,
    from: Option<String>,
    label: Option<(Str, Vec<Str>)>,
    field: Option<Str>,
}

impl Query {
    fn matches(&self, object: &CachedObject) -> bool {
        let has = |(key, values): &(Str, Vec<Str>)| {
            object.labels.iter().any(|(k, v)| k == key && values.iter().any(|value| value == v))
        };
        object.key.starts_with(&self.prefix())
            && self.label.as_ref().is_none_or(has)
            && self.field.as_ref().is_none_or(|value| object.fields[0] == *value)
    }

    fn prefix(&self) -> String {
        self.namespace.map_or(String::new(), |namespace| format!("n{namespace}/"))
    }

    fn clauses(&self) -> Vec<Clause<'_>> {
        let label = self.label.iter().map(|(key, values)| values.iter().map(|v| Term::Label(key, v)).collect());
        label.chain(self.field.iter().map(|value| vec![Term::Indexed(value)])).collect()
    }

    fn interest(&self) -> Interest {
        let namespace: Str = self.namespace.map_or("".into(), |namespace| format!("n{namespace}").into());
        let scopes = match (&self.label, &self.field) {
            (Some((key, values)), _) => {
                let label =
                    |value: &Str| Scope::Label { namespace: namespace.clone(), key: key.clone(), value: value.clone() };
                values.iter().map(label).collect()
            }
            (None, Some(value)) => vec![Scope::Indexed(value.clone())],
            (None, None) if namespace.is_empty() => vec![Scope::All],
            (None, None) => vec![Scope::Namespace(namespace)],
        };
        let query = self.clone();
        Interest::in_any(scopes).filtered(move |event| {
            query.matches(&event.object) || event.prev.as_ref().is_some_and(|prev| query.matches(prev))
        })
    }
}

fn key() -> impl Strategy<Value = String> {
    (0..4u8, 0..40u8).prop_map(|(namespace, name)| format!("n{namespace}/{name:02}"))
}

fn label() -> impl Strategy<Value = (Str, Str)> {
    (0..4u8, 0..12u8).prop_map(|(key, value)| (format!("k{key}").into(), format!("v{value}").into()))
}

fn step() -> impl Strategy<Value = Step> {
    let labels = prop_oneof![
        8 => prop::collection::btree_map(0..4u8, 0..12u8, 0..4).prop_map(|labels| {
            labels.into_iter().map(|(k, v)| (format!("k{k}").into(), format!("v{v}").into())).collect()
        }),
        // More than an index takes of one object.
        1 => label().prop_map(|one| {
            let others = (0..70).map(|i| (format!("x{i}").into(), "".into()));
            std::iter::once(one).chain(others).collect()
        }),
    ];
    let field = (0..10u8).prop_map(|i| if i == 0 { Str::default() } else { format!("node-{i}").into() });
    prop_oneof![
        4 => (key(), labels, field).prop_map(|(key, labels, field)| Step::Put(key, labels, field)),
        1 => key().prop_map(Step::Delete),
    ]
}

fn query() -> impl Strategy<Value = Query> {
    let values = prop::collection::vec((0..14u8).prop_map(|i| Str::from(format!("v{i}"))), 1..4);
    let label = prop::option::weighted(0.8, ((0..4u8).prop_map(|i| Str::from(format!("k{i}"))), values));
    let field = prop::option::weighted(0.3, (1..11u8).prop_map(|i| Str::from(format!("node-{i}"))));
    (prop::option::of(0..4u8), prop::option::weighted(0.3, key()), label, field)
        .prop_map(|(namespace, from, label, field)| Query { namespace, from, label, field })
}

fn change(cache: &ResourceCache, revision: i64, step: &Step) {
    let change = match step {
        Step::Delete(key) => Change::Delete(key.as_str().into(), revision),
        Step::Put(key, labels, field) => {
            let kind = if cache.get(key).is_some() { EventKind::Modified } else { EventKind::Added };
            let rendered = Rendered { labels: labels.clone(), fields: vec![field.clone()], ..Rendered::default() };
            Change::Put(kind, CachedObject::new(key.as_str().into(), revision, kind, rendered))
        }
    };
    cache.apply([change]);
}

fn seen(watcher: &mut Watcher, is_wanted: impl Fn(&super::Event) -> bool) -> Vec<u64> {
    let mut events = Vec::new();
    while let Some(next) = watcher.next(&mut events).now_or_never() {
        next.expect("it did not fall behind");
    }
    events.iter().filter(|event| is_wanted(event)).map(|event| event.sequence).collect()
}

/// Whether an index was used.
fn check(snapshot: &Snapshot, query: &Query) -> bool {
    let prefix = query.prefix();
    let from = query.from.as_deref();
    let walked = snapshot.range_from(&prefix, from).filter(|object| query.matches(object)).map(|o| &o.key);
    let walked: Vec<_> = walked.collect();
    let count = snapshot.range_from(&prefix, from).count();
    assert_eq!(snapshot.count_from(&prefix, from), count, "{query:?}");
    let Some(found) = snapshot.candidates(&prefix, from, &query.clauses()) else { return false };
    let found: Vec<_> = found.iter().filter(|object| query.matches(object)).map(|object| &object.key).collect();
    assert_eq!(found, walked, "{query:?}");
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn an_index_finds_what_a_walk_finds(
        steps in prop::collection::vec(step(), 1..400),
        queries in prop::collection::vec(query(), 1..12),
        start in 0..200usize,
        reload in any::<bool>(),
    ) {
        let cache = Arc::new(ResourceCache::new(Some(0)));
        let start = start.min(steps.len());
        for (revision, step) in (1..).zip(&steps[..start]) {
            change(&cache, revision, step);
        }
        if reload {
            // As after a restart: the index is made at once.
            let then = cache.snapshot();
            cache.load(then.objects, then.revision.max(start as i64));
        }
        let fork = Arc::new(cache.fork());
        let (mut all, from) = (cache.watch(Scope::All, start as i64).unwrap(), start as i64);
        let mut watchers: Vec<_> = queries.iter().map(|query| cache.watch(query.interest(), from).unwrap()).collect();
        let before = cache.snapshot();
        for (revision, step) in (start as i64 + 1..).zip(&steps[start..]) {
            change(&cache, revision, step);
        }
        let events = {
            let mut events = Vec::new();
            while all.next(&mut events).now_or_never().is_some() {}
            events
        };
        for (query, watcher) in queries.iter().zip(&mut watchers) {
            check(&before, query);
            check(&fork.snapshot(), query);
            check(&cache.snapshot(), query);
            for at in [start as i64, (start + steps.len()) as i64 / 2] {
                if let Ok(then) = cache.snapshot_at(at) {
                    check(&then, query);
                }
            }
            let concerns = |event: &super::Event| {
                query.matches(&event.object) || event.prev.as_ref().is_some_and(|prev| query.matches(prev))
            };
            let expected: Vec<u64> = events.iter().filter(|e| concerns(e)).map(|e| e.sequence).collect();
            prop_assert_eq!(seen(watcher, |_| true), expected.clone(), "{:?}", query);
            // Whoever comes later gets it from the backlog.
            let mut late = cache.watch(query.interest(), start as i64).unwrap();
            prop_assert_eq!(seen(&mut late, |_| true), expected, "{:?}", query);
        }
    }
}

#[test]
fn names_are_found_in_all_namespaces() {
    let cache = ResourceCache::new(None);
    let keys = ["a/x", "a/y", "aa/x", "b/w", "b/x", "b-c/x", "c/y", "d/x"];
    for (revision, key) in (1..).zip(keys) {
        change(&cache, revision, &Step::Put(key.into(), Vec::new(), Str::default()));
    }
    let named = |name: &str, from: Option<&str>| -> Vec<String> {
        cache.snapshot().named(name, from).iter().map(|object| object.key.to_string()).collect()
    };
    let walked = |name: &str, from: &str| -> Vec<String> {
        let snapshot = cache.snapshot();
        let all = snapshot.range_from("", Some(from)).filter(|object| object.name() == name);
        all.map(|object| object.key.to_string()).collect()
    };
    for name in ["x", "y", "w", "z"] {
        for from in ["", "a/x", "a/x\0", "a/z", "b", "b/x\0", "b-c/a", "d/x\0"] {
            assert_eq!(named(name, Some(from)), walked(name, from), "{name} from {from:?}");
        }
    }
}

#[test]
fn few_of_many_are_found_by_an_index_and_many_by_a_walk() {
    let cache = ResourceCache::new(Some(0));
    for i in 0..1000 {
        let labels = vec![("shard".into(), format!("{}", i % 200).into()), ("tier".into(), "backend".into())];
        change(&cache, i + 1, &Step::Put(format!("n/{i}"), labels, "node".into()));
    }
    let snapshot = cache.snapshot();
    let found = |clauses: &[Clause<'_>]| snapshot.candidates("n/", None, clauses).map(|found| found.len());
    let (shard, tier) = (vec![Term::Label("shard", "7")], vec![Term::Label("tier", "backend")]);
    assert_eq!(found(std::slice::from_ref(&shard)), Some(5));
    assert_eq!(found(&[tier.clone(), shard.clone()]), Some(5), "the smaller one is taken");
    assert_eq!(found(&[vec![Term::Label("shard", "7"), Term::Label("shard", "8")]]), Some(10));
    assert_eq!(found(&[vec![Term::Label("shard", "none")]]), Some(0));
    assert_eq!(found(std::slice::from_ref(&tier)), None);
    assert_eq!(found(&[]), None);
    assert_eq!(found(&[vec![Term::Indexed("node")]]), None);
    let bytes = cache.stats().index_bytes;
    assert!((40_000..100_000).contains(&bytes), "{bytes} bytes");
}

#[tokio::test]
async fn nobody_is_woken_for_what_does_not_concern_it() {
    let cache = Arc::new(ResourceCache::new(None));
    let of = |value: &str| Scope::Label { namespace: "n1".into(), key: "k0".into(), value: value.into() };
    let mut watcher = cache.watch(Interest::in_any(vec![of("a"), of("b")]), 0).unwrap();
    let put = |revision, key: &str, value: &str| {
        change(&cache, revision, &Step::Put(key.into(), vec![("k0".into(), value.into())], Str::default()));
    };
    let mut events = Vec::new();
    let mut next = Box::pin(watcher.next(&mut events));
    assert!(futures::poll!(&mut next).is_pending());
    put(1, "n1/x", "c");
    put(2, "n2/x", "a");
    assert!(futures::poll!(&mut next).is_pending());
    put(3, "n1/x", "a");
    put(4, "n1/x", "b");
    put(5, "n1/x", "c");
    put(6, "n1/x", "d");
    next.await.unwrap();
    let revisions: Vec<i64> = events.iter().map(|event| event.revision).collect();
    assert_eq!(revisions, [3, 4, 5], "each once, with the one by which it left");
}
