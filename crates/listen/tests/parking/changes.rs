//! What a client changes while its connection is aside, or in a way that keeps it from being put there.

use super::watches::{Feeds, get, watching};
use super::*;

/// Virtual time in which a connection that can be put aside is.
const REST: Duration = Duration::from_secs(30);

/// Lets time pass until the connection is aside, or long enough.
async fn rest(client: &mut Client, server: &TestServer) {
    let before = server.stats.parked.load(Ordering::Relaxed);
    tokio::time::pause();
    let until = tokio::time::Instant::now() + REST;
    while server.stats.parked.load(Ordering::Relaxed) == before && tokio::time::Instant::now() < until {
        tokio::select! {
            biased;
            heard = client.next() => drop(heard.expect("the connection stays")),
            () = tokio::time::advance(Duration::from_millis(10)) => {}
        }
    }
    tokio::time::resume();
}

/// A frame of this kind and stream, whatever comes before it.
async fn hears(client: &mut Client, kind: u8, stream: u32) -> Vec<u8> {
    let heard = async {
        loop {
            let (head, payload) = client.next().await.expect("the connection stays");
            if (head.kind, head.stream) == (kind, stream) {
                return payload;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), heard).await.expect("it comes")
}

fn initial_window(size: u32) -> Vec<u8> {
    frames::settings([(frames::INITIAL_WINDOW_SIZE, size)])
}

/// What a client says while its watch is silent, what it says later, and how much of the watch it had by then.
struct Case {
    name: &'static str,
    had: usize,
    before: Vec<u8>,
    after: Vec<u8>,
}

fn cases() -> Vec<Case> {
    let case = |name, had, before: &[Vec<u8>], after: &[Vec<u8>]| Case {
        name,
        had,
        before: before.concat(),
        after: after.concat(),
    };
    let ping = frames::frame(frames::PING, 0, 0, &[7; 8]);
    let priority = |stream| frames::frame(2, 0, stream, &[0, 0, 0, 0, 16]);
    let table = |size| frames::settings([(frames::HEADER_TABLE_SIZE, size)]);
    // What a client may have at most, less what `Client` has given already.
    let all = frames::window_update(0, i32::MAX as u32 - 65_535 - (1 << 20));
    vec![
        case("nothing", 0, &[], &[]),
        case("windows closed, then open", 0, &[initial_window(0)], &[initial_window(65_535)]),
        case("closed below what was sent", 5, &[initial_window(0)], &[initial_window(65_535)]),
        case("closed far below it", 60_000, &[initial_window(1)], &[initial_window(65_535)]),
        case(
            "closed, and open for the watch",
            5,
            &[initial_window(0), frames::window_update(1, 5)],
            &[initial_window(65_535)],
        ),
        case("smaller", 1000, &[initial_window(2000)], &[initial_window(65_535)]),
        case("larger", 1000, &[], &[initial_window(1 << 20)]),
        case("closed while aside", 1000, &[], &[initial_window(0), initial_window(65_535)]),
        case(
            "windows opened while aside",
            1000,
            &[],
            &[frames::window_update(0, 1000), frames::window_update(1, 1000)],
        ),
        case("all that there is", 1000, &[all.clone(), frames::window_update(0, 1000)], &[]),
        case("a table of another size", 5, &[table(100)], &[table(0), table(8192)]),
        case("frames of another size", 5, &[frames::settings([(5, 1 << 20)])], &[frames::settings([(5, 16_384)])]),
        case("many words at once", 5, &[], &[ping.clone(), table(4096), ping, priority(1), initial_window(65_535)]),
        case(
            "what nobody knows",
            5,
            &[frames::frame(0xfa, 0xff, 0, b"?")],
            &[frames::frame(0xfa, 0xff, 1, b"?"), priority(0x7fff_fffe)],
        ),
    ]
}

#[tokio::test]
async fn a_watch_and_a_new_request_are_answered_whatever_was_changed() {
    for Case { name, had, before, after } in cases() {
        let (feeds, server, mut client) = watching().await;
        let feed = feeds.feed(0);
        if had > 0 {
            feed.send(Bytes::from(vec![b'x'; had])).await.unwrap();
            let mut got = 0;
            while got < had {
                got += hears(&mut client, frames::DATA, 1).await.len();
            }
        }
        if !before.is_empty() {
            client.send(&before).await;
        }
        rest(&mut client, &server).await;
        if !after.is_empty() {
            client.send(&after).await;
        }
        client.ask(3, &get("/10")).await;
        assert_eq!(hears(&mut client, frames::DATA, 3).await.len(), 10, "{name}");
        feed.send(Bytes::from_static(b"more")).await.unwrap();
        let mut more = Vec::new();
        while more.len() < 4 {
            more.extend(hears(&mut client, frames::DATA, 1).await);
        }
        assert_eq!(more, b"more", "{name}");
    }
}

/// The windows stay those that client and server agreed on: not a byte more is sent.
#[tokio::test]
async fn a_window_below_zero_is_kept() {
    let (feeds, server, mut client) = watching().await;
    let feed = feeds.feed(0);
    feed.send(Bytes::from(vec![b'x'; 1000])).await.unwrap();
    while hears(&mut client, frames::DATA, 1).await.is_empty() {}
    client.send(&initial_window(100)).await;
    rest(&mut client, &server).await;
    feed.send(Bytes::from_static(b"0123456789")).await.unwrap();
    client.send(&frames::window_update(1, 900)).await;
    client.send(&frames::frame(frames::PING, 0, 0, &[1; 8])).await;
    loop {
        let (head, payload) = client.next().await.unwrap();
        assert_ne!(head.kind, frames::DATA, "the window is just 0");
        if head.kind == frames::PING && payload == [1; 8] {
            break;
        }
    }
    client.send(&frames::window_update(1, 4)).await;
    assert_eq!(hears(&mut client, frames::DATA, 1).await, b"0123");
    client.send(&initial_window(200)).await;
    assert_eq!(hears(&mut client, frames::DATA, 1).await, b"456789");
}

#[tokio::test]
async fn a_client_that_says_goodbye_while_aside_hears_the_rest() {
    let (feeds, server, mut client) = watching().await;
    client.until_parked(&server).await;
    client.send(&frames::goaway(0)).await;
    feeds.feed(0).send(Bytes::from_static(b"last")).await.unwrap();
    assert_eq!(hears(&mut client, frames::DATA, 1).await, b"last");
    feeds.0.lock().unwrap().clear();
    while client.next().await.is_some() {}
}

/// A client whose windows are as wide as they can be: nothing may be opened beyond that to tell a new state of them.
#[tokio::test]
async fn the_widest_windows_are_not_opened_further() {
    let (feeds, server) = Feeds::start().await;
    let mut client = Client::with_first_window(&server).await;
    client.send(&frames::window_update(0, i32::MAX as u32 - 65_535)).await;
    client.until(frames::SETTINGS).await;
    client.ask(1, &get(super::watches::LONG_WATCH)).await;
    client.until(frames::HEADERS).await;
    for round in 0..3u32 {
        feeds.feed(0).send(Bytes::from_static(b"event")).await.unwrap();
        assert_eq!(hears(&mut client, frames::DATA, 1).await, b"event");
        // The one or the other.
        client.send(&frames::window_update(round % 2, 5)).await;
        rest(&mut client, &server).await;
    }
}
