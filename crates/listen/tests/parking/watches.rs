//! Answers that go on while their connection is aside, and windows that are not full.

use super::*;
use futures::StreamExt;
use std::sync::Mutex;
use tokio::sync::mpsc;

/// Ends when its feed does.
const WATCH: &str = "/watch";
/// No deadline ends it.
pub(super) const LONG_WATCH: &str = "/api/v1/pods?watch=1";

/// Gives every watch what comes through a channel of its own, to others as many bytes as the path says.
#[derive(Default)]
pub(super) struct Feeds(pub(super) Mutex<Vec<mpsc::Sender<Bytes>>>);

impl Feeds {
    pub(super) async fn start() -> (Arc<Feeds>, TestServer) {
        Feeds::start_at(Place::default()).await
    }

    pub(super) async fn start_at(place: Place<'_>) -> (Arc<Feeds>, TestServer) {
        let feeds = Arc::new(Feeds::default());
        let of_handler = feeds.clone();
        let handler: BoxHandler = Arc::new(move |request: Request| -> Reply {
            let path = request.uri().path();
            let body = if request.uri().path_and_query().is_some_and(|path| path == WATCH || path == LONG_WATCH) {
                let (sender, mut receiver) = mpsc::channel(16);
                of_handler.0.lock().unwrap().push(sender);
                let events = futures::stream::poll_fn(move |cx| receiver.poll_recv(cx));
                Body::stream(events.map(Ok))
            } else {
                Body::from(vec![b'x'; path[1..].parse().unwrap_or(0)])
            };
            Reply::Ready(Response::new(body))
        });
        let server = TestServer::start_at(place, |_| {}, |b| b.delegate(handler)).await;
        (feeds, server)
    }

    pub(super) fn feed(&self, watch: usize) -> mpsc::Sender<Bytes> {
        self.0.lock().unwrap()[watch].clone()
    }
}

/// The answer is given up, at once and not when somebody looks at the clock.
async fn ends(feed: &mpsc::Sender<Bytes>) {
    tokio::time::timeout(Duration::from_secs(30), feed.closed()).await.unwrap();
}

/// A path that the client's table does not take.
pub(super) fn get(path: &str) -> Vec<u8> {
    [&[0x82, 0x87, 0x04, path.len() as u8][..], path.as_bytes(), &[0x01, 0x01, b'x']].concat()
}

/// The windows of client and server agree for as long as they live, or one of them ends the connection: more is sent
/// in all than any of them holds.
/// A client with an open watch.
pub(super) async fn watching() -> (Arc<Feeds>, TestServer, Client) {
    let (feeds, server) = Feeds::start().await;
    let mut client = Client::new(&server).await;
    client.until(frames::SETTINGS).await;
    client.ask(1, &get(WATCH)).await;
    client.until(frames::HEADERS).await;
    (feeds, server, client)
}

#[tokio::test]
async fn watches_go_on_and_windows_are_kept() {
    const EVENT: usize = 9000;
    let (feeds, server) = Feeds::start().await;
    let stream = server.connect(b"h2", true).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_connection_window_size(65_535)
        .initial_stream_window_size(65_535)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let request =
        |path: &str| http::Request::get(format!("https://localhost{path}")).body(Full::<Bytes>::default()).unwrap();
    let mut watches = Vec::new();
    for nth in 0..12 {
        // Each has a stream with another number, and some are over.
        let answer = sender.send_request(request("/10")).await.unwrap();
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes().len(), 10);
        if nth % 4 == 0 {
            watches.push(sender.send_request(request(LONG_WATCH)).await.unwrap().into_body());
        }
    }
    for round in 0..10 {
        until_parked(&server).await;
        for (nth, watch) in watches.iter_mut().enumerate().skip(round % 2) {
            let event = Bytes::from(vec![nth as u8; EVENT]);
            feeds.feed(nth).send(event.clone()).await.unwrap();
            let mut got = Vec::new();
            while got.len() < EVENT {
                got.extend(watch.frame().await.unwrap().unwrap().into_data().unwrap());
            }
            assert!(got == event, "round {round}, watch {nth}");
        }
        // Events alone leave it aside.
        let answer = sender.send_request(request("/10")).await.unwrap();
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes().len(), 10);
    }
    assert!(server.stats.parked.load(Ordering::Relaxed) >= 10);
    // All ends, one way or the other.
    until_parked(&server).await;
    feeds.0.lock().unwrap().remove(0);
    assert_eq!(watches.remove(0).collect().await.unwrap().to_bytes(), "");
    drop(watches);
    let feeds = std::mem::take(&mut *feeds.0.lock().unwrap());
    for feed in feeds {
        ends(&feed).await;
    }
}

