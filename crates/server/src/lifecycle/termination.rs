//! What the process is told from outside: to stop; and the word to the manager of services that it is ready.

use kubelith_system::Word;
use kubelith_system::process::{StopSignals, notify};
use tokio_util::sync::CancellationToken;

/// Cancels `stop` at the first signal to end; the second ends the process at once with code 1.
pub fn on_signal(stop: CancellationToken) -> std::io::Result<()> {
    let mut signals = StopSignals::listen()?;
    tokio::spawn(async move {
        signals.next().await;
        stop.cancel();
        signals.next().await;
        exit_at_once();
    });
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "whoever asks twice does not want to wait for an orderly end")]
fn exit_at_once() {
    std::process::exit(1);
}

pub fn notify_ready() {
    tell(Word::Ready);
}

pub fn notify_stopping() {
    tell(Word::Stopping);
}

fn tell(word: Word) {
    if let Err(e) = notify(word) {
        tracing::debug!(error = %e, "the manager of services was not told");
    }
}
