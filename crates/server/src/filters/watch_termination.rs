//! Watches end by themselves when the server leaves, a few at a time, so that clients reconnect elsewhere
//! without a storm (`--shutdown-watch-termination-grace-period`).

use super::Layer;
use super::wait_group::shutting_down;
use crate::lifecycle::wait_group::{Member, WaitGroup};
use kubelith_http::Reply;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Watches that end per second, at least: the reference's floor.
const MIN_RATE: f64 = 200.0;

/// All open watches.
#[derive(Clone, Default)]
pub struct Watches {
    group: WaitGroup,
    /// One token per watch; those of watches that are gone are swept out now and then.
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    tokens: VecDeque<(CancellationToken, std::sync::Weak<Member>)>,
    sweep_at: usize,
}

impl Watches {
    pub fn len(&self) -> usize {
        self.group.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `None` once the watches are being ended.
    fn enter(&self) -> Option<(CancellationToken, Arc<Member>)> {
        let member = Arc::new(self.group.join()?);
        let token = CancellationToken::new();
        let mut open = self.open.lock().unwrap_or_else(|e| e.into_inner());
        if open.tokens.len() >= open.sweep_at {
            open.tokens.retain(|(_, member)| member.strong_count() > 0);
            open.sweep_at = (open.tokens.len() * 2).max(64);
        }
        open.tokens.push_back((token.clone(), Arc::downgrade(&member)));
        Some((token, member))
    }

    /// Ends all watches within `grace`, evenly spread; at once if it is zero. Returns when they are gone.
    pub async fn end(&self, grace: Duration) {
        self.group.close();
        let tokens = std::mem::take(&mut self.open.lock().unwrap_or_else(|e| e.into_inner()).tokens);
        let open = self.group.len();
        let rate = if grace.is_zero() { f64::INFINITY } else { (open as f64 / grace.as_secs_f64()).max(MIN_RATE) };
        let pause = Duration::from_secs_f64(1.0 / rate);
        let deadline = tokio::time::Instant::now() + grace;
        for (token, member) in tokens {
            if member.strong_count() == 0 {
                continue;
            }
            token.cancel();
            if !pause.is_zero() && tokio::time::Instant::now() + pause < deadline {
                tokio::time::sleep(pause).await;
            }
        }
        let _ =
            tokio::time::timeout_at(deadline.max(tokio::time::Instant::now() + LAST_WRITES), self.group.wait()).await;
    }
}

/// For the last chunks of ended watches to be handed to the connections.
const LAST_WRITES: Duration = Duration::from_millis(500);

pub fn layer(watches: Watches) -> Layer {
    Layer::from_fn("watch-termination", move |request, next| {
        if request.info().verb != "watch" {
            return next.handle(request);
        }
        let Some((token, member)) = watches.enter() else {
            return Reply::Ready(shutting_down());
        };
        next.handle(request).map(|response| response.map(|body| body.until_cancelled(token).with_guard(member)))
    })
}
