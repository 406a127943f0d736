//! Acting as somebody else, if the authorizer lets one.
//!
//! Five modes are tried; the first that is allowed makes the user. The four constrained ones need two
//! permissions: to impersonate that kind of identity (`impersonate:user-info` on the user) and to do so for
//! this very action (`impersonate-on:user-info:list` on the resource). The last one is the old, unconstrained
//! `impersonate`.

mod check;
mod headers;

pub use headers::{remove_headers, wanted_user};

use crate::traits::{Attributes, Authorizer};
use crate::user::User;
use check::{Mode, check};
use kubelith_meta::{Status, Str};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Requestors whose mode is remembered.
const MAX_REMEMBERED: usize = 10_000;

#[derive(Debug, Clone, PartialEq)]
pub struct Impersonated {
    pub user: Arc<User>,
    /// For the audit event: the verb that allowed it; empty for the unconstrained mode.
    pub constraint: &'static str,
}

/// Decides about impersonation, remembering which mode worked for a requestor last. As in the reference, that
/// mode is tried first the next time.
pub struct Impersonation {
    modes: &'static [Mode],
    last_mode: Mutex<HashMap<Str, Mode>>,
}

/// The ways in which somebody may be let act as another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modes {
    All,
    /// `impersonate` alone, without the gate ConstrainedImpersonation.
    Unconstrained,
}

impl Impersonation {
    pub fn new(modes: Modes) -> Impersonation {
        let modes = match modes {
            Modes::All => &Mode::ALL[..],
            Modes::Unconstrained => &[Mode::Legacy],
        };
        Impersonation { modes, last_mode: Mutex::default() }
    }

    /// The user that `attributes.user` becomes, or the 403 of the first mode that refused.
    pub async fn impersonate(
        &self,
        authorizer: &dyn Authorizer,
        attributes: &Attributes,
        wanted: &User,
    ) -> Result<Impersonated, Status> {
        let preferred = self.last_mode(&attributes.user);
        let others = self.modes.iter().copied().filter(|m| Some(*m) != preferred);
        let mut first_error = None;
        for mode in preferred.into_iter().chain(others) {
            match check(mode, authorizer, attributes, wanted).await {
                Ok(Some(user)) => {
                    self.remember(&attributes.user, mode);
                    return Ok(Impersonated { user: Arc::new(user), constraint: mode.constraint() });
                }
                Ok(None) => {}
                Err(e) => drop(first_error.get_or_insert(e)),
            }
        }
        Err(first_error.unwrap_or_else(|| Status::internal_error("all impersonation modes failed")))
    }

    fn last_mode(&self, requestor: &User) -> Option<Mode> {
        self.last_mode.lock().expect("no panic while held").get(&requestor.name).copied()
    }

    fn remember(&self, requestor: &User, mode: Mode) {
        let mut modes = self.last_mode.lock().expect("no panic while held");
        if modes.len() >= MAX_REMEMBERED && !modes.contains_key(&requestor.name) {
            modes.clear();
        }
        modes.insert(requestor.name.clone(), mode);
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
