//! Opening the listening socket.

use kubelith_system::sockets;
use socket2::SockRef;
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
    if address.is_ipv6() && address.ip().is_unspecified() {
        // Both families, whatever the system is set to.
        SockRef::from(&socket).set_only_v6(false)?;
    }
    sockets::take_over_port(&socket)?;
    if sharing == Sharing::Port {
        sockets::share_port(&socket)?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
