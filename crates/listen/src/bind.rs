//! Opening the listening socket.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use tokio::net::{TcpListener, TcpSocket};

/// Connections the kernel keeps while none is accepted; it lowers the number to its own limit.
const BACKLOG: u32 = 4096;

/// Whether other processes may listen on the same port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sharing {
    #[default]
    Exclusive,
    /// SO_REUSEPORT: the kernel spreads connections over the processes.
    Port,
}

#[derive(Debug, Clone)]
pub struct BindOptions {
    pub address: IpAddr,
    /// 0 lets the kernel choose.
    pub port: u16,
    pub sharing: Sharing,
}

/// Opens the socket. An unspecified address (0.0.0.0 or ::) means all interfaces of both families.
pub fn bind(options: &BindOptions) -> io::Result<TcpListener> {
    if options.address.is_unspecified() {
        let all = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), options.port);
        match bind_one(all, options.sharing) {
            // A machine without IPv6.
            Err(e) if e.kind() != io::ErrorKind::AddrInUse && options.address.is_ipv4() => {}
            result => return result,
        }
    }
    bind_one(SocketAddr::new(options.address, options.port), options.sharing)
}

fn bind_one(address: SocketAddr, sharing: Sharing) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A restart need not wait for connections of the last life to time out.
    socket.set_reuseaddr(true)?;
    if sharing == Sharing::Port {
        socket.set_reuseport(true)?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