#[tokio::test]
async fn a_window_that_was_used_is_not_forgotten() {
    let (_feeds, server) = Feeds::start().await;
    let mut client = Client::with_first_window(&server).await;
    client.until(frames::SETTINGS).await;
    client.ask(1, &get("/1000")).await;
    client.until(frames::DATA).await;
    client.until_parked(&server).await;
    client.ask(3, &get("/100000")).await;
    let mut sent = 0;
    while sent < 64_535 {
        let (head, ..) = client.until(frames::DATA).await;
        assert_eq!(head.stream, 3);
        sent += head.length;
    }
    assert_eq!(sent, 64_535);
    client.send(&frames::frame(frames::PING, 0, 0, &[7; 8])).await;
    let (_, _, before) = client.until(frames::PING).await;
    assert!(before.is_empty(), "more than the window: {before:?}");
    client.send(&frames::window_update(0, 100_000)).await;
    while sent < 100_000 {
        sent += client.until(frames::DATA).await.0.length;
    }
    assert_eq!(sent, 100_000);
}

#[tokio::test]
async fn a_watch_takes_little_notice() {
    let (feeds, server, mut client) = watching().await;
    feeds.feed(0).send(Bytes::from_static(b"first")).await.unwrap();
    assert_eq!(client.until(frames::DATA).await.1, b"first");
    client.until_parked(&server).await;
    // Whether we are there can be told without being there.
    let parked = server.stats.parked.load(Ordering::Relaxed);
    for n in 0..3 {
        client.send(&frames::frame(frames::PING, 0, 0, &[n; 8])).await;
        let (head, payload, before) = client.until(frames::PING).await;
        assert_eq!((head.flags, payload, before.len()), (frames::ACK, vec![n; 8], 0));
    }
    assert_eq!(server.stats.resumed.load(Ordering::Relaxed), 0);
    assert_eq!(server.stats.parked.load(Ordering::Relaxed), parked);
    for event in [b"second", b"third."] {
        feeds.feed(0).send(Bytes::from_static(event)).await.unwrap();
        let (head, payload, before) = client.until(frames::DATA).await;
        assert_eq!((head.stream, head.flags, &payload[..], before.len()), (1, 0, &event[..], 0));
    }
    assert_eq!(server.stats.resumed.load(Ordering::Relaxed), 0);
    // A new request beside the watch, then the end of the watch.
    client.ask(3, &get("/10")).await;
    let (head, _, before) = client.until(frames::HEADERS).await;
    assert_eq!(head.stream, 3, "the head of the watch again: {before:?}");
    assert_eq!(client.until(frames::DATA).await.0.length, 10);
    client.until_parked(&server).await;
    let feed = feeds.feed(0);
    client.send(&frames::frame(frames::RST_STREAM, 0, 1, &8u32.to_be_bytes())).await;
    ends(&feed).await;
}

#[tokio::test]
async fn a_client_that_leaves_ends_its_watches() {
    let (feeds, server, mut client) = watching().await;
    client.until_parked(&server).await;
    let feed = feeds.feed(0);
    drop(client);
    ends(&feed).await;
}

/// In TLS, whose end comes before that of the socket.
#[tokio::test]
async fn a_client_that_says_that_it_leaves_ends_its_watches() {
    let (feeds, server, mut client) = watching().await;
    client.until_parked(&server).await;
    let feed = feeds.feed(0);
    let (socket, session) = client.stream.get_mut();
    session.send_close_notify();
    let mut record = Vec::new();
    session.write_tls(&mut record).unwrap();
    socket.write_all(&record).await.unwrap();
    ends(&feed).await;
}

