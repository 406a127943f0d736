//! ComponentStatus: how the components beside this server are, asked when somebody wants to know. Deprecated, and of
//! little worth where they run on other machines: they are looked for on this one.

use crate::cells::KindCells;
use futures::future::BoxFuture;
use http::StatusCode;
use http::uri::PathAndQuery;
use kubelith_codec::negotiate::{BUILT_IN, Output, ResourceEndpoint};
use kubelith_handlers::api::{Action, ActionCall};
use kubelith_handlers::options::{InitialEvents, ListOptions};
use kubelith_handlers::table::Printer;
use kubelith_handlers::{output, views};
use kubelith_http::Response;
use kubelith_meta::time::{Clock, SystemClock};
use kubelith_meta::{GroupResource, Map, Status, Str, Value};
use kubelith_outbound::proxy::{ClientCertificate, FetchFailed, Fetched, Target, TlsClient, Transport};
use kubelith_schema::Unselectable;
use kubelith_store::cache::Hub;
use kubelith_tls::Trust;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A component that does not answer within this time is unhealthy.
const PATIENCE: Duration = Duration::from_secs(20);
/// What is shown of an answer, and what is read of one at most.
const SHOWN_BYTES: usize = 10 << 10;
const MAX_BYTES: usize = 1 << 20;

/// The components with the local ports of their health checks; the store is asked through the store.
const COMPONENTS: [(&str, Option<u16>); 3] =
    [("controller-manager", Some(10257)), ("etcd-0", None), ("scheduler", Some(10259))];

struct ComponentsAction {
    probes: Arc<Probes>,
}

pub fn of(hub: &Arc<Hub>, group: &str, plural: &str) -> Option<Arc<dyn Action>> {
    let is = group.is_empty() && plural == "componentstatuses";
    let probes = || Arc::new(Probes { hub: hub.clone(), transport: OnceLock::new() });
    is.then(|| Arc::new(ComponentsAction { probes: probes() }) as Arc<dyn Action>)
}

impl Action for ComponentsAction {
    fn run(&self, call: ActionCall) -> BoxFuture<'static, Result<Response, Status>> {
        let probes = self.probes.clone();
        Box::pin(async move {
            let negotiated = call.negotiate(&ResourceEndpoint { own: BUILT_IN, has_table: true })?;
            // A list of one name is still a list.
            let answer = match call.info.parts.len() < 2 {
                true => {
                    let options = ListOptions::parse(&call.query, InitialEvents::Served)?;
                    if call.info.verb == "watch" {
                        let resource = GroupResource::new("", "componentstatuses");
                        return Err(Status::method_not_supported(&resource, "watch"));
                    }
                    let chosen = chosen(&options)?;
                    let items = chosen.into_iter().map(|(name, port)| probes.status(name, port));
                    list(&call, &negotiated, futures::future::join_all(items).await)?
                }
                false => {
                    let known = COMPONENTS.into_iter().find(|(name, _)| *name == call.info.name);
                    let Some((name, port)) = known else {
                        return Err(Status::not_found(&GroupResource::new("", "componentstatus"), &call.info.name));
                    };
                    one(&call, &negotiated, probes.status(name, port).await)?
                }
            };
            call.answer_as(&negotiated, StatusCode::OK, answer)
        })
    }
}

fn one(call: &ActionCall, negotiated: &Output, mut object: Value) -> Result<Value, Status> {
    let Some(target) = &negotiated.convert else {
        object.set_at(&["apiVersion"], "v1".into());
        object.set_at(&["kind"], "ComponentStatus".into());
        return Ok(object);
    };
    match target.kind.as_str() {
        "Table" => table(call, &target.version, &[object]),
        "PartialObjectMetadata" => Ok(views::metadata_of(&cells(), &object, &target.version)),
        other => Err(output::wrong_shape(format!(
            "you requested {other}, but the requested object is not a list (*core.ComponentStatus)"
        ))),
    }
}

fn list(call: &ActionCall, negotiated: &Output, items: Vec<Value>) -> Result<Value, Status> {
    let of = |kind: &str, version: &str, items: Vec<Value>| {
        let mut list = Value::from([("apiVersion", version), ("kind", kind)]);
        list.set_at(&["metadata"], Value::object());
        list.set_at(&["items"], Value::Array(items));
        list
    };
    let Some(target) = &negotiated.convert else { return Ok(of("ComponentStatusList", "v1", items)) };
    match target.kind.as_str() {
        "Table" => table(call, &target.version, &items),
        "PartialObjectMetadataList" => {
            let items = items.iter().map(|o| views::metadata_of(&cells(), o, &target.version)).collect();
            Ok(of("PartialObjectMetadataList", &format!("meta.k8s.io/{}", target.version), items))
        }
        other => Err(output::wrong_shape(format!(
            "you requested {other}, but the requested object is a list (*core.ComponentStatusList)"
        ))),
    }
}

