//! Loads on a store with many objects: watches that begin, writes while it is backed up and while its past is compacted, a restart.

use crate::Result;
use crate::client::Call;
use crate::loads::{End, Load, Size, put_until};
use crate::outcome::Outcome;
use crate::process::Usage;
use crate::target::Target;
use http_body_util::BodyExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// With this flag a store lets go of its past while the load runs: it marks each second how far it was.
pub const COMPACTING: &str = "--etcd-compaction-interval=5s";
/// Several times that interval, so that most of the load's writes are made beside the sweeping of older ones.
const COMPACTED_FOR: Duration = Duration::from_secs(20);
/// Watches that are begun one after another on a connection, which are all open in the end.
const ON_A_CONNECTION: usize = 100;

/// Watches are begun at the present, each until its answer has begun: one operation.
pub async fn watch_starts(target: &Target, size: &Size) -> Result<Outcome> {
    let path = size.kind.path();
    let mut connection = target.endpoint.connect().await?;
    let response = connection.open(Call::get(format!("{path}?limit=1"))).await?;
    let body = response.into_body().collect().await?.to_bytes();
    let list: serde_json::Value = serde_json::from_slice(&body)?;
    let version = list["metadata"]["resourceVersion"].as_str().ok_or("a list has no resourceVersion")?;
    let mut outcome = Outcome::default();
    let begin = Instant::now();
    while begin.elapsed() < size.duration {
        let mut connection = target.endpoint.connect().await?;
        let mut open = Vec::new();
        for _ in 0..ON_A_CONNECTION {
            let sent = Instant::now();
            let watch = Call::get(format!("{path}?watch=1&resourceVersion={version}"));
            let response = connection.open(watch).await?;
            outcome.latencies.push(sent.elapsed());
            outcome.failures += usize::from(response.status() != 200);
            open.push(response);
        }
    }
    outcome.elapsed = begin.elapsed();
    Ok(outcome)
}

/// Objects are patched as long as a backup takes.
pub async fn beside_backup(load: Load, target: &Target, size: &Size) -> Result<Outcome> {
    let server = target.started()?;
    let file = server.dir.path().join("backup");
    let mut command = tokio::process::Command::new(server.binary());
    command.args(["store", "backup", "--data-dir"]).arg(server.data()).arg(&file).stdout(std::process::Stdio::null());
    let over = Arc::new(AtomicBool::new(false));
    let begin = Instant::now();
    let told = over.clone();
    let backup = tokio::spawn(async move {
        let status = command.status().await;
        told.store(true, Ordering::Relaxed);
        (status, begin.elapsed())
    });
    let mut outcome = put_until(End::Told(over), load, target, size, None).await?;
    let (status, took) = backup.await?;
    if !status?.success() {
        return Err("the backup failed".into());
    }
    let bytes = std::fs::metadata(&file)?.len();
    std::fs::remove_file(&file)?;
    outcome.note = format!("a backup of {} MB in {:.1} s", bytes >> 20, took.as_secs_f64());
    Ok(outcome)
}

/// Objects are patched while the past is let go of; the server was started to do that at once.
pub async fn while_compacting(load: Load, target: &Target, size: &Size) -> Result<Outcome> {
    let end = End::Elapsed(size.duration.max(COMPACTED_FOR));
    put_until(end, load, target, size, None).await
}

/// The server is ended and started again: one operation, until it is ready.
pub fn restart(target: &mut Target) -> Result<Outcome> {
    let took = target.restart()?;
    let note = format!("{} MB at most on the way", target.peak()? >> 20);
    let usage = Some((Usage::default(), target.usage()?));
    Ok(Outcome { latencies: vec![took], elapsed: took, usage, note, ..Outcome::default() })
}
