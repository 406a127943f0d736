//! What the process is told from outside: signals to stop, and the word to systemd that it is ready.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Cancels `stop` at the first SIGTERM or SIGINT; the second ends the process at once with code 1.
pub fn on_signal(stop: CancellationToken) -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        for first in [true, false] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if first {
                stop.cancel();
            } else {
                exit_at_once();
            }
        }
    });
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "whoever asks twice does not want to wait for an orderly end")]
fn exit_at_once() {
    std::process::exit(1);
}

/// Tells systemd, if it started us and wants to know.
pub fn notify_ready() {
    notify(&[sd_notify::NotifyState::Ready]);
}

pub fn notify_stopping() {
    notify(&[sd_notify::NotifyState::Stopping]);
}

fn notify(states: &[sd_notify::NotifyState<'_>]) {
    if let Err(e) = sd_notify::notify(states) {
        tracing::debug!(error = %e, "systemd was not told");
    }
}