fn table(call: &ActionCall, version: &str, objects: &[Value]) -> Result<Value, Status> {
    let described = kubelith_catalog::builtin().descriptor("", "componentstatuses");
    let columns = described.and_then(|d| d.version("v1")).map_or(&[][..], |v| &v.columns);
    let printer = Printer { columns, cells: &cells(), now: SystemClock.now(), version };
    printer.print(&call.query, objects, Value::object())
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

/// Asks components how they are.
struct Probes {
    hub: Arc<Hub>,
    /// Made when the first component is asked.
    transport: OnceLock<Result<Transport, String>>,
}

/// What came of asking.
#[derive(Debug, PartialEq, Eq)]
struct Health {
    status: &'static str,
    message: String,
    error: String,
}

impl Health {
    fn new(status: &'static str, message: impl Into<String>) -> Health {
        Health { status, message: message.into(), error: String::new() }
    }
}

impl Probes {
    async fn status(&self, name: &str, port: Option<u16>) -> Value {
        let health = match port {
            Some(port) => self.ask(port).await,
            None => self.ask_store().await,
        };
        let mut object = Value::object();
        object.meta_mut().set_name(name);
        let mut condition = Value::from([("type", "Healthy"), ("status", health.status)]);
        for (field, text) in [("message", health.message), ("error", health.error)] {
            if !text.is_empty() {
                condition.set_at(&[field], text.into());
            }
        }
        object.set_at(&["conditions"], Value::Array(vec![condition]));
        object
    }

    async fn ask_store(&self) -> Health {
        let answer = tokio::time::timeout(PATIENCE, self.hub.store().current_revision()).await;
        let error = match answer {
            Ok(Ok(_)) => return Health::new("True", "ok"),
            Ok(Err(why)) => why.to_string(),
            Err(_) => "context deadline exceeded".to_owned(),
        };
        Health { error, ..Health::new("False", "") }
    }

    /// GET /healthz, whoever answers: these components sign their own certificates.
    async fn ask(&self, port: u16) -> Health {
        let tls = || TlsClient {
            trust: Trust::Anyone,
            server_name: None,
            certificate: ClientCertificate::none(),
            flaws: None,
        };
        let transport = self.transport.get_or_init(|| Transport::new(Some(&tls())).map_err(|e| e.to_string()));
        let answer = match (transport, format!("127.0.0.1:{port}").parse()) {
            (Ok(transport), Ok(authority)) => {
                let target = Target { authority, path_and_query: PathAndQuery::from_static("/healthz") };
                transport.probe(target, MAX_BYTES, PATIENCE).await
            }
            (Err(why), _) => Err(FetchFailed::NoAnswer(why.clone())),
            (_, Err(why)) => Err(FetchFailed::NoAnswer(why.to_string())),
        };
        judge(port, answer)
    }
}

fn judge(port: u16, answer: Result<Fetched, FetchFailed>) -> Health {
    let answer = match answer {
        Ok(answer) => answer,
        Err(why) => {
            let waited = " (Client.Timeout exceeded while awaiting headers)";
            let waited = if why == FetchFailed::Timeout { waited } else { "" };
            return Health::new("False", format!("Get \"https://127.0.0.1:{port}/healthz\": {why}{waited}"));
        }
    };
    let shown = &answer.body[..answer.body.len().min(SHOWN_BYTES)];
    let body = String::from_utf8_lossy(shown);
    match answer.status.as_u16() {
        200..300 => Health::new("True", body),
        300..400 => Health::new("Unknown", format!("Probe terminated redirects, Response body: {body}")),
        code => Health::new("False", format!("HTTP probe failed with statuscode: {code}")),
    }
}

/// Made for each answer: these are asked for by people, now and then.
fn cells() -> KindCells {
    KindCells::new(kubelith_kinds::BUILTIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_by_its_code() {
        let answer = |code: u16, body: &'static str| {
            let status = StatusCode::from_u16(code).unwrap();
            Ok(Fetched { status, headers: http::HeaderMap::new(), body: body.into() })
        };
        let cases = [
            (answer(200, "ok"), Health::new("True", "ok")),
            (answer(204, ""), Health::new("True", "")),
            (answer(302, "x"), Health::new("Unknown", "Probe terminated redirects, Response body: x")),
            (answer(500, "secret"), Health::new("False", "HTTP probe failed with statuscode: 500")),
            (
                Err(FetchFailed::NoAnswer("EOF".into())),
                Health::new("False", "Get \"https://127.0.0.1:9/healthz\": EOF"),
            ),
            (
                Err(FetchFailed::Timeout),
                Health::new(
                    "False",
                    "Get \"https://127.0.0.1:9/healthz\": context deadline exceeded \
                     (Client.Timeout exceeded while awaiting headers)",
                ),
            ),
        ];
        for (answer, expected) in cases {
            assert_eq!(judge(9, answer), expected);
        }
    }
}
