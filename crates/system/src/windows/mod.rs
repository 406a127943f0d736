//! Windows.

pub mod files;
pub mod process;
pub mod sockets;
