//! Finds out which APIServices can be used, and says so in their condition Available. Local ones always can; of others the
//! service, its endpoints and an answer to a discovery request are needed.

use crate::api_service::{ApiService, ApiServices, Condition, ServiceReference};
use crate::autoregister::api_services_resource;
use crate::metrics::AggregatorMetrics;
use crate::resolve::{Endpoints, Resolver, Service};
use crate::routes::Transports;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::uri::PathAndQuery;
use kubelith_auth::User;
use kubelith_meta::time::Clock;
use kubelith_meta::user::GROUP_MASTERS;
use kubelith_meta::{Str, Value};
use kubelith_outbound::proxy::{FetchFailed, Target, Transport};
use kubelith_server::controller::Next;
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use std::sync::Arc;
use std::time::Duration;

/// A server that cannot answer a discovery request within this time is of no use to clients.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
/// Requests of one check; one answer is enough, so that one bad endpoint of many does no harm.
const CHECK_ATTEMPTS: usize = 5;
/// Of a discovery document, of which only the code is looked at.
const CHECK_BYTES: usize = 16 * 1024 * 1024;

/// Both controllers: each looks at its own kind of APIService.
pub struct Availability {
    pub api_services: ApiServices,
    pub client: LoopbackClient,
    pub resolver: Arc<Resolver>,
    pub transports: Arc<Transports>,
    pub metrics: Arc<AggregatorMetrics>,
    pub clock: Arc<dyn Clock>,
    pub user: User,
}

/// As whom discovery is asked for: somebody who may.
pub fn user() -> User {
    User::named("system:kube-aggregator").with_groups(&[GROUP_MASTERS])
}

impl Availability {
    pub async fn reconcile_local(self: Arc<Self>, name: Str) -> Result<Next, String> {
        let Some(api_service) = self.api_services.get(&name) else {
            self.metrics.forget(&name);
            return Ok(Next::Done);
        };
        if api_service.service.is_none() {
            self.report(&api_service, local()).await?;
        }
        Ok(Next::Done)
    }

    pub async fn reconcile_remote(self: Arc<Self>, name: Str) -> Result<Next, String> {
        let Some(api_service) = self.api_services.get(&name) else {
            self.metrics.forget(&name);
            return Ok(Next::Done);
        };
        let Some(service) = &api_service.service else { return Ok(Next::Done) };
        let verdict = match self.check_service(service) {
            Some(found) => found,
            None => self.check_discovery(&api_service, service).await?,
        };
        let again = verdict.reason == "FailedDiscoveryCheck";
        let message = verdict.message.to_string();
        self.report(&api_service, verdict).await?;
        // Nothing tells us when the server is back: try again, ever more rarely.
        if again { Err(message) } else { Ok(Next::Done) }
    }

    /// What is wrong with the service, if something is.
    fn check_service(&self, to: &ServiceReference) -> Option<Condition> {
        let shown = format!("service/{} in {:?}", to.name, to.namespace.as_str());
        let Some(service) = self.resolver.service(&to.namespace, &to.name) else {
            return Some(unavailable("ServiceNotFound", format!("{shown} is not present")));
        };
        if service.kind != "ClusterIP" {
            return None;
        }
        let Some(port) = port_name(&service, to.port) else {
            let text = format!("{shown} is not listening on port {}", to.port);
            return Some(unavailable("ServicePortError", text));
        };
        match self.resolver.endpoints(&to.namespace, &to.name, port) {
            Endpoints::Ready => None,
            Endpoints::None => {
                let text = format!("cannot find endpointslices for {shown}");
                Some(unavailable("EndpointsNotFound", text))
            }
            Endpoints::NotReady => {
                let text = format!("endpointslices for {shown} have no addresses with port name {:?}", port.as_str());
                Some(unavailable("MissingEndpoints", text))
            }
        }
    }

    /// Asks the server for its discovery document, several times at once.
    async fn check_discovery(&self, api_service: &ApiService, to: &ServiceReference) -> Result<Condition, String> {
        let transport = self.transports.get(api_service, to)?;
        let path = match api_service.gv.group.is_empty() {
            true => format!("/api/{}", api_service.gv.version),
            false => format!("/apis/{}/{}", api_service.gv.group, api_service.gv.version),
        };
        let mut attempts: FuturesUnordered<_> =
            (0..CHECK_ATTEMPTS).map(|_| self.ask(&transport, to, path.clone())).collect();
        let mut last = String::new();
        while let Some(outcome) = attempts.next().await {
            match outcome {
                Ok(()) => {
                    return Ok(Condition {
                        status: "True".into(),
                        reason: "Passed".into(),
                        message: "all checks passed".into(),
                    });
                }
                Err(why) => last = why,
            }
        }
        Ok(unavailable("FailedDiscoveryCheck", last))
    }

