//! From a request to a collector that speaks gRPC.

use bytes::Bytes;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubelith_http::{Body, BoxHandler, Reply, Request, Response};
use kubelith_observe::spans::otlp::{self, ExportTraceServiceRequest, any_value};
use kubelith_observe::spans::{Tracer, TracingConfig, TracingEndpoint};
use kubelith_outbound::egress::Route;
use kubelith_server::testing::{ADMIN_TOKEN, TestServer, USER_TOKEN, request};
use prost::Message;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Takes what it is sent and says so.
async fn collector() -> (String, mpsc::UnboundedReceiver<otlp::ResourceSpans>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, received) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let sender = sender.clone();
            let service = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let sender = sender.clone();
                async move {
                    assert_eq!(request.uri().path(), otlp::EXPORT);
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let message = ExportTraceServiceRequest::decode(&body[5..]).unwrap();
                    message.resource_spans.into_iter().for_each(|spans| sender.send(spans).unwrap());
                    let mut trailers = http::HeaderMap::new();
                    trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
                    let frames = [Frame::data(Bytes::from_static(&[0; 5])), Frame::trailers(trailers)];
                    let body = StreamBody::new(futures::stream::iter(frames.map(Ok::<_, Infallible>)));
                    Ok::<_, Infallible>(
                        hyper::Response::builder().header("content-type", "application/grpc").body(body).unwrap(),
                    )
                }
            });
            let http2 = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(http2.serve_connection(TokioIo::new(stream), service));
        }
    });
    (address, received)
}

fn echo() -> BoxHandler {
    Arc::new(|_: Request| -> Reply { Reply::Ready(Response::new(Body::from("{}"))) })
}

fn text<'a>(attributes: &'a [otlp::KeyValue], key: &str) -> &'a str {
    let value = attributes.iter().find(|a| a.key == key).and_then(|a| a.value.as_ref()?.value.as_ref());
    match value {
        Some(any_value::Value::Text(text)) => text,
        _ => "",
    }
}

#[tokio::test]
async fn spans_reach_the_collector() {
    let (address, mut received) = collector().await;
    let config = TracingConfig { endpoint: TracingEndpoint::Tcp(address), sampling_rate_per_million: 0 };
    let server = TestServer::start(|b| {
        let (tracer, sending) = Tracer::new(&config, &Route::Direct, "apiserver-x", b.tasks().stopping()).unwrap();
        b.tasks().spawn("span-export", sending);
        b.delegate(echo()).tracer(Some(tracer))
    })
    .await;
    let ask = |token: &str, context: &str| {
        let mut request = request("GET", "/apis/apps/v1/namespaces/n/deployments/d/scale?pretty=1", token);
        request.headers_mut().insert("traceparent", context.parse().unwrap());
        request
    };
    let sampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    server.send(ask(ADMIN_TOKEN, &sampled.replace("-01", "-00"))).await;
    // Strangers do not decide what is traced.
    server.send(ask(USER_TOKEN, sampled)).await;
    server.send(ask(ADMIN_TOKEN, sampled)).await;
    // What has come is sent before the server ends.
    server.stop().await.unwrap();
    let spans = received.recv().await.unwrap();
    assert_eq!(text(&spans.resource.unwrap().attributes, "service.instance.id"), "apiserver-x");
    let [span] = spans.scope_spans[0].spans.as_slice() else { panic!("{:?}", spans.scope_spans) };
    assert_eq!(span.name, "GET /apis/apps/v1/namespaces/{:namespace}/deployments/{:name}/scale");
    assert_eq!((span.trace_id[0], span.parent_span_id[0], span.span_id.len()), (0x0a, 0xb7, 8));
    assert_eq!(text(&span.attributes, "http.target"), "/apis/apps/v1/namespaces/n/deployments/d/scale?pretty=1");
    assert!(span.end_time_unix_nano >= span.start_time_unix_nano && span.status.is_none());
}

#[tokio::test]
async fn strangers_are_linked_when_they_are_taken() {
    let (address, mut received) = collector().await;
    let config = TracingConfig { endpoint: TracingEndpoint::Tcp(address), sampling_rate_per_million: 1_000_000 };
    let server = TestServer::start(|b| {
        let (tracer, sending) = Tracer::new(&config, &Route::Direct, "x", b.tasks().stopping()).unwrap();
        b.tasks().spawn("span-export", sending);
        b.delegate(echo()).tracer(Some(tracer))
    })
    .await;
    let mut request = request("GET", "/version", USER_TOKEN);
    let context = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    request.headers_mut().insert("traceparent", context.parse().unwrap());
    server.send(request).await;
    server.stop().await.unwrap();
    let spans = received.recv().await.unwrap();
    let span = &spans.scope_spans[0].spans[0];
    assert_eq!(span.links[0].trace_id[0], 0x0a);
    assert_ne!(span.trace_id, span.links[0].trace_id);
    assert!(span.parent_span_id.is_empty());
    assert_eq!(span.name, "GET");
}
