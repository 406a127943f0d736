//! Tunnels through a konnectivity server: one gRPC stream for each connection, in which packets ask for it, carry its
//! bytes and end it.

mod packets;

use super::connect::{DialObserver, Failure, Reason, Segment, Stage, State, Way};
use crate::grpc;
use futures::stream::BoxStream;
use futures::{StreamExt, TryFutureExt};
use kubelith_meta::random;
use packets::{CLOSE_RESPONSE, DATA, DIAL_CLOSED, DIAL_RESPONSE, Packet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

const METHOD: &str = "/ProxyService/Proxy";
/// Between the connection's user and the stream: what one side may be ahead of the other.
const BUFFER_BYTES: usize = 64 << 10;
/// Packets on their way to the proxy.
const PACKETS: usize = 10;
/// To reach the proxy, and again for the connection that it is asked for, as in the reference.
const DIAL_TIMEOUT: Duration = Duration::from_secs(30);
/// For the proxy's last word on a connection that is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) const WAY: Way = Way { protocol: "grpc", transport: "uds" };

type Observer = Option<Arc<dyn DialObserver>>;

/// A connection to `target` (`host:port`) through the proxy at `socket`. Dropping it ends the tunnel; dropping this before its end
/// tells the proxy that nobody waits any longer.
pub(super) async fn connect(socket: &Path, target: &str, observer: Observer) -> Result<DuplexStream, Failure> {
    let channel = timeout(DIAL_TIMEOUT, reach(socket)).await;
    let channel = channel.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()));
    let channel = channel.map_err(|why| (Stage::Connect, why))?;
    let (packets, outgoing) = mpsc::channel::<Packet>(PACKETS);
    let tunnel = Tunnel {
        packets,
        incoming: stream(channel, outgoing),
        tally: Tally::begin(observer),
        number: (random::random_bits() >> 1) as i64,
    };
    let (tell, told) = oneshot::channel();
    tokio::spawn(tunnel.serve(target.to_owned(), tell));
    told.await.unwrap_or_else(|_| Err("tunnel closed".to_owned())).map_err(|why| (Stage::Proxy, why))
}

async fn reach(socket: &Path) -> Result<Channel, String> {
    let connector = grpc::unix_connector(socket.to_owned());
    let channel = Endpoint::from_static("http://localhost").connect_with_connector(connector).await;
    channel.map_err(|why| format!("dial unix {}: {why}", socket.display()))
}

/// What comes from the proxy. The stream begins with the first look at it: a proxy answers only once it has been asked for something.
fn stream(channel: Channel, outgoing: mpsc::Receiver<Packet>) -> BoxStream<'static, Result<Packet, Status>> {
    let outgoing = futures::stream::unfold(outgoing, |mut from| async move { Some((from.recv().await?, from)) });
    let answer = async move {
        let mut grpc = tonic::client::Grpc::new(channel);
        grpc.ready().await.map_err(|why| Status::unavailable(why.to_string()))?;
        let codec = tonic_prost::ProstCodec::<Packet, Packet>::default();
        let path = http::uri::PathAndQuery::from_static(METHOD);
        Ok(grpc.streaming(tonic::Request::new(outgoing), path, codec).await?.into_inner())
    };
    answer.try_flatten_stream().boxed()
}

struct Tunnel {
    packets: mpsc::Sender<Packet>,
    incoming: BoxStream<'static, Result<Packet, Status>>,
    tally: Tally,
    /// By which the proxy names what it was asked for, until it has made a connection of it.
    number: i64,
}

impl Tunnel {
    /// Until the connection has ended, or could not be made.
    async fn serve(mut self, target: String, mut tell: oneshot::Sender<Result<DuplexStream, String>>) {
        self.tally.enter(State::Dialing);
        self.tally.send(&self.packets, Packet::dial(&target, self.number)).await;
        let dialed = tokio::select! {
            dialed = timeout(DIAL_TIMEOUT, self.dialed()) => dialed.unwrap_or(Err((Reason::Timeout, "dial timeout, backstop".to_owned()))),
            () = tell.closed() => Err((Reason::Context, String::new())),
        };
        match dialed {
            Ok(connection) => {
                let (ours, theirs) = tokio::io::duplex(BUFFER_BYTES);
                // Who no longer waits has dropped the other end by this.
                let _ = tell.send(Ok(ours));
                self.carry(theirs, connection).await;
            }
            Err((reason, why)) => {
                self.tally.failed(reason);
                // Otherwise whoever waits is told, and tells.
                if let Err(_nobody) = tell.send(Err(why)) {
                    self.tally.tell(|o| o.failed(WAY, Stage::Proxy));
                }
                if matches!(reason, Reason::Timeout | Reason::Context) {
                    self.tally.send(&self.packets, Packet::close_dial(self.number)).await;
                    self.end().await;
                }
            }
        }
    }

