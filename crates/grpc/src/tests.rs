//! Calls against a server that answers frame by frame what a test says.

use super::{Call, Channel, Dial, Io, Target, never_sent, unary};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use h2::server::SendResponse;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tonic::{Code, Status};

#[derive(Clone, PartialEq, prost::Message)]
struct Text {
    #[prost(string, tag = "1")]
    text: String,
}

fn text(text: &str) -> Text {
    Text { text: text.into() }
}

/// What the server does with a call.
#[derive(Clone)]
enum Does {
    /// Its frames, and its trailers if it has any.
    Answers(Vec<Vec<u8>>, Option<HeaderMap>),
    /// Its head alone, which ends the stream.
    Refuses(u16, HeaderMap),
    /// The whole connection ends.
    Leaves,
    /// Nothing, but it answers pings.
    Waits,
    /// Nothing at all any more.
    Freezes,
}

/// The server, and each connection to it.
#[derive(Debug)]
struct Server {
    does: Mutex<Does>,
    connections: AtomicUsize,
    is_down: AtomicBool,
}

impl std::fmt::Debug for Does {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("what the server does")
    }
}

#[derive(Debug)]
struct Pipe(Arc<Server>);

impl Dial for Pipe {
    fn dial<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        async move {
            if self.0.is_down.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            self.0.connections.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(serve(self.0.clone(), theirs));
            Ok(Box::new(ours) as Box<dyn Io>)
        }
        .boxed()
    }
}

async fn serve(server: Arc<Server>, io: tokio::io::DuplexStream) {
    let mut connection = h2::server::handshake(io).await.unwrap();
    let mut waiting = Vec::new();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        assert_eq!(request.headers()["content-type"], "application/grpc");
        let does = server.does.lock().unwrap().clone();
        match does {
            Does::Answers(frames, trailers) => answer(&mut respond, frames, trailers),
            Does::Refuses(status, headers) => {
                let mut head = Response::builder().status(status).body(()).unwrap();
                *head.headers_mut() = headers;
                respond.send_response(head, true).unwrap();
            }
            Does::Leaves => return,
            Does::Freezes => std::future::pending().await,
            Does::Waits => waiting.push((request, respond)),
        }
    }
}

fn answer(respond: &mut SendResponse<Bytes>, frames: Vec<Vec<u8>>, trailers: Option<HeaderMap>) {
    let mut body = respond.send_response(Response::new(()), false).unwrap();
    let last = frames.len();
    for (i, frame) in frames.into_iter().enumerate() {
        body.send_data(frame.into(), trailers.is_none() && i + 1 == last).unwrap();
    }
    if let Some(trailers) = trailers {
        body.send_trailers(trailers).unwrap();
    }
}

fn status(code: &'static str, message: &'static str) -> HeaderMap {
    let pair = |name, value| (HeaderName::from_static(name), HeaderValue::from_static(value));
    HeaderMap::from_iter([pair("grpc-status", code), pair("grpc-message", message)])
}

fn framed(text: &Text) -> Vec<u8> {
    super::call::framed(text).to_vec()
}

fn server(does: Does) -> (Arc<Server>, Channel) {
    let server =
        Arc::new(Server { does: Mutex::new(does), connections: AtomicUsize::new(0), is_down: AtomicBool::new(false) });
    let target = Target::Tcp { host: "peer".into(), port: 1, tls: None };
    let channel = Channel::new(target, Some(Arc::new(Pipe(server.clone())))).unwrap();
    (server, channel)
}

async fn ask(channel: &Channel) -> Result<Text, Status> {
    unary(channel, "/test.Test/Ask", &text("a question")).await
}

#[tokio::test]
async fn a_message_comes_in_any_frames() {
    let whole = framed(&text(&"long ".repeat(4000)));
    let bytes: Vec<Vec<u8>> = framed(&text("short")).into_iter().map(|byte| vec![byte]).collect();
    let halves = vec![whole[..3].to_vec(), whole[3..9000].to_vec(), whole[9000..].to_vec()];
    for (frames, expected) in [(vec![framed(&text(""))], 0), (bytes, 5), (halves, 20_000)] {
        let (_, channel) = server(Does::Answers(frames, Some(status("0", ""))));
        assert_eq!(ask(&channel).await.unwrap().text.len(), expected);
    }
}

