//! Loads of CustomResourceDefinitions: how soon one can be used, what many of them cost, and discovery of all.

use crate::Result;
use crate::client::{Call, Connection};
use crate::definitions::{self, DEFINITIONS, Named};
use crate::loads::Size;
use crate::outcome::Outcome;
use crate::target::Target;
use http_body_util::BodyExt;
use serde_json::Value;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Definitions whose way to the first object is measured.
const ROUNDS: usize = 50;
const DISCOVERIES: usize = 50;
/// An event that does not come within this time is lost.
const PATIENCE: Duration = Duration::from_secs(30);
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Creates a definition, waits until it is established, creates an object of it: one operation.
pub async fn ready(target: &Target) -> Result<Outcome> {
    let mut connection = target.endpoint.connect().await?;
    let mut outcome = Outcome::default();
    let mut watch = Watch::open(&mut connection.clone()).await?;
    let begin = Instant::now();
    for index in 0..ROUNDS {
        let named = Named::new("ready", index);
        let (definition, object) = (named.definition(), named.object());
        let sent = Instant::now();
        created(&mut connection, DEFINITIONS.to_owned(), definition).await?;
        watch.until_established(&[named.name()]).await?;
        created(&mut connection, named.objects(), object).await?;
        outcome.latencies.push(sent.elapsed());
    }
    outcome.elapsed = begin.elapsed();
    Ok(outcome)
}

/// Creates definitions one after another; the last one of all that are established ends it.
pub async fn many(target: &Target, size: &Size) -> Result<Outcome> {
    let mut connection = target.endpoint.connect().await?;
    let all: Vec<Named> = (0..size.definitions).map(|index| Named::new("many", index)).collect();
    let mut watch = Watch::open(&mut connection.clone()).await?;
    let names: Vec<String> = all.iter().map(Named::name).collect();
    let watching = tokio::spawn(async move { watch.until_established(&names).await });
    let mut outcome = Outcome::default();
    let begin = Instant::now();
    for named in &all {
        let definition = named.definition();
        let sent = Instant::now();
        created(&mut connection, DEFINITIONS.to_owned(), definition).await?;
        outcome.latencies.push(sent.elapsed());
    }
    watching.await??;
    outcome.elapsed = begin.elapsed();
    Ok(outcome)
}

/// Asks for aggregated discovery; the first time the document may have to be made.
pub async fn discovery(target: &Target) -> Result<Outcome> {
    let mut connection = target.endpoint.connect().await?;
    let mut outcome = Outcome::default();
    let begin = Instant::now();
    for _ in 0..DISCOVERIES {
        let sent = Instant::now();
        let (status, length) = connection.send(Call { accept: AGGREGATED, ..Call::get("/apis".to_owned()) }).await?;
        outcome.latencies.push(sent.elapsed());
        outcome.bytes += length;
        outcome.failures += usize::from(status != 200);
    }
    outcome.elapsed = begin.elapsed();
    Ok(outcome)
}

/// The kind that is compared with pods, if it is not there yet.
pub async fn prepare_widgets(target: &Target) -> Result<()> {
    let mut connection = target.endpoint.connect().await?;
    let (status, _) = connection.send(Call::get(format!("{}?limit=1", definitions::widgets()))).await?;
    if status == 200 {
        return Ok(());
    }
    let mut watch = Watch::open(&mut connection.clone()).await?;
    created(&mut connection, DEFINITIONS.to_owned(), definitions::widget_definition()).await?;
    watch.until_established(&["widgets.bench.example.com".to_owned()]).await
}

async fn created(connection: &mut Connection, path: String, body: String) -> Result<()> {
    match connection.send(Call::post(path.clone(), body)).await? {
        (201, _) => Ok(()),
        (status, _) => Err(format!("{path} answered {status}").into()),
    }
}

/// A watch of all definitions.
struct Watch {
    body: hyper::body::Incoming,
    pending: Vec<u8>,
}

impl Watch {
    async fn open(connection: &mut Connection) -> Result<Watch> {
        let response = connection.open(Call::get(format!("{DEFINITIONS}?watch=1"))).await?;
        if response.status() != 200 {
            return Err(format!("a watch answered {}", response.status()).into());
        }
        Ok(Watch { body: response.into_body(), pending: Vec::new() })
    }

    async fn until_established(&mut self, names: &[String]) -> Result<()> {
        let mut waiting: HashSet<&str> = names.iter().map(String::as_str).collect();
        while !waiting.is_empty() {
            let frame = tokio::time::timeout(PATIENCE, self.body.frame()).await?.ok_or("the watch ended")??;
            let Some(data) = frame.data_ref() else { continue };
            let searched = self.pending.len();
            self.pending.extend_from_slice(data);
            if !data.contains(&b'\n') {
                continue;
            }
            let end =
                self.pending[searched..].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| searched + at + 1);
            let lines: Vec<u8> = self.pending.drain(..end).collect();
            for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                // Parsing fifty kilobytes takes longer than finding what cannot be elsewhere.
                if line.windows(22).any(|text| text == b"\"InitialNamesAccepted\"") {
                    let event: Value = serde_json::from_slice(line)?;
                    waiting.remove(event["object"]["metadata"]["name"].as_str().unwrap_or_default());
                }
            }
        }
        Ok(())
    }
}
