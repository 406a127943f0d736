//! Many watchers of one namespace while clients write to it: how many events arrive, in which order, and how late.

use crate::Result;
use crate::client::{Call, Connection};
use crate::definitions;
use crate::loads::Outcome;
use crate::objects;
use crate::target::Target;
use http_body_util::BodyExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Writers beside the watchers: enough that the rate is held if each of them has to wait.
const WRITERS: usize = 100;
/// After the last write; an event that is later than this counts as lost.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many watch, and what goes on meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Crowd {
    pub watchers: usize,
    /// 1: each watcher is a client of its own, as nodes are.
    pub per_connection: usize,
    pub writes: usize,
    /// In a second, if the server can.
    pub rate: f64,
}

/// What is watched and written.
#[derive(Clone, Copy)]
pub struct Watched {
    path: fn() -> String,
    object: fn(&str, u128) -> String,
}

impl Watched {
    pub const CONFIG_MAPS: Watched = Watched { path: objects::config_maps, object: objects::stamped };
    pub const WIDGETS: Watched = Watched { path: definitions::widgets, object: objects::stamped_widget };
}

pub async fn run(target: &Target, crowd: &Crowd, what: Watched) -> Result<Outcome> {
    let path = (what.path)();
    let mut first = target.endpoint.connect().await?;
    let version = version(&mut first, &path).await?;
    let origin = Instant::now();
    let mut watchers = Vec::new();
    let mut connection = first.clone();
    for index in 0..crowd.watchers {
        if index % crowd.per_connection.max(1) == 0 {
            connection = target.endpoint.connect().await?;
        }
        let response = connection.open(Call::get(format!("{path}?watch=1&resourceVersion={version}"))).await?;
        if response.status() != 200 {
            return Err(format!("a watch answered {}", response.status()).into());
        }
        watchers.push(tokio::spawn(follow(response.into_body(), origin, crowd.writes)));
    }
    // Handshakes are another matter.
    let before = target.usage()?;
    let begin = Instant::now();
    write(target, origin, crowd, what).await?;
    let mut total = Outcome::default();
    for watcher in watchers {
        let seen = watcher.await?;
        total.failures += crowd.writes - seen.latencies.len().min(crowd.writes) + seen.disordered;
        total.latencies.extend(seen.latencies);
        total.bytes += seen.bytes;
    }
    total.elapsed = begin.elapsed();
    total.usage = Some((before, target.usage()?));
    let clean = Call { method: "DELETE", ..Call::get(format!("{path}?labelSelector=bench%3Dwatched")) };
    first.send(clean).await?;
    Ok(total)
}

async fn version(connection: &mut Connection, path: &str) -> Result<String> {
    let response = connection.open(Call::get(format!("{path}?limit=1"))).await?;
    let body = response.into_body().collect().await?.to_bytes();
    let list: serde_json::Value = serde_json::from_slice(&body)?;
    Ok(list["metadata"]["resourceVersion"].as_str().ok_or("a list has no resourceVersion")?.to_owned())
}

async fn write(target: &Target, origin: Instant, crowd: &Crowd, what: Watched) -> Result<()> {
    let Crowd { writes, rate, .. } = *crowd;
    let next = Arc::new(AtomicUsize::new(0));
    let begin = tokio::time::Instant::now();
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let mut connection = target.endpoint.connect().await?;
        let next = next.clone();
        writers.push(tokio::spawn(async move {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= writes {
                    return Result::Ok(());
                }
                tokio::time::sleep_until(begin + Duration::from_secs_f64(index as f64 / rate)).await;
                let body = (what.object)(&format!("watched-{index}"), origin.elapsed().as_micros());
                let (status, _) = connection.send(Call::post((what.path)(), body)).await?;
                if status != 201 {
                    return Err(format!("a write answered {status}").into());
                }
            }
        }));
    }
    for writer in writers {
        writer.await??;
    }
    Ok(())
}

/// What a watcher saw.
#[derive(Debug, Default)]
struct Seen {
    latencies: Vec<Duration>,
    bytes: usize,
    /// Events that are not newer than the one before.
    disordered: usize,
    revision: u64,
}

impl Seen {
    fn event(&mut self, event: &[u8], now: Duration) {
        let Some(sent) = objects::stamp(event) else { return };
        self.latencies.push(now.saturating_sub(Duration::from_micros(sent as u64)));
        let revision = objects::revision(event).unwrap_or(0);
        self.disordered += usize::from(revision <= self.revision);
        self.revision = revision;
    }
}

/// Reads until all writes were seen, or nothing came for a while.
async fn follow(mut body: hyper::body::Incoming, origin: Instant, writes: usize) -> Seen {
    let (mut seen, mut pending) = (Seen::default(), Vec::new());
    while seen.latencies.len() < writes {
        let Ok(Some(Ok(frame))) = tokio::time::timeout(PATIENCE, body.frame()).await else { break };
        let Some(data) = frame.data_ref() else { continue };
        let now = origin.elapsed();
        seen.bytes += data.len();
        pending.extend_from_slice(data);
        let mut start = 0;
        while let Some(length) = memchr::memchr(b'\n', &pending[start..]) {
            seen.event(&pending[start..start + length], now);
            start += length + 1;
        }
        pending.drain(..start);
    }
    seen
}
