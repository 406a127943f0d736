//! Token authenticators that can be replaced while the server runs: issuers, when their file changes.

use crate::traits::{Answer, Authentication, TokenAuthenticator};
use arc_swap::ArcSwap;
use kubelith_meta::Str;
use std::sync::Arc;

/// A token under way is judged by the authenticator it was given to.
pub struct SwapTokens(ArcSwap<Arc<dyn TokenAuthenticator>>);

impl SwapTokens {
    pub fn new(first: Arc<dyn TokenAuthenticator>) -> SwapTokens {
        SwapTokens(ArcSwap::from_pointee(first))
    }

    pub fn replace(&self, next: Arc<dyn TokenAuthenticator>) {
        self.0.store(Arc::new(next));
    }
}

impl TokenAuthenticator for SwapTokens {
    fn authenticate_token<'a>(&'a self, token: &'a str, audiences: &'a [Str]) -> Answer<'a, Authentication> {
        let current = self.0.load_full();
        Answer::pending(async move { current.authenticate_token(token, audiences).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authn::token_file::TokenFile;
    use crate::testing::block_on;

    #[test]
    fn replaced_while_running() {
        let file = |text: &str| Arc::new(TokenFile::parse(text, "f").unwrap());
        let swap = SwapTokens::new(file("old,u,1"));
        let known = |token: &str| block_on(swap.authenticate_token(token, &[])).unwrap().is_some();
        assert!(known("old"));
        swap.replace(file("new,u,1"));
        assert!(!known("old") && known("new"));
    }
}
