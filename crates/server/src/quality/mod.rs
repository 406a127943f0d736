//! Service quality (`--enable-service-quality`): budgets for what users, groups, service accounts and namespaces ask
//! for, declared in ConfigMaps. A request over a budget is refused with the name of its class.
//!
//! Fairness shares what the server can do among those who ask; a budget holds for its class even when the server has
//! nothing else to do.

mod follow;
mod metrics;

use crate::fairness::{Clock, digest};
use arc_swap::ArcSwap;
pub use follow::hook;
use kubelith_auth::user::GROUP_MASTERS;
use kubelith_fairness::quality::{Accounts, Asks, Class, Refusal};
use kubelith_http::Request;
use kubelith_meta::Str;
use kubelith_observe::metrics::Registry;
use metrics::{ClassMetrics, QualityMetrics};
use std::sync::{Arc, Mutex, MutexGuard};

/// The classes in force.
pub struct Quality {
    clock: Clock,
    /// In order of their names, which is the order in which they are asked.
    classes: ArcSwap<Vec<Arc<Limited>>>,
    /// Held while a class is replaced.
    changing: Mutex<()>,
    metrics: QualityMetrics,
}

/// A class and what was used of it. What was used stays when the class changes.
struct Limited {
    class: Class,
    accounts: Arc<Mutex<Accounts>>,
    metrics: ClassMetrics,
}

/// A request that was let in, and on whose accounts. A watch counts until this is dropped.
pub struct Charged {
    clock: Clock,
    asks: Asks,
    charges: Vec<Charge>,
}

struct Charge {
    limited: Arc<Limited>,
    account: Str,
}

/// Over a class's budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub class: Str,
    pub refusal: Refusal,
}

impl Quality {
    pub fn new(registry: &Registry) -> Arc<Quality> {
        Arc::new(Quality {
            clock: Clock::start(),
            classes: ArcSwap::default(),
            changing: Mutex::default(),
            metrics: QualityMetrics::new(registry),
        })
    }

    /// Charges all classes that the request concerns, or none. Administrators are not limited: somebody must be able to
    /// change the classes.
    pub fn charge(&self, request: &Request) -> Result<Charged, Refused> {
        let info = request.info();
        let asks = match info.verb.as_str() {
            "list" => Asks::ForList,
            "watch" => Asks::ForWatch,
            _ => Asks::ForOther,
        };
        let mut charged = Charged { clock: self.clock, asks, charges: Vec::new() };
        let classes = self.classes.load();
        let Some(user) = request.user().filter(|user| !user.in_group(GROUP_MASTERS) && !classes.is_empty()) else {
            return Ok(charged);
        };
        let digest = digest(user, info);
        for limited in classes.iter() {
            let Some(account) = limited.class.account(&digest) else { continue };
            let outcome = limited.accounts().charge(self.clock.now(), &limited.class, account, asks);
            if let Err(refusal) = outcome {
                limited.metrics.refused(refusal);
                charged.refund();
                return Err(Refused { class: limited.class.name.clone(), refusal });
            }
            limited.metrics.let_in(asks);
            charged.charges.push(Charge { limited: limited.clone(), account: account.into() });
        }
        Ok(charged)
    }

    /// Puts a class in force, or in the place of the one of the same name.
    pub fn put(&self, class: Class) {
        self.metrics.valid(&class.name);
        self.change(&class.name.clone(), Some(class));
    }

    /// Takes a class out of force: its declaration is gone.
    pub fn remove(&self, name: &str) {
        self.metrics.gone(name);
        self.change(name, None);
    }

    /// Takes a class out of force: its declaration cannot be understood.
    pub fn invalid(&self, name: &str) {
        self.metrics.invalid(name);
        self.change(name, None);
    }

    fn change(&self, name: &str, class: Option<Class>) {
        let _changing = self.changing.lock().unwrap_or_else(|e| e.into_inner());
        let mut classes = self.classes.load_full().as_ref().clone();
        let place = classes.binary_search_by(|limited| limited.class.name.as_str().cmp(name));
        let accounts = place.map(|at| classes[at].accounts.clone()).unwrap_or_default();
        if let Ok(at) = place {
            classes.remove(at);
        }
        if let Some(class) = class {
            let metrics = self.metrics.of(name);
            let at = place.unwrap_or_else(|at| at);
            classes.insert(at, Arc::new(Limited { class, accounts, metrics }));
        }
        self.classes.store(Arc::new(classes));
    }
}

impl Limited {
    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Charged {
    /// No class is concerned.
    pub fn is_free(&self) -> bool {
        self.charges.is_empty()
    }

    pub fn asks(&self) -> Asks {
        self.asks
    }

    /// The bytes of a list that was answered.
    pub fn add_list_bytes(&self, bytes: u64) {
        let now = self.clock.now();
        for Charge { limited, account } in &self.charges {
            limited.accounts().charge_list(now, &limited.class, account, bytes);
            limited.metrics.list_bytes.inc_by(bytes);
        }
    }

    fn refund(&mut self) {
        let now = self.clock.now();
        for Charge { limited, account } in self.charges.drain(..) {
            limited.accounts().refund(now, &limited.class, &account, self.asks);
            if self.asks == Asks::ForWatch {
                limited.metrics.watches.dec();
            }
        }
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        if self.asks == Asks::ForWatch {
            for Charge { limited, account } in &self.charges {
                limited.accounts().end_watch(account);
                limited.metrics.watches.dec();
            }
        }
    }
}

#[cfg(test)]
mod tests;
