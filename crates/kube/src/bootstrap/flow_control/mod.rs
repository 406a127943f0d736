//! The default flow schemas and priority levels. Mandatory ones are always put back; suggested ones belong to the operator
//! once the annotation says so, or once they were changed without it.

mod objects;

use super::{Bootstrap, Own, find};
use kubelith_meta::text::parse_bool;
use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_registry::TIME_OF_PREPARED;
use kubelith_server::fairness::first_status;
use kubelith_server::lifecycle::PostStartHook;
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use objects::{Ensured, GROUP, Keeping};
use std::sync::Arc;
use std::time::Duration;

pub const AUTO_UPDATE: &str = "apf.kubernetes.io/autoupdate-spec";
const FIELD_MANAGER: &str = "api-priority-and-fairness-config-producer-v1";
const AGAIN: Duration = Duration::from_secs(60);
const RETRY: Duration = Duration::from_secs(1);
/// The server gives up when they could not be made for this long.
const START_LIMIT: Duration = Duration::from_secs(300);

pub fn first_objects() -> impl Iterator<Item = Own> {
    let own = |wanted: Ensured| {
        let is_schema = wanted.plural == objects::FLOW_SCHEMAS;
        let status = is_schema.then(|| first_status(&wanted.object, TIME_OF_PREPARED));
        Own { manager: FIELD_MANAGER, status, ..Own::new(resource(wanted.plural), wanted.object) }
    };
    objects::all().into_iter().map(own)
}

pub fn hook(config: &Arc<Bootstrap>) -> PostStartHook {
    let config = config.clone();
    PostStartHook::new("priority-and-fairness-config-producer", |context| async move {
        let first = async {
            if !config.beginning.is_left_to(context.begun) {
                return;
            }
            while let Err(why) = ensure_all(&config).await {
                tracing::error!(err = %why, "flow control defaults not made, will be tried again");
                tokio::time::sleep(RETRY).await;
            }
        };
        if tokio::time::timeout(START_LIMIT, first).await.is_err() {
            return Err("unable to initialize APF bootstrap configuration: timed out".into());
        }
        context.tasks.spawn_until_stopped("flow-control-defaults", async move {
            loop {
                tokio::time::sleep(AGAIN).await;
                if let Err(why) = ensure_all(&config).await {
                    tracing::error!(err = %why, "flow control defaults not kept");
                }
            }
        });
        Ok(())
    })
}

fn resource(plural: &str) -> GroupVersionResource {
    GroupVersionResource::new(GROUP, "v1", plural)
}

async fn ensure_all(config: &Bootstrap) -> Result<(), Status> {
    let (client, all) = (&config.client, objects::all());
    futures::future::try_join_all(all.iter().map(|wanted| ensure(config, wanted))).await?;
    for plural in [objects::FLOW_SCHEMAS, objects::PRIORITY_LEVELS] {
        remove_former(client, plural, &all).await?;
    }
    Ok(())
}

async fn ensure(config: &Bootstrap, wanted: &Ensured) -> Result<(), Status> {
    let client = &config.client;
    let resource = resource(wanted.plural);
    let name = wanted.object.meta().name();
    let target = ResourceRef::new(&resource).name(name);
    // In a new store there is nothing to look at. Whoever made it meanwhile is met by the create, and looked at then.
    let found = match config.has(GROUP, wanted.plural, name) {
        true => find(client, &target).await?,
        false => None,
    };
    let existing = match found {
        Some(existing) => existing,
        None => {
            let collection = ResourceRef::new(&resource).with("fieldManager", FIELD_MANAGER);
            match client.create_unseen(&collection, &wanted.object).await {
                Err(status) if status.is_already_exists() => client.get(&target).await?,
                created => return created,
            }
        }
    };
    let Some(revised) = revise(&existing, wanted) else { return Ok(()) };
    match client.update(&target.with("fieldManager", FIELD_MANAGER), &revised).await {
        // Whoever changed it meanwhile is looked at the next time.
        Err(status) if !status.is_conflict() => Err(status),
        _ => Ok(()),
    }
}

