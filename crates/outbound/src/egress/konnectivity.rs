//! Tunnels through a konnectivity server: one gRPC stream for each connection, in which packets ask for it, carry its
//! bytes and end it.

use super::connect::{Failure, Stage};
use bytes::Bytes;
use futures::StreamExt;
use hyper_util::rt::TokioIo;
use kubelith_meta::random;
use std::path::Path;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tonic::codec::Streaming;
use tonic::transport::Endpoint;

const METHOD: &str = "/ProxyService/Proxy";
/// Between the connection's user and the stream: what one side may be ahead of the other.
const BUFFER_BYTES: usize = 64 << 10;
/// Packets on their way to the proxy.
const PACKETS: usize = 10;

const DIAL_REQUEST: i32 = 0;
const DIAL_RESPONSE: i32 = 1;
const CLOSE_REQUEST: i32 = 2;
const CLOSE_RESPONSE: i32 = 3;
const DATA: i32 = 4;
const DIAL_CLOSED: i32 = 5;

#[derive(Clone, PartialEq, prost::Message)]
struct Packet {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(message, optional, tag = "2")]
    dial_request: Option<DialRequest>,
    #[prost(message, optional, tag = "3")]
    dial_response: Option<DialResponse>,
    #[prost(message, optional, tag = "4")]
    data: Option<Data>,
    #[prost(message, optional, tag = "5")]
    close_request: Option<CloseRequest>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct DialRequest {
    #[prost(string, tag = "1")]
    protocol: String,
    #[prost(string, tag = "2")]
    address: String,
    #[prost(int64, tag = "3")]
    random: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct DialResponse {
    #[prost(string, tag = "1")]
    error: String,
    #[prost(int64, tag = "2")]
    connection: i64,
    #[prost(int64, tag = "3")]
    random: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct CloseRequest {
    #[prost(int64, tag = "1")]
    connection: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Data {
    #[prost(int64, tag = "1")]
    connection: i64,
    #[prost(bytes = "bytes", tag = "3")]
    data: Bytes,
}

/// A connection to `target` (`host:port`) through the proxy at `socket`. Dropping it ends the tunnel.
pub(super) async fn connect(socket: &Path, target: &str) -> Result<DuplexStream, Failure> {
    let (packets, outgoing) = mpsc::channel::<Packet>(PACKETS);
    let number = (random::random_bits() >> 1) as i64;
    let dial = DialRequest { protocol: "tcp".to_owned(), address: target.to_owned(), random: number };
    let dial = Packet { kind: DIAL_REQUEST, dial_request: Some(dial), ..Packet::default() };
    packets.send(dial).await.map_err(|_| (Stage::Connect, "tunnel is closed".to_owned()))?;
    let mut incoming = open(socket, outgoing).await.map_err(|why| (Stage::Connect, why))?;
    let connection = dialed(&mut incoming, number).await.map_err(|why| (Stage::Proxy, why))?;
    let (ours, theirs) = tokio::io::duplex(BUFFER_BYTES);
    let (from, to) = tokio::io::split(theirs);
    tokio::spawn(async move {
        // Either end of the connection ends both ways.
        tokio::select! {
            () = send(from, &packets, connection) => {}
            () = receive(&mut incoming, to) => {}
        }
        let close = CloseRequest { connection };
        let _ = packets.send(Packet { kind: CLOSE_REQUEST, close_request: Some(close), ..Packet::default() }).await;
    });
    Ok(ours)
}

/// The stream to the proxy and what comes from it.
async fn open(socket: &Path, outgoing: mpsc::Receiver<Packet>) -> Result<Streaming<Packet>, String> {
    let path = socket.to_owned();
    let connector = tower::service_fn(move |_: http::Uri| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    let channel = Endpoint::from_static("http://localhost").connect_with_connector(connector).await;
    let channel = channel.map_err(|why| format!("dial unix {}: {why}", socket.display()))?;
    let mut grpc = tonic::client::Grpc::new(channel);
    grpc.ready().await.map_err(|why| why.to_string())?;
    let outgoing = futures::stream::unfold(outgoing, |mut from| async move { Some((from.recv().await?, from)) });
    let codec = tonic_prost::ProstCodec::<Packet, Packet>::default();
    let path = http::uri::PathAndQuery::from_static(METHOD);
    let answer = grpc.streaming(tonic::Request::new(outgoing), path, codec).await;
    Ok(answer.map_err(|status| format!("rpc error: {}", status.message()))?.into_inner())
}

async fn dialed(incoming: &mut Streaming<Packet>, number: i64) -> Result<i64, String> {
    while let Some(packet) = incoming.next().await {
        let packet = packet.map_err(|status| format!("rpc error: {}", status.message()))?;
        match (packet.kind, packet.dial_response) {
            (DIAL_RESPONSE, Some(answer)) if answer.random == number => {
                return if answer.error.is_empty() { Ok(answer.connection) } else { Err(answer.error) };
            }
            (DIAL_CLOSED, _) => return Err("dial closed".to_owned()),
            _ => {}
        }
    }
    Err("tunnel closed".to_owned())
}

async fn send(mut from: ReadHalf<DuplexStream>, packets: &mpsc::Sender<Packet>, connection: i64) {
    let mut buffer = bytes::BytesMut::new();
    while let Ok(1..) = from.read_buf(&mut buffer).await {
        let data = Data { connection, data: buffer.split().freeze() };
        if packets.send(Packet { kind: DATA, data: Some(data), ..Packet::default() }).await.is_err() {
            return;
        }
    }
}

async fn receive(incoming: &mut Streaming<Packet>, mut to: WriteHalf<DuplexStream>) {
    while let Some(Ok(packet)) = incoming.next().await {
        if packet.kind == CLOSE_RESPONSE {
            break;
        }
        let data = packet.data.filter(|_| packet.kind == DATA).unwrap_or_default();
        if to.write_all(&data.data).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt, StreamBody};
    use hyper::body::{Frame, Incoming};
    use hyper_util::rt::TokioExecutor;
    use prost::Message;
    use std::convert::Infallible;

    type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>;

    fn framed(packet: &Packet) -> Frame<Bytes> {
        // A message in gRPC: a byte for compression, four for the length.
        let message = packet.encode_to_vec();
        let mut frame = vec![0];
        frame.extend_from_slice(&(message.len() as u32).to_be_bytes());
        frame.extend_from_slice(&message);
        Frame::data(frame.into())
    }

    /// What the proxy answers to a packet: it knows one address, and says everything back.
    fn answer(packet: &Packet) -> Option<Packet> {
        match packet.kind {
            DIAL_REQUEST => {
                let asked = packet.dial_request.clone()?;
                let error = if asked.address == "10.0.0.1:443" { String::new() } else { "no such host".to_owned() };
                let response = DialResponse { error, connection: 7, random: asked.random };
                Some(Packet { kind: DIAL_RESPONSE, dial_response: Some(response), ..Packet::default() })
            }
            DATA => Some(packet.clone()).filter(|p| p.data.as_ref().is_some_and(|d| d.connection == 7)),
            CLOSE_REQUEST => Some(Packet { kind: CLOSE_RESPONSE, ..Packet::default() }),
            _ => None,
        }
    }

    async fn proxy(request: http::Request<Incoming>) -> Result<http::Response<Body>, Infallible> {
        assert_eq!(request.uri().path(), METHOD);
        let (send, receive) = mpsc::channel::<Result<Frame<Bytes>, Infallible>>(PACKETS);
        tokio::spawn(async move {
            let (mut body, mut bytes) = (request.into_body(), bytes::BytesMut::new());
            while let Some(Ok(frame)) = body.frame().await {
                bytes.extend_from_slice(frame.data_ref().map_or(&[][..], |d| d));
                while bytes.len() >= 5 {
                    let length = u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize;
                    if bytes.len() < 5 + length {
                        break;
                    }
                    let message = bytes.split_to(5 + length).freeze().slice(5..);
                    if let Some(packet) = answer(&Packet::decode(message).unwrap()) {
                        let _ = send.send(Ok(framed(&packet))).await;
                    }
                }
            }
        });
        let frames = futures::stream::unfold(receive, |mut from| async move { Some((from.recv().await?, from)) });
        let body = StreamBody::new(frames).boxed_unsync();
        Ok(http::Response::builder().header("content-type", "application/grpc").body(body).unwrap())
    }

    #[tokio::test]
    async fn bytes_go_through_and_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("proxy.sock");
        let listener = tokio::net::UnixListener::bind(&socket).unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = hyper::service::service_fn(proxy);
                let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection);
            }
        });
        let mut tunnel = connect(&socket, "10.0.0.1:443").await.unwrap();
        tunnel.write_all(b"hello").await.unwrap();
        let mut back = [0; 5];
        tunnel.read_exact(&mut back).await.unwrap();
        assert_eq!(&back, b"hello");
        assert_eq!(connect(&socket, "elsewhere:1").await.err().unwrap(), (Stage::Proxy, "no such host".to_owned()));
        let (stage, nobody) = connect(&folder.path().join("nobody"), "10.0.0.1:443").await.err().unwrap();
        assert_eq!(stage, Stage::Connect);
        assert!(nobody.starts_with("dial unix "), "{nobody}");
    }
}
