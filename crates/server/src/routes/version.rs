//! `/version`: which release of the API this is, and which build.

use super::{Listing, Routes};
use http::{Method, StatusCode};
use kubelith_codec::negotiate::route_accepts;
use kubelith_features::VersionInfo;
use kubelith_http::negotiated::{accept_of, not_routed, route_error};
use kubelith_http::{BoxHandler, Reply, Request, Response, respond};
use kubelith_meta::Status;
use kubelith_meta::status::ForeignResponse;
use std::sync::Arc;

/// `/version` and `/version/` with GET; below it nothing.
pub fn install(routes: &mut Routes, version: &VersionInfo) {
    let json: bytes::Bytes = version.to_json().into();
    let handler: BoxHandler = Arc::new(move |request: Request| -> Reply {
        let response = if request.info().path.trim_end_matches('/') != "/version" {
            refuse(404)
        } else if request.method() != Method::GET {
            refuse(405)
        } else if let Err(error) = route_accepts(&accept_of(request.headers()), &["application/json"]) {
            not_routed(respond::status(&request, &route_error(error)))
        } else {
            respond::json(StatusCode::OK, json.clone())
        };
        Reply::Ready(response)
    });
    routes.exact("/version", Listing::Listed, handler.clone());
    routes.prefix("/version/", Listing::Unlisted, handler);
}

fn refuse(code: u16) -> Response {
    not_routed(respond::status_json(&Status::from(ForeignResponse { code, ..ForeignResponse::default() })))
}
