//! Certificate signing requests that nobody needs any more go.

use crate::{Context, caches};
use kubelith_meta::time::{Clock, Duration as Span, Time};
use kubelith_meta::{GroupVersionResource, Str, Value};
use kubelith_server::controller::{Controller, Next};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use kubelith_store::cache::ResourceCache;
use std::sync::Arc;
use std::time::Duration;

/// How long a request stays that was answered.
const ANSWERED: Span = Span::from_secs(3600);
/// How long one stays that nobody answers.
const PENDING: Span = Span::from_secs(24 * 3600);
/// At the very moment of its end it is not over yet.
const AFTER: Duration = Duration::from_secs(1);

struct Cleaner {
    client: LoopbackClient,
    requests: Arc<ResourceCache>,
    clock: Arc<dyn Clock>,
}

pub fn clean(context: &Context) {
    let Some(requests) = context.world.cache("certificates.k8s.io", "certificatesigningrequests") else { return };
    let this = Arc::new(Cleaner {
        client: context.client("certificate-controller"),
        requests: requests.clone(),
        clock: context.clock.clone(),
    });
    Controller::new("csrcleaner", move |name: Str| {
        let this = this.clone();
        async move { this.reconcile(&name).await }
    })
    .watches(&requests, |change| if change.is_deletion() { Vec::new() } else { vec![change.key()] })
    .by(&context.clock)
    .start(&context.tasks);
}

impl Cleaner {
    async fn reconcile(&self, name: &str) -> Result<Next, String> {
        let Some(request) = self.requests.get(name).and_then(|r| caches::value(&r)) else { return Ok(Next::Done) };
        let Some(end) = end(&request) else { return Ok(Next::Done) };
        let left = end.since(self.clock.now());
        if left >= Span::ZERO {
            return Ok(Next::After(Duration::from(left) + AFTER));
        }
        let resource = GroupVersionResource::new("certificates.k8s.io", "v1", "certificatesigningrequests");
        let options = Value::from([("kind", "DeleteOptions"), ("apiVersion", "v1")]);
        match self.client.delete_unseen(&ResourceRef::new(&resource).name(name), &options).await {
            Err(status) if !status.is_not_found() => {
                Err(format!("unable to delete CSR \"{name}\": {}", status.message))
            }
            _ => Ok(Next::Done),
        }
    }
}

/// When a request has had its time. The end of a certificate needs no look: a request that was granted goes before.
fn end(request: &Value) -> Option<Time> {
    let conditions = request.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    if conditions.is_empty() {
        return request.meta().creation_timestamp().map(|made| made + PENDING);
    }
    let issued = !request.str_at(&["status", "certificate"]).is_empty();
    let ends = conditions.iter().filter_map(|condition| {
        let life = match condition.str_at(&["type"]) {
            "Denied" | "Failed" => ANSWERED,
            "Approved" if issued => ANSWERED,
            "Approved" => PENDING,
            _ => return None,
        };
        let time = Time::parse(condition.str_at(&["lastUpdateTime"])).ok().filter(|time| !time.is_zero())?;
        Some(time + life)
    });
    ends.min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;

    #[test]
    fn ends() {
        let at = |kind: &str| format!(r#"{{"type":"{kind}","lastUpdateTime":"1970-01-01T00:00:10Z"}}"#);
        for (conditions, certificate, want) in [
            (String::new(), "", Some(100 + 86_400)),
            (at("Approved"), "", Some(10 + 86_400)),
            (at("Approved"), "eA==", Some(10 + 3_600)),
            (at("Denied"), "", Some(10 + 3_600)),
            (format!("{},{}", at("Approved"), at("Failed")), "", Some(10 + 3_600)),
            (at("Other"), "", None),
            (r#"{"type":"Denied"}"#.to_owned(), "", None),
        ] {
            let text = format!(
                r#"{{"metadata":{{"creationTimestamp":"1970-01-01T00:01:40Z"}},
                    "status":{{"certificate":"{certificate}","conditions":[{conditions}]}}}}"#
            );
            let request = json::parse(text.as_bytes()).unwrap();
            assert_eq!(end(&request), want.map(Time::from_unix), "{text}");
        }
    }
}
