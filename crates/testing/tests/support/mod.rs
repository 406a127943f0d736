//! What the test programs share.

use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Between two looks: short at first, then longer, for what is waited for needs the processor as well.
const FIRST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(50);

/// Looks again until it is so.
pub async fn until<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let (end, mut pause) = (Instant::now() + LIMIT, FIRST);
    while !is_so().await {
        assert!(Instant::now() < end, "never: {what}");
        tokio::time::sleep(pause).await;
        pause = (pause * 4 / 3).min(LONGEST);
    }
}
