//! Signs requests that were approved, with this server's own authority.

use super::{
    ACCOUNT, CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY, RETRY, WORKERS, asked, check_kubelet, has_condition,
    resource, usages,
};
use crate::{Context, caches};
use base64::Engine;
use kubelith_meta::time::Clock;
use kubelith_meta::{Str, Value};
use kubelith_server::controller::{Controller, Next};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use kubelith_store::cache::ResourceCache;
use kubelith_tls::signing::{Authority, Usages};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use time::{Duration, OffsetDateTime};

const SIGNERS: [&str; 4] = [KUBELET_CLIENT, KUBELET_SERVING, CLIENT, LEGACY];
/// The longest life of a certificate, and of those whose requests do not say.
const LIFE: Duration = Duration::days(365);
const SHORTEST: Duration = Duration::minutes(10);

/// The authority's files.
#[derive(Debug, Clone)]
pub struct Signing {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

struct Signer {
    client: LoopbackClient,
    requests: Arc<ResourceCache>,
    clock: Arc<dyn Clock>,
    files: Signing,
}

pub fn sign(context: &Context) {
    let Some(requests) = context.world.cache("certificates.k8s.io", "certificatesigningrequests") else { return };
    // Whoever names another authority for clients signs with that one.
    let Some(files) = context.settings.signing.clone() else { return };
    let this = Arc::new(Signer {
        client: context.client(ACCOUNT),
        requests: requests.clone(),
        clock: context.clock.clone(),
        files,
    });
    Controller::new("certificate", move |name: Str| {
        let this = this.clone();
        async move { this.reconcile(&name).await }
    })
    .watches(&requests, |change| match &change.new {
        Some(new) if caches::mentions(new, "\"Approved\"") => vec![change.key()],
        _ => Vec::new(),
    })
    .workers(WORKERS)
    .backoff(RETRY)
    .metrics(&context.metrics)
    .start(&context.tasks);
}

impl Signer {
    async fn reconcile(&self, name: &str) -> Result<Next, String> {
        let Some(mut request) = self.requests.get(name).and_then(|r| caches::value(&r)) else { return Ok(Next::Done) };
        let signer = request.str_at(&["spec", "signerName"]).to_owned();
        let open = request.str_at(&["status", "certificate"]).is_empty()
            && has_condition(&request, "Approved")
            && !has_condition(&request, "Denied")
            && !has_condition(&request, "Failed");
        if !open || !SIGNERS.contains(&signer.as_str()) {
            return Ok(Next::Done);
        }
        let asked = asked(&request)?;
        let judged = match signer.as_str() {
            KUBELET_CLIENT | KUBELET_SERVING => check_kubelet(&signer, &asked, &usages(&request)),
            CLIENT => check_client(&request),
            _ => Ok(()),
        };
        let what = match judged {
            Ok(()) => {
                let uses = Usages::read(usages(&request));
                let life = life(request.at(&["spec", "expirationSeconds"]).and_then(Value::as_i64));
                let now = OffsetDateTime::from_unix_timestamp(self.clock.now().unix_seconds());
                let now = now.map_err(|e| e.to_string())?;
                let signed = uses.and_then(|uses| self.authority()?.sign(&asked, &uses, life, now));
                let pem = signed.map_err(|why| format!("error auto signing csr: {why}"))?;
                let text = base64::engine::general_purpose::STANDARD.encode(pem);
                request.set_at(&["status", "certificate"], text.into());
                "updating signature"
            }
            Err(why) => {
                self.fail(&mut request, &why);
                "adding failure condition"
            }
        };
        let resource = resource();
        let target = ResourceRef::new(&resource).name(name).subresource("status");
        match self.client.update(&target, &request).await {
            Err(status) if !status.is_not_found() => Err(format!("error {what} for csr: {}", status.message)),
            _ => Ok(Next::Done),
        }
    }

    fn fail(&self, request: &mut Value, why: &str) {
        let condition = Value::from([
            ("type", Value::from("Failed")),
            ("status", "True".into()),
            ("reason", "SignerValidationFailure".into()),
            ("message", why.into()),
            ("lastUpdateTime", Value::from(self.clock.now().rfc3339())),
        ]);
        let conditions = request.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
        let conditions: Vec<Value> = conditions.iter().cloned().chain([condition]).collect();
        request.set_at(&["status", "conditions"], conditions.into());
    }

    /// Read anew each time: it may have been replaced, and requests are few.
    fn authority(&self) -> Result<Authority, String> {
        let read = |path: &PathBuf| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
        Authority::from_pem(&read(&self.files.certificate)?, &read(&self.files.key)?)
    }
}

fn life(seconds: Option<i64>) -> Duration {
    seconds.map_or(LIFE, |seconds| Duration::seconds(seconds).clamp(SHORTEST, LIFE))
}

fn check_client(request: &Value) -> Result<(), String> {
    let listed = request.at(&["spec", "usages"]).and_then(Value::as_array).unwrap_or_default();
    let allowed = BTreeSet::from(["digital signature", "key encipherment", "client auth"]);
    if let Some(odd) = listed.iter().filter_map(Value::as_str).find(|usage| !allowed.contains(usage)) {
        return Err(format!("invalid usage for client certificate: {odd}"));
    }
    match usages(request).contains("client auth") {
        true => Ok(()),
        false => Err("missing required usage for client certificate: client auth".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lives_are_bounded() {
        for (asked, want) in
            [(None, LIFE), (Some(1), SHORTEST), (Some(3600), Duration::hours(1)), (Some(i64::MAX), LIFE)]
        {
            assert_eq!(life(asked), want);
        }
    }

    #[test]
    fn clients_have_few_usages() {
        let request = |usages: &[&str]| {
            let usages: Vec<Value> = usages.iter().map(|u| Value::from(*u)).collect();
            Value::from([("spec", Value::from([("usages", Value::from(usages))]))])
        };
        assert_eq!(check_client(&request(&["client auth"])), Ok(()));
        let odd = "invalid usage for client certificate: server auth".to_owned();
        assert_eq!(check_client(&request(&["client auth", "server auth"])), Err(odd));
        let missing = "missing required usage for client certificate: client auth".to_owned();
        assert_eq!(check_client(&request(&["digital signature"])), Err(missing));
    }
}