/// Keys change in both directions, and that alone resumes nothing.
#[tokio::test]
async fn keys_change_aside() {
    let (feeds, server, mut client) = watching().await;
    client.until_parked(&server).await;
    for event in [b"first.", b"second", b"third."] {
        client.stream.get_mut().1.refresh_traffic_keys().unwrap();
        client.send(&frames::frame(frames::PING, 0, 0, &[7; 8])).await;
        client.until(frames::PING).await;
        feeds.feed(0).send(Bytes::from_static(event)).await.unwrap();
        assert_eq!(client.until(frames::DATA).await.1, event);
    }
    assert_eq!(server.stats.resumed.load(Ordering::Relaxed), 0);
}

/// A record that nobody with the keys has made ends the connection, and the client is told.
#[tokio::test]
async fn a_wrong_record_ends_its_watches() {
    let (feeds, server, mut client) = watching().await;
    client.until_parked(&server).await;
    let feed = feeds.feed(0);
    client.stream.get_mut().0.write_all(&[[23, 3, 3, 0, 32].as_slice(), &[7; 32]].concat()).await.unwrap();
    let mut space = [0; 100];
    let alert = loop {
        match client.stream.read(&mut space).await {
            Ok(length) => assert!(length > 0, "the end without an alert"),
            Err(alert) => break alert.to_string(),
        }
    };
    assert!(alert.contains("BadRecordMac"), "{alert}");
    ends(&feed).await;
}

/// The server stops while the connection is aside: it is told, and what the watch still has to say comes through.
#[tokio::test]
async fn a_watch_ends_in_order_when_the_server_stops() {
    let (feeds, server, mut client) = watching().await;
    client.until_parked(&server).await;
    server.begin_stop();
    client.until(frames::GOAWAY).await;
    feeds.feed(0).send(Bytes::from_static(b"last")).await.unwrap();
    assert_eq!(client.until(frames::DATA).await.1, b"last");
    feeds.0.lock().unwrap().clear();
    loop {
        let (head, ..) = client.until(frames::DATA).await;
        if head.has(frames::END_STREAM) {
            break;
        }
    }
    drop(client);
    server.ended().await.unwrap();
}

#[tokio::test]
async fn a_client_that_does_not_open_its_window_is_cut() {
    let (_feeds, server) = Feeds::start().await;
    let mut client = Client::with_first_window(&server).await;
    client.until(frames::SETTINGS).await;
    client.ask(1, &get("/100000")).await;
    let mut sent = 0;
    while sent < 65_535 {
        sent += client.until(frames::DATA).await.0.length;
    }
    let begin = tokio::time::Instant::now();
    tokio::time::pause();
    while client.next().await.is_some() {}
    let took = begin.elapsed();
    assert!(took > Duration::from_secs(50) && took < Duration::from_secs(120), "{took:?}");
}

