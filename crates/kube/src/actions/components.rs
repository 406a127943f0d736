//! ComponentStatus: how the components beside this server are, asked when somebody wants to know. Deprecated, and of
//! little worth where they run on other machines: they are looked for on this one.

use futures::future::BoxFuture;
use http::StatusCode;
use kubelith_handlers::api::{Action, ActionCall};
use kubelith_handlers::options::ListOptions;
use kubelith_http::Response;
use kubelith_meta::{GroupResource, Map, Status, Str, Value};
use kubelith_schema::Unselectable;
use kubelith_store::cache::Hub;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// A component that does not answer within this time is unhealthy.
const PATIENCE: Duration = Duration::from_secs(20);

/// The components with the local ports of their health checks; the store is asked through the store.
const COMPONENTS: [(&str, Option<u16>); 3] =
    [("controller-manager", Some(10257)), ("etcd-0", None), ("scheduler", Some(10259))];

struct ComponentsAction {
    hub: Arc<Hub>,
}

pub fn of(hub: &Arc<Hub>, group: &str, plural: &str) -> Option<Arc<dyn Action>> {
    let is = group.is_empty() && plural == "componentstatuses";
    is.then(|| Arc::new(ComponentsAction { hub: hub.clone() }) as Arc<dyn Action>)
}

impl Action for ComponentsAction {
    fn run(&self, call: ActionCall) -> BoxFuture<'static, Result<Response, Status>> {
        let hub = self.hub.clone();
        Box::pin(async move {
            if call.info.verb == "watch" {
                let resource = GroupResource::new("", "componentstatuses");
                return Err(Status::method_not_supported(&resource, "watch"));
            }
            // A list of one name is still a list.
            if call.info.parts.len() < 2 {
                let chosen = chosen(&ListOptions::parse(&call.query)?)?;
                let items = chosen.into_iter().map(|(name, port)| status(&hub, name, port));
                let items = futures::future::join_all(items).await;
                let mut list = Value::from([("apiVersion", "v1"), ("kind", "ComponentStatusList")]);
                list.set_at(&["metadata"], Value::object());
                list.set_at(&["items"], Value::Array(items));
                return call.answer(StatusCode::OK, list);
            }
            let known = COMPONENTS.into_iter().find(|(name, _)| *name == call.info.name);
            let Some((name, port)) = known else {
                return Err(Status::not_found(&GroupResource::new("", "componentstatus"), &call.info.name));
            };
            let mut object = status(&hub, name, port).await;
            object.set_at(&["apiVersion"], "v1".into());
            object.set_at(&["kind"], "ComponentStatus".into());
            call.answer(StatusCode::OK, object)
        })
    }
}

/// The components that a list asks for. They have names and no labels.
fn chosen(options: &ListOptions) -> Result<Vec<(&'static str, Option<u16>)>, Status> {
    let fields = options.fields.clone().transform(|field: Str, value: Str| match field.as_str() {
        "metadata.name" | "metadata.namespace" => Ok((field, value)),
        _ => Err(Status::bad_request(Unselectable::default().message_for(&field))),
    })?;
    let is_chosen = |(name, _): &(&str, Option<u16>)| {
        options.labels.matches(&Map::new()) && fields.matches(&[("metadata.name", *name)][..])
    };
    Ok(COMPONENTS.into_iter().filter(is_chosen).collect())
}

async fn status(hub: &Hub, name: &str, port: Option<u16>) -> Value {
    let (healthy, message) = match ask(hub, port).await {
        Ok(()) => ("True", "ok".to_owned()),
        Err(why) => ("False", why),
    };
    let mut object = Value::object();
    object.meta_mut().set_name(name);
    let condition = Value::from([("type", "Healthy"), ("status", healthy), ("message", &message)]);
    object.set_at(&["conditions"], Value::Array(vec![condition]));
    object
}

/// Whether the component takes connections, or the store answers.
async fn ask(hub: &Hub, port: Option<u16>) -> Result<(), String> {
    let asked = async {
        match port {
            Some(port) => TcpStream::connect(("127.0.0.1", port)).await.map(drop).map_err(|e| {
                format!("Get \"https://127.0.0.1:{port}/healthz\": dial tcp 127.0.0.1:{port}: connect: {}", reason(&e))
            }),
            None => hub.store().current_revision().await.map(drop).map_err(|e| e.to_string()),
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| Err("context deadline exceeded".into()))
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connection refused".into(),
        _ => error.to_string(),
    }
}
