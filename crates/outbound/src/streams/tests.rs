//! Clients and kubelets that meet here: a WebSocket on the one side, a server that speaks SPDY on the other.

use super::spdy::{Frame, Reader, Writer};
use super::{Streams, command, tunnel};
use crate::proxy::{Target, Transport};
use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::uri::{Authority, PathAndQuery};
use kubelith_http::upgrade::UpgradeSlot;
use kubelith_http::{Request, RequestBody, Response};
use kubelith_meta::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// A kubelet that takes one connection. It answers with `answer`, and goes on as `then` says if that agrees.
async fn kubelet<F>(answer: String, then: impl FnOnce(String, TcpStream) -> F + Send + 'static) -> Target
where
    F: Future<Output = ()> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let authority = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(connection.read_u8().await.unwrap());
        }
        connection.write_all(answer.as_bytes()).await.unwrap();
        then(String::from_utf8(head).unwrap(), connection).await;
    });
    Target {
        authority: Authority::try_from(authority).unwrap(),
        path_and_query: PathAndQuery::from_static("/exec/ns/pod/c?command=sh"),
    }
}

fn agrees(protocol: &str) -> String {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\
         X-Stream-Protocol-Version: {protocol}\r\n\r\n"
    )
}

fn request(protocol: &str) -> (Request, UpgradeSlot) {
    let slot = UpgradeSlot::default();
    let request = http::Request::builder()
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("sec-websocket-protocol", protocol)
        .extension(slot.clone())
        .body(RequestBody::Full(None));
    (request.unwrap().into(), slot)
}

type Client = WebSocketStream<DuplexStream>;

/// The client's end of a connection that was answered with 101.
async fn client(answer: &Response, slot: &UpgradeSlot) -> Client {
    assert_eq!(answer.status(), http::StatusCode::SWITCHING_PROTOCOLS);
    let (near, far) = tokio::io::duplex(1 << 20);
    assert!(slot.fulfil(far).is_ok());
    WebSocketStream::from_raw_socket(near, Role::Client, None).await
}

async fn exec(target: Target, streams: Streams) -> Client {
    let (request, slot) = request(command::PROTOCOL);
    let answer = command::serve(request, Arc::new(Transport::new(None).unwrap()), target, streams, drop);
    assert_eq!(answer.headers()["sec-websocket-protocol"], command::PROTOCOL);
    client(&answer, &slot).await
}

/// All that comes until the end, joined by channel. kubectl takes any end but a normal one for a failure.
async fn heard(client: &mut Client) -> BTreeMap<u8, Vec<u8>> {
    let mut heard = BTreeMap::<u8, Vec<u8>>::new();
    loop {
        match client.next().await {
            Some(Ok(Message::Binary(data))) => heard.entry(data[0]).or_default().extend_from_slice(&data[1..]),
            Some(Ok(Message::Close(last))) => {
                assert_eq!(last.map(|last| last.code), Some(CloseCode::Normal));
                return heard;
            }
            Some(Ok(_)) => {}
            other => panic!("an end without a word: {other:?}"),
        }
    }
}

fn verdict(heard: &BTreeMap<u8, Vec<u8>>) -> Value {
    kubelith_codec::json::parse(&heard[&3]).unwrap()
}

type Ends = (Reader<ReadHalf<TcpStream>>, Writer<WriteHalf<TcpStream>>);

/// Agrees to as many streams as are opened, and finds them by their names.
async fn accept(connection: TcpStream, count: usize) -> (Ends, BTreeMap<String, u32>) {
    let (from, to) = tokio::io::split(connection);
    let (mut reader, mut writer) = (Reader::new(from), Writer::new(to));
    let mut streams = BTreeMap::new();
    while streams.len() < count {
        let Some(Frame::Opened { id, names }) = reader.next().await.unwrap() else { panic!("a stream was expected") };
        assert_eq!(names[0].0, "streamtype");
        writer.agree(id).await.unwrap();
        streams.insert(names[0].1.clone(), id);
    }
    ((reader, writer), streams)
}

const ALL: Streams = Streams { stdin: true, stdout: true, stderr: true, tty: false };

#[tokio::test]
async fn a_command_is_spoken_to_and_ends() {
    let target = kubelet(agrees("v4.channel.k8s.io"), |head, connection| async move {
        assert!(head.starts_with("POST /exec/ns/pod/c?command=sh HTTP/1.1\r\n"), "{head}");
        assert!(head.to_ascii_lowercase().contains("x-stream-protocol-version: v4.channel.k8s.io"), "{head}");
        let ((mut reader, mut writer), streams) = accept(connection, 4).await;
        writer.ping(2).await.unwrap();
        // Says back what it hears, in capitals, and complains once.
        writer.data(streams["stderr"], b"careful", true).await.unwrap();
        let (mut is_over, mut is_ping_answered) = (false, false);
        while !(is_over && is_ping_answered) {
            match reader.next().await.unwrap().unwrap() {
                Frame::Data { id, data, last } if id == streams["stdin"] => {
                    writer.data(streams["stdout"], &data.to_ascii_uppercase(), last).await.unwrap();
                    is_over |= last;
                }
                Frame::Ping { id: 2 } => is_ping_answered = true,
                other => panic!("{other:?}"),
            }
        }
        let status = br#"{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"3"}]}}"#;
        writer.data(streams["error"], status, true).await.unwrap();
    });
    let mut client = exec(target.await, ALL).await;
    for message in [&b"\0hello "[..], b"\0world", b"\xff\0"] {
        client.send(Message::Binary(Bytes::from_static(message))).await.unwrap();
    }
    let heard = heard(&mut client).await;
    assert_eq!((&heard[&1][..], &heard[&2][..]), (&b"HELLO WORLD"[..], &b"careful"[..]));
    let verdict = verdict(&heard);
    assert_eq!(verdict.str_at(&["reason"]), "NonZeroExitCode");
    assert_eq!(
        verdict.str_at(&["message"]),
        "command terminated with non-zero exit code: command terminated with exit code 3"
    );
}

