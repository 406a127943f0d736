//! Linux, macOS and their kin.

pub mod files;
pub mod process;
pub mod sockets;
