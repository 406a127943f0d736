//! The verbs: what the API does with a request for a resource.

pub mod api;
pub mod body;
pub mod cells;
pub mod context;
mod continue_token;
mod create;
mod delete;
pub mod endpoint;
pub mod fields;
mod get;
pub mod list;
pub mod options;
pub mod output;
mod patch;
mod patched_text;
pub mod scale;
mod selection;
mod shards;
pub mod subresource_view;
pub mod table;
mod to_end;
pub mod typed;
mod update;
mod versions;
pub mod views;
pub mod watch;
pub mod websocket;

pub use body::{Decoded, Decoder};
pub use context::Context;
pub use endpoint::{By, Endpoint, FieldTracker, Limits, ListItems};
pub use options::Query;
pub use patch::patch_types;
pub use to_end::run_to_end;

use kubelith_auth::Answer;
use kubelith_http::context::StaleBy;
use kubelith_http::{Request, Response};
use kubelith_meta::{Status, Value};
use kubelith_registry::Working;
use kubelith_schema::canonical::Empties;
use std::sync::Arc;

/// What answers a request, or fails in the attempt.
pub type Answering = Answer<'static, Result<Response, Status>>;

/// Runs a verb on a stored resource. Each is boxed, lest the smallest takes as much memory as the largest.
pub fn serve(cx: Arc<Context>, verb: &str, request: Request) -> Answering {
    match verb {
        "get" => read_one(cx),
        "list" | "watch" => read_many(cx, verb, request).unwrap_or_else(|status| Answer::Ready(Err(status))),
        "create" => Answer::pending(create::create(cx, request.into_body())),
        "update" => Answer::pending(update::update(cx, request.into_body())),
        "patch" => Answer::pending(patch::patch(cx, request.into_body())),
        "delete" => Answer::pending(delete::delete(cx, request.into_body())),
        "deletecollection" => Answer::pending(delete::delete_collection(cx, request.into_body())),
        _ => {
            let resource = cx.endpoint.resource.descriptor.group_resource();
            Answer::Ready(Err(Status::method_not_supported(&resource, verb)))
        }
    }
}

/// A list or a watch. What the client takes is looked at before what it asks for.
fn read_many(cx: Arc<Context>, verb: &str, request: Request) -> Result<Answering, Status> {
    let negotiated = cx.negotiate()?;
    let mut options = options::ListOptions::parse(&cx.query, cx.endpoint.limits.initial_events)?;
    if let Some(StaleBy(revisions)) = request.extensions().get() {
        options.read_stale(cx.endpoint.resource.hub.applied(), *revisions);
    }
    let forced = cx.info.verb == "watch" && verb == "watch";
    Ok(if options.watch || forced {
        Answer::pending(watch::watch(cx, options, request))
    } else {
        Answer::pending(list::list(cx, options, negotiated))
    })
}

/// GET of one object, which mostly is in memory.
pub fn read_one(cx: Arc<Context>) -> Answering {
    Answer::begin(get::get(cx))
}

impl Context {
    pub(crate) fn complete(&self, object: &mut Working) {
        self.endpoint.complete(object);
    }

    pub fn canonicalize(&self, object: &mut Value) {
        self.endpoint.canonicalize(object);
    }

    /// The stored object, at the version in the URL.
    pub async fn to_request_version(&self, object: Value) -> Result<Value, Status> {
        self.endpoint.resource.convert(object, &self.endpoint.object_kind()).await
    }
}

impl Endpoint {
    /// Fills in defaults and brings what a client sent into canonical form, but for empty lists and maps that it has: rules
    /// see them.
    fn complete(&self, object: &mut Working) {
        if self.view.is_none() {
            self.resource.strategy.default_object(self.version_name(), &mut object.value);
        }
        object.canonicalize(self.schema(), self.resource.empties_in_rules());
    }

    /// Brings what a client sent into the form by which its fields are owned. An empty list of managedFields stays for as
    /// long as it takes to understand it: it means that nobody owns anything any more.
    fn canonicalize_owned(&self, object: &mut Value) {
        const PATH: [&str; 2] = ["metadata", "managedFields"];
        let resets = self.fields.is_some()
            && object.at(&PATH).and_then(Value::as_array).is_some_and(|entries| entries.is_empty());
        self.canonicalize(object);
        if resets {
            object.set_at(&PATH, Value::Array(Vec::new()));
        }
    }

    /// The form that decoding and encoding an object of this kind gives it. Empty lists are still told from absent
    /// ones: who sends one owns it, although the store forgets it.
    fn canonicalize(&self, object: &mut Value) {
        let schema = self.schema();
        kubelith_schema::canonical::canonicalize(&schema.table, &schema.root, object, Empties::Distinct);
    }
}
