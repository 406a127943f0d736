//! `/debug/pprof` (`--profiling`): where processor time and memory go, in the format of pprof, or as text with
//! `?debug=1`. What is sampled is what the kernel tells of threads and mappings, and the server of its tasks: functions are
//! for tools that look into the process from outside.

use super::{Listing, Routes};
use crate::lifecycle::Tasks;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderValue, StatusCode};
use kubelith_http::{BoxHandler, Reply, Request, Response, query, respond};
use kubelith_meta::time::unix_time;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

const INDEX: &str = "<html>\n<head>\n<title>/debug/pprof/</title>\n</head>\n<body>\n/debug/pprof/\n<table>\n\
    <tr><td><a href=\"profile\">profile</a></td><td>Processor time by thread, over ?seconds=30.</td></tr>\n\
    <tr><td><a href=\"heap?debug=1\">heap</a></td><td>Resident memory by mapping.</td></tr>\n\
    <tr><td><a href=\"goroutine?debug=1\">goroutine</a></td><td>Background tasks by name.</td></tr>\n\
    <tr><td><a href=\"threadcreate?debug=1\">threadcreate</a></td><td>Threads by name.</td></tr>\n\
    </table>\n</body>\n</html>\n";

/// Over which processor time is taken, if the client does not say, and at most.
const SECONDS: u64 = 30;
const MOST_SECONDS: u64 = 300;
/// Kernel ticks per second, fixed by the kernel's interface to programs.
const TICKS: u64 = 100;

/// A profile: what is counted, and how much of it belongs to each name.
struct Profile {
    kind: &'static str,
    unit: &'static str,
    samples: BTreeMap<String, u64>,
    duration: Duration,
}

pub fn install(routes: &mut Routes, tasks: Tasks) {
    let handler: BoxHandler = Arc::new(move |request: Request| -> Reply {
        let tasks = tasks.clone();
        Reply::pending(async move { serve(&request, &tasks).await })
    });
    routes.exact("/debug/pprof", Listing::Unlisted, handler.clone());
    routes.prefix("/debug/pprof/", Listing::Unlisted, handler);
}

async fn serve(request: &Request, tasks: &Tasks) -> Response {
    let path = request.uri().path();
    let parameter = |name: &str| query::first(request.uri().query(), name).and_then(|v| v.parse::<u64>().ok());
    let profile = match path.strip_prefix("/debug/pprof").unwrap_or("").trim_matches('/') {
        "" => return respond::with_type(StatusCode::OK, HeaderValue::from_static("text/html; charset=utf-8"), INDEX),
        "profile" => processor(Duration::from_secs(parameter("seconds").unwrap_or(SECONDS).min(MOST_SECONDS))).await,
        "heap" | "allocs" => Profile::now("inuse_space", "bytes", memory(&proc("smaps"))),
        "goroutine" => Profile::now("task", "count", tasks.running()),
        "threadcreate" => Profile::now("thread", "count", threads().into_iter().map(|(n, (c, _))| (n, c)).collect()),
        _ => {
            let mut response = respond::text(StatusCode::NOT_FOUND, "Unknown profile\n");
            response.headers_mut().insert(respond::X_CONTENT_TYPE_OPTIONS, respond::NOSNIFF);
            return response;
        }
    };
    match parameter("debug").unwrap_or(0) {
        0 => {
            respond::with_type(StatusCode::OK, HeaderValue::from_static("application/octet-stream"), profile.gzipped())
        }
        _ => respond::text(StatusCode::OK, profile.text()),
    }
}

fn proc(file: &str) -> String {
    std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default()
}

async fn processor(duration: Duration) -> Profile {
    let before = threads();
    tokio::time::sleep(duration).await;
    let samples = threads().into_iter().map(|(name, (_, ticks))| {
        let spent = ticks.saturating_sub(before.get(&name).map_or(0, |(_, ticks)| *ticks));
        (name, spent * (1_000_000_000 / TICKS))
    });
    Profile { kind: "cpu", unit: "nanoseconds", samples: samples.collect(), duration }
}

/// Threads by name: how many, and the processor time of all of them, in ticks.
fn threads() -> HashMap<String, (u64, u64)> {
    let mut threads: HashMap<String, (u64, u64)> = HashMap::new();
    for entry in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some((name, ticks)) = thread(&stat) {
            let known = threads.entry(name).or_default();
            *known = (known.0 + 1, known.1 + ticks);
        }
    }
    threads
}

/// Name and ticks of `/proc/<pid>/task/<tid>/stat`. The name may hold anything between its parentheses.
fn thread(stat: &str) -> Option<(String, u64)> {
    let (head, tail) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut fields = tail.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((name.to_owned(), user + system))
}

/// Resident bytes by mapping: a file's name, `[stack]`, or `[anonymous]`, which is the heap.
fn memory(smaps: &str) -> BTreeMap<String, u64> {
    let mut samples = BTreeMap::new();
    let mut mapping = String::new();
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("Rss:") => {
                let kilobytes: u64 = words.next().and_then(|n| n.parse().ok()).unwrap_or(0);
                *samples.entry(mapping.clone()).or_default() += kilobytes * 1024;
            }
            Some(range) if range.contains('-') && !range.ends_with(':') => {
                mapping = words.nth(4).unwrap_or("[anonymous]").to_owned();
            }
            _ => {}
        }
    }
    samples.retain(|_, bytes| *bytes > 0);
    samples
}

