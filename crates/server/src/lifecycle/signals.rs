//! The events of a server's life, each raised once and for all.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// ```text
/// awake ─(post-start hooks)─► started
/// stop asked for ─► shutdown_initiated ─(delay, pre-shutdown hooks)─► not_accepting_new_requests
///                ─(requests in flight, watches)─► drained ─► stopped
/// ```
#[derive(Debug, Clone, Default)]
pub struct Lifecycle {
    /// Work in the background begins: at once, but for a copy of a server that was ready, which sleeps until it is used.
    pub awake: CancellationToken,
    /// All post-start hooks are done. Readiness may take a little longer.
    pub started: CancellationToken,
    /// Writes of a start that go on when all hooks are done: each holds a token of it until its first try ended.
    pub first_passes: TaskTracker,
    /// /readyz has been green.
    pub has_been_ready: CancellationToken,
    /// /readyz is red from here on, so that load balancers turn away.
    pub shutdown_initiated: CancellationToken,
    /// New requests are refused: by 429 with `--shutdown-send-retry-after`, else by a closed socket.
    pub not_accepting_new_requests: CancellationToken,
    /// No short request and no watch is under way.
    pub drained: CancellationToken,
    /// The sockets are closed.
    pub stopped: CancellationToken,
}
