//! The objects of a new store, written at once where that is nobody's business but this server's.

use super::{Builtin, Shared};
use crate::options::Options;
use kubelith_admission::Configuration;
use kubelith_aggregator::{Local, Managed, OWN_GROUP, api_services_resource};
use kubelith_kube::bootstrap::{Beginning, FirstObjects, Own};
use kubelith_meta::GroupVersion;
use kubelith_openapi::discovery::Entry;
use kubelith_server::lifecycle::Begun;

/// The one plugin of admission that has something against them.
const REFUSES_ALL: &str = "AlwaysDeny";

pub async fn write(shared: &Shared<'_>, builtin: &Builtin) -> Beginning {
    let rules = shared.frame.blueprint.served_by(shared.options);
    let (Some(rules), Begun::Anew) = (rules, shared.frame.begun) else { return Beginning::Left };
    if is_seen(shared.options) {
        return Beginning::Left;
    }
    // Who keeps APIServices has none for itself.
    let others = || builtin.entries.iter().filter(|entry| entry.group != OWN_GROUP).map(api_service).collect();
    let first = FirstObjects {
        routes: &builtin.routes,
        resources: &shared.resources,
        hub: &shared.hub,
        gates: &shared.options.features,
        roles: shared.access.uses_roles,
        others: &others,
        same_if: (rules, builtin.entries.iter().map(|entry| gv(entry).to_string()).collect()),
    };
    first.write().await
}

/// Whether creates of them are told to anybody, or could be refused or changed.
fn is_seen(options: &Options) -> bool {
    let (audit, admission) = (&options.audit, &options.admission);
    let is_audited = audit.policy_file.is_some() || audit.log.is_some() || audit.webhook.is_some();
    let is_judged = admission.configuration != Configuration::default()
        || admission.switches.enabled.iter().any(|name| name == REFUSES_ALL);
    is_audited || is_judged || options.tracing.is_some()
}

fn gv(entry: &Entry) -> GroupVersion {
    GroupVersion::new(entry.group.clone(), entry.version.name.clone())
}

fn api_service(entry: &Entry) -> Own {
    let local = Local { gv: gv(entry), group_priority: entry.group_priority, version_priority: entry.version_priority };
    Own::new(api_services_resource(), local.object(Managed::OnStart))
}
