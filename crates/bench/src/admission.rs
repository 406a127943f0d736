//! What admission costs: pods are created as dry runs, without anything that judges them, then with policies and a webhook.
//! The cost of one of them is the difference to the first load. A webhook is a server of its own, which takes its share of the
//! machine's caches and processors: what a call costs the server that makes it is the difference to a load in which the
//! clients call the webhook as often.

use crate::Result;
use crate::client::{Call, Connection};
use crate::loads::Load;
use crate::objects::NAMESPACE;
use crate::target::Target;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kubelith_conformance::webhook_server;
use serde_json::{Value, json};

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const NAME: &str = "bench";
/// Policies that are about other resources.
const OTHERS: usize = 500;

/// What a load has configured while it runs: paths of collections, with objects.
fn configured(load: Load) -> Result<Vec<(&'static str, Value)>> {
    let policy = |name: &str, resource: &str| {
        let rule = json!({"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [resource]});
        json!({"metadata": {"name": name}, "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [
                {"expression": "object.metadata.name.startsWith('pod-')"},
                {"expression": "object.spec.containers.size() <= 10"},
                {"expression": "has(object.metadata.labels) && 'tier' in object.metadata.labels"},
            ],
        }})
    };
    let binding =
        |name: &str| json!({"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}});
    let (policies, bindings) = ("validatingadmissionpolicies", "validatingadmissionpolicybindings");
    Ok(match load {
        Load::AdmitPolicy => vec![(policies, policy(NAME, "pods")), (bindings, binding(NAME))],
        Load::AdmitOthers => (0..OTHERS)
            .map(|number| format!("{NAME}-{number}"))
            .flat_map(|name| [(policies, policy(&name, "secrets")), (bindings, binding(&name))])
            .collect(),
        Load::AdmitWebhook => {
            let url = format!("https://127.0.0.1:{}/allow", webhook_server::start_anywhere()?);
            let hook = json!({
                "name": "bench.example.com",
                "clientConfig": {"url": url, "caBundle": STANDARD.encode(webhook_server::AUTHORITY)},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
                "admissionReviewVersions": ["v1"], "sideEffects": "None",
            });
            let configuration = json!({"metadata": {"name": NAME}, "webhooks": [hook]});
            vec![("validatingwebhookconfigurations", configuration)]
        }
        _ => Vec::new(),
    })
}

/// The port of a webhook that the clients of a load ask themselves.
pub fn asked_by_clients(load: Load) -> Result<Option<u16>> {
    Ok(match load {
        Load::AdmitBeside => Some(webhook_server::start_anywhere()?),
        _ => None,
    })
}

pub async fn prepare(load: Load, target: &Target) -> Result<()> {
    let mut connection = target.endpoint.connect().await?;
    for (plural, object) in configured(load)? {
        expect(&mut connection, Call::post(format!("{GROUP}/{plural}"), object.to_string()), &[201, 409]).await?;
    }
    Ok(())
}

pub async fn clean(load: Load, target: &Target) -> Result<()> {
    let mut connection = target.endpoint.connect().await?;
    for (plural, object) in configured(load)? {
        let path = format!("{GROUP}/{plural}/{}", object["metadata"]["name"].as_str().unwrap_or_default());
        expect(&mut connection, Call { method: "DELETE", ..Call::get(path) }, &[200]).await?;
    }
    Ok(())
}

async fn expect(connection: &mut Connection, call: Call, codes: &[u16]) -> Result<()> {
    let path = call.path.clone();
    match connection.send(call).await? {
        (status, _) if codes.contains(&status) => Ok(()),
        (status, _) => Err(format!("{path} answered {status}").into()),
    }
}