impl Profile {
    fn now(kind: &'static str, unit: &'static str, samples: BTreeMap<String, u64>) -> Profile {
        Profile { kind, unit, samples, duration: Duration::ZERO }
    }

    fn text(&self) -> String {
        let mut lines: Vec<(&String, &u64)> = self.samples.iter().collect();
        lines.sort_by(|a, b| b.1.cmp(a.1));
        let mut text = format!("{} profile: total {} {}\n", self.kind, self.samples.values().sum::<u64>(), self.unit);
        for (name, value) in lines {
            let _ = writeln!(text, "{value} @ {name}");
        }
        text
    }

    fn gzipped(&self) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        // Writing to memory cannot fail.
        let _ = gzip.write_all(&self.encoded());
        gzip.finish().unwrap_or_default()
    }

    /// The message `perftools.profiles.Profile`: each name is a function with one place in it.
    fn encoded(&self) -> Vec<u8> {
        let mut strings: Vec<&str> = vec!["", self.kind, self.unit];
        let value_type = message(&[(1, 1), (2, 2)]);
        let mut out = Vec::new();
        bytes_field(&mut out, 1, &value_type);
        for (i, (name, value)) in self.samples.iter().enumerate() {
            let id = i as u64 + 1;
            strings.push(name);
            bytes_field(&mut out, 2, &message(&[(1, id), (2, *value)]));
            let mut location = message(&[(1, id)]);
            bytes_field(&mut location, 4, &message(&[(1, id)]));
            bytes_field(&mut out, 4, &location);
            bytes_field(&mut out, 5, &message(&[(1, id), (2, strings.len() as u64 - 1)]));
        }
        for text in strings {
            bytes_field(&mut out, 6, text.as_bytes());
        }
        let now = unix_time();
        out.extend(message(&[(9, now.as_nanos() as u64), (10, self.duration.as_nanos() as u64)]));
        bytes_field(&mut out, 11, &value_type);
        out.extend(message(&[(12, 1)]));
        out
    }
}

/// Number fields of a protobuf message.
fn message(fields: &[(u64, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (field, value) in fields {
        varint(&mut out, field << 3);
        varint(&mut out, *value);
    }
    out
}

fn bytes_field(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ADMIN_TOKEN, TestServer, USER_TOKEN};

    #[test]
    fn the_kernels_files() {
        let smaps = "55-56 r-xp 0 08:01 12   /bin/kubelith\nSize: 8 kB\nRss:    4 kB\n7f-80 rw-p 0 00:00 0\nRss: 8 kB\n\
                     81-82 rw-p 0 00:00 0 \nRss: 4 kB\n83-84 rw-p 0 00:00 0 [stack]\nRss: 0 kB\n";
        let expected = [("/bin/kubelith".to_owned(), 4096), ("[anonymous]".to_owned(), 12288)];
        assert_eq!(memory(smaps), expected.into());
        assert_eq!(thread("1 (a) b) S 2 3 4 5 6 7 8 9 10 11 15 5 0"), Some(("a) b".to_owned(), 20)));
    }

    #[test]
    fn messages() {
        assert_eq!(message(&[(1, 300), (2, 1)]), [0x08, 0xac, 0x02, 0x10, 0x01]);
        let profile = Profile::now("task", "count", [("x".to_owned(), 7)].into());
        let encoded = profile.encoded();
        for part in [&b"\x32\x01x"[..], b"\x12\x04\x08\x01\x10\x07", b"\x32\x04task", b"\x2a\x04\x08\x01\x10\x03"] {
            assert!(encoded.windows(part.len()).any(|w| w == part), "{part:?} in {encoded:?}");
        }
        assert_eq!(profile.text(), "task profile: total 7 count\n7 @ x\n");
    }

    #[tokio::test]
    async fn profiles_are_for_administrators() {
        let server = TestServer::start(|b| {
            let tasks = b.tasks();
            tasks.spawn_until_stopped("a-loop", std::future::pending());
            b.routes(|routes| install(routes, tasks))
        })
        .await;
        let tasks = server.get("/debug/pprof/goroutine?debug=1", ADMIN_TOKEN).await;
        assert!(tasks.text().contains("1 @ a-loop\n"), "{}", tasks.text());
        let cpu = server.get("/debug/pprof/profile?seconds=0", ADMIN_TOKEN).await;
        assert_eq!((cpu.status, &cpu.body[..2]), (200, &[0x1f, 0x8b][..]));
        assert!(server.get("/debug/pprof/heap?debug=1", ADMIN_TOKEN).await.text().contains("@ [anonymous]"));
        assert_eq!(server.get("/debug/pprof/nosuch", ADMIN_TOKEN).await.status, 404);
        assert_eq!(server.get("/debug/pprof/heap", USER_TOKEN).await.status, 403);
    }
}
