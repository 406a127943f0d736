//! Serving certificates: the server's own authority on first start, loading, reloading and choosing by
//! server name, and client certificates that are only read here and judged by an authenticator.

pub mod bundle;
pub mod client_certs;
pub mod expiry;
pub mod files;
pub mod flaws;
mod groups;
pub mod kubeconfig;
pub mod local_names;
pub mod pair;
pub mod pki;
pub mod policy;
pub mod resolver;
pub mod server_config;
pub mod signing;
mod suites;
pub mod trust;

pub use flaws::{Flaw, Flaws};
pub use pki::{Part, Pki, PkiOptions, ServingNames, pair_in};
pub use policy::{TlsPolicy, TlsPolicyError};
pub use server_config::{CertKeyFiles, DynamicTls, SniCertKey, TlsError, TlsOptions};
pub use suites::{HELLO_BYTES, SuiteOrder};
pub use trust::Trust;
