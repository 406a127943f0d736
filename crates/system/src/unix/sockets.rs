//! Unix sockets, and what can be asked of those of TCP.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

pub use std::os::unix::net::UnixStream as BlockingStream;
use tokio::net::TcpSocket;
pub use tokio::net::{UnixListener, UnixStream};

/// Whether there are Unix sockets.
pub const SUPPORTED: bool = true;

/// Whether several processes may listen on one port.
pub const PORT_SHARING: bool = true;

/// A socket that only its owner may connect to.
pub fn bind_private(path: &Path) -> io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// A restart need not wait for connections of the last life to time out.
pub fn take_over_port(socket: &TcpSocket) -> io::Result<()> {
    socket.set_reuseaddr(true)
}

/// SO_REUSEPORT: the kernel spreads connections over the processes.
pub fn share_port(socket: &TcpSocket) -> io::Result<()> {
    socket.set_reuseport(true)
}
