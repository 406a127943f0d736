//! The objects that a watch begins with. Few are taken at once; the others are held, and nothing else is sent before them.

use super::WatchState;
use super::bookmarks::Mark;
use crate::context::Context;
use crate::views;
use kubelith_meta::Status;
use kubelith_store::cache::{CachedObject, EventKind};
use std::sync::Arc;

/// Objects of the start that are read at a time: those that are packed are unpacked only when they are about to be sent.
const HELD_BATCH: usize = 256;
/// Seconds after which a watch is asked for again that had nothing to begin with.
const RETRY_AFTER: i32 = 1;

/// Nothing of a collection could be converted: a client comes back, as to a cache that is being filled.
fn not_filled(cx: &Context, why: &Status) -> Status {
    let kind = &cx.endpoint.kind;
    let message = format!("storage is (re)initializing: failed to list {kind}: {}", why.message);
    Status::too_many_requests(message, RETRY_AFTER)
}

impl WatchState {
    /// Takes the objects that the watch begins with. Once a webhook fails, those that it had not converted before are held
    /// back, and it is not asked for each of them. If there are no others, the watch is refused, as in the reference, where
    /// a cache that was never filled is asked.
    pub(super) async fn begin(&mut self, objects: Vec<Arc<CachedObject>>) -> Result<(), Status> {
        let shown = self.selection.judges_shown(&self.cx);
        let rewrites = self.cx.endpoint.resource.conversion.rewrites();
        let mut failure = None;
        let mut sent: u64 = 0;
        for object in objects {
            if !shown && !self.selection.matches(&object) {
                continue;
            }
            sent += 1;
            if !rewrites && sent > HELD_BATCH as u64 {
                self.held.push_back(object);
                continue;
            }
            if self.is_unconverted(&object) {
                if failure.is_none() {
                    failure = views::json_of(&self.cx, &object).await.err();
                }
                if failure.is_some() {
                    self.held.push_back(object);
                    continue;
                }
            }
            self.push_initial(&object).await;
        }
        self.cx.endpoint.resource.cache.count_initial(sent);
        match failure {
            Some(status) if self.held.len() as u64 == sent => Err(not_filled(&self.cx, &status)),
            Some(_) => Ok(()),
            None => {
                if self.held.is_empty() {
                    self.end_initial().await;
                }
                Ok(())
            }
        }
    }

    async fn push_initial(&mut self, object: &CachedObject) {
        match self.selection.judges_shown(&self.cx) {
            true => self.push_if_shown(object).await,
            false => self.push(EventKind::Added, object).await,
        }
    }

    /// An object that there is at the start, if it matches as it is shown.
    async fn push_if_shown(&mut self, object: &CachedObject) {
        match self.selection.matches_shown(&self.cx, object).await {
            Ok(true) => self.push(EventKind::Added, object).await,
            Ok(false) => {}
            Err(status) => self.push_error(&status),
        }
    }

    async fn end_initial(&mut self) {
        if std::mem::take(&mut self.end_due) {
            self.push_bookmark(Mark::InitialEventsEnd).await;
        }
    }

    /// Sends an object that was held back, as soon as it can be converted, and others that need not wait.
    pub(super) async fn advance_held(&mut self, object: &CachedObject) {
        if !self.converted(object).await {
            self.ended = true;
            return;
        }
        self.push_initial(object).await;
        for _ in 1..HELD_BATCH {
            if self.ended || self.held.front().is_none_or(|next| self.is_unconverted(next)) {
                break;
            }
            let Some(next) = self.held.pop_front() else { break };
            self.push_initial(&next).await;
        }
        if self.held.is_empty() && !self.ended {
            self.end_initial().await;
        }
    }
}
