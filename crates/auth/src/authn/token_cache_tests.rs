use super::*;
use crate::testing::{advance, block_on, clock_at};
use crate::user::User;
use kubelith_meta::time::TestClock;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Knows `good` (and says which audiences it was asked for), fails on `broken`, waits on `slow`.
#[derive(Default)]
struct Counting {
    asked: AtomicUsize,
    go: Notify,
}

impl TokenAuthenticator for Counting {
    fn authenticate_token<'a>(&'a self, token: &'a str, audiences: &'a [Str]) -> Answer<'a, Authentication> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let audiences = audiences.to_vec();
        let known = move || Ok(Some(AuthResponse { audiences, ..AuthResponse::user(User::named("u")) }));
        match token {
            "good" => Answer::Ready(known()),
            "broken" => Answer::Ready(Err("broken".into())),
            "slow" => Answer::pending(async move {
                self.go.notified().await;
                known()
            }),
            _ => Answer::Ready(Ok(None)),
        }
    }
}

fn cache(success: u64, failure: u64, errors: CacheErrors) -> (TokenCache, Arc<Counting>, Arc<TestClock>) {
    let tokens = Arc::new(Counting::default());
    let clock = clock_at(1000);
    let policy = CachePolicy { success: Duration::from_secs(success), failure: Duration::from_secs(failure), errors };
    (TokenCache::new(tokens.clone(), policy, clock.clone()), tokens, clock)
}

#[test]
fn keeps_what_the_policy_says_for_as_long() {
    // token, success TTL, failure TTL, errors, seconds between two requests, lookups made.
    let cases = [
        ("good", 10, 0, CacheErrors::Keep, 9, 1),
        ("good", 10, 0, CacheErrors::Keep, 10, 2),
        ("good", 0, 10, CacheErrors::Keep, 0, 2),
        ("bad", 10, 0, CacheErrors::Keep, 0, 2),
        ("bad", 0, 10, CacheErrors::Keep, 9, 1),
        ("broken", 0, 10, CacheErrors::Keep, 9, 1),
        ("broken", 10, 10, CacheErrors::Retry, 0, 2),
    ];
    for (token, success, failure, errors, wait, lookups) in cases {
        let (cache, tokens, clock) = cache(success, failure, errors);
        let first = block_on(cache.authenticate_token(token, &[]));
        advance(&clock, wait);
        let second = block_on(cache.authenticate_token(token, &[]));
        assert_eq!(first, second);
        assert_eq!(tokens.asked.load(Ordering::SeqCst), lookups, "{token} {success} {failure} {wait}");
    }
}

#[test]
fn audiences_are_part_of_the_key() {
    let (cache, tokens, _) = cache(10, 0, CacheErrors::Keep);
    for audiences in [vec![], vec!["a".into()], vec!["a".into(), "b".into()], vec!["ab".into()]] {
        let response = block_on(cache.authenticate_token("good", &audiences)).unwrap().unwrap();
        assert_eq!(response.audiences, audiences);
    }
    assert_eq!(tokens.asked.load(Ordering::SeqCst), 4);
}

#[test]
fn concurrent_lookups_share_one_and_survive_a_leaver() {
    let (cache, tokens, _) = cache(10, 0, CacheErrors::Keep);
    block_on(async {
        let (first, second) = (cache.authenticate_token("slow", &[]), cache.authenticate_token("slow", &[]));
        assert!(matches!(first, Answer::Pending(_)));
        drop(first);
        tokens.go.notify_one();
        assert!(second.await.unwrap().is_some());
    });
    assert!(matches!(cache.authenticate_token("slow", &[]), Answer::Ready(Ok(Some(_)))));
    assert_eq!(tokens.asked.load(Ordering::SeqCst), 1);
}

#[test]
fn memory_is_bounded() {
    let (cache, _, _) = cache(10, 10, CacheErrors::Keep);
    for i in 0..STRIPES * MAX_PER_STRIPE * 2 {
        drop(cache.authenticate_token(&format!("bad{i}"), &[]));
    }
    for stripe in &cache.shared.stripes {
        let stripe = stripe.lock().unwrap();
        assert!(stripe.records.len() <= MAX_PER_STRIPE);
        assert!(stripe.running.is_empty());
    }
}
