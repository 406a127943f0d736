//! Helpers of this crate's tests.

use kubelith_meta::time::{Duration, TestClock, Time};
use std::future::IntoFuture;
use std::sync::Arc;

/// Runs an answer to its end.
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async move { future.await })
}

/// A clock that stands still.
pub fn clock_at(unix_seconds: i64) -> Arc<TestClock> {
    Arc::new(TestClock::new(Time::from_unix(unix_seconds)))
}

pub fn advance(clock: &TestClock, seconds: i64) {
    clock.advance(Duration::from_secs(seconds));
}
