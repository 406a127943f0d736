//! Who has asked on a connection lately, as far as it matters for when more is read from it.
//!
//! Who asks is known only when a request was read, decrypted, parsed and authenticated: most of the work on a small one. Where
//! hundreds of connections have something to read, all of that would be done before any of their requests waits for its turn.
//! So a connection on which only one level with limits asks is read in a turn of that level, and the request that is found
//! there goes on in the same turn.
//!
//! Where anybody else asked lately, as on the connection of a front proxy, it is read at once: nobody waits for turns of others.

use crate::turns::Turns;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::time::Instant;

/// For so long others count than who asked last. Kubelets and leaders renew their leases at least as often.
const LATELY: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct Askers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: Option<Asker>,
    /// Somebody else than the last one counts until then.
    mixed_until: Option<Instant>,
    /// What comes next was read in a turn.
    in_turn: bool,
}

/// All who have the same turns are one to those who wait.
#[derive(Debug, Clone)]
pub enum Asker {
    Unlimited,
    /// Of a level that has limits.
    Limited(Arc<Turns>),
}

impl PartialEq for Asker {
    fn eq(&self, other: &Asker) -> bool {
        match (self, other) {
            (Asker::Unlimited, Asker::Unlimited) => true,
            (Asker::Limited(one), Asker::Limited(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Askers {
    /// Notes who asks. True for the first request that was read in a turn of its own level: it need not wait for another one.
    pub fn ask(&self, asker: Asker) -> bool {
        let mut state = self.lock();
        if state.last.as_ref() == Some(&asker) {
            return std::mem::take(&mut state.in_turn);
        }
        if state.last.replace(asker).is_some() {
            state.mixed_until = Some(Instant::now() + LATELY);
        }
        state.in_turn = false;
        false
    }

    /// Whose turn it must be before more is read.
    pub fn turns(&self) -> Option<Arc<Turns>> {
        let mut state = self.lock();
        let Some(Asker::Limited(turns)) = &state.last else { return None };
        let turns = turns.clone();
        if state.mixed_until.is_some_and(|end| end > Instant::now()) {
            return None;
        }
        state.mixed_until = None;
        Some(turns)
    }

    /// It is their turn.
    pub fn reads_in_turn(&self) {
        self.lock().in_turn = true;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn who_asks_alone_and_has_limits_is_read_in_turn() {
        let (low, leaders) = (Arc::<Turns>::default(), Arc::<Turns>::default());
        let asks = |askers: &Askers, who: &Arc<Turns>| askers.ask(Asker::Limited(who.clone()));
        let reads_in = |askers: &Askers, who: &Arc<Turns>| askers.turns().is_some_and(|turns| Arc::ptr_eq(&turns, who));
        let askers = Askers::default();
        assert!(askers.turns().is_none(), "nobody has asked");
        asks(&askers, &low);
        assert!(reads_in(&askers, &low));
        for other in [Asker::Limited(leaders), Asker::Unlimited] {
            askers.ask(other);
            asks(&askers, &low);
            advance(LATELY / 2).await;
            asks(&askers, &low);
            assert!(askers.turns().is_none(), "somebody else asked lately");
            advance(LATELY / 2).await;
            assert!(reads_in(&askers, &low));
        }
        askers.ask(Asker::Unlimited);
        advance(LATELY).await;
        assert!(askers.turns().is_none());
    }

    #[tokio::test]
    async fn one_request_goes_on_in_the_turn_in_which_it_was_read() {
        let askers = Askers::default();
        let low = Asker::Limited(Arc::default());
        assert!(!askers.ask(low.clone()));
        askers.reads_in_turn();
        assert_eq!([low.clone(), low].map(|low| askers.ask(low)), [true, false]);
        askers.reads_in_turn();
        assert!(!askers.ask(Asker::Limited(Arc::default())), "it was not its own level's turn");
    }
}
