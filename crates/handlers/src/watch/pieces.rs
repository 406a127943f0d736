//! The events of a watch on their way out. Those that are ready at once go as one piece, so that a client pays for a frame,
//! a TLS record and a write once; one that comes alone is sent as the bytes that all watchers share.

use bytes::{Bytes, BytesMut};
use kubelith_observe::metrics::requests::WatchCounter;
use std::collections::VecDeque;

/// Fits one frame of HTTP/2 as most clients have it, and with its head one record of TLS.
const MOST: usize = 16 * 1024 - 9;

#[derive(Default)]
pub struct Pieces {
    events: VecDeque<Bytes>,
    pub counter: WatchCounter,
}

impl Pieces {
    pub fn push(&mut self, event: Bytes) {
        self.events.push_back(event);
    }

    pub fn next_event(&mut self) -> Option<Bytes> {
        let event = self.events.pop_front()?;
        self.note([event.len()]);
        Some(event)
    }

    /// One event, or as many as fit into a piece.
    pub fn next_piece(&mut self) -> Option<Bytes> {
        let (mut count, mut size) = (0, 0);
        for event in &self.events {
            if size + event.len() > MOST {
                break;
            }
            count += 1;
            size += event.len();
        }
        if count < 2 {
            return self.next_event();
        }
        let mut piece = BytesMut::with_capacity(size);
        self.note(self.events.iter().take(count).map(Bytes::len));
        for event in self.events.drain(..count) {
            piece.extend_from_slice(&event);
        }
        Some(piece.freeze())
    }

    fn note(&self, sizes: impl IntoIterator<Item = usize>) {
        self.counter.note(sizes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_events_go_together() {
        // Sizes of events, and of the pieces they go in.
        let cases: [(&[usize], &[usize]); 6] = [
            (&[], &[]),
            (&[10], &[10]),
            (&[10, 20, 30], &[60]),
            (&[MOST, 1, 1], &[MOST, 2]),
            (&[MOST + 1, 1], &[MOST + 1, 1]),
            (&[1, MOST, MOST - 1, 1, 1], &[1, MOST, MOST, 1]),
        ];
        for (events, expected) in cases {
            let mut pieces = Pieces::default();
            let mut all = Vec::new();
            for (i, size) in events.iter().enumerate() {
                let event = vec![i as u8; *size];
                all.extend_from_slice(&event);
                pieces.push(event.into());
            }
            let sent: Vec<Bytes> = std::iter::from_fn(|| pieces.next_piece()).collect();
            assert_eq!(sent.iter().map(Bytes::len).collect::<Vec<_>>(), expected, "{events:?}");
            assert!(sent.concat() == all, "{events:?}: in order");
        }
    }

    #[test]
    fn one_that_is_alone_is_not_copied() {
        let mut pieces = Pieces::default();
        let event = Bytes::from(vec![1; 100]);
        pieces.push(event.clone());
        assert_eq!(pieces.next_piece().map(|piece| piece.as_ptr()), Some(event.as_ptr()));
    }
}
