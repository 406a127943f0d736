//! Service quality: budgets that bound what users, groups, service accounts or namespaces may ask for in a second.
//! A [`Class`] is declared in a ConfigMap; [`Accounts`] know who has used how much of it.

mod account;
mod class;

pub use account::{Accounts, Asks, Refusal};
pub use class::{Class, Rate, SharedBy, Subject};
