//! The caches over real engines: encryption, unreadable objects, deletions, the past.

use super::*;
use crate::encryption::{Encryption, Keyring, ReloadMode};
use crate::{EmbeddedOptions, EmbeddedStore, Expect, KeyLayout, MemoryStore, Revision, Store};
use futures::FutureExt;
use kubelith_meta::GroupResource;
use std::sync::Arc;

/// Stored text is the object's name; `!` is no object.
struct Names;

impl Renderer for Names {
    fn render(&self, value: &[u8], revision: i64) -> Result<Rendered, String> {
        let name = std::str::from_utf8(value).map_err(|e| e.to_string())?;
        if name == "!" {
            return Err("no object".into());
        }
        let json = format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"{revision}"}}}}"#).into_bytes();
        Ok(Rendered { json, ..Rendered::default() })
    }
}

async fn put(store: &dyn Store, key: &str, value: &str) -> Revision {
    store.put(key.to_owned().into(), value.to_owned().into(), Expect::Any, None).await.unwrap()
}

fn shown(object: &CachedObject) -> String {
    String::from_utf8(object.json().to_vec()).unwrap()
}

/// `KIND json` of the next events.
async fn events(watcher: &mut Watcher, count: usize) -> Vec<String> {
    let mut events = Vec::new();
    while events.len() < count {
        watcher.next(&mut events).await.unwrap();
    }
    events.iter().map(|e| format!("{} {}", e.kind.as_str(), shown(&e.object))).collect()
}

#[tokio::test]
async fn rules_are_waited_for_and_facts_are_not() {
    let hub = Hub::start(Arc::new(MemoryStore::default()), "/r/").await.unwrap();
    let later = hub.applied() + 1;
    hub.wrote(later, ReadBy::Clients);
    assert_eq!(hub.caught_up_for_admission().now_or_never(), Some(true));
    assert_eq!(hub.caught_up().now_or_never(), None);
    hub.wrote(later, ReadBy::Admission);
    assert_eq!(hub.caught_up_for_admission().now_or_never(), None);
    hub.stop();
}

#[tokio::test]
async fn deletions_show_the_last_state_at_their_revision() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let hub = Hub::start(store.clone(), "/r/").await.unwrap();
    let cache = hub.register("pods", None, Arc::new(Names)).await.unwrap();
    let (_, mut watcher) = cache.list_and_watch(Scope::All);
    let first = put(&*store, "/r/pods/n/a", "a").await.0;
    put(&*store, "/r/pods/n/a", "b").await;
    store.delete("/r/pods/n/a".into(), Expect::Any).await.unwrap();
    let object = |name: &str, at: i64| format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"{at}"}}}}"#);
    let expected = [
        format!("ADDED {}", object("a", first)),
        format!("MODIFIED {}", object("b", first + 1)),
        format!("DELETED {}", object("b", first + 2)),
    ];
    assert_eq!(events(&mut watcher, 3).await, expected);
    assert!(cache.is_empty());
    let before = cache.snapshot_at(first).unwrap();
    assert_eq!(shown(before.get("n/a").unwrap()), object("a", first));
    hub.stop();
}