    /// The number of the connection that was asked for.
    async fn dialed(&mut self) -> Result<i64, (Reason, String)> {
        while let Some(packet) = self.tally.next(&mut self.incoming).await {
            match packet.kind {
                DIAL_RESPONSE => {
                    let answer = packet.dial_response.unwrap_or_default();
                    if answer.random != self.number {
                        break;
                    }
                    if !answer.error.is_empty() {
                        return Err((Reason::Endpoint, answer.error));
                    }
                    self.tally.enter(State::Ok);
                    return Ok(answer.connection);
                }
                DIAL_CLOSED if packet.close_dial.unwrap_or_default().random == self.number => {
                    return Err((Reason::DialClosed, "dial closed".to_owned()));
                }
                DIAL_CLOSED => break,
                _ => {}
            }
        }
        Err((Reason::TunnelClosed, "tunnel closed".to_owned()))
    }

    /// Carries bytes both ways. Either end of the connection ends both.
    async fn carry(mut self, stream: DuplexStream, connection: i64) {
        let (from, to) = tokio::io::split(stream);
        let closed = tokio::select! {
            () = send(from, &self.packets, &self.tally, connection) => false,
            () = receive(&mut self.incoming, &self.tally, to, connection) => true,
        };
        self.tally.send(&self.packets, Packet::close(connection)).await;
        if !closed {
            let Tunnel { mut incoming, tally, packets, .. } = self;
            let last =
                async { while tally.next(&mut incoming).await.is_some_and(|packet| packet.kind != CLOSE_RESPONSE) {} };
            tally.in_time(last).await;
            drop(packets);
        }
    }

    /// Says that nothing more comes, and hears the proxy out.
    async fn end(self) {
        let Tunnel { mut incoming, tally, packets, .. } = self;
        drop(packets);
        tally.in_time(async { while tally.next(&mut incoming).await.is_some() {} }).await;
    }
}

async fn send(mut from: ReadHalf<DuplexStream>, packets: &mpsc::Sender<Packet>, tally: &Tally, connection: i64) {
    let mut buffer = bytes::BytesMut::new();
    while let Ok(1..) = from.read_buf(&mut buffer).await {
        if !tally.send(packets, Packet::data(connection, buffer.split().freeze())).await {
            return;
        }
    }
}

async fn receive(
    incoming: &mut BoxStream<'static, Result<Packet, Status>>,
    tally: &Tally,
    mut to: WriteHalf<DuplexStream>,
    connection: i64,
) {
    while let Some(packet) = tally.next(incoming).await {
        match packet.kind {
            CLOSE_RESPONSE if packet.close_response.unwrap_or_default().connection == connection => break,
            DATA => {
                let data = packet.data.filter(|data| data.connection == connection).unwrap_or_default();
                if to.write_all(&data.data).await.is_err() {
                    return;
                }
            }
            _ => {}
        }
    }
    let _ = to.shutdown().await;
}

/// Counts one tunnel: what goes through it, and in which state it is until it is gone.
struct Tally {
    observer: Observer,
    state: State,
}

impl Tally {
    fn begin(observer: Observer) -> Tally {
        let tally = Tally { observer, state: State::Created };
        tally.tell(|o| o.tunnels(State::Created, 1));
        tally
    }

    fn enter(&mut self, state: State) {
        self.tell(|o| o.tunnels(self.state, -1));
        self.state = state;
        self.tell(|o| o.tunnels(state, 1));
    }

    fn failed(&self, reason: Reason) {
        self.tell(|o| o.tunnel_failed(reason));
    }

    /// Whether the stream still takes packets.
    async fn send(&self, packets: &mpsc::Sender<Packet>, packet: Packet) -> bool {
        self.tell(|o| o.packet(Segment::FromClient, packet.name()));
        packets.send(packet).await.is_ok()
    }

    /// The next packet; `None` when the stream has ended, in order or not.
    async fn next(&self, incoming: &mut BoxStream<'static, Result<Packet, Status>>) -> Option<Packet> {
        match incoming.next().await? {
            Ok(packet) => {
                self.tell(|o| o.packet(Segment::ToClient, packet.name()));
                Some(packet)
            }
            Err(status) => {
                self.tell(|o| o.stream_failed(status.code()));
                None
            }
        }
    }

    /// Waits for the end of a stream, which is broken off when that takes too long.
    async fn in_time(&self, end: impl Future<Output = ()>) {
        if timeout(CLOSE_TIMEOUT, end).await.is_err() {
            self.tell(|o| o.stream_failed(Code::Cancelled));
        }
    }

    fn tell(&self, what: impl FnOnce(&dyn DialObserver)) {
        if let Some(observer) = &self.observer {
            what(observer.as_ref());
        }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        self.tell(|o| o.tunnels(self.state, -1));
    }
}

#[cfg(test)]
mod tests;
