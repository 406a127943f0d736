//! Who a request comes from and what it may do: authenticators and authorizers.

pub mod authn;
pub mod authz;
pub mod bootstrap;
pub mod config;
pub mod error;
pub mod expiring;
pub mod expression;
pub mod forbidden;
pub mod hook;
pub mod impersonation;
mod json;
pub mod jwt;
pub mod objects;
pub mod oidc;
pub mod remote;
pub mod reviews;
pub mod service_account;
pub mod stats;
#[cfg(test)]
mod testing;
mod text;
pub mod traits;
pub mod user;

pub use error::AuthError;
pub use kubelith_meta::time as clock;
pub use traits::{
    Answer, Attributes, AuthRequest, AuthResponse, Authentication, Authenticator, Authorizer, Decision,
    PeerCertificates, Selector, TokenAuthenticator, Verdict,
};
pub use user::User;
