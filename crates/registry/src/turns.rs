//! Turns among updates of one object.
//!
//! An update that was overtaken starts again. With a hundred clients at one object each write would make all the others start again: the work grows with
//! the square of their number. So whoever has been overtaken once waits for its turn, and then finds nobody else that was.
//!
//! A turn is a courtesy, not a lock: what is written is still compared with what was read. An update may wait for a webhook that
//! itself updates the object, so nobody waits for a turn longer than [`PATIENCE`].

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};

const PATIENCE: Duration = Duration::from_secs(1);

/// Objects share these by their hash.
const LANES: usize = 16;

/// Most resources are never updated by two at a time, and a server has many resources: lanes are made for the first who waits.
#[derive(Debug, Default)]
pub struct Turns(OnceLock<Box<Lanes>>);

#[derive(Debug, Default)]
struct Lanes {
    lanes: [Mutex<()>; LANES],
    hash: RandomState,
}

/// Ends with the update that has it.
pub struct Turn<'a> {
    _lane: Option<MutexGuard<'a, ()>>,
}

impl Turns {
    /// Waits until others that were overtaken at this key are done, or for as long as one has patience.
    pub async fn take(&self, key: &str) -> Turn<'_> {
        let Lanes { lanes, hash } = &**self.0.get_or_init(Box::default);
        let lane = &lanes[hash.hash_one(key) as usize % LANES];
        Turn { _lane: tokio::time::timeout(PATIENCE, lane.lock()).await.ok() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_and_none_for_ever() {
        let turns = Turns::default();
        let first = turns.take("a").await;
        let mut second = Box::pin(turns.take("a"));
        assert!(futures::poll!(&mut second).is_pending());
        drop(first);
        let second = second.await;
        assert!(second._lane.is_some());
        assert!(turns.take("a").await._lane.is_none(), "patience ends");
    }
}
