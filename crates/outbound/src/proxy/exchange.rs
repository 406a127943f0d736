//! Small requests with whole answers, on connections that are kept for the next one.
//!
//! Whoever asks moves the bytes: the request is written, and its answer read, in the task that waits for it. A task
//! for each connection, as a pool for streams needs, would cost every call two wake-ups and a change of the thread. So nobody
//! looks at a connection that waits: it is looked at before it is used again, and all of them once in a while, to close
//! what the other side has closed, or what has waited for too long.
//!
//! No HTTP library is asked: one request with its answer after the other is little of what a library can do, and it took longer to
//! move both through its queues than to write and read them.

use super::answer::{Framing, Head};
use super::dial::Dialer;
use super::line::{BodyError, Line, Sent};
use super::question::Question;
use super::transport::{Failed, IDLE_CONNECTIONS, IDLE_TIMEOUT};
use bytes::Bytes;
use http::uri::Authority;
use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How often connections that wait are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(15);

struct Waiting {
    line: Box<Line>,
    since: Instant,
}

/// Connections that wait for the next request, the last one that was used at the end.
#[derive(Default)]
struct Idle {
    by_server: HashMap<Authority, Vec<Waiting>>,
    /// Who looks at them once in a while.
    looking: Option<AbortHandle>,
}

impl Drop for Idle {
    fn drop(&mut self) {
        if let Some(task) = &self.looking {
            task.abort();
        }
    }
}

impl Idle {
    /// Closes what is of no use any more.
    fn tidy(&mut self) {
        let mut unheard = Context::from_waker(Waker::noop());
        self.by_server.retain(|_, waiting| {
            waiting.retain_mut(|one| one.since.elapsed() < IDLE_TIMEOUT && one.line.is_usable(&mut unheard));
            !waiting.is_empty()
        });
    }
}

/// Connections to servers of one kind.
#[derive(Clone)]
pub(super) struct Lines {
    dialer: Dialer,
    idle: Arc<Mutex<Idle>>,
}

impl Lines {
    pub fn new(dialer: Dialer) -> Lines {
        Lines { dialer, idle: Arc::default() }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        locked(&self.idle)
    }

    /// Sends a request. Dropping the future, or the answer, closes the connection.
    pub async fn ask(&self, question: &Question) -> Result<Answer<'_>, Failed> {
        let server = question.server();
        let mut line = match self.kept(server).await {
            Some(kept) => kept,
            None => Line::open(&self.dialer, question).await?,
        };
        let (head, framing, sent) = line.ask(question).await?;
        // Whatever is left of the request would be taken for the next one.
        let is_kept = head.is_kept() && matches!(sent, Sent::Whole) && framing != Framing::UntilEnd;
        Ok(Answer { head, framing, line, kept: is_kept.then(|| (self, server.clone())) })
    }

    async fn kept(&self, server: &Authority) -> Option<Box<Line>> {
        loop {
            let Waiting { mut line, since } = self.idle().by_server.get_mut(server)?.pop()?;
            let is_usable = poll_fn(|cx| Poll::Ready(line.is_usable(cx))).await;
            if is_usable && since.elapsed() < IDLE_TIMEOUT {
                return Some(line);
            }
        }
    }

    fn keep(&self, server: Authority, line: Box<Line>) {
        let mut idle = self.idle();
        let waiting = idle.by_server.entry(server).or_default();
        if waiting.len() < IDLE_CONNECTIONS {
            waiting.push(Waiting { line, since: Instant::now() });
        }
        if idle.looking.is_none() {
            idle.looking = Some(tokio::spawn(look_after(Arc::downgrade(&self.idle))).abort_handle());
        }
    }
}

