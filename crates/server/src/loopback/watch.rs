//! A watch's answer as events.

use bytes::BytesMut;
use http_body_util::BodyExt;
use kubelith_codec::json;
use kubelith_http::Body;
use kubelith_meta::{Status, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchKind {
    Added,
    Modified,
    Deleted,
    Bookmark,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WatchEvent {
    pub kind: WatchKind,
    pub object: Value,
}

/// Events in order. Dropping it ends the watch.
pub struct WatchEvents {
    body: Body,
    /// What came and is not a whole line yet. One event is at most as large as an object may be.
    pending: BytesMut,
    /// Up to where `pending` is known to hold no line feed.
    searched: usize,
}

impl WatchEvents {
    pub(super) fn new(body: Body) -> WatchEvents {
        WatchEvents { body, pending: BytesMut::new(), searched: 0 }
    }

    /// The next event; `None` when the watch ended regularly. An error (such as 410) is its last word.
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Result<WatchEvent, Status>> {
        loop {
            if let Some(at) = memchr_newline(&self.pending[self.searched..]) {
                let line = self.pending.split_to(self.searched + at + 1);
                self.searched = 0;
                return Some(event(&line));
            }
            self.searched = self.pending.len();
            match self.body.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        self.pending.extend_from_slice(&data);
                    }
                }
                Err(why) => return Some(Err(Status::internal_error(why))),
            }
        }
    }
}

fn memchr_newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|b| *b == b'\n')
}

fn event(line: &[u8]) -> Result<WatchEvent, Status> {
    let mut value = json::parse(line).map_err(Status::internal_error)?;
    let object = value.as_object_mut().and_then(|m| m.remove("object")).unwrap_or_default();
    let kind = match value.str_at(&["type"]) {
        "ADDED" => WatchKind::Added,
        "MODIFIED" => WatchKind::Modified,
        "DELETED" => WatchKind::Deleted,
        "BOOKMARK" => WatchKind::Bookmark,
        "ERROR" => return Err(Status::from_value(&object)),
        other => return Err(Status::internal_error(format!("unknown watch event {other:?}"))),
    };
    Ok(WatchEvent { kind, object })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[tokio::test]
    async fn events_may_be_cut_anywhere() {
        let text = concat!(
            r#"{"type":"ADDED","object":{"a":1}}"#,
            "\n",
            r#"{"type":"DELETED","object":{"a":2}}"#,
            "\n",
            r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#,
            "\n"
        );
        for size in [1, 7, 1000] {
            let pieces: Vec<_> = text.as_bytes().chunks(size).map(|c| Ok(Bytes::copy_from_slice(c))).collect();
            let mut events = WatchEvents::new(Body::stream(futures::stream::iter(pieces)));
            assert_eq!(events.next().await.unwrap().unwrap().kind, WatchKind::Added);
            let deleted = events.next().await.unwrap().unwrap();
            assert_eq!((deleted.kind, deleted.object.get("a")), (WatchKind::Deleted, Some(&Value::Int(2))));
            assert_eq!(events.next().await.unwrap().unwrap_err().code, 410);
            assert!(events.next().await.is_none());
        }
    }
}