/// What is sent aside counts, and so does what the client says about it meanwhile.
#[tokio::test]
async fn windows_hold_for_what_is_sent_aside() {
    const EVENT: usize = 20_000;
    let (feeds, server) = Feeds::start().await;
    let mut client = Client::with_first_window(&server).await;
    client.until(frames::SETTINGS).await;
    client.ask(1, &get(WATCH)).await;
    client.until(frames::HEADERS).await;
    client.until_parked(&server).await;
    let event = |nth: usize| Bytes::from(vec![nth as u8; EVENT]);
    let (mut sent, mut got) = (Vec::new(), Vec::new());
    for nth in 0..6 {
        feeds.feed(0).send(event(nth)).await.unwrap();
        sent.extend(event(nth));
        if (2..5).contains(&nth) {
            // Nearly one event more.
            client.send(&frames::window_update(0, EVENT as u32 - 1)).await;
            client.send(&frames::frame(frames::PING, 0, 0, &[7; 8])).await;
            let (_, _, before) = client.until(frames::PING).await;
            got.extend(before.into_iter().filter(|(head, _)| head.kind == frames::DATA).flat_map(|(_, data)| data));
        }
        while got.len() < sent.len() {
            let (head, data, _) = client.until(frames::DATA).await;
            assert!(head.stream == 1 && head.length <= 16_384, "{head:?}");
            got.extend(data);
        }
    }
    assert!(got == sent);
    assert_eq!(server.stats.resumed.load(Ordering::Relaxed), 0);
    // 5,532 are left: this one waits for more.
    feeds.feed(0).send(event(6)).await.unwrap();
    sent.extend(event(6));
    while got.len() < sent.len() - EVENT + 5532 {
        got.extend(client.until(frames::DATA).await.1);
    }
    client.send(&frames::frame(frames::PING, 0, 0, &[8; 8])).await;
    let (_, _, before) = client.until(frames::PING).await;
    assert!(!before.iter().any(|(head, _)| head.kind == frames::DATA), "more than the window: {before:?}");
    client.send(&frames::window_update(0, 100_000)).await;
    while got.len() < sent.len() {
        got.extend(client.until(frames::DATA).await.1);
    }
    assert!(got == sent);
    assert_eq!(server.stats.resumed.load(Ordering::Relaxed), 1);
}

/// A client that reads nothing for a while gets all of it in the end: what was cut off goes on where it was.
#[tokio::test]
async fn a_slow_client_gets_all_that_is_sent_aside() {
    const EVENT: usize = 50_000;
    const EVENTS: usize = 36;
    let (feeds, server) = Feeds::start().await;
    let mut client = Client::with_first_window(&server).await;
    client.send(&frames::window_update(0, 16 << 20)).await;
    client.until(frames::SETTINGS).await;
    for watch in [1, 3] {
        client.ask(watch, &get(WATCH)).await;
        client.until(frames::HEADERS).await;
        client.send(&frames::window_update(watch, 16 << 20)).await;
    }
    client.until_parked(&server).await;
    let fed = tokio::spawn({
        let feeds = feeds.clone();
        async move {
            for nth in 0..EVENTS {
                feeds.feed(nth % 2).send(Bytes::from(vec![nth as u8; EVENT])).await.unwrap();
            }
        }
    });
    // It is told of everything, or the sockets are full.
    tokio::task::yield_now().await;
    let mut got = [Vec::new(), Vec::new()];
    while got.iter().map(Vec::len).sum::<usize>() < EVENTS * EVENT {
        let (head, data, _) = client.until(frames::DATA).await;
        got[usize::from(head.stream == 3)].extend(data);
    }
    fed.await.unwrap();
    for (watch, got) in got.into_iter().enumerate() {
        let expected: Vec<u8> = (0..EVENTS).filter(|n| n % 2 == watch).flat_map(|n| vec![n as u8; EVENT]).collect();
        assert!(got == expected, "watch {watch}");
    }
    assert_eq!(server.stats.resumed.load(Ordering::Relaxed), 0);
}

/// Each of many watches of a connection is heard, whichever of them has something.
#[tokio::test]
async fn many_watches_are_heard_aside() {
    const WATCHES: usize = 50;
    let (feeds, server) = Feeds::start().await;
    let mut client = Client::new(&server).await;
    client.until(frames::SETTINGS).await;
    for watch in 0..WATCHES {
        client.ask(watch as u32 * 2 + 1, &get(WATCH)).await;
        client.until(frames::HEADERS).await;
    }
    client.until_parked(&server).await;
    for round in 0..3 {
        for watch in (0..WATCHES).skip(round).step_by(round + 1) {
            feeds.feed(watch).send(Bytes::from(format!("{watch} in {round}"))).await.unwrap();
            let (head, payload, _) = client.until(frames::DATA).await;
            assert_eq!((head.stream as usize, payload), (watch * 2 + 1, format!("{watch} in {round}").into_bytes()));
        }
    }
    assert_eq!(server.stats.resumed.load(Ordering::Relaxed), 0);
}
