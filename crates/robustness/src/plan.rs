//! What is run.

use crate::faults::FaultKind;
pub use kubelith_conformance::harness::Store;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    pub program: PathBuf,
    pub store: Store,
    /// More than one only on etcd.
    pub servers: usize,
    pub writers: usize,
    /// Watchers that begin anywhere, for each resource; there is one more for each that follows everything.
    pub roamers: usize,
    pub duration: Duration,
    /// Ends the run before its time when so many kills were done.
    pub kills: Option<usize>,
    /// Between two faults, at least and at most.
    pub quiet: (Duration, Duration),
    /// From the beginning of a fault to that of the next, in place of that.
    pub every: Option<Duration>,
    pub faults: Vec<FaultKind>,
    /// More of the servers'.
    pub flags: Vec<String>,
}

impl Plan {
    /// Whether nobody but who speaks to a server that is down may notice anything.
    pub fn is_isolated(&self) -> bool {
        self.faults.iter().all(|fault| fault.is_of_one_server())
    }

    /// Whether servers have little memory, and clients no privileges: those of an administrator are never refused for it.
    pub fn is_short_of_memory(&self) -> bool {
        self.faults.contains(&FaultKind::MemoryPressure)
    }

    pub fn new(program: PathBuf, store: Store, seed: u64) -> Plan {
        Plan {
            seed,
            program,
            store,
            servers: if store == Store::Etcd { 2 } else { 1 },
            writers: 6,
            roamers: 2,
            duration: Duration::from_secs(20),
            kills: None,
            quiet: (Duration::from_millis(100), Duration::from_millis(1200)),
            every: None,
            faults: FaultKind::of(store),
            flags: Vec::new(),
        }
    }
}
