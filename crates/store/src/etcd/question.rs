//! A question that many ask at about the same time is asked once. A consistent read has to know how far etcd is; what it
//! is told must have been found out after the read began. So whoever comes while a question is under way waits for the next
//! one, together with all others who come meanwhile.

use crate::error::{Result, StoreError};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// A question that takes longer has met trouble: those who come later do not wait for its end.
const SLOW: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Question<T>(Mutex<QuestionState<T>>);

#[derive(Debug)]
struct QuestionState<T> {
    /// Those whom the next answer is for.
    waiting: Vec<oneshot::Sender<Result<T>>>,
    /// Since when the newest question is under way.
    asked: Option<Instant>,
    /// Who asks. One who was slow has a successor.
    turn: u64,
}

impl<T> Default for Question<T> {
    fn default() -> Question<T> {
        Question(Mutex::new(QuestionState { waiting: Vec::new(), asked: None, turn: 0 }))
    }
}

impl<T: Clone + Send + 'static> Question<T> {
    fn lock(&self) -> MutexGuard<'_, QuestionState<T>> {
        self.0.lock().expect("no panic under this lock")
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
            for caller in waiting {
                // Whoever left needs none.
                let _ = caller.send(answer.clone());
            }
        }
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
                    Ok(figure)
                }
            };
            question.ask(ask).await
        })
    }

    /// Until all tasks wait for something.
    async fn settle() {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
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
