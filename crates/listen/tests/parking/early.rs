//! Requests that are answered before they are whole.

use super::*;

/// POST https /, with `x` as authority.
const POST: &[u8] = &[0x83, 0x84, 0x87, 0x01, 0x01, b'x'];

#[tokio::test]
async fn what_is_still_sent_after_the_answer_is_taken() {
    const PIECE: usize = 16 * 1024;
    let refuse: BoxHandler = Arc::new(|_: Request| -> Reply {
        let mut response = Response::new(Body::from("no"));
        *response.status_mut() = http::StatusCode::PAYLOAD_TOO_LARGE;
        Reply::Ready(response)
    });
    let server = TestServer::start(|b| b.delegate(refuse)).await;
    let mut client = Client::new(&server).await;
    client.until(frames::SETTINGS).await;
    client.send(&frames::frame(frames::HEADERS, frames::END_HEADERS, 1, POST)).await;
    let (head, ..) = client.until(frames::DATA).await;
    assert!(head.stream == 1 && (head.has(frames::END_STREAM) || client.until(frames::DATA).await.0.has(1)));
    // More than the window of a stream holds, then the end.
    for _ in 0..64 {
        client.send(&frames::frame(frames::DATA, 0, 1, &[b'x'; PIECE])).await;
        client.send(&frames::frame(frames::PING, 0, 0, &[0; 8])).await;
        let (_, _, before) = client.until(frames::PING).await;
        assert!(!before.iter().any(|(h, _)| h.kind == frames::RST_STREAM), "{before:?}");
    }
    client.send(&frames::frame(frames::DATA, frames::END_STREAM, 1, &[])).await;
    // The connection serves on.
    client.ask(3, &[0x82, 0x84, 0x87, 0x01, 0x01, b'x']).await;
    assert_eq!(client.until(frames::HEADERS).await.0.stream, 3);
}