    async fn ask(&self, transport: &Transport, to: &ServiceReference, path: String) -> Result<(), String> {
        let authority = self.resolver.resolve(to).map_err(|e| e.to_string())?;
        let url = format!("https://{authority}{path}");
        let path_and_query = PathAndQuery::from_maybe_shared(path.into_bytes()).map_err(|e| format!("{url}: {e}"))?;
        let target = Target { authority, path_and_query };
        let answer = transport.fetch(target, &self.user, "*/*", None, (CHECK_BYTES, CHECK_TIMEOUT)).await;
        let failing = |why: String| format!("failing or missing response from {url}: {why}");
        match answer {
            Ok(answer) if answer.status.is_success() => Ok(()),
            Ok(answer) => Err(failing(format!("bad status from {url}: {}", answer.status.as_u16()))),
            Err(FetchFailed::Timeout) => {
                let why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
                Err(failing(format!("Get {url:?}: {why}")))
            }
            Err(why) => Err(failing(format!("Get {url:?}: {why}"))),
        }
    }

    /// Writes the condition, if it is another one.
    async fn report(&self, api_service: &ApiService, now: Condition) -> Result<(), String> {
        let (name, before) = (&api_service.name, api_service.available.as_ref());
        self.metrics.set(name, now.status == "True");
        if before == Some(&now) {
            return Ok(());
        }
        let Some(mut object) = self.api_services.value_as(api_service) else { return Ok(()) };
        set_condition(&mut object, &now, self.clock.now().rfc3339());
        let resource = api_services_resource();
        let target = ResourceRef::new(&resource).name(name).subresource("status");
        match self.client.update(&target, &object).await {
            Ok(_) => {
                let (status, reason) = (now.status.as_str(), now.reason.as_str());
                tracing::info!(v = 2, name = name.as_str(), status, reason, "changing APIService availability");
                self.metrics.changed(name, before, &now);
                Ok(())
            }
            // Gone or changed meanwhile, which brings us here again.
            Err(status) if status.is_not_found() || status.is_conflict() => Ok(()),
            Err(status) => Err(status.message),
        }
    }
}

fn port_name(service: &Service, number: u16) -> Option<&Str> {
    service.ports.iter().find(|(_, n)| *n == number).map(|(name, _)| name)
}

fn local() -> Condition {
    Condition {
        status: "True".into(),
        reason: "Local".into(),
        message: "Local APIServices are always available".into(),
    }
}

fn unavailable(reason: &str, message: String) -> Condition {
    Condition { status: "False".into(), reason: reason.into(), message: message.into() }
}

/// Puts the condition in its place. Its time is that of the last change of status.
fn set_condition(object: &mut Value, now: &Condition, time: String) {
    let mut condition = Value::from([
        ("type", Value::from("Available")),
        ("status", Value::String(now.status.clone())),
        ("lastTransitionTime", Value::from(time)),
        ("reason", Value::String(now.reason.clone())),
        ("message", Value::String(now.message.clone())),
    ]);
    if object.at(&["status", "conditions"]).and_then(Value::as_array).is_none() {
        object.set_at(&["status", "conditions"], Value::Array(Vec::new()));
    }
    let Some(list) = object.at_mut(&["status", "conditions"]).and_then(Value::as_array_mut) else { return };
    match list.iter_mut().find(|c| c.str_at(&["type"]) == "Available") {
        Some(old) => {
            if old.str_at(&["status"]) == now.status
                && let Some(time) = old.get("lastTransitionTime")
            {
                condition.set_at(&["lastTransitionTime"], time.clone());
            }
            *old = condition;
        }
        None => list.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_service::available;

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let mut object = Value::object();
        let time = |object: &Value| {
            let conditions = object.at(&["status", "conditions"]).unwrap().as_array().unwrap();
            assert_eq!(conditions.len(), 1);
            conditions[0].str_at(&["lastTransitionTime"]).to_owned()
        };
        set_condition(&mut object, &unavailable("A", "a".into()), "1".into());
        set_condition(&mut object, &unavailable("B", "b".into()), "2".into());
        assert_eq!(time(&object), "1");
        assert_eq!(available(&object), Some(unavailable("B", "b".into())));
        set_condition(&mut object, &local(), "3".into());
        assert_eq!(time(&object), "3");
    }
}
