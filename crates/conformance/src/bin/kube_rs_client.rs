//! `kube-rs-client`: one check by name with kube-rs: typed objects, a reflector, server-side apply, a controller on a CRD of its own.

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{Controller, reflector, watcher};
use kube::{Api, Client, CustomResource, CustomResourceExt, ResourceExt};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// No check takes a tenth of it.
const LIMIT: Duration = Duration::from_secs(50);

#[tokio::main]
async fn main() -> Outcome {
    let name = std::env::args().nth(1).unwrap_or_default();
    let client = Client::try_default().await?;
    let check = async {
        match name.as_str() {
            "crud" => crud(client).await,
            "reflector" => follow(client, "list", watcher::Config::default()).await,
            "reflector-of-a-stream" => follow(client, "stream", watcher::Config::default().streaming_lists()).await,
            "apply" => apply(client).await,
            "controller" => control(client).await,
            other => Err(format!("no check is called {other:?}").into()),
        }
    };
    tokio::time::timeout(LIMIT, check).await??;
    println!("done");
    Ok(())
}

async fn namespace(client: &Client, name: &str) -> Result<String, kube::Error> {
    let api: Api<Namespace> = Api::all(client.clone());
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    match api.create(&PostParams::default(), &namespace).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(name.to_owned()),
        outcome => outcome.map(|_| name.to_owned()),
    }
}

fn map(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        data: Some(BTreeMap::from([("value".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

async fn crud(client: Client) -> Outcome {
    let namespace = namespace(&client, "clients-kube-rs-crud").await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let created = maps.create(&PostParams::default(), &map("one", "1")).await?;
    assert!(created.uid().is_some());
    match maps.create(&PostParams::default(), &map("one", "1")).await {
        Err(kube::Error::Api(status)) => assert!(status.is_already_exists(), "{status:?}"),
        other => panic!("a second creation gave {other:?}"),
    }
    let replaced = maps
        .replace("one", &PostParams::default(), &ConfigMap { metadata: created.metadata.clone(), ..map("one", "2") })
        .await?;
    assert_ne!(replaced.resource_version(), created.resource_version());
    match maps.replace("one", &PostParams::default(), &created).await {
        Err(kube::Error::Api(status)) => assert!(status.is_conflict(), "{status:?}"),
        other => panic!("a stale replacement gave {other:?}"),
    }
    for index in 0..7 {
        maps.create(&PostParams::default(), &map(&format!("page-{index}"), "x")).await?;
    }
    let first = maps.list(&ListParams::default().limit(5)).await?;
    assert_eq!(first.items.len(), 5);
    let token = first.metadata.continue_.ok_or("the first page has no continue token")?;
    assert_eq!(maps.list(&ListParams::default().limit(5).continue_token(&token)).await?.items.len(), 3);
    assert_eq!(maps.list_metadata(&ListParams::default()).await?.items.len(), 8);
    let deployments: Api<Deployment> = Api::namespaced(client, &namespace);
    let deployment = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "example.com/web:1"}]}}}
    }))?;
    deployments.create(&PostParams::default(), &deployment).await?;
    let scale = deployments
        .patch_scale("web", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 4}})))
        .await?;
    assert_eq!(scale.spec.and_then(|spec| spec.replicas), Some(4));
    deployments.delete("web", &DeleteParams::background()).await?;
    maps.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    assert!(maps.get_opt("one").await?.is_none());
    Ok(())
}

/// The store of a reflector comes to hold what the server holds, be it by list-then-watch or by a streamed list.
async fn follow(client: Client, name: &str, config: watcher::Config) -> Outcome {
    let namespace = namespace(&client, &format!("clients-kube-rs-{name}")).await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
    maps.create(&PostParams::default(), &map("before", "1")).await?;
    let (store, writer) = reflector::store();
    let stream = reflector(writer, watcher(maps.clone(), config));
    let mut stream = std::pin::pin!(stream);
    wait_until(&mut stream, || store.state().iter().any(|map| map.name_any() == "before")).await?;
    maps.create(&PostParams::default(), &map("after", "1")).await?;
    maps.patch("before", &PatchParams::default(), &Patch::Merge(json!({"data": {"value": "2"}}))).await?;
    wait_until(&mut stream, || {
        let changed = |map: &Arc<ConfigMap>| map.data.as_ref().is_some_and(|data| data["value"] == "2");
        store.state().len() == 2 && store.state().iter().any(changed)
    })
    .await?;
    maps.delete("before", &DeleteParams::default()).await?;
    maps.delete("after", &DeleteParams::default()).await?;
    wait_until(&mut stream, || store.state().is_empty()).await
}

