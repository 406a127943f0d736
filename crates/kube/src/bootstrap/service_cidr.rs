//! The default range of service addresses. Without it no service gets an address, so the server is not ready before it is
//! there. One that differs from the flags is left alone: the operator decides.

use super::{Bootstrap, find};
use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_server::lifecycle::{Begun, PostStartHook};
use kubelith_server::loopback::{PatchType, ResourceRef};
use std::sync::Arc;
use std::time::Duration;

const NAME: &str = "kubernetes";
const MANAGER: &str = "kubernetes-service-cidr-controller";
const AGAIN: Duration = Duration::from_secs(10);
/// While the start waits for it.
const RETRY: Duration = Duration::from_millis(100);

pub fn hook(config: &Arc<Bootstrap>) -> PostStartHook {
    let config = config.clone();
    PostStartHook::new("start-kubernetes-service-cidr-controller", |context| async move {
        while context.begun == Begun::Anew
            && let Err(why) = sync(&config).await
        {
            tracing::warn!(err = %why, "default ServiceCIDR not made yet");
            tokio::time::sleep(RETRY).await;
        }
        context.tasks.spawn_until_stopped(MANAGER, async move {
            loop {
                tokio::time::sleep(AGAIN).await;
                if let Err(why) = sync(&config).await {
                    tracing::error!(err = %why, "default ServiceCIDR not kept");
                }
            }
        });
        Ok(())
    })
}

async fn sync(config: &Bootstrap) -> Result<(), Status> {
    let resource = GroupVersionResource::new("networking.k8s.io", "v1", "servicecidrs");
    let target = ResourceRef::new(&resource).name(NAME);
    let wanted = Value::from(config.service_ranges.clone());
    let existing = match find(&config.client, &target).await? {
        Some(existing) => existing,
        None => {
            let object = Value::from([
                ("metadata", Value::from([("name", NAME)])),
                ("spec", Value::from([("cidrs", wanted.clone())])),
            ]);
            match config.client.create(&ResourceRef::new(&resource), &object).await {
                Err(status) if status.is_already_exists() => return Ok(()),
                created => created?,
            }
        }
    };
    if upgrades_to_two_families(existing.at(&["spec", "cidrs"]), &config.service_ranges) {
        let mut object = existing;
        object.set_at(&["spec", "cidrs"], wanted);
        return config.client.update(&target, &object).await.map(drop);
    }
    if existing.meta().is_being_deleted() || existing.at(&["spec", "cidrs"]) != Some(&wanted) || is_judged(&existing) {
        return Ok(());
    }
    let condition = Value::from([
        ("type", "Ready".into()),
        ("status", "True".into()),
        ("message", "Kubernetes default Service CIDR is ready".into()),
        ("lastTransitionTime", Value::from(config.clock.now().rfc3339())),
    ]);
    let status = Value::from([
        ("apiVersion", "networking.k8s.io/v1".into()),
        ("kind", "ServiceCIDR".into()),
        ("metadata", Value::from([("name", NAME)])),
        ("status", Value::from([("conditions", vec![condition])])),
    ]);
    let target = target.subresource("status").with("fieldManager", MANAGER).with("force", "true");
    config.client.patch(&target, PatchType::Apply, &status).await.map(drop)
}

/// One family of the flags is there, the other one was added.
fn upgrades_to_two_families(existing: Option<&Value>, ranges: &[String]) -> bool {
    let existing = existing.and_then(Value::as_array).unwrap_or_default();
    matches!((existing, ranges), ([one], [first, _]) if one.as_str() == Some(first))
}

/// Somebody has said whether it is ready.
fn is_judged(object: &Value) -> bool {
    let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
    let ready = conditions.iter().find(|c| c.str_at(&["type"]) == "Ready");
    ready.is_some_and(|c| matches!(c.str_at(&["status"]), "True" | "False"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_family_is_added_to_the_same_first_one_only() {
        let cidrs = |list: &[&str]| Value::from(list.iter().map(|c| Value::from(*c)).collect::<Vec<_>>());
        let flags = |list: &[&str]| list.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>();
        for (existing, wanted, upgrades) in [
            (&["10.0.0.0/16"][..], &["10.0.0.0/16", "fd00::/108"][..], true),
            (&["10.1.0.0/16"], &["10.0.0.0/16", "fd00::/108"], false),
            (&["10.0.0.0/16", "fd00::/108"], &["10.0.0.0/16", "fd00::/108"], false),
            (&["10.0.0.0/16"], &["10.0.0.0/16"], false),
        ] {
            assert_eq!(upgrades_to_two_families(Some(&cidrs(existing)), &flags(wanted)), upgrades, "{existing:?}");
        }
    }
}
