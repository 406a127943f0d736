//! Acknowledgements of pings are written with what is written next.
//!
//! A gRPC server in Go measures a connection by a ping with nearly every message, and HTTP/2 acknowledges at once: beside a call and its answer that was a
//! call of the system here, and one more thread to be woken there.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How long an acknowledgement waits for something else to be written. Servers give up on clients that are silent for seconds.
const MAX_WAIT: Duration = Duration::from_millis(500);
/// A PING frame with eight bytes on stream 0, up to these; the flag says that it acknowledges one.
const HEAD: [u8; 9] = [0, 0, 8, 6, 1, 0, 0, 0, 0];
const FRAME: usize = HEAD.len() + 8;
/// More are not held back.
const MAX_HELD: usize = 8 * FRAME;

/// The way to a peer below HTTP/2.
pub(super) struct WithPongs<T> {
    io: T,
    /// Acknowledgements that were said to be written: they go before all else.
    held: Vec<u8>,
    due: Pin<Box<Sleep>>,
    /// The last write ended where a frame does.
    is_between_frames: bool,
}

impl<T: AsyncWrite + Unpin> WithPongs<T> {
    pub fn new(io: T) -> WithPongs<T> {
        let due = Box::pin(tokio::time::sleep(Duration::ZERO));
        WithPongs { io, held: Vec::new(), due, is_between_frames: true }
    }

    /// Takes what are acknowledgements only. The task is woken when they are due: it has read already, and may not come again.
    fn takes(&mut self, cx: &mut Context<'_>, buf: &[u8]) -> bool {
        let are_pongs = !buf.is_empty()
            && buf.len().is_multiple_of(FRAME)
            && buf.chunks(FRAME).all(|frame| frame.starts_with(&HEAD))
            && self.is_between_frames
            && self.held.len() + buf.len() <= MAX_HELD;
        if are_pongs {
            if self.held.is_empty() {
                self.due.as_mut().reset(Instant::now() + MAX_WAIT);
                if self.due.as_mut().poll(cx).is_ready() {
                    cx.waker().wake_by_ref();
                }
            }
            self.held.extend_from_slice(buf);
        }
        are_pongs
    }

    /// Writes what is held, and what it can of `bufs`.
    fn poll_write_behind(&mut self, cx: &mut Context<'_>, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        while !self.held.is_empty() {
            let both: Vec<IoSlice<'_>> =
                std::iter::once(IoSlice::new(&self.held)).chain(bufs.iter().map(|buf| IoSlice::new(buf))).collect();
            let written = ready!(Pin::new(&mut self.io).poll_write_vectored(cx, &both))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let of_held = written.min(self.held.len());
            self.held.drain(..of_held);
            if written > of_held {
                return Poll::Ready(Ok(written - of_held));
            }
        }
        match bufs {
            [] => Poll::Ready(Ok(0)),
            [one] => Pin::new(&mut self.io).poll_write(cx, one),
            several => Pin::new(&mut self.io).poll_write_vectored(cx, several),
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for WithPongs<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let all = bufs.iter().map(|buf| buf.len()).sum::<usize>();
        if let Some(first) = bufs.first().filter(|buf| buf.len() == all)
            && this.takes(cx, first)
        {
            return Poll::Ready(Ok(all));
        }
        let written = ready!(this.poll_write_behind(cx, bufs))?;
        this.is_between_frames = written == all;
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for WithPongs<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.held.is_empty()
            && this.due.as_mut().poll(cx).is_ready()
            && let Poll::Ready(written) = this.poll_write_behind(cx, &[])
        {
            written?;
            if let Poll::Ready(Err(error)) = Pin::new(&mut this.io).poll_flush(cx) {
                return Poll::Ready(Err(error));
            }
        }
        Pin::new(&mut this.io).poll_read(cx, buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn pong(id: u8) -> Vec<u8> {
        [&HEAD[..], &[id; 8]].concat()
    }

    fn pair(room: usize) -> (WithPongs<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(room);
        (WithPongs::new(ours), theirs)
    }

    #[tokio::test(start_paused = true)]
    async fn pongs_go_with_what_is_written_next() {
        let (mut ours, mut theirs) = pair(1024);
        ours.write_all(&pong(1)).await.unwrap();
        ours.write_all(&[pong(2), pong(3)].concat()).await.unwrap();
        ours.flush().await.unwrap();
        let mut seen = [0; 1024];
        assert!(futures::poll!(Box::pin(theirs.read(&mut seen))).is_pending());
        ours.write_all(b"a frame").await.unwrap();
        let n = theirs.read(&mut seen).await.unwrap();
        assert_eq!(seen[..n], [&pong(1)[..], &pong(2), &pong(3), b"a frame"].concat());
        // A ping is none, nor is a pong that has company.
        for frames in [[&[0, 0, 8, 6, 0, 0, 0, 0, 0], &[7; 8][..]].concat(), [&pong(1)[..], b"a frame"].concat()] {
            ours.write_all(&frames).await.unwrap();
            let n = theirs.read(&mut seen).await.unwrap();
            assert_eq!(seen[..n], frames);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pongs_do_not_wait_for_long() {
        let (mut ours, mut theirs) = pair(1024);
        let start = Instant::now();
        ours.write_all(&pong(1)).await.unwrap();
        let mut seen = [0; FRAME];
        let (_, read) = tokio::join!(tokio::time::timeout(3 * MAX_WAIT, ours.read_u8()), async {
            theirs.read_exact(&mut seen).await.map(|_| start.elapsed())
        });
        assert!((MAX_WAIT..2 * MAX_WAIT).contains(&read.unwrap()));
        assert_eq!(seen[..], pong(1));
    }

    /// HTTP/2 reads first and writes then: nobody reads any more when an acknowledgement is held.
    #[tokio::test(start_paused = true)]
    async fn a_silent_connection_acknowledges_too() {
        let (ours, theirs) = pair(1024);
        let client = async {
            let (requests, connection) = h2::client::handshake(ours).await.unwrap();
            let _ = connection.await;
            drop(requests);
        };
        let server = async {
            let mut connection = h2::server::handshake(theirs).await.unwrap();
            let mut pings = connection.ping_pong().unwrap();
            let pinged = async {
                for _ in 0..3 {
                    tokio::time::timeout(3 * MAX_WAIT, pings.ping(h2::Ping::opaque())).await.unwrap().unwrap();
                }
            };
            tokio::select! {
                () = pinged => {}
                _ = connection.accept() => panic!("nothing was asked"),
            }
        };
        tokio::select! {
            () = server => {}
            () = client => panic!("the connection ended"),
        }
    }

    #[tokio::test]
    async fn no_more_are_held_than_there_is_room_for() {
        let (mut ours, mut theirs) = pair(1024);
        let all: Vec<u8> = (0..=(MAX_HELD / FRAME) as u8).flat_map(pong).collect();
        for frame in all.chunks(FRAME) {
            ours.write_all(frame).await.unwrap();
        }
        let mut seen = vec![0; all.len()];
        theirs.read_exact(&mut seen).await.unwrap();
        assert_eq!(seen, all);
    }

    /// What looks like a pong in the middle of a frame is part of that.
    #[tokio::test]
    async fn nothing_is_taken_out_of_a_frame() {
        let (mut ours, mut theirs) = pair(10);
        let frame = [&b"0123456789"[..], &pong(1), &pong(2)].concat();
        let mut seen = vec![0; frame.len()];
        let (written, read) = tokio::join!(ours.write_all(&frame), theirs.read_exact(&mut seen));
        assert!(written.is_ok() && read.is_ok());
        assert_eq!(seen, frame);
    }
}
