//! The server as a client of itself: requests that enter the filter chain without a socket, as
//! system:apiserver.

use crate::http::{BoxHandler, Request, RequestBody, Response};
use kubelith_auth::User;
use kubelith_auth::user::{API_SERVER, GROUP_AUTHENTICATED, GROUP_MASTERS};
use std::sync::Arc;

/// Who a request without a socket is from. Only this crate can put it into a request's extensions, so the
/// authentication filter trusts it.
#[derive(Debug, Clone)]
pub(crate) struct LoopbackUser(pub Arc<User>);

#[derive(Clone)]
pub struct LoopbackClient {
    chain: BoxHandler,
    user: Arc<User>,
}

impl LoopbackClient {
    pub fn new(chain: BoxHandler) -> LoopbackClient {
        let user = User {
            name: API_SERVER.into(),
            groups: vec![GROUP_MASTERS.into(), GROUP_AUTHENTICATED.into()],
            ..User::default()
        };
        LoopbackClient { chain, user: Arc::new(user) }
    }

    /// The same client as someone else.
    pub fn as_user(&self, user: impl Into<Arc<User>>) -> LoopbackClient {
        LoopbackClient { chain: self.chain.clone(), user: user.into() }
    }

    /// Sends a request through the whole chain. Dropping the future ends a read.
    pub async fn send(&self, mut request: Request) -> Response {
        request.extensions_mut().insert(LoopbackUser(self.user.clone()));
        self.chain.handle(request).await
    }

    /// A request without a body.
    pub async fn get_path(&self, path: &str) -> Result<Response, http::Error> {
        let request = http::Request::get(path).body(RequestBody::Full(None))?;
        Ok(self.send(request).await)
    }
}