#[tokio::test]
async fn terminals_have_sizes() {
    let target = kubelet(agrees("v4.channel.k8s.io"), |_, connection| async move {
        let ((mut reader, mut writer), streams) = accept(connection, 4).await;
        let Some(Frame::Data { id, data, .. }) = reader.next().await.unwrap() else { panic!() };
        assert_eq!(id, streams["resize"]);
        writer.data(streams["stdout"], &data, true).await.unwrap();
        writer.data(streams["error"], br#"{"status":"Success"}"#, true).await.unwrap();
    });
    let mut client = exec(target.await, Streams { tty: true, ..ALL }).await;
    client.send(Message::Binary(Bytes::from_static(b"\x04{\"Width\":80,\"Height\":24}"))).await.unwrap();
    let heard = heard(&mut client).await;
    assert_eq!(heard[&1], b"{\"Width\":80,\"Height\":24}\n");
    assert_eq!(verdict(&heard).str_at(&["status"]), "Success");
}

#[tokio::test]
async fn refusals_are_told_on_the_channel_for_errors() {
    let refuses = |answer: &str| kubelet(answer.to_owned(), |_, _| async {});
    for (answer, why) in [
        (
            "HTTP/1.1 404 Not Found\r\nContent-Length: 25\r\n\r\ncontainer not found (\"c\")",
            "unable to upgrade connection: container not found (\"c\")",
        ),
        (
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 16\r\n\r\n{\"message\":\"no\"}",
            "unable to upgrade connection: no",
        ),
        ("HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", "unable to upgrade connection: empty server response"),
    ] {
        let mut client = exec(refuses(answer).await, ALL).await;
        let heard = heard(&mut client).await;
        assert_eq!(heard[&1], b"", "the connection stands before the kubelet is asked");
        let want = format!("Internal error occurred: {why}");
        assert_eq!(verdict(&heard).str_at(&["message"]), want);
    }
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let target = Target {
        authority: Authority::try_from(nobody.clone()).unwrap(),
        path_and_query: PathAndQuery::from_static("/attach"),
    };
    let heard = heard(&mut exec(target, ALL).await).await;
    let want = format!(
        "Internal error occurred: error sending request: Post \"http://{nobody}/attach\": dial tcp {nobody}: connect: \
         connection refused"
    );
    assert_eq!(verdict(&heard).str_at(&["message"]), want);
}

#[tokio::test]
async fn a_client_that_goes_away_takes_the_kubelet_along() {
    let (tell, mut told) = tokio::sync::mpsc::channel(1);
    let target = kubelet(agrees("v4.channel.k8s.io"), |_, connection| async move {
        let ((mut reader, _writer), _) = accept(connection, 4).await;
        tell.send("accepted").await.unwrap();
        while let Ok(Some(_)) = reader.next().await {}
        tell.send("ended").await.unwrap();
    });
    let client = exec(target.await, ALL).await;
    assert_eq!(told.recv().await, Some("accepted"));
    drop(client);
    assert_eq!(told.recv().await, Some("ended"));
}

#[tokio::test]
async fn ports_are_forwarded_as_they_come() {
    let target = kubelet(agrees("portforward.k8s.io"), |head, mut connection| async move {
        let head = head.to_ascii_lowercase();
        assert!(
            head.contains("upgrade: spdy/3.1\r\n") && head.contains("x-stream-protocol-version: portforward.k8s.io")
        );
        assert!(!head.contains("sec-websocket"), "{head}");
        let mut heard = [0; 4];
        connection.read_exact(&mut heard).await.unwrap();
        connection.write_all(&heard.map(|byte| byte + 1)).await.unwrap();
    });
    let (request, slot) = request("SPDY/3.1+portforward.k8s.io");
    assert!(super::asks_for(request.headers(), tunnel::is_tunnel));
    let transport = Transport::new(None).unwrap();
    let counted = std::cell::Cell::new(0);
    let answer = tunnel::serve(request, &transport, target.await, |code| counted.set(code)).await.unwrap();
    assert_eq!(counted.get(), 101);
    assert_eq!(answer.headers()["sec-websocket-protocol"], "SPDY/3.1+portforward.k8s.io");
    let mut client = client(&answer, &slot).await;
    client.send(Message::Binary(Bytes::from_static(b"abcd"))).await.unwrap();
    let Some(Ok(Message::Binary(back))) = client.next().await else { panic!() };
    assert_eq!(back, "bcde");
    let Some(Ok(Message::Close(Some(last)))) = client.next().await else { panic!() };
    assert_eq!(last.code, CloseCode::Normal);
}
