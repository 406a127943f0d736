//! Several authenticators as one: the first that knows the user wins.

use crate::error::AuthError;
use crate::traits::{Answer, AuthRequest, Authentication, Authenticator, TokenAuthenticator};
use kubelith_meta::Str;
use std::sync::Arc;

/// What a union does when a member refuses a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// Ask the others; report all errors only if none knows the user.
    Continue,
    /// Refuse at once: a bad credential must not fall back to, say, anonymous.
    Fail,
}

pub struct Union {
    members: Vec<Arc<dyn Authenticator>>,
    on_error: OnError,
}

impl Union {
    pub fn new(members: Vec<Arc<dyn Authenticator>>, on_error: OnError) -> Union {
        Union { members, on_error }
    }
}

impl Authenticator for Union {
    fn authenticate<'a>(&'a self, request: AuthRequest<'a>) -> Answer<'a, Authentication> {
        ask_in_turn(&self.members, self.on_error, move |m| m.authenticate(request))
    }
}

pub struct TokenUnion {
    members: Vec<Arc<dyn TokenAuthenticator>>,
    on_error: OnError,
}

impl TokenUnion {
    pub fn new(members: Vec<Arc<dyn TokenAuthenticator>>, on_error: OnError) -> TokenUnion {
        TokenUnion { members, on_error }
    }
}

impl TokenAuthenticator for TokenUnion {
    fn authenticate_token<'a>(&'a self, token: &'a str, audiences: &'a [Str]) -> Answer<'a, Authentication> {
        ask_in_turn(&self.members, self.on_error, move |m| m.authenticate_token(token, audiences))
    }
}

fn ask_in_turn<'a, M: Sync>(
    members: &'a [M],
    on_error: OnError,
    ask: impl Fn(&'a M) -> Answer<'a, Authentication> + Send + 'a,
) -> Answer<'a, Authentication> {
    let mut errors = Vec::new();
    let mut rest = members.iter();
    while let Some(member) = rest.next() {
        match ask(member) {
            Answer::Ready(result) => {
                if let Some(outcome) = settle(result, on_error, &mut errors) {
                    return Answer::Ready(outcome);
                }
            }
            Answer::Pending(first) => {
                return Answer::pending(async move {
                    if let Some(outcome) = settle(first.await, on_error, &mut errors) {
                        return outcome;
                    }
                    for member in rest {
                        if let Some(outcome) = settle(ask(member).await, on_error, &mut errors) {
                            return outcome;
                        }
                    }
                    AuthError::aggregate(errors).map_or(Ok(None), Err)
                });
            }
        }
    }
    Answer::Ready(AuthError::aggregate(errors).map_or(Ok(None), Err))
}

/// The union's outcome, if one member's result decides it.
fn settle(result: Authentication, on_error: OnError, errors: &mut Vec<AuthError>) -> Option<Authentication> {
    match result {
        Ok(None) => None,
        Ok(Some(response)) => Some(Ok(Some(response))),
        Err(e) if on_error == OnError::Fail => Some(Err(e)),
        Err(e) => {
            errors.push(e);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::block_on;
    use crate::traits::AuthResponse;
    use crate::user::User;

    enum Member {
        Knows(&'static str),
        Ignores,
        Refuses(&'static str),
        Later(Box<Member>),
    }

    impl Member {
        fn result(&self) -> Authentication {
            match self {
                Member::Knows(name) => Ok(Some(AuthResponse::user(User::named(*name)))),
                Member::Ignores => Ok(None),
                Member::Refuses(why) => Err(AuthError::new(*why)),
                Member::Later(m) => m.result(),
            }
        }
    }

    impl TokenAuthenticator for Member {
        fn authenticate_token<'a>(&'a self, _: &'a str, _: &'a [Str]) -> Answer<'a, Authentication> {
            match self {
                Member::Later(m) => Answer::pending(async move { m.result() }),
                m => Answer::Ready(m.result()),
            }
        }
    }

    #[test]
    fn first_known_user_wins_and_errors_add_up() {
        use Member::*;
        type Case = (OnError, Vec<Member>, Result<Option<&'static str>, &'static str>);
        let cases: Vec<Case> = vec![
            (OnError::Continue, vec![], Ok(None)),
            (OnError::Continue, vec![Ignores, Ignores], Ok(None)),
            (OnError::Continue, vec![Ignores, Knows("b"), Knows("c")], Ok(Some("b"))),
            (OnError::Continue, vec![Refuses("no"), Knows("b")], Ok(Some("b"))),
            (OnError::Continue, vec![Refuses("no"), Refuses("never"), Ignores], Err("[no, never]")),
            (OnError::Fail, vec![Refuses("no"), Knows("b")], Err("no")),
            (OnError::Continue, vec![Refuses("no"), Later(Box::new(Ignores)), Refuses("x")], Err("[no, x]")),
            (OnError::Continue, vec![Later(Box::new(Refuses("no"))), Knows("b")], Ok(Some("b"))),
            (OnError::Fail, vec![Later(Box::new(Refuses("no"))), Knows("b")], Err("no")),
        ];
        for (i, (on_error, members, want)) in cases.into_iter().enumerate() {
            let members = members.into_iter().map(|m| Arc::new(m) as Arc<dyn TokenAuthenticator>).collect();
            let union = TokenUnion::new(members, on_error);
            let got = block_on(union.authenticate_token("t", &[]).into_future());
            let got = got.map(|r| r.map(|r| r.user.name.to_string())).map_err(|e| e.to_string());
            assert_eq!(got, want.map(|n| n.map(str::to_string)).map_err(str::to_string), "case {i}");
        }
    }
}
