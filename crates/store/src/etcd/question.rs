//! A question that many ask at about the same time is asked once. A consistent read has to know how far etcd is; what it
//! is told must have been found out after the read began. So whoever comes while a question is under way waits for the next
//! one, together with all others who come meanwhile.
//!
//! Clients that ask each after its last answer would fall into halves, of which one waits while the other is answered. So
//! before it asks, a question waits for as many as shared it the last time, if waiting brought them lately.

use crate::error::{Result, StoreError};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// A question that takes longer has met trouble: those who come later do not wait for its end.
const SLOW: Duration = Duration::from_millis(500);

/// For how long a question waits for those who are expected. The runtime's timer may make two of it.
const GATHERING: Duration = Duration::from_millis(1);
/// Those who asked longer ago than this are not expected.
const RECENT: Duration = Duration::from_millis(5);
/// How many questions at most do not wait after one that waited in vain.
const MOST_UNGATHERED: u32 = 256;

#[derive(Debug)]
pub struct Question<T> {
    state: Mutex<QuestionState<T>>,
    /// All who are expected wait for the next answer.
    gathered: Notify,
}

#[derive(Debug)]
struct QuestionState<T> {
    crowd: Crowd,
    /// Those whom the next answer is for.
    waiting: Vec<oneshot::Sender<Result<T>>>,
    /// Since when the newest question is under way.
    asked: Option<Instant>,
    /// Who asks. One who was slow has a successor.
    turn: u64,
}

impl<T> Default for Question<T> {
    fn default() -> Question<T> {
        let state = QuestionState { crowd: Crowd::default(), waiting: Vec::new(), asked: None, turn: 0 };
        Question { state: Mutex::new(state), gathered: Notify::new() }
    }
}

/// How many may be expected to share the next question.
#[derive(Debug, Default)]
struct Crowd {
    /// Who was answered last, and who came meanwhile.
    size: usize,
    answered: Option<Instant>,
    /// How many who wait are enough for the question that is about to be asked; none if it does not wait for more.
    enough: Option<usize>,
    /// Questions that will not wait, and how many did not after the last one that waited in vain.
    ungathered: u32,
    penalty: u32,
}

impl Crowd {
    /// Whether to wait for more than the `waiting`.
    fn expect(&mut self, waiting: usize) -> bool {
        let is_recent = self.answered.is_some_and(|answered| answered.elapsed() < RECENT);
        if !is_recent || waiting >= self.size {
            return false;
        }
        if self.ungathered > 0 {
            self.ungathered -= 1;
            return false;
        }
        self.enough = Some(self.size);
        true
    }

    /// Waiting is over: all came, or not.
    fn gathered(&mut self, all: bool) {
        self.enough = None;
        self.penalty = if all { 0 } else { (self.penalty * 2).clamp(1, MOST_UNGATHERED) };
        self.ungathered = self.penalty;
    }

    fn answered(&mut self, size: usize) {
        (self.size, self.answered) = (size, Some(Instant::now()));
    }
}

