//! Authenticators, one file per kind of credential, and what joins them.

pub mod anonymous;
pub mod audience;
pub mod bearer;
pub mod bootstrap_token;
pub mod build;
mod csv;
pub mod groups;
pub mod request_header;
pub mod swap;
#[cfg(test)]
pub mod testing;
pub mod token_cache;
pub mod token_file;
pub mod union;
pub mod webhook;
pub mod websocket;
pub mod x509;
