//! All objects of one resource in one namespace.

use crate::world::Known;
use kubelith_meta::time::Duration as Span;
use kubelith_meta::{GroupVersionResource, Status, Value};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use std::collections::BTreeMap;

/// What finalizers of others may take.
const FINALIZERS_TAKE: i64 = 15;

/// What is left after everything was told to go.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Remaining {
    /// Seconds that it may take until it is gone.
    pub estimate: i64,
    pub count: usize,
    pub finalizers: BTreeMap<String, usize>,
}

impl Remaining {
    fn in_seconds(estimate: i64) -> Remaining {
        Remaining { estimate, ..Remaining::default() }
    }
}

/// Deletes them; `age` is for how long the namespace has been on its way out.
pub async fn delete(
    client: &LoopbackClient,
    known: &Known,
    namespace: &str,
    age: Span,
) -> Result<Remaining, (Remaining, String)> {
    let resource = &known.resource;
    let estimate = match resource.group.is_empty() && resource.resource == "pods" {
        true => grace_of_pods(client, resource, namespace).await.map_err(|e| (Remaining::default(), e.message))?,
        false => 0,
    };
    let estimate = if age >= Span::from_secs(estimate) { 0 } else { estimate };
    let failed = |status: Status| (Remaining::in_seconds(estimate), status.message);
    if !delete_collection(client, known, namespace).await.map_err(failed)? {
        delete_each(client, known, namespace).await.map_err(failed)?;
    }
    let Some(left) = list(client, known, namespace).await.map_err(failed)? else {
        return Ok(Remaining::in_seconds(estimate));
    };
    judge(&left, estimate).map_err(|remaining| {
        let (group, version, plural) = (&resource.group, &resource.version, &resource.resource);
        let which = format!("{group}/{version}, Resource={plural}");
        (remaining, format!("unexpected items still remain in namespace: {namespace} for gvr: {which}"))
    })
}

/// What it means that these objects are left. An error: there is no reason why they are.
fn judge(left: &[Value], estimate: i64) -> Result<Remaining, Remaining> {
    if left.is_empty() {
        return Ok(Remaining::default());
    }
    let mut remaining = Remaining { estimate, count: left.len(), finalizers: BTreeMap::new() };
    for object in left {
        for finalizer in object.meta().finalizers() {
            *remaining.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }
    if estimate != 0 {
        return Ok(remaining);
    }
    if remaining.finalizers.is_empty() {
        return Err(remaining);
    }
    Ok(Remaining { estimate: FINALIZERS_TAKE, ..remaining })
}

/// The longest that a running pod may take to end.
async fn grace_of_pods(
    client: &LoopbackClient,
    resource: &GroupVersionResource,
    namespace: &str,
) -> Result<i64, Status> {
    let pods = client.list(&ResourceRef::new(resource).namespace(namespace)).await?;
    let running = items(&pods).iter().filter(|p| !matches!(p.str_at(&["status", "phase"]), "Succeeded" | "Failed"));
    let graces = running.filter_map(|p| p.at(&["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64));
    Ok(graces.max().unwrap_or(0).max(0))
}

/// False if the resource cannot do that.
async fn delete_collection(client: &LoopbackClient, known: &Known, namespace: &str) -> Result<bool, Status> {
    if !known.can("deletecollection") {
        return Ok(false);
    }
    supported(client.delete_unseen(&ResourceRef::new(&known.resource).namespace(namespace), &options()).await)
        .map(|done| done.is_some())
}

async fn delete_each(client: &LoopbackClient, known: &Known, namespace: &str) -> Result<(), Status> {
    for object in list(client, known, namespace).await?.unwrap_or_default() {
        let target = ResourceRef::new(&known.resource).namespace(namespace).name(object.meta().name());
        supported(client.delete_unseen(&target, &options()).await)?;
    }
    Ok(())
}

/// The metadata of all objects; `None` if the resource cannot be listed.
async fn list(client: &LoopbackClient, known: &Known, namespace: &str) -> Result<Option<Vec<Value>>, Status> {
    if !known.can("list") {
        return Ok(None);
    }
    let list = client.list_metadata(&ResourceRef::new(&known.resource).namespace(namespace)).await;
    Ok(supported(list)?.map(|list| items(&list).to_vec()))
}

fn supported<T>(answer: Result<T, Status>) -> Result<Option<T>, Status> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(status) if status.is_method_not_supported() || status.is_not_found() => Ok(None),
        Err(status) => Err(status),
    }
}

fn items(list: &Value) -> &[Value] {
    list.get("items").and_then(Value::as_array).unwrap_or_default()
}

/// Everything in the namespace goes anyway: nobody needs to follow owners.
fn options() -> Value {
    Value::from([("kind", "DeleteOptions"), ("apiVersion", "v1"), ("propagationPolicy", "Background")])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_remains() {
        let plain = Value::object();
        let mut finalized = Value::object();
        finalized.meta_mut().add_finalizer("a/b");
        let count = |n: usize| BTreeMap::from([("a/b".to_owned(), n)]);
        for (left, estimate, want) in [
            (vec![], 30, Ok(Remaining::default())),
            (vec![plain.clone()], 30, Ok(Remaining { estimate: 30, count: 1, ..Remaining::default() })),
            (vec![plain.clone()], 0, Err(Remaining { estimate: 0, count: 1, ..Remaining::default() })),
            (
                vec![finalized.clone(), plain, finalized],
                0,
                Ok(Remaining { estimate: FINALIZERS_TAKE, count: 3, finalizers: count(2) }),
            ),
        ] {
            assert_eq!(judge(&left, estimate), want);
        }
    }
}
