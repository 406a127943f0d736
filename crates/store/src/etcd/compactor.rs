//! Compaction of etcd, shared by any number of servers, kube-apiservers among them.
//!
//! They agree through one key, `compact_rev_key`. Its version is a clock: whoever moves it on from the tick
//! that it saw last does the compaction, up to the revision it saw at its own last tick; the others see
//! that they were late, take over the new tick and wait for the next interval.
//!
//! ```text
//! A: tick 4 seen, revision 900 noted ... five minutes ... moves 4 -> 5, compacts 900, notes 1500
//! B: tick 4 seen ................................. finds 5, notes 5 and 1510, does nothing
//! A dies; five minutes later B moves 5 -> 6 and compacts 1510
//! ```

use super::calls::Method;
use super::client::{CallError, Client, Kind};
use super::proto::{
    CompactionRequest, CompactionResponse, Compare, CompareResult, CompareTarget, CompareValue, Operation, Outcome,
    PutRequest, RangeRequest, RequestOp, TxnRequest, TxnResponse,
};
use super::watch::until_closed;
use crate::error::StoreError;
use crate::model::Revision;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

pub(super) const COMPACT_KEY: &[u8] = b"compact_rev_key";

/// What one server remembers between its turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tick {
    version: i64,
    revision: i64,
}

pub(super) async fn run(
    client: Arc<Client>,
    interval: Duration,
    compacted: Arc<AtomicI64>,
    mut closed: watch::Receiver<bool>,
) {
    let mut tick = Tick::default();
    loop {
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = until_closed(&mut closed) => return,
        }
        match turn(&client, tick).await {
            Ok((next, done)) => {
                tick = next;
                compacted.fetch_max(done.0, Ordering::Relaxed);
            }
            Err(error) => tracing::warn!(error = %StoreError::from(error), "compacting etcd failed"),
        }
    }
}

/// One turn: what to remember, and the revision that was compacted by whoever it was.
pub(super) async fn turn(client: &Client, seen: Tick) -> Result<(Tick, Revision), CallError> {
    let key = Bytes::from_static(COMPACT_KEY);
    let put = PutRequest { key: key.clone(), value: seen.revision.to_string().into(), lease: 0 };
    let get = RangeRequest { key: key.clone(), ..RangeRequest::default() };
    let request = TxnRequest {
        compare: vec![Compare {
            result: CompareResult::Equal as i32,
            target: CompareTarget::Version as i32,
            key,
            value: Some(CompareValue::Version(seen.version)),
        }],
        success: vec![RequestOp { request: Some(Operation::Put(put)) }],
        failure: vec![RequestOp { request: Some(Operation::Range(get)) }],
    };
    let response: TxnResponse = client.call(Kind::Write, Method::Txn, request).await?;
    let revision = response.header.map_or(0, |header| header.revision);
    if !response.succeeded {
        let found = response.responses.into_iter().find_map(|op| match op.response {
            Some(Outcome::Range(range)) => range.kvs.into_iter().next(),
            _ => None,
        });
        // Somebody deleted the key between our looks at it: start over.
        let Some(kv) = found else { return Ok((Tick { version: 0, revision }, Revision::ZERO)) };
        let compacted = std::str::from_utf8(&kv.value).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        return Ok((Tick { version: kv.version, revision }, Revision(compacted)));
    }
    let next = Tick { version: seen.version + 1, revision };
    if seen.revision == 0 {
        // The first turn only starts the clock.
        return Ok((next, Revision::ZERO));
    }
    let request = CompactionRequest { revision: seen.revision, physical: false };
    let _: CompactionResponse = client.call(Kind::Read, Method::Compact, request).await?;
    tracing::debug!(revision = seen.revision, "compacted etcd");
    Ok((next, Revision(seen.revision)))
}
