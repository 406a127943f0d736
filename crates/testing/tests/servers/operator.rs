//! An operator, tested: its happy path, its finalizer, and what a cluster does to it only once in a while. This is the example of
//! docs/guides/test-your-operator.md.

use crate::support::until;
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::finalizer::{Event, finalizer};
use kube::runtime::watcher;
use kube::{Api, Client, CustomResource, CustomResourceExt, Resource, ResourceExt};
use kubelith_testing::{Fault, Kubelith};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const FINALIZER: &str = "greetings.example.com/cleanup";

/// A greeting becomes a config map with its text.
#[derive(CustomResource, Debug, Clone, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced, status = "GreetingStatus")]
struct GreetingSpec {
    text: String,
}

#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
struct GreetingStatus {
    said: Option<String>,
}

// ---- the operator ----

struct Operator {
    client: Client,
    failures: AtomicUsize,
    cleaned: AtomicUsize,
}

type Error = kube::runtime::finalizer::Error<kube::Error>;

async fn reconcile(greeting: Arc<Greeting>, operator: Arc<Operator>) -> Result<Action, Error> {
    let namespace = greeting.namespace().unwrap_or_default();
    let greetings: Api<Greeting> = Api::namespaced(operator.client.clone(), &namespace);
    finalizer(&greetings, FINALIZER, greeting, |event| async {
        match event {
            Event::Apply(greeting) => operator.say(&greeting).await,
            Event::Cleanup(_) => {
                operator.cleaned.fetch_add(1, Ordering::SeqCst);
                Ok(Action::await_change())
            }
        }
    })
    .await
}

impl Operator {
    async fn say(&self, greeting: &Greeting) -> Result<Action, kube::Error> {
        let (name, namespace) = (greeting.name_any(), greeting.namespace().unwrap_or_default());
        let apply = PatchParams::apply("greeter").force();
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &namespace);
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": [greeting.controller_owner_ref(&())]},
            "data": {"text": greeting.spec.text},
        });
        maps.patch(&name, &apply, &Patch::Apply(map)).await?;
        let greetings: Api<Greeting> = Api::namespaced(self.client.clone(), &namespace);
        let status = json!({"status": {"said": greeting.spec.text}});
        greetings.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(Action::await_change())
    }
}

fn failed(_: Arc<Greeting>, _: &Error, operator: Arc<Operator>) -> Action {
    operator.failures.fetch_add(1, Ordering::SeqCst);
    Action::requeue(Duration::from_millis(10))
}

/// Runs until the task is dropped.
fn run(client: Client) -> (Arc<Operator>, tokio::task::JoinHandle<()>) {
    let operator = Arc::new(Operator { client: client.clone(), failures: 0.into(), cleaned: 0.into() });
    let context = operator.clone();
    let running = async move {
        Controller::new(Api::<Greeting>::all(client.clone()), watcher::Config::default())
            .owns(Api::<ConfigMap>::all(client), watcher::Config::default())
            .run(reconcile, failed, context)
            .for_each(|_| async {})
            .await;
    };
    (operator, tokio::spawn(running))
}

// ---- its tests ----

async fn server() -> Kubelith {
    Kubelith::builder().resource::<Greeting>().start().await.unwrap()
}

fn greeting(name: &str, text: &str) -> Greeting {
    Greeting::new(name, GreetingSpec { text: text.to_owned() })
}

struct World {
    server: Kubelith,
    greetings: Api<Greeting>,
    maps: Api<ConfigMap>,
    operator: Arc<Operator>,
    running: tokio::task::JoinHandle<()>,
}

impl World {
    fn new(server: Kubelith) -> World {
        let client = server.client();
        let (operator, running) = run(client.clone());
        World {
            server,
            greetings: Api::default_namespaced(client.clone()),
            maps: Api::default_namespaced(client),
            operator,
            running,
        }
    }

    async fn create(&self, name: &str, text: &str) {
        self.greetings.create(&PostParams::default(), &greeting(name, text)).await.unwrap();
    }

    async fn said(&self, name: &str, text: &str) {
        // A read fails where the cache is three seconds behind, as on a busy machine.
        until("the greeting was said", || async {
            let greeting = self.greetings.get(name).await.ok();
            greeting.and_then(|greeting| greeting.status?.said).as_deref() == Some(text)
        })
        .await;
        let map = self.maps.get(name).await.unwrap();
        assert_eq!(map.data.unwrap()["text"], text);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.running.abort();
    }
}

