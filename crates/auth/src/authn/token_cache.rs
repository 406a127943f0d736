//! Remembers for a short while who a token belongs to.
//!
//! Tokens are kept as keyed tags only, which tell nothing of the token to who reads the memory without its key. Every request with a
//! token makes one, so it is AES-CMAC, which takes a quarter of the time that HMAC-SHA-256 takes for a service account's token on a
//! processor without instructions for SHA. Whoever does not have the key needs some 2^128 tries to find a token with the tag of another.
//! Lookups of the same token that arrive together share one.

use crate::error::AuthError;
use crate::expiring::ExpiringMap;
use crate::stats::{CACHE_BOUNDS, TokenStats};
use crate::traits::{Answer, AuthResponse, Authentication, TokenAuthenticator};
use aws_lc_rs::cmac;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use kubelith_meta::Str;
use kubelith_meta::time::Clock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Stripes of the cache, each with its own lock, so that requests seldom meet.
const STRIPES: usize = 32;
/// Entries per stripe; the oldest goes first. 16,384 tokens in all, a few MB at most.
const MAX_PER_STRIPE: usize = 512;

#[derive(Debug, Clone, Copy)]
pub struct CachePolicy {
    /// Zero: not kept.
    pub success: Duration,
    /// Zero: not kept.
    pub failure: Duration,
    pub errors: CacheErrors,
}

/// Whether an error counts as a failure to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheErrors {
    Keep,
    Retry,
}

type Key = [u8; 16];
type Lookup = Shared<BoxFuture<'static, Record>>;

#[derive(Clone)]
enum Record {
    Known(Arc<AuthResponse>),
    Unknown,
    Failed(AuthError),
}

impl Record {
    fn of(result: Authentication) -> Record {
        match result {
            Ok(Some(response)) => Record::Known(Arc::new(response)),
            Ok(None) => Record::Unknown,
            Err(e) => Record::Failed(e),
        }
    }

    fn into_result(self) -> Authentication {
        match self {
            Record::Known(response) => Ok(Some((*response).clone())),
            Record::Unknown => Ok(None),
            Record::Failed(e) => Err(e),
        }
    }
}

pub struct TokenCache {
    shared: Arc<Inner>,
}

struct Inner {
    tokens: Arc<dyn TokenAuthenticator>,
    policy: CachePolicy,
    clock: Arc<dyn Clock>,
    key: cmac::Key,
    stats: Arc<TokenStats>,
    /// A stripe's lock is held for a lookup or an insertion, never while a token is looked up.
    stripes: Vec<Mutex<Stripe>>,
}

struct Stripe {
    records: ExpiringMap<Key, Record>,
    /// Lookups under way. A lookup whose callers all left is dropped with them.
    running: HashMap<Key, WeakShared<BoxFuture<'static, Record>>>,
}

impl TokenCache {
    pub fn new(tokens: Arc<dyn TokenAuthenticator>, policy: CachePolicy, clock: Arc<dyn Clock>) -> TokenCache {
        TokenCache::counted_in(Arc::default(), tokens, policy, clock)
    }

    /// A cache that counts in `stats`.
    pub fn counted_in(
        stats: Arc<TokenStats>,
        tokens: Arc<dyn TokenAuthenticator>,
        policy: CachePolicy,
        clock: Arc<dyn Clock>,
    ) -> TokenCache {
        let stripes = std::iter::repeat_with(Mutex::default).take(STRIPES).collect();
        let key = cmac::Key::generate(cmac::AES_128).expect("the system has randomness");
        TokenCache { shared: Arc::new(Inner { tokens, policy, clock, key, stats, stripes }) }
    }
}

impl TokenAuthenticator for TokenCache {
    fn authenticate_token<'a>(&'a self, token: &'a str, audiences: &'a [Str]) -> Answer<'a, Authentication> {
        let (start, stats) = (Instant::now(), &self.shared.stats);
        let key = self.shared.key_of(token, audiences);
        if let Some(record) = self.shared.find(&key) {
            stats.cache_hits.add();
            stats.hit_seconds.add(&CACHE_BOUNDS, start.elapsed().as_secs_f64());
            return Answer::Ready(record.into_result());
        }
        Answer::pending(async move {
            stats.cache_misses.add();
            let lookup = self.shared.join(key, token, audiences);
            // Most lookups need nobody else and are done at the first step.
            let record = match lookup.clone().now_or_never() {
                Some(record) => record,
                None => {
                    let _waiting = stats.waiting_for_lookups.held();
                    lookup.await
                }
            };
            stats.miss_seconds.add(&CACHE_BOUNDS, start.elapsed().as_secs_f64());
            record.into_result()
        })
    }
}

impl Inner {
    fn key_of(&self, token: &str, audiences: &[Str]) -> Key {
        const WORKS: &str = "AES-CMAC takes any text";
        let mut context = cmac::Context::with_key(&self.key);
        let mut write = |s: &str| {
            context.update(&(s.len() as u64).to_be_bytes()).expect(WORKS);
            context.update(s.as_bytes()).expect(WORKS);
        };
        write(token);
        audiences.iter().for_each(|a| write(a));
        context.sign().expect(WORKS).as_ref().try_into().expect("AES-CMAC has 16 bytes")
    }

    fn stripe(&self, key: &Key) -> std::sync::MutexGuard<'_, Stripe> {
        self.stripes[key[0] as usize % STRIPES].lock().expect("no panic while held")
    }

    fn find(&self, key: &Key) -> Option<Record> {
        self.stripe(key).records.get(key, self.clock.now()).cloned()
    }

    /// The lookup of this token: one under way, or a new one.
    fn join(self: &Arc<Self>, key: Key, token: &str, audiences: &[Str]) -> Lookup {
        let mut stripe = self.stripe(&key);
        if let Some(lookup) = stripe.running.get(&key).and_then(WeakShared::upgrade) {
            return lookup;
        }
        stripe.running.retain(|_, lookup| lookup.upgrade().is_some());
        let (this, token, audiences) = (self.clone(), token.to_string(), audiences.to_vec());
        let lookup: Lookup = async move {
            let under_way = this.stats.lookups_under_way.held();
            let record = Record::of(this.tokens.authenticate_token(&token, &audiences).await);
            match record {
                Record::Failed(_) => this.stats.failed_lookups.add(),
                Record::Known(_) | Record::Unknown => this.stats.lookups.add(),
            }
            drop(under_way);
            this.keep(key, &record);
            record
        }
        .boxed()
        .shared();
        if let Some(weak) = lookup.downgrade() {
            stripe.running.insert(key, weak);
        }
        lookup
    }

    fn keep(&self, key: Key, record: &Record) {
        let ttl = match record {
            Record::Known(_) => self.policy.success,
            Record::Failed(_) if self.policy.errors == CacheErrors::Retry => Duration::ZERO,
            Record::Failed(_) | Record::Unknown => self.policy.failure,
        };
        let mut stripe = self.stripe(&key);
        stripe.running.remove(&key);
        if !ttl.is_zero() {
            stripe.records.insert(key, record.clone(), self.clock.now(), ttl);
        }
    }
}

impl Default for Stripe {
    fn default() -> Stripe {
        Stripe { records: ExpiringMap::new(MAX_PER_STRIPE), running: HashMap::new() }
    }
}

#[cfg(test)]
#[path = "token_cache_tests.rs"]
mod tests;