async fn wait_until<S, T>(stream: &mut S, done: impl Fn() -> bool) -> Outcome
where
    S: futures::Stream<Item = Result<T, watcher::Error>> + Unpin,
{
    while !done() {
        stream.try_next().await?.ok_or("the watch ended")?;
    }
    Ok(())
}

async fn apply(client: Client) -> Outcome {
    let namespace = namespace(&client, "clients-kube-rs-apply").await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let body = |value: &str| {
        Patch::Apply(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"value": value}}),
        )
    };
    maps.patch("applied", &PatchParams::apply("one"), &body("1")).await?;
    match maps.patch("applied", &PatchParams::apply("two"), &body("2")).await {
        Err(kube::Error::Api(status)) => assert!(status.is_conflict(), "{status:?}"),
        other => panic!("another manager's value gave {other:?}"),
    }
    let forced = maps.patch("applied", &PatchParams::apply("two").force(), &body("2")).await?;
    let managers: Vec<_> = forced.managed_fields().iter().filter_map(|entry| entry.manager.clone()).collect();
    assert_eq!(managers, ["two"]);
    maps.delete("applied", &DeleteParams::default()).await?;
    Ok(())
}

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[kube(group = "kube-rs.clients.example.com", version = "v1", kind = "Greeting", namespaced, status = "GreetingStatus")]
struct GreetingSpec {
    words: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
struct GreetingStatus {
    said: Option<String>,
}

/// A controller on a derived CRD writes a config map that its object owns, and its status.
async fn control(client: Client) -> Outcome {
    let namespace = namespace(&client, "clients-kube-rs-controller").await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definition = Greeting::crd();
    definitions
        .patch(&definition.name_any(), &PatchParams::apply("kube-rs").force(), &Patch::Apply(&definition))
        .await?;
    await_condition(definitions.clone(), &definition.name_any(), conditions::is_crd_established()).await?;

    let greetings: Api<Greeting> = Api::namespaced(client.clone(), &namespace);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
    let controller = Controller::new(greetings.clone(), watcher::Config::default())
        .owns(maps.clone(), watcher::Config::default())
        .run(reconcile, |_, _: &kube::Error, _| Action::requeue(Duration::from_millis(100)), Arc::new(client.clone()))
        .for_each(|_| std::future::ready(()));
    let controller = tokio::spawn(controller);

    greetings
        .create(&PostParams::default(), &Greeting::new("hello", GreetingSpec { words: "good day".to_owned() }))
        .await?;
    let said = |words: &'static str| {
        move |greeting: Option<&Greeting>| {
            greeting.and_then(|g| g.status.as_ref()).is_some_and(|status| status.said.as_deref() == Some(words))
        }
    };
    await_condition(greetings.clone(), "hello", said("good day")).await?;
    greetings.patch("hello", &PatchParams::default(), &Patch::Merge(json!({"spec": {"words": "good night"}}))).await?;
    await_condition(greetings.clone(), "hello", said("good night")).await?;
    // What the controller owns comes back.
    let old = maps.get("hello").await?.uid();
    maps.delete("hello", &DeleteParams::default()).await?;
    await_condition(maps.clone(), "hello", move |map: Option<&ConfigMap>| map.is_some_and(|map| map.uid() != old))
        .await?;
    controller.abort();
    greetings.delete("hello", &DeleteParams::default()).await?;
    maps.delete("hello", &DeleteParams::default()).await?;
    definitions.delete(&definition.name_any(), &DeleteParams::default()).await?;
    Ok(())
}

async fn reconcile(greeting: Arc<Greeting>, client: Arc<Client>) -> Result<Action, kube::Error> {
    use kube::Resource;
    let namespace = greeting.namespace().unwrap_or_default();
    let maps: Api<ConfigMap> = Api::namespaced(Client::clone(&client), &namespace);
    let owned = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"value": greeting.spec.words},
        "metadata": {"name": greeting.name_any(), "ownerReferences": [greeting.controller_owner_ref(&())]}
    });
    maps.patch(&greeting.name_any(), &PatchParams::apply("controller").force(), &Patch::Apply(owned)).await?;
    let greetings: Api<Greeting> = Api::namespaced(Client::clone(&client), &namespace);
    let status = json!({"status": {"said": greeting.spec.words}});
    greetings.patch_status(&greeting.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(Action::await_change())
}
