//! Small requests with whole answers, on connections that are kept for the next one.
//!
//! Whoever asks drives the connection: the request is written, and its answer read, in the task that waits for it. A task
//! for each connection, as a pool for streams needs, would cost every call two wake-ups and a change of the thread. So nobody
//! looks at a connection that waits: it is looked at before it is used again, and all of them once in a while, to close
//! what the other side has closed, or what has waited for too long.

use super::dial::{DialError, Dialer, Stream};
use super::transport::{Failed, IDLE_CONNECTIONS, IDLE_TIMEOUT, MAX_HEADERS};
use bytes::{Bytes, BytesMut};
use http::header::HOST;
use http::uri::Authority;
use http::{HeaderValue, Uri, response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use kubelith_http::RequestBody;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How often connections that wait are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// A connection, and what is needed to ask on it. It is large, and passed on often: boxed.
struct Line {
    sender: SendRequest<RequestBody>,
    connection: http1::Connection<TokioIo<Stream>, RequestBody>,
    has_ended: bool,
}

impl Line {
    async fn open(dialer: &Dialer, uri: &Uri) -> Result<Box<Line>, Failed> {
        let stream = dialer.dial_uri(uri).await.map_err(|DialError(text)| Failed::fresh(text))?;
        let shaken = http1::Builder::new().max_headers(MAX_HEADERS).handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|e| Failed::of(&e))?;
        Ok(Box::new(Line { sender, connection, has_ended: false }))
    }

    /// Moves bytes, as far as that goes at this time. Errors are told to who waits for the answer.
    fn advance(&mut self, cx: &mut Context<'_>) {
        if !self.has_ended {
            self.has_ended = Pin::new(&mut self.connection).poll(cx).is_ready();
        }
    }

    /// The work needs bytes of this connection.
    async fn drive<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        poll_fn(|cx| {
            self.advance(cx);
            work.as_mut().poll(cx)
        })
        .await
    }

    /// It can take a request, as far as one can tell without asking the other side.
    fn is_usable(&mut self, cx: &mut Context<'_>) -> bool {
        self.advance(cx);
        !self.has_ended && self.sender.is_ready()
    }
}

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

    /// Sends a request whose URI is absolute. Dropping the future, or the answer, closes the connection.
    pub async fn ask(&self, mut request: http::Request<RequestBody>) -> Result<Answer, Failed> {
        let uri = request.uri().clone();
        let server = uri.authority().cloned().ok_or_else(|| Failed::fresh("no Host in request URL".to_owned()))?;
        if !request.headers().contains_key(HOST) {
            request.headers_mut().insert(HOST, host_of(&server));
        }
        *request.uri_mut() = uri.path_and_query().map(|path| Uri::from(path.clone())).unwrap_or_default();
        loop {
            let (mut line, is_new) = match self.kept(&server).await {
                Some(kept) => (kept, false),
                None => (Line::open(&self.dialer, &uri).await?, true),
            };
            let sent = line.sender.try_send_request(request);
            match line.drive(sent).await {
                Ok(response) => {
                    let (parts, body) = response.into_parts();
                    return Ok(Answer { parts, body, line, server, lines: self.clone() });
                }
                Err(mut failed) => match failed.take_message() {
                    // The other side closed the connection before anything was sent.
                    Some(unsent) if !is_new => request = unsent,
                    _ => return Err(Failed::of(failed.error())),
                },
            }
        }
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

fn host_of(server: &Authority) -> HeaderValue {
    let text = server.as_str();
    let without_user = text.rsplit_once('@').map_or(text, |(_, host)| host);
    HeaderValue::try_from(without_user).unwrap_or(HeaderValue::from_static(""))
}

/// The head of an answer; its body is still to be read.
pub(super) struct Answer {
    pub parts: response::Parts,
    body: Incoming,
    line: Box<Line>,
    server: Authority,
    lines: Lines,
}

/// Why a body is not there.
#[derive(Debug)]
pub(super) enum BodyError {
    TooLong,
    Broken(hyper::Error),
}

impl Answer {
    /// The body, within a limit; the connection is kept then, if both sides want that.
    pub async fn read(self, limit: usize) -> Result<(response::Parts, Bytes), BodyError> {
        let Answer { parts, mut body, mut line, server, lines } = self;
        let bytes = line.drive(whole(&mut body, limit)).await?;
        drop(body);
        if poll_fn(|cx| Poll::Ready(line.is_usable(cx))).await {
            lines.keep(server, line);
        }
        Ok((parts, bytes))
    }
}

async fn whole(body: &mut Incoming, limit: usize) -> Result<Bytes, BodyError> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(BodyError::Broken)?.into_data() else { continue };
        if first.len().max(rest.len()) + data.len() > limit {
            return Err(BodyError::TooLong);
        }
        if first.is_empty() {
            first = data;
            continue;
        }
        if rest.is_empty() {
            rest.extend_from_slice(&first);
        }
        rest.extend_from_slice(&data);
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egress::Route;
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

        fn request(&self) -> http::Request<RequestBody> {
            let mut request = http::Request::new(RequestBody::Full(Some(Bytes::from_static(b"question"))));
            *request.method_mut() = http::Method::POST;
            *request.uri_mut() = self.uri.clone();
            request
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
            let (parts, body) = lines.ask(peer.request()).await.unwrap().read(5).await.unwrap();
            assert_eq!((parts.status.as_u16(), &body[..]), (200, &b"hello"[..]));
        }
        assert_eq!((peer.connections.load(Ordering::Relaxed), kept(&lines)), (1, 1));
        let (one, two) = tokio::join!(lines.ask(peer.request()), lines.ask(peer.request()));
        drop((one.unwrap().read(5).await.unwrap(), two.unwrap().read(5).await.unwrap()));
        assert_eq!((peer.connections.load(Ordering::Relaxed), kept(&lines)), (2, 2));
    }

    #[tokio::test]
    async fn a_connection_that_was_closed_meanwhile_is_replaced() {
        let (mut peer, lines) = (Peer::answering(1, HELLO).await, lines());
        for _ in 0..3 {
            lines.ask(peer.request()).await.unwrap().read(5).await.unwrap();
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
        drop(lines.ask(peer.request()).await.unwrap());
        peer.ended.recv().await.unwrap();
        assert!(matches!(lines.ask(peer.request()).await.unwrap().read(4).await, Err(BodyError::TooLong)));
        peer.ended.recv().await.unwrap();
        assert_eq!(kept(&lines), 0);
    }

    #[tokio::test]
    async fn no_more_connections_are_kept_than_are_of_use() {
        let (mut peer, lines) = (Peer::answering(usize::MAX, HELLO).await, lines());
        let many = (0..IDLE_CONNECTIONS + 1).map(|_| lines.ask(peer.request()));
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
    async fn a_server_that_only_hangs_up_is_asked_once() {
        let (peer, lines) = (Peer::answering(1, "").await, lines());
        let failed = lines.ask(peer.request()).await.err().unwrap();
        assert_eq!((failed.text.as_str(), peer.connections.load(Ordering::Relaxed)), ("EOF", 1));
    }
}