#[tokio::test]
async fn streams_have_many_messages() {
    let several = [framed(&text("a")), framed(&text("b")), framed(&text("c"))].concat();
    let (cut, rest) = several.split_at(several.len() - 2);
    let frames = vec![cut.to_vec(), rest.to_vec(), framed(&text("d"))];
    let (_, channel) = server(Does::Answers(frames, Some(status("11", "has been compacted"))));
    let mut call = Call::streaming(&channel, "/test.Test/Stream", HeaderMap::new()).await.unwrap();
    call.send(&text("begin")).unwrap();
    for expected in ["a", "b", "c", "d"] {
        assert_eq!(call.next::<Text>().await.unwrap().unwrap().text, expected);
    }
    let ended = call.next::<Text>().await.unwrap_err();
    assert_eq!((ended.code(), ended.message()), (Code::OutOfRange, "has been compacted"));
}

#[tokio::test]
async fn what_is_no_good_answer_is_an_error() {
    let good = framed(&text("good"));
    let compressed = [&[1][..], &good[1..]].concat();
    let endless = [&[0, 0xff, 0xff, 0xff, 0xff][..], &[7; 100]].concat();
    let ok = || Some(status("0", ""));
    let cases = [
        (Does::Answers(vec![good.clone()], Some(status("14", "no%20leader"))), Code::Unavailable, "no leader"),
        (Does::Refuses(200, status("5", "requested lease not found")), Code::NotFound, "requested lease not found"),
        (Does::Refuses(503, HeaderMap::new()), Code::Unavailable, "unexpected HTTP status code"),
        (Does::Answers(vec![compressed], ok()), Code::Unimplemented, "compressed"),
        (Does::Answers(vec![endless], ok()), Code::Internal, "cut off"),
        (Does::Answers(vec![good[..6].to_vec()], ok()), Code::Internal, "cut off"),
        (Does::Answers(vec![good.clone()], None), Code::Internal, "without sending trailers"),
        (Does::Answers(vec![], ok()), Code::Internal, "no message"),
        (Does::Answers(vec![good.clone(), good.clone()], ok()), Code::Internal, "several messages"),
        (Does::Answers(vec![vec![0, 0, 0, 0, 1, 0xff]], ok()), Code::Internal, "decode"),
    ];
    for (does, code, words) in cases {
        let (_, channel) = server(does);
        let error = ask(&channel).await.unwrap_err();
        assert_eq!(error.code(), code, "{error:?}");
        assert!(error.message().contains(words), "{error:?}");
        assert!(!never_sent(&error), "{error:?}");
    }
}

#[tokio::test]
async fn a_lost_connection_is_made_again() {
    let (server, channel) = server(Does::Answers(vec![framed(&text("yes"))], Some(status("0", ""))));
    for _ in 0..3 {
        ask(&channel).await.unwrap();
    }
    assert_eq!(server.connections.load(Ordering::Relaxed), 1);
    let good = std::mem::replace(&mut *server.does.lock().unwrap(), Does::Leaves);
    // It may have been carried out.
    let lost = ask(&channel).await.unwrap_err();
    assert!(lost.code() == Code::Unavailable && !never_sent(&lost), "{lost:?}");
    server.is_down.store(true, Ordering::Relaxed);
    let refused = ask(&channel).await.unwrap_err();
    assert!(refused.code() == Code::Unavailable && never_sent(&refused), "{refused:?}");
    server.is_down.store(false, Ordering::Relaxed);
    *server.does.lock().unwrap() = good;
    let answers = futures::future::join_all((0..10).map(|_| ask(&channel))).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(server.connections.load(Ordering::Relaxed), 2, "all wait for the one that connects");
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_given_up() {
    let (slow, channel) = server(Does::Waits);
    let waits = tokio::time::timeout(std::time::Duration::from_secs(300), ask(&channel)).await;
    assert!(waits.is_err() && slow.connections.load(Ordering::Relaxed) == 1);
    let (_, channel) = server(Does::Freezes);
    let asked = tokio::time::Instant::now();
    let lost = ask(&channel).await.unwrap_err();
    assert_eq!(lost.code(), Code::Unavailable);
    assert_eq!(asked.elapsed().as_secs(), 40);
}
