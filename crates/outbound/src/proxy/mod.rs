//! Passing requests on to other servers: extension API servers, and later services, pods and kubelets.
//!
//! A [`Transport`] reaches one kind of server (its TLS, its pool of connections); [`forward`] sends a request through it
//! and answers with what comes back. Bodies are streamed both ways, frame by frame, and nothing is kept. Dropping the
//! future, or the answer's body, gives the request up on the other side too.

mod answer;
mod body;
mod certificates;
mod dial;
mod exchange;
mod fetch;
mod forward;
mod headers;
pub mod hook;
mod identity;
mod kept;
mod line;
mod opening;
mod path;
mod question;
mod redirect;
mod tls;
mod tls_words;
mod transport;
mod upgrade;

pub use certificates::ClientCertificate;
pub use fetch::{FetchFailed, Fetched};
pub use forward::{Forward, HostHeader, Origin, Redirects, forward, pass_headers};
pub use headers::{Identity, asks_for_upgrade};
pub use identity::escape_extra_key;
pub use kept::{KeptTransport, TransportCounts};
pub use path::{canonical_query, clean_path, encode_path, encode_query};
pub use tls::{TlsClient, TlsClientError};
pub use transport::{Target, Transport};
pub use upgrade::{Head, Opened, open_upgraded};

/// Why a request could not be passed on. The texts are what a client sees.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    #[error("error trying to reach service: {0}")]
    Unreachable(String),
    #[error("error dialing backend: {0}")]
    Dial(String),
    #[error("{0}")]
    BadAnswer(String),
    #[error("invalid upgrade response: status code {0}")]
    NotUpgraded(u16),
    #[error("request connection cannot be hijacked")]
    NoConnection,
}

impl ProxyError {
    /// What went wrong, without saying where.
    pub fn why(&self) -> String {
        match self {
            ProxyError::Unreachable(why) | ProxyError::Dial(why) | ProxyError::BadAnswer(why) => why.clone(),
            other => other.to_string(),
        }
    }
}
