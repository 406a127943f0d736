//! Clients of HTTP/2 that send frames without end and never read: nobody else notices, and the server keeps its size.

use super::cves::resident;
use super::{TOKEN, raw};
use crate::support::Server;
use std::io::Write;
use std::time::{Duration, Instant};

/// Frames of a flood: more than any limit, few enough for a debug build.
const FRAMES: u32 = 20_000;
const STREAMS: u32 = 100;
/// A flood that is not taken any more is over.
const PATIENCE: Duration = Duration::from_secs(2);
const MOST_GROWTH: u64 = 100 << 20;
/// What somebody else waits for an answer while it goes on, also on a busy machine.
const IN_TIME: Duration = Duration::from_secs(30);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// GET of a path as the administrator, in HPACK without the table.
fn request(path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x87];
    let mut literal = |name: &[u8], value: &str| {
        block.extend(name);
        // Longer than 126 bytes would need more than a byte.
        block.push(u8::try_from(value.len()).unwrap());
        block.extend(value.as_bytes());
    };
    literal(&[0x04], path);
    literal(&[0x01], "localhost");
    literal(&[0x0f, 0x08], &format!("Bearer {TOKEN}"));
    block
}

fn odd(i: u32) -> u32 {
    2 * i + 1
}

/// The frames of a flood: the `i`th part of it.
type Part = fn(u32) -> Vec<u8>;

/// What is sent without end, with its name: CVE-2023-44487, CVE-2024-24549 and their kind (CONTINUATION), CVE-2019-9512 (PING),
/// CVE-2019-9515 (SETTINGS), CVE-2019-9518 (empty frames), CVE-2019-9513 (PRIORITY).
const FLOODS: [(&str, Part); 9] = [
    ("rapid reset", |i| {
        let mut both = frame(HEADERS, END_STREAM | END_HEADERS, odd(i), &request("/api/v1/namespaces"));
        both.extend(frame(RST_STREAM, 0, odd(i), &8u32.to_be_bytes()));
        both
    }),
    ("reset by a broken request", |i| {
        let mut both = frame(HEADERS, END_HEADERS, odd(i), &request("/version"));
        // A window cannot be opened by nothing: the server resets the stream.
        both.extend(frame(WINDOW_UPDATE, 0, odd(i), &0u32.to_be_bytes()));
        both
    }),
    ("CONTINUATION", |i| match i {
        0 => frame(HEADERS, END_STREAM, 1, &request("/version")),
        _ => frame(CONTINUATION, 0, 1, &[&[0x00, 0x03][..], b"x-y", &[0x40], &[b'z'; 64]].concat()),
    }),
    ("empty CONTINUATION", |i| match i {
        0 => frame(HEADERS, END_STREAM, 1, &request("/version")),
        _ => frame(CONTINUATION, 0, 1, &[]),
    }),
    ("PING", |i| frame(PING, 0, 0, &u64::from(i).to_be_bytes())),
    ("SETTINGS", |i| frame(SETTINGS, 0, 0, &[&[0, 4][..], &(65_535 + i % 2).to_be_bytes()].concat())),
    ("empty DATA", |i| match i {
        0 => frame(HEADERS, END_HEADERS, 1, &request("/version")),
        _ => frame(DATA, 0, 1, &[]),
    }),
    ("PRIORITY", |i| frame(PRIORITY, 0, odd(i), &[0, 0, 0, 0, 1])),
    // Many large answers, and no window for any of them.
    ("no window", |i| match i {
        0 => frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]),
        i if i < STREAMS => frame(HEADERS, END_STREAM | END_HEADERS, odd(i), &request("/openapi/v2")),
        i => frame(PING, 0, 0, &u64::from(i).to_be_bytes()),
    }),
];

/// Sends until all is sent or the server takes no more.
fn flood(server: &Server, part: Part) {
    let mut stream = raw::connect_with(server.address(), &[b"h2"]);
    stream.sock.set_write_timeout(Some(PATIENCE)).unwrap();
    let preface = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(SETTINGS, 0, 0, &[])].concat();
    if stream.write_all(&preface).is_err() {
        return;
    }
    for i in 0..FRAMES {
        if stream.write_all(&part(i)).is_err() {
            return;
        }
    }
    let _ = stream.flush();
}

#[test]
fn floods_of_frames_drown_nobody() {
    let (server, _dir) = super::server(&[]);
    for (name, part) in FLOODS {
        let before = resident(&server);
        std::thread::scope(|scope| {
            let flooding = [(); 3].map(|()| scope.spawn(|| flood(&server, part)));
            while !flooding.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                let begin = Instant::now();
                assert_eq!(server.with_token(TOKEN, "GET", "/api/v1/namespaces/default").status, 200, "{name}");
                assert!(begin.elapsed() < IN_TIME, "{name}: somebody waited {:?}", begin.elapsed());
            }
        });
        let grown = resident(&server).saturating_sub(before);
        println!("{name}: {} kB more", grown >> 10);
        assert!(grown < MOST_GROWTH, "{name}: {grown} bytes");
    }
    assert_eq!(server.with_token(TOKEN, "GET", "/readyz").status, 200);
}
