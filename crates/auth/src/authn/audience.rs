//! Audiences for authenticators that know of none: their credentials count for the server's own.

use crate::error::AuthError;
use crate::text::quote_list;
use crate::traits::{Answer, AuthRequest, Authentication, Authenticator, TokenAuthenticator};
use kubelith_meta::Str;

/// Those of `wanted` that are in `have`, in the order of `wanted`.
pub fn intersect(have: &[Str], wanted: &[Str]) -> Vec<Str> {
    wanted.iter().filter(|w| have.contains(w)).cloned().collect()
}

/// The last check before a user is let in: an authenticator that named audiences must have named one of ours.
pub fn acceptable(api_audiences: &[Str], response_audiences: &[Str]) -> bool {
    api_audiences.is_empty()
        || response_audiences.is_empty()
        || response_audiences.iter().any(|a| api_audiences.contains(a))
}

/// Makes an audience-agnostic authenticator answer only when one of the `implicit` audiences is asked for.
pub struct Agnostic<A> {
    implicit: Vec<Str>,
    inner: A,
}

impl<A> Agnostic<A> {
    pub fn new(implicit: Vec<Str>, inner: A) -> Agnostic<A> {
        Agnostic { implicit, inner }
    }

    fn limit<'a>(
        &'a self,
        wanted: &'a [Str],
        ask: impl FnOnce(&'a A) -> Answer<'a, Authentication>,
    ) -> Answer<'a, Authentication> {
        if wanted.is_empty() {
            return ask(&self.inner);
        }
        if !wanted.iter().any(|w| self.implicit.contains(w)) {
            return Answer::Ready(Ok(None));
        }
        let implicit = &self.implicit;
        ask(&self.inner).map(move |result| {
            let Some(mut response) = result? else { return Ok(None) };
            if !response.audiences.is_empty() {
                let audiences = quote_list(&response.audiences);
                return Err(AuthError::new(format!(
                    "audience agnostic authenticator wrapped an authenticator that returned audiences: {audiences}"
                )));
            }
            response.audiences = intersect(implicit, wanted);
            Ok(Some(response))
        })
    }
}

impl<A: Authenticator> Authenticator for Agnostic<A> {
    fn authenticate<'a>(&'a self, request: AuthRequest<'a>) -> Answer<'a, Authentication> {
        self.limit(request.audiences, |a| a.authenticate(request))
    }
}

impl<A: TokenAuthenticator> TokenAuthenticator for Agnostic<A> {
    fn authenticate_token<'a>(&'a self, token: &'a str, audiences: &'a [Str]) -> Answer<'a, Authentication> {
        self.limit(audiences, |a| a.authenticate_token(token, audiences))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authn::token_file::TokenFile;
    use crate::testing::block_on;

    #[test]
    fn grants_only_audiences_asked_for_and_implied() {
        let strs = |list: &[&str]| list.iter().map(|s| Str::from(*s)).collect::<Vec<_>>();
        type Case = (&'static [&'static str], &'static [&'static str], Option<&'static [&'static str]>);
        let cases: [Case; 6] = [
            (&["api"], &["api"], Some(&["api"])),
            (&["api", "other"], &["x", "other", "api"], Some(&["other", "api"])),
            (&["api"], &["other"], None),
            (&[], &["api"], None),
            (&["api"], &[], Some(&[])),
            (&[], &[], Some(&[])),
        ];
        for (implicit, wanted, want) in cases {
            let inner = TokenFile::parse("t,u,1", "f").unwrap();
            let agnostic = Agnostic::new(strs(implicit), inner);
            let wanted = strs(wanted);
            let got = block_on(agnostic.authenticate_token("t", &wanted).into_future()).unwrap();
            assert_eq!(got.map(|r| r.audiences), want.map(strs), "{implicit:?} {wanted:?}");
        }
    }
}