#[tokio::test]
async fn what_cannot_be_read_is_counted_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("encryption.yaml");
    let config = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: \
                  [secrets]\n  providers: [{aesgcm: {keys: [{name: k, secret: MDEyMzQ1Njc4OTAxMjM0NQ==}]}}]\n";
    std::fs::write(&path, config).unwrap();
    let encryption = Encryption::load(&path, ReloadMode::OnChange).await.unwrap();
    let (layout, reloaded) =
        (KeyLayout::new("/r/", [("secrets", GroupResource::new("", "secrets"))]), encryption.clone());
    let raw: Arc<dyn Store> = Arc::new(MemoryStore::default());
    put(&*raw, "/r/secrets/n/plain", "plain").await;
    let options =
        HubOptions { encryption: Some(Arc::new(Keyring::new(Arc::new(layout), encryption))), ..HubOptions::new("/r/") };
    let hub = Hub::start_with(raw.clone(), options).await.unwrap();
    let cache = hub.register("secrets", None, Arc::new(Names)).await.unwrap();
    put(&**hub.store(), "/r/secrets/n/a", "a").await;
    put(&**hub.store(), "/r/secrets/n/b", "!").await;
    hub.fresh().await.unwrap();

    let stored = raw.get("/r/secrets/n/a".into(), None).await.unwrap().item.unwrap().value;
    assert!(stored.starts_with(b"k8s:enc:aesgcm:v1:k:"));
    assert_eq!(cache.get("n/a").unwrap().broken, None);
    let why = |key: &str| *cache.get(key).unwrap().broken.clone().unwrap();
    assert_eq!(why("n/plain"), Broken::new(Problem::Untransformable, "no matching prefix found"));
    assert_eq!(why("n/b"), Broken::new(Problem::Undecodable, "no object"));
    assert_eq!(cache.snapshot().odd.broken, 2);
    assert_eq!(cache.stats().undecodable, 1);
    raw.delete("/r/secrets/n/plain".into(), Expect::Any).await.unwrap();
    put(&**hub.store(), "/r/secrets/n/b", "b").await;
    hub.fresh().await.unwrap();
    assert_eq!(cache.snapshot().odd.broken, 0);

    let other_key = config.replace("MDEyMzQ1Njc4OTAxMjM0NQ==", "NTQzMjEwOTg3NjU0MzIxMA==");
    for (config, broken) in [(other_key.as_str(), 2), (config, 0)] {
        std::fs::write(&path, config).unwrap();
        reloaded.reload().await.unwrap();
        hub.reread().await.unwrap();
        assert_eq!(cache.snapshot().odd.broken, broken);
        assert_eq!(cache.get("n/a").unwrap().broken.is_some(), broken > 0);
    }
    hub.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_go_on_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let open = || -> Arc<dyn Store> {
        Arc::new(EmbeddedStore::open(EmbeddedOptions::new(folder.path().join("store"))).unwrap())
    };
    let store = open();
    let first = put(&*store, "/r/pods/n/a", "a").await.0;
    put(&*store, "/r/pods/n/b", "b").await;
    put(&*store, "/r/nodes/c", "c").await;
    put(&*store, "/r/pods/n/a", "d").await;
    store.delete("/r/pods/n/b".into(), Expect::Any).await.unwrap();
    let last = put(&*store, "/other", "x").await.0;
    store.close().await;
    drop(store);

    let store = open();
    let options = HubOptions { past: Past::Replayed, ..HubOptions::new("/r/") };
    let hub = Hub::start_with(store.clone(), options).await.unwrap();
    assert_eq!(hub.applied(), last);
    let cache = hub.register("pods", None, Arc::new(Names)).await.unwrap();
    let mut watcher = cache.watch(Scope::All, first).unwrap();
    let mut in_namespace = cache.watch(Scope::Namespace("n".into()), first).unwrap();
    put(&*store, "/r/pods/n/e", "e").await;
    let object = |name: &str, at: i64| format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"{at}"}}}}"#);
    let expected = [
        format!("ADDED {}", object("b", first + 1)),
        format!("MODIFIED {}", object("d", first + 3)),
        format!("DELETED {}", object("b", first + 4)),
        format!("ADDED {}", object("e", last + 1)),
    ];
    assert_eq!(events(&mut watcher, 4).await, expected);
    assert_eq!(events(&mut in_namespace, 4).await, expected);
    let then = cache.snapshot_at(first + 1).unwrap();
    assert_eq!(
        then.objects.values().map(|o| shown(o)).collect::<Vec<_>>(),
        [object("a", first), object("b", first + 1)]
    );

    // What changed before anybody cached it has no past: its watches begin with the load.
    put(&*store, "/r/nodes/c", "f").await;
    hub.fresh().await.unwrap();
    let nodes = hub.register("nodes", None, Arc::new(Names)).await.unwrap();
    assert!(nodes.watch(Scope::All, first + 2).is_err());
    hub.stop();
    store.close().await;
}

