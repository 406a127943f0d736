//! `GET /kubelith/v1/costs?group=&resource=&name=`: the expressions in CEL of a definition, policy or webhook configuration, with what
//! they cost at most and what they may cost.

use super::{Outcome, Sources, json, may, parameter};
use kubelith_codec::json as codec;
use kubelith_http::Request;
use kubelith_meta::{GroupResource, Status, Value};
use serde::Serialize;
use std::sync::Arc;

/// Of one expression.
#[derive(Serialize)]
pub struct Cost {
    pub path: String,
    pub expression: String,
    /// `None`: nothing bounds it before it runs.
    pub cost: Option<u64>,
    /// `None`: servers look at it while it runs.
    pub limit: Option<u64>,
    /// Why it cannot be compiled.
    pub error: Option<String>,
}

/// The expressions of an object, priced.
pub type Price = fn(&Value) -> Vec<Cost>;

#[derive(Serialize)]
struct Costs {
    items: Vec<Cost>,
}

pub async fn serve(sources: &Arc<Sources>, request: &Request) -> Outcome {
    let resource = GroupResource::new(parameter(request, "group"), parameter(request, "resource"));
    let name = parameter(request, "name");
    if !may(request, "get", &resource, "", &name).await {
        let user = request.user().map_or("", |user| user.name.as_str());
        let why = format!("User {user:?} cannot get resource {:?}", resource.to_string());
        return Err(Status::forbidden(&resource, &name, why));
    }
    let caches = sources.caches();
    let cache = caches.into_iter().find(|(of, _)| *of == resource).map(|(_, cache)| cache);
    let found = cache.and_then(|cache| cache.get(&name)).ok_or_else(|| Status::not_found(&resource, &name))?;
    let object = codec::parse(&found.json()).map_err(|why| Status::internal_error(why.to_string()))?;
    let price = sources.price;
    // Large definitions take a while to compile.
    let priced = tokio::task::spawn_blocking(move || price(&object)).await;
    json(&Costs { items: priced.map_err(|why| Status::internal_error(why.to_string()))? })
}