/// Nothing that runs under this lock leaves a list of connections half changed.
fn locked(idle: &Mutex<Idle>) -> MutexGuard<'_, Idle> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at connections that wait for as long as there are any.
async fn look_after(idle: Weak<Mutex<Idle>>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(idle) = idle.upgrade() else { return };
        let mut idle = locked(&idle);
        idle.tidy();
        if idle.by_server.is_empty() {
            idle.looking = None;
            return;
        }
    }
}

/// The head of an answer; its body is still to be read.
pub(super) struct Answer<'a> {
    pub head: Head,
    framing: Framing,
    line: Box<Line>,
    /// Where the connection is kept once the body was read, if both sides want that.
    kept: Option<(&'a Lines, Authority)>,
}

impl Answer<'_> {
    /// The body, within a limit.
    pub async fn read(self, limit: usize) -> Result<(Head, Bytes), BodyError> {
        let Answer { head, framing, mut line, kept } = self;
        let body = line.body(&framing, limit).await?;
        // What comes unasked is no answer to the next request.
        if let Some((lines, server)) = kept.filter(|_| line.is_silent()) {
            lines.keep(server, line);
        }
        Ok((head, body))
    }
}

#[cfg(test)]
mod tests {
    use super::super::question::Draft;
    use super::*;
    use crate::egress::Route;
    use http::Uri;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

    const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

    /// Answers all requests alike, tells of connections that end, and counts them.
    struct Peer {
        uri: Uri,
        connections: Arc<AtomicUsize>,
        ended: UnboundedReceiver<()>,
    }