#[tokio::test]
async fn a_gap_that_the_store_cannot_replay_is_filled_by_a_list() {
    let store = Arc::new(MemoryStore::default());
    let hub = Hub::start(store.clone(), "/r/").await.unwrap();
    let cache = hub.register("pods", None, Arc::new(Names)).await.unwrap();
    // Nobody feeds the caches meanwhile.
    hub.stop();
    put(&*store, "/r/pods/n/a", "a").await;
    let last = put(&*store, "/r/pods/n/b", "b").await;
    store.compact(last).await.unwrap();
    let (_, mut watcher) = cache.list_and_watch(Scope::All);
    let feed = tokio::spawn(super::feed::feed(Arc::downgrade(&hub), Revision(hub.applied())));
    assert!(hub.wait_for(last.0).await);
    assert_eq!(cache.len(), 2);
    assert_eq!(watcher.next(&mut Vec::new()).await, Err(TooOld));
    feed.abort();
}

/// What was read of the past at the start ends before the gap: who is cached only later must not take it for all there was.
#[tokio::test]
async fn a_past_with_a_gap_is_none() {
    let store = Arc::new(MemoryStore::default());
    let first = put(&*store, "/r/pods/n/a", "a").await;
    let options = HubOptions { past: Past::Replayed, ..HubOptions::new("/r/") };
    let hub = Hub::start_with(store.clone(), options).await.unwrap();
    hub.stop();
    put(&*store, "/r/pods/n/b", "b").await;
    let last = put(&*store, "/r/pods/n/a", "c").await;
    store.compact(last).await.unwrap();
    let feed = tokio::spawn(super::feed::feed(Arc::downgrade(&hub), Revision(hub.applied())));
    assert!(hub.wait_for(last.0).await);
    let cache = hub.register("pods", None, Arc::new(Names)).await.unwrap();
    assert_eq!(cache.len(), 2);
    assert!(cache.watch(Scope::All, first.0).is_err());
    assert!(cache.snapshot_at(first.0).is_err());
    feed.abort();
}

#[tokio::test]
async fn watches_are_counted_by_how_they_begin_and_end() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let hub = Hub::start(store.clone(), "/r/").await.unwrap();
    let cache = hub.register("pods", None, Arc::new(Names)).await.unwrap();
    let first = put(&*store, "/r/pods/n/a", "a").await;
    for _ in 0..3 {
        put(&*store, "/r/pods/n/a", "a").await;
    }
    put(&*store, "/r/pods/m/b", "b").await;
    hub.fresh().await.unwrap();
    let _all = cache.watch(Scope::All, first.0).unwrap();
    assert_eq!(cache.stats().initial, 4);
    let mut slow = cache.watch(Scope::Namespace("n".into()), first.0).unwrap();
    assert_eq!(cache.stats().initial, 4 + 3);
    assert_eq!(cache.stats().terminated, 0);
    let changes = (0..super::watcher::QUEUE_EVENTS as i64).map(|i| {
        let object =
            CachedObject::new("n/a".into(), cache.stats().revision + 1 + i, EventKind::Modified, Rendered::default());
        (EventKind::Modified, object)
    });
    cache.apply(changes.collect::<Vec<_>>());
    assert_eq!(slow.next(&mut Vec::new()).await, Err(TooOld));
    assert_eq!(cache.stats().terminated, 1);
    // Who ends because everything is replaced was not slow.
    let (_, mut replaced) = cache.list_and_watch(Scope::All);
    cache.load(Objects::default(), cache.stats().revision + 1);
    assert_eq!(replaced.next(&mut Vec::new()).await, Err(TooOld));
    assert_eq!(cache.stats().terminated, 1);
    hub.stop();
}

#[tokio::test]
async fn a_crowd_misses_nothing() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let hub = Hub::start(store.clone(), "/r/").await.unwrap();
    let cache = hub.register("pods", None, Arc::new(Names)).await.unwrap();
    // Enough of each that they are not woken for each event.
    let watchers: Vec<_> = (0..800)
        .map(|i| {
            let scope = if i % 2 == 0 { Scope::All } else { Scope::Namespace("n".into()) };
            let (_, mut watcher) = cache.list_and_watch(scope);
            tokio::spawn(async move {
                let mut seen = Vec::new();
                while seen.len() < 50 {
                    watcher.next(&mut seen).await.unwrap();
                }
                seen.iter().map(|event| event.revision).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut written = Vec::new();
    for i in 0..50 {
        written.push(put(&*store, &format!("/r/pods/n/{i}"), "a").await.0);
        tokio::task::yield_now().await;
    }
    for watcher in watchers {
        assert_eq!(watcher.await.unwrap(), written);
    }
    hub.stop();
}
