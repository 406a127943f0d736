//! Sends spans in batches.

use super::config::TracingEndpoint;
use super::otlp::{
    self, ExportTraceServiceRequest, ExportTraceServiceResponse, Resource, ResourceSpans, Scope, ScopeSpans,
};
use super::{Attribute, Span};
use kubelith_outbound::egress::Route;
use kubelith_outbound::grpc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};

/// Spans of one message.
const BATCH: usize = 512;
/// Between the first span of a batch and its sending.
const DELAY: Duration = Duration::from_secs(5);
/// Of an endpoint that names none.
const DEFAULT_PORT: u16 = 80;
/// For one message; what is not taken by then is lost.
const TIMEOUT: Duration = Duration::from_secs(10);

pub struct Exporter {
    channel: Channel,
    resource: Resource,
}

impl Exporter {
    pub fn new(endpoint: &TracingEndpoint, route: &Route, instance: &str) -> Result<Exporter, String> {
        let channel = match endpoint {
            TracingEndpoint::Tcp(at) => {
                let endpoint = Endpoint::from_shared(format!("http://{at}"));
                let endpoint = endpoint.map_err(|e| format!("tracing endpoint {at:?}: {e}"))?;
                grpc::by_route(&endpoint, route, DEFAULT_PORT)
            }
            TracingEndpoint::Unix(path) => grpc::unix(path.clone()),
        };
        let text = |text: &str| Attribute::Text(text.into());
        let attributes = vec![
            otlp::attribute("service.name", text("apiserver")),
            otlp::attribute("service.instance.id", text(instance)),
        ];
        Ok(Exporter { channel, resource: Resource { attributes } })
    }

    /// Until the server ends; what has come by then is sent.
    pub async fn run(self, mut spans: mpsc::Receiver<Span>, stopping: CancellationToken) {
        let mut batch = Vec::new();
        loop {
            let first = tokio::select! {
                span = spans.recv() => span,
                () = stopping.cancelled() => None,
            };
            let Some(first) = first else { break };
            batch.push(first);
            let full = async {
                while batch.len() < BATCH {
                    match spans.recv().await {
                        Some(span) => batch.push(span),
                        None => break,
                    }
                }
            };
            tokio::select! {
                () = full => {}
                () = tokio::time::sleep(DELAY) => {}
                () = stopping.cancelled() => {}
            }
            self.send(std::mem::take(&mut batch)).await;
        }
        while let Ok(span) = spans.try_recv() {
            batch.push(span);
        }
        if !batch.is_empty() {
            self.send(batch).await;
        }
    }

    async fn send(&self, spans: Vec<Span>) {
        let count = spans.len();
        let scope_spans = ScopeSpans {
            scope: Some(Scope { name: "kubelith".into() }),
            spans: spans.into_iter().map(Into::into).collect(),
        };
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![scope_spans],
            }],
        };
        let why = match tokio::time::timeout(TIMEOUT, self.call(request)).await {
            Ok(Ok(())) => return,
            Ok(Err(why)) => why,
            Err(_) => "no answer in time".to_owned(),
        };
        tracing::warn!(err = why, spans = count, "traces were not taken");
    }

    async fn call(&self, request: ExportTraceServiceRequest) -> Result<(), String> {
        let mut grpc = tonic::client::Grpc::new(self.channel.clone());
        grpc.ready().await.map_err(|e| e.to_string())?;
        let codec = tonic_prost::ProstCodec::<ExportTraceServiceRequest, ExportTraceServiceResponse>::default();
        let path = http::uri::PathAndQuery::from_static(otlp::EXPORT);
        grpc.unary(tonic::Request::new(request), path, codec).await.map(drop).map_err(|e| e.to_string())
    }
}