    impl Peer {
        async fn answering(answers_each: usize, text: &'static str) -> Peer {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let uri = format!("http://{}/path?query", listener.local_addr().unwrap()).parse().unwrap();
            let connections = Arc::new(AtomicUsize::new(0));
            let (tell, ended) = mpsc::unbounded_channel();
            let counted = connections.clone();
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    counted.fetch_add(1, Ordering::Relaxed);
                    tokio::spawn(serve(stream, answers_each, text, tell.clone()));
                }
            });
            Peer { uri, connections, ended }
        }

        fn request(&self) -> Question {
            let draft = Draft::new(&http::Method::POST, self.uri.clone(), None).unwrap();
            draft.done(Some(Bytes::from_static(b"question")))
        }
    }

    async fn serve(mut stream: TcpStream, answers: usize, text: &str, tell: UnboundedSender<()>) {
        let mut heard = Vec::new();
        for _ in 0..answers {
            while !heard.ends_with(b"question") {
                if stream.read_buf(&mut heard).await.unwrap_or(0) == 0 {
                    tell.send(()).unwrap();
                    return;
                }
            }
            assert!(heard.starts_with(b"POST /path?query HTTP/1.1\r\nhost: 127.0.0.1:"));
            heard.clear();
            stream.write_all(text.as_bytes()).await.unwrap();
        }
        drop(stream);
        tell.send(()).unwrap();
    }

    fn lines() -> Lines {
        Lines::new(Dialer { route: Route::Direct, tls: None })
    }

    fn kept(lines: &Lines) -> usize {
        lines.idle().by_server.values().map(Vec::len).sum()
    }

    #[tokio::test]
    async fn a_connection_serves_one_request_after_the_other() {
        let (peer, lines) = (Peer::answering(usize::MAX, HELLO).await, lines());
        for _ in 0..3 {
            let (head, body) = lines.ask(&peer.request()).await.unwrap().read(5).await.unwrap();
            assert_eq!((head.status.as_u16(), &body[..]), (200, &b"hello"[..]));
        }
        assert_eq!((peer.connections.load(Ordering::Relaxed), kept(&lines)), (1, 1));
        let question = peer.request();
        let (one, two) = tokio::join!(lines.ask(&question), lines.ask(&question));
        drop((one.unwrap().read(5).await.unwrap(), two.unwrap().read(5).await.unwrap()));
        assert_eq!((peer.connections.load(Ordering::Relaxed), kept(&lines)), (2, 2));
    }

    #[tokio::test]
    async fn a_connection_that_was_closed_meanwhile_is_replaced() {
        let (mut peer, lines) = (Peer::answering(1, HELLO).await, lines());
        for _ in 0..3 {
            lines.ask(&peer.request()).await.unwrap().read(5).await.unwrap();
            peer.ended.recv().await.unwrap();
            readable(&lines).await;
        }
        assert_eq!(peer.connections.load(Ordering::Relaxed), 3);
        lines.idle().tidy();
        assert_eq!(kept(&lines), 0);
    }

    /// Until the runtime has noticed that connections which wait have ended.
    async fn readable(lines: &Lines) {
        poll_fn(|cx| {
            let mut idle = lines.idle();
            let all: Vec<_> = idle.by_server.values_mut().flatten().map(|one| one.line.is_usable(cx)).collect();
            if all.contains(&true) { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    }

    #[tokio::test]
    async fn an_answer_that_is_not_read_to_its_end_closes_the_connection() {
        let (mut peer, lines) = (Peer::answering(usize::MAX, HELLO).await, lines());
        drop(lines.ask(&peer.request()).await.unwrap());
        peer.ended.recv().await.unwrap();
        assert!(matches!(lines.ask(&peer.request()).await.unwrap().read(4).await, Err(BodyError::TooLong)));
        peer.ended.recv().await.unwrap();
        assert_eq!(kept(&lines), 0);
    }

    #[tokio::test]
    async fn no_more_connections_are_kept_than_are_of_use() {
        let (mut peer, lines) = (Peer::answering(usize::MAX, HELLO).await, lines());
        let question = peer.request();
        let many = (0..IDLE_CONNECTIONS + 1).map(|_| lines.ask(&question));
        for answer in futures::future::join_all(many).await {
            answer.unwrap().read(5).await.unwrap();
        }
        peer.ended.recv().await.unwrap();
        assert_eq!(kept(&lines), IDLE_CONNECTIONS);
        drop(lines);
        for _ in 0..IDLE_CONNECTIONS {
            peer.ended.recv().await.unwrap();
        }
    }

    #[tokio::test]
    async fn bodies_end_where_their_heads_say() {
        for (text, want, is_kept) in [
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
                Some("hello"),
                true,
            ),
            ("HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 204 None\r\n\r\n", Some(""), true),
            ("HTTP/1.1 200 OK\r\n\r\nhello", Some("hello"), false),
            ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", Some("hello"), false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, unasked", Some("hello"), false),
            ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", None, false),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello", None, false),
        ] {
            let (peer, lines) = (Peer::answering(1, text).await, lines());
            let read = lines.ask(&peer.request()).await.unwrap().read(100).await;
            let body = read.ok().map(|(_, body)| String::from_utf8(body.to_vec()).unwrap());
            assert_eq!((body.as_deref(), kept(&lines)), (want, usize::from(is_kept)), "{text}");
        }
    }

    #[tokio::test]
    async fn a_server_may_answer_before_it_has_heard_everything() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let deaf = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(HELLO.as_bytes()).await.unwrap();
            stream
        };
        // More than any socket takes unread.
        let body = Bytes::from(vec![0; 64 << 20]);
        let (question, lines) = (Draft::new(&http::Method::POST, uri, None).unwrap().done(Some(body)), lines());
        let (answer, _stream) = tokio::join!(lines.ask(&question), deaf);
        let (head, body) = answer.unwrap().read(5).await.unwrap();
        assert_eq!((head.status.as_u16(), &body[..], kept(&lines)), (200, &b"hello"[..], 0));
    }

    #[tokio::test]
    async fn a_server_that_only_hangs_up_is_asked_once() {
        let (peer, lines) = (Peer::answering(1, "").await, lines());
        let failed = lines.ask(&peer.request()).await.err().unwrap();
        assert_eq!((failed.text.as_str(), peer.connections.load(Ordering::Relaxed)), ("EOF", 1));
    }
}
