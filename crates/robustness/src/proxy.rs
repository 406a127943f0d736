//! A way between a server and etcd that can be cut, stopped and slowed.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// How often a connection looks at what is asked of it.
const LOOK: Duration = Duration::from_millis(10);
const BUFFER: usize = 16 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Open,
    /// Connections are broken, and new ones, too.
    Cut,
    /// Nothing passes, and nobody is told: packets are lost.
    Silent,
    /// Everything takes so much longer.
    Slow(Duration),
}

#[derive(Default)]
struct LinkState {
    way: AtomicU8,
    delay: AtomicU64,
    over: AtomicBool,
}

impl LinkState {
    fn way(&self) -> Way {
        match self.way.load(Ordering::Relaxed) {
            0 => Way::Open,
            1 => Way::Cut,
            2 => Way::Silent,
            _ => Way::Slow(Duration::from_micros(self.delay.load(Ordering::Relaxed))),
        }
    }
}

pub struct Proxy {
    state: Arc<LinkState>,
    address: SocketAddr,
}

impl Proxy {
    /// To this place on loopback.
    pub fn start(target: SocketAddr) -> std::io::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let state = Arc::new(LinkState::default());
        let shared = state.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if shared.over.load(Ordering::Relaxed) {
                    return;
                }
                let (Ok(client), false) = (client, shared.way() == Way::Cut) else { continue };
                let Ok(server) = TcpStream::connect(target) else { continue };
                join(client, server, &shared);
            }
        });
        Ok(Proxy { state, address })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn set(&self, way: Way) {
        let code = match way {
            Way::Open => 0,
            Way::Cut => 1,
            Way::Silent => 2,
            Way::Slow(by) => {
                self.state.delay.store(by.as_micros() as u64, Ordering::Relaxed);
                3
            }
        };
        self.state.way.store(code, Ordering::Relaxed);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }
}

fn join(client: TcpStream, server: TcpStream, state: &Arc<LinkState>) {
    let (Ok(client_too), Ok(server_too)) = (client.try_clone(), server.try_clone()) else { return };
    for (from, to) in [(client, server), (server_too, client_too)] {
        let state = state.clone();
        std::thread::spawn(move || {
            // An error is an end like any other.
            let _ = pass(&from, &to, &state);
            let _ = from.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
}

fn pass(mut from: &TcpStream, mut to: &TcpStream, state: &LinkState) -> std::io::Result<()> {
    from.set_read_timeout(Some(LOOK))?;
    to.set_nodelay(true)?;
    let mut buffer = vec![0; BUFFER];
    while !state.over.load(Ordering::Relaxed) {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => 0,
            Err(error) => return Err(error),
        };
        loop {
            match state.way() {
                Way::Cut => return Ok(()),
                Way::Silent if state.over.load(Ordering::Relaxed) => return Ok(()),
                Way::Silent => std::thread::sleep(LOOK),
                Way::Slow(by) if count > 0 => {
                    std::thread::sleep(by);
                    break;
                }
                Way::Slow(_) | Way::Open => break,
            }
        }
        to.write_all(&buffer[..count])?;
    }
    Ok(())
}
