//! Many watchers of one namespace while clients write to it: how many events arrive, and how late.

use crate::Result;
use crate::client::{Call, Connection};
use crate::definitions;
use crate::loads::{Outcome, Size};
use crate::objects;
use crate::target::Target;
use http_body_util::BodyExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const WATCHERS_PER_CONNECTION: usize = 50;
/// Writers beside the watchers, and what they write in all.
const WRITERS: usize = 8;
const WRITES: usize = 500;
/// After the last write; an event that is later than this counts as lost.
const PATIENCE: Duration = Duration::from_secs(20);

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

pub async fn run(target: &Target, size: &Size, what: Watched) -> Result<Outcome> {
    let path = (what.path)();
    let mut first = target.endpoint.connect().await?;
    let version = version(&mut first, &path).await?;
    let origin = Instant::now();
    let mut watchers = Vec::new();
    let mut connection = first.clone();
    for index in 0..size.watchers {
        if index % WATCHERS_PER_CONNECTION == 0 {
            connection = target.endpoint.connect().await?;
        }
        let response = connection.open(Call::get(format!("{path}?watch=1&resourceVersion={version}"))).await?;
        if response.status() != 200 {
            return Err(format!("a watch answered {}", response.status()).into());
        }
        watchers.push(tokio::spawn(async move { follow(response.into_body(), origin).await }));
    }
    let begin = Instant::now();
    write(target, origin, what).await?;
    let mut total = Outcome::default();
    for watcher in watchers {
        let (latencies, bytes) = watcher.await?;
        total.failures += WRITES - latencies.len().min(WRITES);
        total.latencies.extend(latencies);
        total.bytes += bytes;
    }
    total.elapsed = begin.elapsed();
    let clean = Call { method: "DELETE", ..Call::get(path) };
    first.send(clean).await?;
    Ok(total)
}

async fn version(connection: &mut Connection, path: &str) -> Result<String> {
    let response = connection.open(Call::get(format!("{path}?limit=1"))).await?;
    let body = response.into_body().collect().await?.to_bytes();
    let list: serde_json::Value = serde_json::from_slice(&body)?;
    Ok(list["metadata"]["resourceVersion"].as_str().ok_or("a list has no resourceVersion")?.to_owned())
}

async fn write(target: &Target, origin: Instant, what: Watched) -> Result<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let mut connection = target.endpoint.connect().await?;
        let next = next.clone();
        writers.push(tokio::spawn(async move {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= WRITES {
                    return Result::Ok(());
                }
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

/// Reads until all writes were seen, or nothing came for a while.
async fn follow(mut body: hyper::body::Incoming, origin: Instant) -> (Vec<Duration>, usize) {
    let (mut latencies, mut bytes, mut pending) = (Vec::new(), 0, Vec::new());
    while latencies.len() < WRITES {
        let Ok(Some(Ok(frame))) = tokio::time::timeout(PATIENCE, body.frame()).await else { break };
        let Some(data) = frame.data_ref() else { continue };
        let now = origin.elapsed();
        bytes += data.len();
        pending.extend_from_slice(data);
        let mut start = 0;
        while let Some(length) = pending[start..].iter().position(|byte| *byte == b'\n') {
            if let Some(sent) = objects::stamp(&pending[start..start + length]) {
                latencies.push(now.saturating_sub(Duration::from_micros(sent as u64)));
            }
            start += length + 1;
        }
        pending.drain(..start);
    }
    (latencies, bytes)
}
