//! Requests of one namespace are decided one batch after the other: all that wait are checked in the order in which they
//! came, and each quota is written once for all of them.

use super::check::{Demand, check};
use super::config::Limited;
use super::evaluator::Evaluators;
use super::quota::Quota;
use crate::loopback::Loopback;
use kubelith_meta::{Status, Str};
use kubelith_registry::objects::{Collection, parse};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a request waits for the decision.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a batch is checked anew because others changed a quota meanwhile.
const ROUNDS: usize = 16;

type Answer = Result<(), Status>;

struct Waiter {
    demand: Demand,
    answer: oneshot::Sender<Answer>,
}

/// Who is let in once these quotas are written.
type Charged = (Waiter, Vec<Str>);

pub struct Batches {
    quotas: Collection,
    server: Arc<dyn Loopback>,
    evaluators: Evaluators,
    limited: Vec<Limited>,
    /// Who waits, by namespace. A namespace is here while its batches are being decided.
    waiting: Mutex<HashMap<Str, Vec<Waiter>>>,
}

impl Batches {
    pub fn new(
        quotas: Collection,
        server: Arc<dyn Loopback>,
        evaluators: Evaluators,
        limited: Vec<Limited>,
    ) -> Arc<Batches> {
        Arc::new(Batches { quotas, server, evaluators, limited, waiting: Mutex::default() })
    }

    /// Whether anything has to be decided in the namespace.
    pub fn concern(&self, namespace: &str) -> bool {
        !self.limited.is_empty() || self.quotas.any(namespace)
    }

    pub fn decide(self: &Arc<Self>, demand: Demand) -> impl Future<Output = Answer> + Send + use<> {
        let (answer, decided) = oneshot::channel();
        let namespace = demand.call.namespace.clone();
        let waiter = Waiter { demand, answer };
        let mut waiting = self.waiting();
        match waiting.get_mut(&namespace) {
            Some(others) => others.push(waiter),
            None => {
                waiting.insert(namespace.clone(), vec![waiter]);
                // On its own, so that a client that goes away leaves nobody waiting.
                tokio::spawn(Turn { batches: self.clone(), namespace, ended: false }.run());
            }
        }
        drop(waiting);
        async move {
            match tokio::time::timeout(PATIENCE, decided).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) | Err(_) => Err(Status::internal_error("resource quota evaluation timed out")),
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<Str, Vec<Waiter>>> {
        // A list of waiters is never half written.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to decide for a namespace. What still waits when it is dropped is told so by its channel.
struct Turn {
    batches: Arc<Batches>,
    namespace: Str,
    ended: bool,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.ended {
            self.batches.waiting().remove(&self.namespace);
        }
    }
}

impl Turn {
    async fn run(mut self) {
        // Quotas as this turn wrote them: the watch cache may be a moment behind.
        let mut written = HashMap::new();
        while let Some(batch) = self.next() {
            self.settle(batch, &mut written).await;
        }
    }

    /// All that wait now; `None` ends the turn.
    fn next(&mut self) -> Option<Vec<Waiter>> {
        let mut waiting = self.batches.waiting();
        let batch = std::mem::take(waiting.get_mut(&self.namespace)?);
        if batch.is_empty() {
            // Under the lock: whoever comes next starts a turn.
            waiting.remove(&self.namespace);
            self.ended = true;
            return None;
        }
        Some(batch)
    }

    fn quotas(&self, written: &HashMap<Str, Quota>) -> Vec<Quota> {
        let cached = self.batches.quotas.list(&self.namespace).into_iter().map(Quota::of);
        let newest = cached.map(|quota| match written.get(quota.name()) {
            Some(own) if own.revision() > quota.revision() => own.clone(),
            _ => quota,
        });
        newest.collect()
    }

    /// Decides a batch, and tells everybody.
    async fn settle(&self, batch: Vec<Waiter>, written: &mut HashMap<Str, Quota>) {
        let mut pending: Vec<Waiter> = batch;
        let mut quotas = self.quotas(written);
        for round in 1.. {
            // What must be covered by some quota was looked at when all of them were there.
            let limited = if round == 1 { &self.batches.limited[..] } else { &[] };
            let (waiters, wanted) = self.check_all(pending, &mut quotas, limited);
            let failed = self.write(&quotas, &wanted, written).await;
            if failed.is_empty() {
                waiters.into_iter().for_each(|(waiter, _)| tell(waiter, Ok(())));
                return;
            }
            // A request whose quotas were all written is in. Nobody who was refused is asked about again.
            let (again, done): (Vec<_>, Vec<_>) =
                waiters.into_iter().partition(|(_, charged)| charged.iter().any(|name| failed.contains_key(name)));
            done.into_iter().for_each(|(waiter, _)| tell(waiter, Ok(())));
            pending = again.into_iter().map(|(waiter, _)| waiter).collect();
            if round == ROUNDS {
                let why = failed.into_values().next().unwrap_or_default();
                pending.into_iter().for_each(|waiter| tell(waiter, Err(why.clone())));
                return;
            }
            quotas = match self.read_again(failed.keys()).await {
                Ok(quotas) => quotas,
                Err(why) => {
                    pending.into_iter().for_each(|waiter| tell(waiter, Err(why.clone())));
                    return;
                }
            };
        }
    }

    /// Checks each in its turn, with what those before it were charged. Answers whom to let in once the quotas are
    /// written, with the names of those that they were charged to, and all such names. The others are told at once.
    fn check_all(&self, batch: Vec<Waiter>, quotas: &mut [Quota], limited: &[Limited]) -> (Vec<Charged>, HashSet<Str>) {
        let (mut waiters, mut wanted) = (Vec::new(), HashSet::new());
        for waiter in batch {
            match check(&self.batches.evaluators, limited, quotas, &waiter.demand) {
                Err(refusal) => tell(waiter, Err(refusal)),
                Ok(_) if waiter.demand.call.dry_run() => tell(waiter, Ok(())),
                Ok(charges) if charges.is_empty() => tell(waiter, Ok(())),
                Ok(charges) => {
                    let mut names = Vec::new();
                    for (place, used) in charges {
                        quotas[place].used = used;
                        names.push(Str::from(quotas[place].name()));
                    }
                    wanted.extend(names.iter().cloned());
                    waiters.push((waiter, names));
                }
            }
        }
        (waiters, wanted)
    }

    /// Writes the quotas that changed. Answers those that could not be, with the reason.
    async fn write(
        &self,
        quotas: &[Quota],
        wanted: &HashSet<Str>,
        written: &mut HashMap<Str, Quota>,
    ) -> HashMap<Str, Status> {
        let mut failed = HashMap::new();
        for quota in quotas.iter().filter(|quota| wanted.contains(quota.name())) {
            let name = Str::from(quota.name());
            match self.batches.server.update_quota_status(&quota.with_use(&quota.used)).await {
                Ok(object) => drop(written.insert(name, Quota::of(object))),
                Err(why) => drop(failed.insert(name, why)),
            }
        }
        failed
    }

    /// Quotas as the store has them now. One that was deleted limits nobody.
    async fn read_again(&self, names: impl Iterator<Item = &Str>) -> Result<Vec<Quota>, Status> {
        let mut quotas = Vec::new();
        for name in names {
            let found = self.batches.quotas.live(&self.namespace, name).await?;
            quotas.extend(found.as_deref().and_then(parse).map(Quota::of));
        }
        Ok(quotas)
    }
}

fn tell(waiter: Waiter, answer: Answer) {
    // Whoever went away needs no answer.
    let _ = waiter.answer.send(answer);
}
