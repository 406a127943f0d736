//! A watch on etcd that outlives connections: it resumes after the last revision it delivered.
//!
//! Each watch has a stream of its own, as kube-apiserver arranges it: a progress request is answered only
//! when all watches on the stream are in sync, so watches should not wait for each other.

use super::calls::Method;
use super::client::{Client, is_outage};
use super::proto::{self, WatchCall, WatchCreateRequest, WatchProgressRequest, WatchResponse};
use super::{key_and_end, to_kv};
use crate::error::StoreError;
use crate::model::Revision;
use crate::watch::{Event, Previous, Watch, WatchBatch, WatchControl, WatchError, WatchRequest};
use futures::StreamExt;
use http::{HeaderName, HeaderValue};
use kubelith_grpc::Call;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

/// Batches that wait for a slow receiver. Beyond that etcd is not read from, and keeps the rest itself.
const BUFFERED_BATCHES: usize = 16;
/// Pause between attempts to connect: first, and at most.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);
/// Tells etcd to end the stream when the member has lost its leader, instead of going quiet.
const REQUIRE_LEADER: HeaderName = HeaderName::from_static("hasleader");

type Output = mpsc::Sender<Result<WatchBatch, WatchError>>;

struct Task {
    client: Arc<Client>,
    request: WatchRequest,
    output: Output,
    progress: mpsc::Receiver<()>,
    closed: watch::Receiver<bool>,
}

/// How a connection ended.
enum End {
    /// Connect again.
    Lost(Status),
    /// Tell the receiver and stop.
    Failed(WatchError),
    /// Nobody listens any more.
    Unwanted,
}

/// Starts a watch. `trusted` says whether this etcd's answers to progress requests can be believed.
pub(super) fn start(
    client: Arc<Client>,
    request: WatchRequest,
    closed: watch::Receiver<bool>,
    trusted: impl Fn() -> bool + Send + Sync + 'static,
) -> Watch {
    let (output, batches) = mpsc::channel(BUFFERED_BATCHES);
    // One request that waits stands for any number of them.
    let (ask, progress) = mpsc::channel(1);
    let task = Task { client, request, output, progress, closed };
    tokio::spawn(task.run());
    let control = WatchControl::new(move || {
        if trusted() {
            let _ = ask.try_send(());
        }
    });
    Watch::new(ReceiverStream::new(batches).boxed(), control)
}

impl Task {
    async fn run(mut self) {
        let mut pause = RETRY_FIRST;
        loop {
            let after = self.request.after;
            match self.connection().await {
                End::Unwanted => return,
                End::Failed(error) => {
                    let _ = self.output.send(Err(error)).await;
                    return;
                }
                End::Lost(status) => {
                    tracing::debug!(after = after.0, error = %status, "an etcd watch lost its connection");
                    if self.request.after > after {
                        pause = RETRY_FIRST;
                    }
                    tokio::select! {
                        () = tokio::time::sleep(pause) => {}
                        () = self.output.closed() => return,
                    }
                    pause = (pause * 2).min(RETRY_MAX);
                }
            }
        }
    }

    /// One connection from the first message to its end.
    async fn connection(&mut self) -> End {
        let (index, channel) = self.client.pick();
        let metadata = http::HeaderMap::from_iter([(REQUIRE_LEADER, HeaderValue::from_static("true"))]);
        let client = self.client.clone();
        let mut counted = client.counts.begin(Method::Watch);
        let create = proto::WatchRequest { call: Some(WatchCall::Create(self.create())) };
        // Sent before the stream is open: etcd answers the call only after the first message.
        let opening = async {
            let mut call = Call::streaming(&channel, Method::Watch.path(), metadata).await?;
            call.send(&create)?;
            Ok::<_, Status>(call)
        };
        let opened = tokio::select! {
            opened = opening => opened,
            () = self.output.closed() => return End::Unwanted,
            () = until_closed(&mut self.closed) => return End::Failed(WatchError::Closed),
        };
        let mut call = match opened {
            Ok(call) => call,
            Err(status) => {
                counted.ended(status.code());
                self.client.failed(index);
                return End::Lost(status);
            }
        };
        counted.sent();
        let mut fragments = Vec::new();
        loop {
            tokio::select! {
                response = call.next() => {
                    let ended = match response {
                        Ok(Some(response)) => {
                            counted.received();
                            self.take(response, &mut fragments).await
                        }
                        Ok(None) => {
                            counted.ended(Code::Ok);
                            Some(End::Lost(Status::unavailable("the stream ended")))
                        }
                        Err(status) => {
                            counted.ended(status.code());
                            Some(End::Lost(status))
                        }
                    };
                    if let Some(end) = ended {
                        if matches!(&end, End::Lost(status) if is_outage(status)) {
                            self.client.failed(index);
                        }
                        return end;
                    }
                }
                Some(()) = self.progress.recv() => {
                    let progress = WatchCall::Progress(WatchProgressRequest {});
                    // A failure shows with the next answer.
                    let _ = call.send(&proto::WatchRequest { call: Some(progress) });
                    counted.sent();
                }
                () = self.output.closed() => return End::Unwanted,
                () = until_closed(&mut self.closed) => return End::Failed(WatchError::Closed),
            }
        }
    }

