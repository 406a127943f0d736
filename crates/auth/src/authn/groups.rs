//! Adds `system:authenticated` to everybody who is somebody.

use crate::traits::{Answer, AuthRequest, AuthResponse, Authentication, Authenticator, TokenAuthenticator};
use crate::user::{ANONYMOUS, GROUP_AUTHENTICATED, GROUP_UNAUTHENTICATED, User};
use kubelith_meta::Str;
use std::sync::Arc;

pub struct AuthenticatedGroupAdder<A>(pub A);

impl<A: Authenticator> Authenticator for AuthenticatedGroupAdder<A> {
    fn authenticate<'a>(&'a self, request: AuthRequest<'a>) -> Answer<'a, Authentication> {
        self.0.authenticate(request).map(with_group)
    }
}

impl<A: TokenAuthenticator> TokenAuthenticator for AuthenticatedGroupAdder<A> {
    fn authenticate_token<'a>(&'a self, token: &'a str, audiences: &'a [Str]) -> Answer<'a, Authentication> {
        self.0.authenticate_token(token, audiences).map(with_group)
    }
}

fn with_group(result: Authentication) -> Authentication {
    Ok(result?.map(|response| AuthResponse { user: add_authenticated(response.user), ..response }))
}

fn add_authenticated(user: Arc<User>) -> Arc<User> {
    if user.name == ANONYMOUS || user.in_group(GROUP_AUTHENTICATED) || user.in_group(GROUP_UNAUTHENTICATED) {
        return user;
    }
    let mut user = Arc::unwrap_or_clone(user);
    user.groups.push(GROUP_AUTHENTICATED.into());
    Arc::new(user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_once_and_not_to_the_anonymous() {
        let cases: [(&str, &[&str], &[&str]); 4] = [
            ("u", &["g"], &["g", "system:authenticated"]),
            ("u", &["system:authenticated", "g"], &["system:authenticated", "g"]),
            ("u", &["system:unauthenticated"], &["system:unauthenticated"]),
            ("system:anonymous", &[], &[]),
        ];
        for (name, groups, want) in cases {
            let got = add_authenticated(Arc::new(User::named(name).with_groups(groups)));
            assert_eq!(got.groups, want);
        }
    }
}
