//! Many watchers while clients write what they watch: how many events arrive, in which order, and how late. All watch one
//! namespace, or each has a selector of its own, as nodes have.

use crate::Result;
use crate::client::{Call, Connection};
use crate::definitions;
use crate::objects::{self, Written};
use crate::outcome::{Gathered, Outcome};
use crate::target::Target;
use http_body_util::BodyExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    /// Between the last watcher and the first write. What a silent watcher takes shows at its end.
    pub settle: Duration,
}

/// What is watched and written.
#[derive(Clone, Copy)]
pub struct Watched {
    path: fn() -> String,
    object: fn(&Written) -> String,
    audience: Audience,
}

/// Who sees a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Audience {
    All,
    /// Writes go around; each watcher selects a node and sees those that are for it.
    One,
}

impl Watched {
    pub const CONFIG_MAPS: Watched =
        Watched { path: objects::config_maps, object: objects::stamped, audience: Audience::All };
    pub const WIDGETS: Watched =
        Watched { path: definitions::widgets, object: objects::stamped_widget, audience: Audience::All };
    pub const NODES: Watched = Watched { path: objects::pods, object: objects::stamped_pod, audience: Audience::One };

    /// What is added to the watch of a watcher.
    fn selector(self, watcher: usize) -> String {
        match self.audience {
            Audience::All => String::new(),
            Audience::One => format!("&fieldSelector=spec.nodeName%3D{}", node(watcher)),
        }
    }

    /// How many of the writes a watcher sees.
    fn seen_by(self, watcher: usize, crowd: &Crowd) -> usize {
        match self.audience {
            Audience::All => crowd.writes,
            Audience::One => crowd.writes / crowd.watchers + usize::from(watcher < crowd.writes % crowd.watchers),
        }
    }
}

fn node(watcher: usize) -> String {
    format!("watcher-{watcher}")
}

pub async fn run(target: &Target, crowd: &Crowd, what: Watched) -> Result<Outcome> {
    let path = (what.path)();
    let mut first = target.endpoint.connect().await?;
    let version = version(&mut first, &path).await?;
    let origin = Instant::now();
    let without = target.usage()?.resident;
    let is_written = Arc::new(AtomicBool::new(false));
    let mut watchers = Vec::new();
    let mut connection = first.clone();
    for index in 0..crowd.watchers {
        if index % crowd.per_connection.max(1) == 0 {
            connection = target.endpoint.connect().await?;
        }
        let selector = what.selector(index);
        let call = Call::get(format!("{path}?watch=1&resourceVersion={version}{selector}"));
        let response = connection.open(call).await?;
        if response.status() != 200 {
            return Err(format!("a watch answered {}", response.status()).into());
        }
        let writes = what.seen_by(index, crowd);
        let follower = Follower { origin, writes, is_written: is_written.clone() };
        watchers.push((writes, tokio::spawn(follower.follow(response.into_body()))));
    }
    tokio::time::sleep(crowd.settle).await;
    // Handshakes are another matter.
    let before = target.usage()?;
    let begin = Instant::now();
    let written = write(target, origin, crowd, what).await;
    is_written.store(true, Ordering::Relaxed);
    written?;
    let mut total = Outcome { elapsed: begin.elapsed(), ..Outcome::default() };
    for (writes, watcher) in watchers {
        let seen = watcher.await?;
        total.failures += writes - seen.latencies.len().min(writes) + seen.disordered;
        total.latencies.extend(seen.latencies);
        total.bytes += seen.bytes;
        total.elapsed = total.elapsed.max(seen.end.saturating_duration_since(begin));
    }
    let after = target.usage()?;
    total.usage = Some((before, after));
    total.crowd = Some(Gathered { watchers: crowd.watchers, without, silent: before.resident, after: after.resident });
    let clean =
        Call { method: "DELETE", ..Call::get(format!("{path}?labelSelector=bench%3Dwatched&gracePeriodSeconds=0")) };
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
    let Crowd { writes, rate, watchers, .. } = *crowd;
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
                let (name, moment) = (format!("watched-{index}"), origin.elapsed().as_micros());
                let body = (what.object)(&Written { name, moment, node: node(index % watchers) });
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
#[derive(Debug)]
struct Seen {
    /// When the last event came.
    end: Instant,
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

struct Follower {
    origin: Instant,
    /// That it is to see.
    writes: usize,
    /// All writes were sent.
    is_written: Arc<AtomicBool>,
}

impl Follower {
    /// Reads until all writes were seen, or nothing came for a while after the last one.
    async fn follow(self, mut body: hyper::body::Incoming) -> Seen {
        let mut seen = Seen { end: self.origin, latencies: Vec::new(), bytes: 0, disordered: 0, revision: 0 };
        let mut pending = Vec::new();
        while seen.latencies.len() < self.writes {
            let frame = match tokio::time::timeout(PATIENCE, body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Err(_) if !self.is_written.load(Ordering::Relaxed) => continue,
                _ => break,
            };
            let Some(data) = frame.data_ref() else { continue };
            let now = self.origin.elapsed();
            seen.end = Instant::now();
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_shared_out() {
        let crowd = Crowd { watchers: 3, per_connection: 1, writes: 8, rate: 1.0, settle: Duration::ZERO };
        let shares: Vec<usize> = (0..3).map(|watcher| Watched::NODES.seen_by(watcher, &crowd)).collect();
        assert_eq!(shares, [3, 3, 2]);
        assert_eq!(Watched::CONFIG_MAPS.seen_by(2, &crowd), 8);
        assert_eq!(Watched::NODES.selector(2), "&fieldSelector=spec.nodeName%3Dwatcher-2");
    }
}