/// What an object must become; `None` if it is right.
fn revise(existing: &Value, wanted: &Ensured) -> Option<Value> {
    let meta = existing.meta();
    let stated = meta.annotation(AUTO_UPDATE).and_then(parse_bool);
    let auto_update = wanted.keeping == Keeping::Mandatory || stated.unwrap_or_else(|| meta.generation() == 1);
    let spec = wanted_spec(existing, wanted);
    let spec_changed = auto_update && existing.get("spec") != Some(&spec);
    if stated == Some(auto_update) && !spec_changed {
        return None;
    }
    let mut revised = existing.clone();
    if spec_changed {
        revised.make_object().insert("spec", spec);
    }
    revised.meta_mut().set_annotation(AUTO_UPDATE, if auto_update { "true" } else { "false" });
    Some(revised)
}

/// The spec to compare with. Operators may size the exempt level, though it is mandatory.
fn wanted_spec(existing: &Value, wanted: &Ensured) -> Value {
    let mut spec = wanted.object.get("spec").cloned().unwrap_or_default();
    if wanted.plural == objects::PRIORITY_LEVELS && wanted.object.meta().name() == "exempt" {
        for field in ["nominalConcurrencyShares", "lendablePercent"] {
            if let Some(value) = existing.at(&["spec", "exempt", field]) {
                spec.set_at(&["exempt", field], value.clone());
            }
        }
    }
    spec
}

/// Deletes defaults of earlier releases that nobody has taken over.
async fn remove_former(client: &LoopbackClient, plural: &'static str, all: &[Ensured]) -> Result<(), Status> {
    let resource = resource(plural);
    let list = client.list(&ResourceRef::new(&resource).with("resourceVersion", "0")).await?;
    for object in list.get("items").and_then(Value::as_array).unwrap_or_default() {
        let meta = object.meta();
        let known = all.iter().any(|w| w.plural == plural && w.object.meta().name() == meta.name());
        if known || meta.annotation(AUTO_UPDATE).and_then(parse_bool) != Some(true) {
            continue;
        }
        match client.delete(&ResourceRef::new(&resource).name(meta.name()), None).await {
            Err(status) if !status.is_not_found() => return Err(status),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(plural: &str, name: &str) -> Ensured {
        objects::all().into_iter().find(|w| w.plural == plural && w.object.meta().name() == name).unwrap()
    }

    #[test]
    fn who_decides_over_a_spec() {
        let suggested = find(objects::PRIORITY_LEVELS, "workload-low");
        let mandatory = find(objects::PRIORITY_LEVELS, "catch-all");
        for (wanted, annotation, generation, changed, expected) in [
            (&suggested, Some("true"), 1, false, None),
            (&suggested, Some("true"), 2, true, Some(("true", true))),
            (&suggested, Some("false"), 2, true, None),
            (&suggested, None, 1, true, Some(("true", true))),
            (&suggested, None, 2, true, Some(("false", false))),
            (&suggested, Some("maybe"), 2, true, Some(("false", false))),
            (&mandatory, Some("false"), 2, true, Some(("true", true))),
            (&mandatory, Some("false"), 2, false, Some(("true", false))),
        ] {
            let mut existing = wanted.object.clone();
            existing.meta_mut().remove_annotation(AUTO_UPDATE);
            if let Some(value) = annotation {
                existing.meta_mut().set_annotation(AUTO_UPDATE, value);
            }
            existing.meta_mut().set_generation(generation);
            let own = Value::Int(77);
            if changed {
                existing.set_at(&["spec", "limited", "nominalConcurrencyShares"], own.clone());
            }
            let revised = revise(&existing, wanted);
            let seen = revised.as_ref().map(|r| {
                let reset = r.at(&["spec", "limited", "nominalConcurrencyShares"]) != Some(&own) && changed;
                (r.meta().annotation(AUTO_UPDATE).unwrap(), reset)
            });
            assert_eq!(seen, expected, "{annotation:?} {generation} {changed}");
        }
    }

    #[test]
    fn the_exempt_level_may_be_sized() {
        let exempt = find(objects::PRIORITY_LEVELS, "exempt");
        let mut existing = exempt.object.clone();
        existing.set_at(&["spec", "exempt", "lendablePercent"], Value::Int(30));
        assert!(revise(&existing, &exempt).is_none());
        existing.set_at(&["spec", "type"], "Limited".into());
        let revised = revise(&existing, &exempt).unwrap();
        assert_eq!(revised.at(&["spec", "exempt", "lendablePercent"]), Some(&Value::Int(30)));
        assert_eq!(revised.str_at(&["spec", "type"]), "Exempt");
    }
}
