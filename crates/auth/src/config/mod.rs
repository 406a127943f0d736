//! The structured configuration files of authentication and authorization, decoded and checked.

pub mod authentication;
pub mod authentication_rules;
pub mod authorization;
mod read;

pub use authentication::{AuthenticationConfig, JwtConfig};
pub use authorization::{AuthorizationConfig, AuthorizerConfig, AuthorizerMode, WebhookConfig};
