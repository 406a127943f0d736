//! GET of one object.

use super::context::Context;
use super::{options, output, views};
use http::StatusCode;
use kubelith_http::Response;
use kubelith_meta::Status;
use kubelith_registry::Mode;
use std::sync::Arc;

pub async fn get(cx: Arc<Context>) -> Result<Response, Status> {
    let negotiated = cx.negotiate()?;
    if cx.query.bool("export") == Some(true) {
        return Err(Status::bad_request("the export parameter, deprecated since v1.14, is no longer supported"));
    }
    let at = options::read_at(cx.query.get("resourceVersion").unwrap_or(""))?;
    if cx.endpoint.limits.pages_any_age {
        cx.check_reached(at).await?;
    }
    let call = cx.call(Mode::Real);
    let found = cx.endpoint.resource.get(&call, at).await?;
    let object = found.ok_or_else(|| Status::not_found(&call.resource, &call.name))?;
    if let Some(view) = &cx.endpoint.view {
        let view = views::view_of(&cx, &object, &**view).await?;
        return output::value(&cx, &negotiated, StatusCode::OK, view);
    }
    output::cached(&cx, &negotiated, &object).await
}
