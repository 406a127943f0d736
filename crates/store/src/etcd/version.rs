//! Whether an etcd can be trusted with progress requests: before 3.4.31 and 3.5.13 its answers can be ahead
//! of the events it has sent.

use super::client::Client;
use super::watch::until_closed;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::sync::watch;

const RETRY_FIRST: Duration = Duration::from_millis(10);
const RETRY_MAX: Duration = Duration::from_secs(15);

const UNKNOWN: u8 = 0;
const TRUSTED: u8 = 1;
const UNTRUSTED: u8 = 2;

/// Unknown counts as no.
#[derive(Debug, Default)]
pub(super) struct ProgressTrust(AtomicU8);

impl ProgressTrust {
    pub fn always() -> ProgressTrust {
        ProgressTrust(AtomicU8::new(TRUSTED))
    }

    pub fn holds(&self) -> bool {
        self.0.load(Ordering::Relaxed) == TRUSTED
    }

    #[cfg(test)]
    pub fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed) != UNKNOWN
    }

    /// One member that cannot be trusted is enough, whatever the others say before or after.
    fn learn(&self, supported: bool) {
        if supported {
            let _ = self.0.compare_exchange(UNKNOWN, TRUSTED, Ordering::Relaxed, Ordering::Relaxed);
        } else {
            self.0.store(UNTRUSTED, Ordering::Relaxed);
        }
    }
}

/// Asks every endpoint for its version until each has answered.
pub(super) async fn detect(client: Arc<Client>, trust: Arc<ProgressTrust>, mut closed: watch::Receiver<bool>) {
    let mut waiting: Vec<usize> = (0..client.endpoints().len()).collect();
    let mut pause = RETRY_FIRST;
    while !waiting.is_empty() {
        let mut failed = Vec::new();
        for index in waiting {
            let endpoint = &client.endpoints()[index];
            match client.status(endpoint).await {
                Ok(status) => {
                    let supported = supports_progress_requests(&status.version);
                    if !supported {
                        tracing::info!(endpoint = endpoint.url, version = status.version, "no progress requests");
                    }
                    trust.learn(supported);
                }
                Err(_) => failed.push(index),
            }
        }
        waiting = failed;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = until_closed(&mut closed) => return,
        }
        pause = (pause * 2).min(RETRY_MAX);
    }
}

pub(super) fn supports_progress_requests(version: &str) -> bool {
    // A pre-release is older than its release.
    let (numbers, is_release) = match version.split_once(['-', '+']) {
        Some((numbers, _)) => (numbers, !version.contains('-')),
        None => (version, true),
    };
    let mut parts = numbers.trim_start_matches('v').split('.').map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let version = (major, minor, patch, is_release);
    let before = |patch| version < (3, patch, if patch == 4 { 31 } else { 13 }, true);
    !(before(4) || (version >= (3, 5, 0, true) && before(5)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let cases = [
            ("3.4.23", false),
            ("3.4.30", false),
            ("3.4.31", true),
            ("3.4.40", true),
            ("3.5.0", false),
            ("3.5.1", false),
            ("3.5.12", false),
            ("3.5.13-rc.0", false),
            ("3.5.13", true),
            ("3.5.13+build", true),
            ("3.6.0-rc.1", true),
            ("3.6.4", true),
            ("4.0.0", true),
            ("2.3.8", false),
            ("", false),
            ("unknown", false),
            ("3.5", false),
        ];
        for (version, supported) in cases {
            assert_eq!(supports_progress_requests(version), supported, "{version}");
        }
    }

    #[test]
    fn one_old_member_is_enough_to_distrust() {
        for order in [[true, false], [false, true]] {
            let trust = ProgressTrust::default();
            assert!(!trust.holds());
            order.into_iter().for_each(|supported| trust.learn(supported));
            assert!(!trust.holds(), "{order:?}");
        }
        let trust = ProgressTrust::default();
        trust.learn(true);
        assert!(trust.holds());
    }
}
