use super::*;
use kubelith_store::cache::{self, CachedObject, EventKind, Objects, Rendered};
use tokio::sync::mpsc;

fn object(key: &str, revision: i64) -> CachedObject {
    let rendered = Rendered { json: br#"{"a":1}"#.to_vec(), ..Rendered::default() };
    CachedObject::new(key.into(), revision, EventKind::Added, rendered)
}

fn put(key: &str, revision: i64) -> cache::Change {
    cache::Change::Put(EventKind::Added, object(key, revision))
}

fn own_key(change: &Change) -> Vec<Str> {
    vec![change.key()]
}

/// A controller over `cache` that sends what it is called with, and waits for the sender's word to go on.
fn recorder(cache: &Arc<ResourceCache>) -> (Controller, mpsc::UnboundedReceiver<Str>) {
    let (seen, calls) = mpsc::unbounded_channel();
    let controller = Controller::new("test", move |key: Str| {
        let seen = seen.clone();
        async move {
            seen.send(key).unwrap();
            Ok::<_, String>(Next::Done)
        }
    });
    (controller.watches(cache, own_key), calls)
}

#[tokio::test(start_paused = true)]
async fn what_is_there_and_what_changes_is_reconciled() {
    let cache = Arc::new(ResourceCache::new(None));
    cache.apply([put("a", 1), put("b", 2)]);
    let tasks = Tasks::default();
    let (controller, mut calls) = recorder(&cache);
    let running = controller.start(&tasks);
    running.settled().await;
    assert_eq!((calls.recv().await.unwrap(), calls.recv().await.unwrap()), ("a".into(), "b".into()));
    cache.apply([cache::Change::Delete("a".into(), 3)]);
    assert_eq!(calls.recv().await.unwrap(), "a");
    running.add("by hand");
    assert_eq!(calls.recv().await.unwrap(), "by hand");
    tasks.shut_down(Duration::from_secs(1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lost_watch_loses_no_deletion() {
    let cache = Arc::new(ResourceCache::new(None));
    cache.apply([put("a", 1), put("b", 2)]);
    let tasks = Tasks::default();
    let (controller, mut calls) = recorder(&cache);
    let running = controller.start(&tasks);
    running.settled().await;
    calls.recv().await;
    calls.recv().await;
    // Replacing everything ends all watches; only a comparison tells what became of `a`.
    let left: Objects = [(Arc::from("b"), Arc::new(object("b", 2)))].into_iter().collect();
    cache.load(left, 7);
    assert_eq!(calls.recv().await.unwrap(), "a");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(calls.try_recv().is_err(), "b did not change");
}

#[tokio::test(start_paused = true)]
async fn failures_and_panics_are_tried_again() {
    let (seen, mut calls) = mpsc::unbounded_channel();
    let attempts = Arc::new(Mutex::new(0));
    let controller = Controller::new("test", move |key: Str| {
        let (seen, attempts) = (seen.clone(), attempts.clone());
        async move {
            let attempt = {
                let mut attempts = attempts.lock().unwrap();
                *attempts += 1;
                *attempts
            };
            seen.send(attempt).unwrap();
            match attempt {
                1 => Err(format!("{key} is not ready")),
                2 => panic!("oops"),
                3 => Ok(Next::After(Duration::from_secs(5))),
                _ => Ok(Next::Done),
            }
        }
    });
    let tasks = Tasks::default();
    let running = controller.key("x").start(&tasks);
    running.settled().await;
    for attempt in 1..=4 {
        assert_eq!(calls.recv().await, Some(attempt));
    }
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(calls.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn all_keys_come_again_when_asked_for() {
    let cache = Arc::new(ResourceCache::new(None));
    cache.apply([put("a", 1)]);
    let tasks = Tasks::default();
    let (controller, mut calls) = recorder(&cache);
    controller.every(Duration::from_secs(60)).start(&tasks);
    for _ in 0..3 {
        assert_eq!(calls.recv().await.unwrap(), "a");
    }
}
