//! Certificate signing requests: those of kubelets are approved, those that are approved are signed, old ones go.

mod approve;
mod clean;
mod sign;

pub use approve::approve;
pub use clean::clean;
pub use sign::{Signing, sign};

use base64::Engine;
use kubelith_meta::{GroupVersionResource, Value};
use kubelith_server::controller::Backoff;
use kubelith_tls::signing::Request;
use std::collections::BTreeSet;
use std::time::Duration;

const ACCOUNT: &str = "certificate-controller";
const WORKERS: usize = 5;
const RETRY: Backoff = Backoff { first: Duration::from_millis(200), most: Duration::from_secs(1000) };

const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
const LEGACY: &str = "kubernetes.io/legacy-unknown";

fn resource() -> GroupVersionResource {
    GroupVersionResource::new("certificates.k8s.io", "v1", "certificatesigningrequests")
}

fn has_condition(request: &Value, kind: &str) -> bool {
    let conditions = request.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    conditions.iter().any(|c| c.str_at(&["type"]) == kind && matches!(c.str_at(&["status"]), "True" | ""))
}

fn usages(request: &Value) -> BTreeSet<&str> {
    let usages = request.at(&["spec", "usages"]).and_then(Value::as_array).unwrap_or_default();
    usages.iter().filter_map(Value::as_str).collect()
}

/// What the request in the object asks for.
fn asked(request: &Value) -> Result<Request, String> {
    let pem = base64::engine::general_purpose::STANDARD.decode(request.str_at(&["spec", "request"]));
    let read = pem.map_err(|e| e.to_string()).and_then(|pem| Request::read(&pem));
    read.map_err(|why| format!("unable to parse csr \"{}\": {why}", request.meta().name()))
}

/// What is wrong with a request that a signer of kubelets gets.
fn check_kubelet(signer: &str, asked: &Request, usages: &BTreeSet<&str>) -> Result<(), String> {
    let wrong = |what: &str| Err(what.to_owned());
    if asked.organizations != ["system:nodes"] {
        return wrong("subject organization is not system:nodes");
    }
    let serving = signer == KUBELET_SERVING;
    let named = !asked.dns_names.is_empty();
    let addressed = !asked.addresses.is_empty();
    if serving && !named && !addressed {
        return wrong("DNS or IP subjectAltName is required");
    }
    if !serving && named {
        return wrong("DNS subjectAltNames are not allowed");
    }
    if !asked.emails.is_empty() {
        return wrong("Email subjectAltNames are not allowed");
    }
    if !serving && addressed {
        return wrong("IP subjectAltNames are not allowed");
    }
    if !asked.uris.is_empty() {
        return wrong("URI subjectAltNames are not allowed");
    }
    let purpose = if serving { "server auth" } else { "client auth" };
    let all = BTreeSet::from([purpose, "digital signature", "key encipherment"]);
    let few = BTreeSet::from([purpose, "digital signature"]);
    let name = || match asked.common_name.starts_with("system:node:") {
        true => Ok(()),
        false => wrong("subject common name does not begin with system:node:"),
    };
    let uses = || match *usages == all || *usages == few {
        true => Ok(()),
        false => {
            let names: Vec<&str> = all.iter().copied().collect();
            Err(format!("usages did not match [{}]", names.join(" ")))
        }
    };
    // In the order in which each of the two is judged.
    if serving { uses().and_then(|()| name()) } else { name().and_then(|()| uses()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_kubelets() {
        let request = |change: &dyn Fn(&mut Request)| {
            let mut request = Request::default();
            request.common_name = "system:node:n".into();
            request.organizations = vec!["system:nodes".into()];
            change(&mut request);
            request
        };
        let good = request(&|_| {});
        let named = request(&|r| r.dns_names = vec!["n".into()]);
        let client = BTreeSet::from(["client auth", "digital signature"]);
        let serving = BTreeSet::from(["server auth", "digital signature", "key encipherment"]);
        let masters = request(&|r| r.organizations = vec!["system:masters".into()]);
        let stranger = request(&|r| r.common_name = "n".into());
        for (signer, asked, usages, want) in [
            (KUBELET_CLIENT, &good, &client, None),
            (KUBELET_CLIENT, &named, &client, Some("DNS subjectAltNames are not allowed")),
            (KUBELET_CLIENT, &masters, &client, Some("subject organization is not system:nodes")),
            (KUBELET_CLIENT, &stranger, &client, Some("subject common name does not begin with system:node:")),
            (
                KUBELET_CLIENT,
                &good,
                &serving,
                Some("usages did not match [client auth digital signature key encipherment]"),
            ),
            (KUBELET_SERVING, &named, &serving, None),
            (KUBELET_SERVING, &good, &serving, Some("DNS or IP subjectAltName is required")),
        ] {
            assert_eq!(check_kubelet(signer, asked, usages).err().as_deref(), want);
        }
    }
}
