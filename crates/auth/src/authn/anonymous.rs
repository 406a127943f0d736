//! Everybody who brings no credential.

use crate::traits::{Answer, AuthRequest, AuthResponse, Authentication, Authenticator};
use crate::user::{ANONYMOUS, GROUP_UNAUTHENTICATED, User};
use std::collections::HashSet;
use std::sync::Arc;

pub struct Anonymous {
    user: Arc<User>,
    /// Empty: every path.
    paths: HashSet<String>,
}

impl Anonymous {
    /// Anonymous on the given paths only, compared as they are; on every path if there are none.
    pub fn new(paths: impl IntoIterator<Item = String>) -> Anonymous {
        let user = User::named(ANONYMOUS).with_groups(&[GROUP_UNAUTHENTICATED]);
        Anonymous { user: Arc::new(user), paths: paths.into_iter().collect() }
    }
}

impl Authenticator for Anonymous {
    fn authenticate<'a>(&'a self, request: AuthRequest<'a>) -> Answer<'a, Authentication> {
        let open = self.paths.is_empty() || self.paths.contains(request.path);
        Answer::Ready(Ok(open
            .then(|| AuthResponse { audiences: request.audiences.to_vec(), ..AuthResponse::user(self.user.clone()) })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authn::testing::Probe;

    #[test]
    fn only_on_its_paths() {
        let cases: [(&[&str], &str, bool); 6] = [
            (&[], "/anything", true),
            (&["/livez", "/readyz"], "/livez", true),
            (&["/livez"], "/healthz", false),
            (&["/livez"], "/livez/", false),
            (&["/livez"], "//livez", false),
            (&["/livez"], "/api/../livez", false),
        ];
        for (paths, path, want) in cases {
            let anonymous = Anonymous::new(paths.iter().map(|p| p.to_string()));
            let got = Probe::new().path(path).ask(&anonymous).unwrap();
            assert_eq!(got.is_some(), want, "{paths:?} {path}");
            if let Some(response) = got {
                assert_eq!(response.user.name, "system:anonymous");
                assert_eq!(response.user.groups, ["system:unauthenticated"]);
            }
        }
    }
}
