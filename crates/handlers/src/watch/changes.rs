//! What a watch tells of the events of the cache: nothing, or what they are to those who see the selection alone.

use super::WatchState;
use crate::views;
use kubelith_meta::Status;
use kubelith_store::cache::{CachedObject, Event, EventKind};

/// Events that a watch keeps space for.
const KEPT_EVENTS: usize = 8;

impl WatchState {
    /// Takes over what the watcher has brought.
    pub(super) async fn push_events(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        for event in events.drain(..) {
            if !self.push_as_cached(&event) {
                Box::pin(self.push_event(&event)).await;
            }
            if self.ended {
                return;
            }
        }
        // The space serves again, unless it is large.
        if events.capacity() <= KEPT_EVENTS {
            self.events = events;
        }
    }

    /// Whether an object matched before an event, and whether it does after it.
    async fn matched(&self, event: &Event) -> Result<(bool, bool), Status> {
        let matches = async |object: &CachedObject| self.selection.matches_shown(&self.cx, object).await;
        let now = event.kind != EventKind::Deleted && matches(&event.object).await?;
        let before = match &event.prev {
            Some(prev) => matches(prev).await?,
            None => false,
        };
        Ok((before, now))
    }

    /// Takes over an event that is sent as it is in the cache, which is most of them. False if it may have to be converted or
    /// written in another form: that is a long way, whose state no watch has with it while it waits.
    fn push_as_cached(&mut self, event: &Event) -> bool {
        let is_cached = |object: &CachedObject| !object.is_foreign && object.broken.is_none();
        let before = event.prev.as_deref();
        if !self.sends_cached || !is_cached(&event.object) || !before.is_none_or(is_cached) {
            return false;
        }
        if event.revision <= self.after {
            return true;
        }
        let selection = &self.selection;
        let kind = if selection.is_everything() && selection.prefix.is_empty() {
            Some(event.kind)
        } else {
            let before = before.is_some_and(|before| selection.matches(before));
            let now = event.kind != EventKind::Deleted && selection.matches(&event.object);
            match (before, now) {
                (false, false) => None,
                (false, true) => Some(EventKind::Added),
                (true, true) => Some(EventKind::Modified),
                (true, false) if event.kind == EventKind::Deleted => Some(EventKind::Deleted),
                (true, false) => return false,
            }
        };
        self.revision = event.revision;
        if let Some(kind) = kind {
            self.pieces.push(event.object.json_frame(kind));
        }
        true
    }

    async fn push_event(&mut self, event: &Event) {
        if event.revision <= self.after {
            return;
        }
        let in_range = event.object.key.starts_with(&self.selection.prefix);
        let before = event.prev.as_deref().filter(|_| !self.selection.is_everything());
        for object in before.into_iter().chain([&*event.object]).filter(|_| in_range) {
            if !self.converted(object).await {
                self.ended = true;
                return;
            }
        }
        self.revision = event.revision;
        let everything = self.selection.is_everything() && self.selection.prefix.is_empty();
        if everything {
            return self.push(event.kind, &event.object).await;
        }
        let (before, now) = match self.matched(event).await {
            Ok(matched) => matched,
            Err(status) => return self.push_error(&status),
        };
        match (before, now) {
            (false, false) => {}
            (false, true) => self.push(EventKind::Added, &event.object).await,
            (true, true) => self.push(EventKind::Modified, &event.object).await,
            (true, false) if event.kind == EventKind::Deleted => self.push(EventKind::Deleted, &event.object).await,
            (true, false) => {
                // It left the selection: the client gets the last state it could see, at the new revision.
                let Some(prev) = &event.prev else { return };
                match views::value_of(&self.cx, prev).await {
                    Ok(mut object) => {
                        kubelith_registry::set_resource_version(&mut object, event.revision);
                        self.push_value(EventKind::Deleted.as_str(), object);
                    }
                    Err(status) => self.push_error(&status),
                }
            }
        }
    }
}
