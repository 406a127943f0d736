//! What operating systems do differently, and nothing else: the same names for each family of them. Whoever uses these need
//! not ask which system it is.
//!
//! What a system does not have is left out where that costs safety nothing (the word to systemd), and is an error in words
//! where somebody asked for it (Unix sockets).

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{files, process, sockets};
#[cfg(windows)]
pub use windows::{files, process, sockets};

/// What the manager of services is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    Ready,
    Stopping,
}

/// An error where there are no Unix sockets; `by` is what asks for one: a flag, or a field of a file.
pub fn require_sockets(by: &str) -> Result<(), String> {
    if sockets::SUPPORTED { Ok(()) } else { Err(format!("{by}: {NO_SOCKETS}")) }
}

/// The same for several processes on one port.
pub fn require_port_sharing(by: &str) -> Result<(), String> {
    if sockets::PORT_SHARING { Ok(()) } else { Err(format!("{by}: {NO_PORT_SHARING}")) }
}

const NO_PORT_SHARING: &str = "sharing a port is not supported on this operating system";
const NO_SOCKETS: &str = "Unix sockets are not supported on this operating system";

#[cfg(test)]
mod tests;