impl<T: Clone + Send + 'static> Question<T> {
    fn lock(&self) -> MutexGuard<'_, QuestionState<T>> {
        self.state.lock().expect("no panic under this lock")
    }

    /// An answer that was asked for after this call. Dropping it leaves the question to those who wait with it.
    pub async fn ask<F>(self: &Arc<Self>, question: impl Fn() -> F + Send + Sync + 'static) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let (answer, told) = oneshot::channel();
        let turn = {
            let mut state = self.lock();
            state.waiting.push(answer);
            if state.crowd.enough.is_some_and(|enough| state.waiting.len() >= enough) {
                self.gathered.notify_one();
            }
            let is_free = state.asked.is_none_or(|asked| asked.elapsed() >= SLOW);
            is_free.then(|| {
                state.asked = Some(Instant::now());
                state.turn += 1;
                state.turn
            })
        };
        if let Some(turn) = turn {
            tokio::spawn(self.clone().answer(turn, question));
        }
        told.await.unwrap_or_else(|_| Err(StoreError::Unavailable("nobody answers any more".into())))
    }

    /// Asks for all who wait, until nobody does.
    async fn answer<F: Future<Output = Result<T>>>(self: Arc<Self>, turn: u64, question: impl Fn() -> F) {
        loop {
            // Whoever is ready to go on may want to know it, too: one round of the runtime for them.
            tokio::task::yield_now().await;
            self.gather(turn).await;
            let waiting = {
                let mut state = self.lock();
                if state.turn != turn {
                    return;
                }
                state.waiting.retain(|caller| !caller.is_closed());
                state.asked = (!state.waiting.is_empty()).then(Instant::now);
                std::mem::take(&mut state.waiting)
            };
            if waiting.is_empty() {
                return;
            }
            let answer = question().await;
            {
                let mut state = self.lock();
                let size = waiting.len() + state.waiting.len();
                state.crowd.answered(size);
            }
            for caller in waiting {
                // Whoever left needs none.
                let _ = caller.send(answer.clone());
            }
        }
    }

    /// Waits for those who are expected to share the question, and not for long.
    async fn gather(&self, turn: u64) {
        {
            let mut state = self.lock();
            let waiting = state.waiting.len();
            if state.turn != turn || waiting == 0 || !state.crowd.expect(waiting) {
                return;
            }
        }
        let _ = tokio::time::timeout(GATHERING, self.gathered.notified()).await;
        let mut state = self.lock();
        let all = state.crowd.enough.is_some_and(|enough| state.waiting.len() >= enough);
        state.crowd.gathered(all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tokio::sync::Semaphore;

    /// What is asked: a figure that grows, told as it was when the question began, once the test lets it.
    #[derive(Default)]
    struct Source {
        figure: AtomicU64,
        begun: AtomicU64,
        answers: Option<Semaphore>,
        /// For how many rounds of the runtime it is asked.
        rounds: usize,
    }

    fn source() -> Arc<Source> {
        Arc::new(Source { answers: Some(Semaphore::new(0)), ..Source::default() })
    }

    fn ask(question: &Arc<Question<u64>>, source: &Arc<Source>) -> tokio::task::JoinHandle<Result<u64>> {
        let (question, source) = (question.clone(), source.clone());
        tokio::spawn(async move {
            let ask = move || {
                let source = source.clone();
                async move {
                    source.begun.fetch_add(1, Ordering::SeqCst);
                    let figure = source.figure.load(Ordering::SeqCst);
                    source.answers.as_ref().unwrap().acquire().await.unwrap().forget();
                    rounds(source.rounds).await;
                    Ok(figure)
                }
            };
            question.ask(ask).await
        })
    }

    async fn rounds(count: usize) {
        for _ in 0..count {
            tokio::task::yield_now().await;
        }
    }

    /// Until all tasks wait for something.
    async fn settle() {
        rounds(50).await;
    }

    #[tokio::test]
    async fn those_who_come_meanwhile_share_the_next_one() {
        let (question, source) = (Arc::new(Question::default()), source());
        let first = ask(&question, &source);
        settle().await;
        source.figure.store(1, Ordering::SeqCst);
        let others: Vec<_> = (0..10).map(|_| ask(&question, &source)).collect();
        settle().await;
        assert_eq!(source.begun.load(Ordering::SeqCst), 1, "one at a time");
        source.answers.as_ref().unwrap().add_permits(1);
        assert_eq!(first.await.unwrap().unwrap(), 0);
        settle().await;
        source.answers.as_ref().unwrap().add_permits(1);
        for other in others {
            assert_eq!(other.await.unwrap().unwrap(), 1, "asked after they came");
        }
        assert_eq!(source.begun.load(Ordering::SeqCst), 2);
        settle().await;
        source.figure.store(2, Ordering::SeqCst);
        source.answers.as_ref().unwrap().add_permits(1);
        assert_eq!(ask(&question, &source).await.unwrap().unwrap(), 2);
    }

    /// Clients that ask anew with each answer, each some rounds after it, as often as told; how many questions that took.
    async fn ask_in_turns(question: &Arc<Question<u64>>, source: &Arc<Source>, clients: usize, times: usize) -> u64 {
        let before = source.begun.load(Ordering::SeqCst);
        let clients = (0..clients).map(|client| {
            let (question, source) = (question.clone(), source.clone());
            async move {
                for _ in 0..times {
                    rounds(5 * client).await;
                    ask(&question, &source).await.unwrap().unwrap();
                }
            }
        });
        futures::future::join_all(clients).await;
        source.begun.load(Ordering::SeqCst) - before
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_shared_the_last_one_are_waited_for() {
        let question = Arc::new(Question::default());
        let source = Arc::new(Source { answers: Some(Semaphore::new(1000)), rounds: 30, ..Source::default() });
        let asked = ask_in_turns(&question, &source, 10, 50).await;
        assert!((50..=60).contains(&asked), "{asked} questions of 10 clients that ask 50 times each");
        let alone = ask_in_turns(&question, &source, 1, 100).await;
        assert_eq!(alone, 100);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_in_vain_is_given_up() {
        let (question, source) = (Arc::new(Question::default()), source());
        source.answers.as_ref().unwrap().add_permits(10_000);
        let mut waited = 0;
        for _ in 0..400 {
            // A crowd that is answered, and one of it who asks again.
            question.lock().crowd.answered(10);
            let began = Instant::now();
            ask(&question, &source).await.unwrap().unwrap();
            waited += usize::from(began.elapsed() >= GATHERING);
        }
        assert!((1..=9).contains(&waited), "{waited}");
    }

    #[tokio::test]
    async fn a_slow_one_holds_nobody_up() {
        let (question, source) = (Arc::new(Question::default()), source());
        let first = ask(&question, &source);
        settle().await;
        question.lock().asked = Some(Instant::now() - SLOW);
        let (second, third) = (ask(&question, &source), ask(&question, &source));
        settle().await;
        assert_eq!(source.begun.load(Ordering::SeqCst), 2);
        source.answers.as_ref().unwrap().add_permits(3);
        for asked in [first, second, third] {
            asked.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn who_leaves_does_not_take_the_answer_along() {
        let (question, source) = (Arc::new(Question::default()), source());
        let (first, second) = (ask(&question, &source), ask(&question, &source));
        settle().await;
        first.abort();
        source.answers.as_ref().unwrap().add_permits(2);
        assert!(second.await.unwrap().is_ok());
        settle().await;
        assert!(question.lock().asked.is_none() && question.lock().waiting.is_empty());
        assert!(ask(&question, &source).now_or_never().is_none());
    }
}
