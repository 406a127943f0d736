//! What OpenID clients need to verify service account tokens: where the keys are, and the keys.

use super::{Listing, Routes};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::CACHE_CONTROL;
use http::{HeaderValue, Method, StatusCode};
use kubelith_auth::service_account::keys::{JWKS_PATH, OPENID_CONFIG_PATH};
use kubelith_codec::negotiate;
use kubelith_http::negotiated::{accept_of, no_such_method, not_routed, route_error};
use kubelith_http::{BoxHandler, Reply, Request, Response, respond};
use std::sync::Arc;

/// Both documents as JSON.
#[derive(Debug, Clone)]
pub struct OpenIdDocuments {
    pub configuration: Bytes,
    pub keys: Bytes,
    /// Seconds for which clients may keep them.
    pub max_age: u64,
}

/// The documents as they are now, once the keys are there.
pub type OpenIdReady = Arc<dyn Fn() -> BoxFuture<'static, Result<OpenIdDocuments, String>> + Send + Sync>;

type Select = fn(&OpenIdDocuments) -> Bytes;

pub fn install(routes: &mut Routes, ready: OpenIdReady) {
    let documents: [(&str, &'static str, Select); 2] = [
        (OPENID_CONFIG_PATH, "application/json", |d| d.configuration.clone()),
        (JWKS_PATH, "application/jwk-set+json", |d| d.keys.clone()),
    ];
    for (path, media_type, select) in documents {
        let ready = ready.clone();
        let serve = move |request: Request| -> Reply {
            let ready = ready.clone();
            Reply::pending(async move { answer(&request, ready, media_type, select).await })
        };
        let serve: BoxHandler = Arc::new(serve);
        routes.exact(path, Listing::Listed, serve.clone());
        routes.exact(format!("{path}/"), Listing::Unlisted, serve);
    }
}

async fn answer(request: &Request, ready: OpenIdReady, media_type: &'static str, select: Select) -> Response {
    if request.method() != Method::GET {
        return not_routed(respond::status(request, &no_such_method()));
    }
    let accept = accept_of(request.headers());
    if let Err(error) = negotiate::route_accepts(&accept, &[media_type]) {
        return not_routed(respond::status(request, &route_error(error)));
    }
    match ready().await {
        Ok(documents) => {
            let mut response =
                respond::with_type(StatusCode::OK, HeaderValue::from_static(media_type), select(&documents));
            if let Ok(cached) = HeaderValue::try_from(format!("public, max-age={}", documents.max_age)) {
                response.headers_mut().insert(CACHE_CONTROL, cached);
            }
            response
        }
        Err(why) => {
            tracing::error!(err = why, "the keys of service accounts are not there");
            respond::internal_error(&request.info().path, why)
        }
    }
}