    fn create(&self) -> WatchCreateRequest {
        let (key, range_end) = key_and_end(&self.request.range);
        WatchCreateRequest {
            key,
            range_end,
            start_revision: self.request.after.0 + 1,
            // How often is the server's setting; asking for it costs nothing.
            progress_notify: true,
            prev_kv: self.request.previous == Previous::Include,
            fragment: true,
        }
    }

    async fn take(&mut self, response: WatchResponse, fragments: &mut Vec<proto::Event>) -> Option<End> {
        if response.canceled {
            return Some(canceled(&response));
        }
        let revision = Revision(response.header.as_ref().map_or(0, |header| header.revision));
        if response.created {
            return None;
        }
        let is_progress = response.events.is_empty() && fragments.is_empty() && !response.fragment;
        fragments.extend(response.events);
        if response.fragment {
            return None;
        }
        let mut events = Vec::with_capacity(fragments.len());
        for event in fragments.drain(..) {
            match to_event(event) {
                Some(event) if event.revision() > self.request.after => events.push(event),
                Some(_) => {}
                None => {
                    let error = StoreError::Corrupt("etcd sent an event without a key".into());
                    return Some(End::Failed(WatchError::Store(error)));
                }
            }
        }
        // A watch that catches up gets events with a header of the newest revision: only its events count.
        let delivered = match events.last() {
            Some(last) => last.revision(),
            None if is_progress => revision,
            None => return None,
        };
        // Progress from before the revision that the watch begins at would take it back.
        if delivered < self.request.after {
            return None;
        }
        self.request.after = delivered;
        let batch = WatchBatch { events, revision: delivered };
        tokio::select! {
            sent = self.output.send(Ok(batch)) => sent.is_err().then_some(End::Unwanted),
            () = until_closed(&mut self.closed) => Some(End::Failed(WatchError::Closed)),
        }
    }
}

/// Also returns when the store is gone altogether.
pub(super) async fn until_closed(closed: &mut watch::Receiver<bool>) {
    let _ = closed.wait_for(|closed| *closed).await;
}

fn canceled(response: &WatchResponse) -> End {
    if response.compact_revision != 0 {
        return End::Failed(WatchError::Compacted { compacted: Revision(response.compact_revision) });
    }
    let reason = &response.cancel_reason;
    if reason.contains("required revision has been compacted") {
        return End::Failed(WatchError::Compacted { compacted: Revision::ZERO });
    }
    if reason.contains("no leader") || reason.is_empty() {
        return End::Lost(Status::unavailable(format!("canceled by etcd: {reason}")));
    }
    End::Failed(WatchError::Store(StoreError::Unavailable(format!("watch canceled by etcd: {reason}"))))
}

fn to_event(event: proto::Event) -> Option<Event> {
    let kv = event.kv?;
    let prev = event.prev_kv.map(to_kv);
    Some(if event.r#type == proto::EventType::Delete as i32 {
        Event::Delete { key: kv.key, revision: Revision(kv.mod_revision), prev }
    } else {
        Event::Put { kv: to_kv(kv), prev }
    })
}
