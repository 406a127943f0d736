//! Requests that go on to other servers.

mod support;

mod attacks;
mod extension;
mod peers;