#[tokio::test]
async fn a_greeting_becomes_a_map_and_both_go() {
    let world = World::new(server().await);
    world.create("hello", "Hello!").await;
    world.said("hello", "Hello!").await;
    world.greetings.delete("hello", &DeleteParams::default()).await.unwrap();
    until("the greeting is gone", || async { world.greetings.get_opt("hello").await.unwrap().is_none() }).await;
    assert_eq!(world.operator.cleaned.load(Ordering::SeqCst), 1);
    // What it owned goes with it: controllers run.
    until("the map is gone", || async { world.maps.get_opt("hello").await.unwrap().is_none() }).await;
}

/// Somebody else was quicker, three times.
#[tokio::test]
async fn conflicts_are_tried_again() {
    let world = World::new(server().await);
    let conflict = Fault::answer(409).verbs(["patch"]).resource("greetings").subresource("status").times(3);
    let conflict = world.server.fault(conflict).unwrap();
    world.create("hello", "Hello!").await;
    world.said("hello", "Hello!").await;
    assert_eq!((conflict.hits(), world.operator.failures.load(Ordering::SeqCst)), (3, 3));
}

/// The answer got lost, the write did not.
#[tokio::test]
async fn a_write_that_is_repeated_does_no_harm() {
    let world = World::new(server().await);
    let lost = world.server.fault(Fault::answer_after(504).verbs(["patch"]).resource("configmaps").times(1)).unwrap();
    world.create("hello", "Hello!").await;
    world.said("hello", "Hello!").await;
    assert_eq!(lost.hits(), 1);
    assert_eq!(
        world
            .maps
            .list(&ListParams::default().labels("!x"))
            .await
            .unwrap()
            .items
            .iter()
            .filter(|m| m.name_any() == "hello")
            .count(),
        1
    );
}

/// The watch ends, the next one is told that it comes too late, and the list is old when it comes.
#[tokio::test]
async fn nothing_is_missed_when_watches_break() {
    let world = World::new(server().await);
    world.create("before", "1").await;
    world.said("before", "1").await;
    let expired = world.server.fault(Fault::expire_watch().resource("greetings").times(1)).unwrap();
    world.server.fault(Fault::end_watch().resource("greetings").times(1)).unwrap();
    world.create("after", "2").await;
    world.said("after", "2").await;
    assert_eq!(expired.hits(), 1);
}

/// A delete whose cleanup fails at first is not forgotten.
#[tokio::test]
async fn the_finalizer_is_removed_however_often_it_takes() {
    let world = World::new(server().await);
    world.create("hello", "Hello!").await;
    world.said("hello", "Hello!").await;
    let broken = Fault::answer(500).verbs(["patch"]).resource("greetings").subresource("").times(2);
    let broken = world.server.fault(broken).unwrap();
    world.greetings.delete("hello", &DeleteParams::default()).await.unwrap();
    until("the greeting is gone", || async { world.greetings.get_opt("hello").await.unwrap().is_none() }).await;
    assert_eq!(broken.hits(), 2);
}

/// Definitions are installed once; each test has a fork of its own.
#[tokio::test]
async fn each_test_has_a_fork() {
    let base = server().await;
    let tests = (0..8).map(|i| {
        let base = &base;
        async move {
            let world = World::new(base.fork().await.unwrap());
            world.create("hello", &format!("from {i}")).await;
            world.said("hello", &format!("from {i}")).await;
            assert_eq!(world.greetings.list(&ListParams::default()).await.unwrap().items.len(), 1);
        }
    });
    futures::future::join_all(tests).await;
    let greetings: Api<Greeting> = Api::all(base.client());
    assert_eq!(greetings.list(&ListParams::default()).await.unwrap().items.len(), 0);
}

/// Clients by token, by certificate, and through the port.
#[tokio::test]
async fn clients_come_in_by_three_doors() {
    let server = Kubelith::builder().user("bob", ["system:masters"]).start().await.unwrap();
    let name = async |client: Client| {
        let review =
            k8s_openapi::api::authentication::v1::SelfSubjectReview { metadata: ObjectMeta::default(), status: None };
        let api: Api<k8s_openapi::api::authentication::v1::SelfSubjectReview> = Api::all(client);
        let made = api.create(&PostParams::default(), &review).await.unwrap();
        made.status.and_then(|status| status.user_info).and_then(|user| user.username).unwrap()
    };
    assert_eq!(name(server.client()).await, "admin");
    assert_eq!(name(server.client_as("bob").unwrap()).await, "bob");
    assert_eq!(name(server.client_with_certificate("carol", Some("devs")).unwrap()).await, "carol");
    assert!(server.client_as("nobody").is_err());
    let kubeconfig = kube::config::Kubeconfig::from_yaml(&server.kubeconfig().unwrap()).unwrap();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    assert_eq!(name(Client::try_from(config).unwrap()).await, "kubernetes-admin");
    assert_eq!(Greeting::crd().metadata.name.as_deref(), Some("greetings.example.com"));
}
