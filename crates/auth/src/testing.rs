//! Helpers of this crate's tests.

use std::future::IntoFuture;

/// Runs an answer to its end.
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async move { future.await })
}
