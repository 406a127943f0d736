//! Bookmarks: how far a watch has come, told to those who want to know.

use super::WatchState;
use futures::FutureExt;
use kubelith_meta::Value;
use std::time::Duration;
use tokio::time::Instant;

/// A quiet watch is told this often how far it has come.
pub(super) const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// The last bookmark comes this long before the deadline, so that the client resumes from there.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);
/// Marks the bookmark after the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Plain,
    InitialEventsEnd,
}

/// Each minute, and once shortly before the end; then no more.
pub(super) fn next_bookmark(now: Instant, deadline: Instant) -> Option<Instant> {
    let regular = now + BOOKMARK_EVERY;
    let next = match deadline.checked_sub(BOOKMARK_BEFORE_END) {
        Some(last) if last < regular => last,
        _ => regular,
    };
    (next > now).then_some(next)
}

impl WatchState {
    pub(super) async fn mark(&mut self) {
        self.catch_up().await;
        // What has not been delivered is covered by no bookmark.
        if self.ended {
            return;
        }
        self.push_bookmark(Mark::Plain).await;
        self.bookmark_at = next_bookmark(Instant::now(), self.deadline);
    }

    /// Moves `revision` as far as this watch has certainly seen everything. What the cache had applied is read first:
    /// an event applied after that is not covered by the bookmark, one applied before it is waiting in the watcher.
    async fn catch_up(&mut self) {
        let applied = self.cx.endpoint.resource.hub.applied();
        while let Some(watcher) = &mut self.watcher {
            match watcher.next(&mut self.events).now_or_never() {
                Some(Ok(())) => self.push_events().await,
                Some(Err(_)) => return self.lose(),
                None => break,
            }
            if self.ended {
                return;
            }
        }
        self.revision = self.revision.max(applied);
    }

    pub(super) async fn push_bookmark(&mut self, mark: Mark) {
        let kind = &self.cx.endpoint.kind;
        let mut object =
            Value::from([("kind", Value::String(kind.kind.clone())), ("apiVersion", Value::from(kind.api_version()))]);
        kubelith_registry::set_resource_version(&mut object, self.revision);
        if mark == Mark::InitialEventsEnd {
            object.set_at(&["metadata", "annotations", INITIAL_EVENTS_END], "true".into());
        }
        self.cx.endpoint.resource.strategy.complete_blank(&mut object);
        self.cx.canonicalize(&mut object);
        self.push_value("BOOKMARK", object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookmarks_each_minute_and_before_the_end() {
        let start = Instant::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        // Now and the deadline, in seconds from the start, and when the next bookmark is due.
        let cases = [
            (0, 1800, Some(60)),
            (60, 1800, Some(120)),
            (1750, 1800, Some(1798)),
            (1798, 1800, None),
            (0, 30, Some(28)),
            (0, 2, None),
            (0, 0, None),
        ];
        for (now, deadline, want) in cases {
            assert_eq!(next_bookmark(after(now), after(deadline)), want.map(after), "{now} of {deadline}");
        }
    }
}
