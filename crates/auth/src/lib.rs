//! Who a request comes from and what it may do: authenticators and authorizers.

pub mod user;

pub use user::User;
