//! The garbage collector: objects go when none of their owners is left, and owners go after their dependents, or without
//! them, as their deletion asked for.
//!
//! `monitors` follow all objects and tell the `graph` of changes; the graph knows who owns whom and says what to look at;
//! `collect` looks, and acts. Nothing is deleted on the word of the graph: an object goes only if each of its owners is
//! found to be absent, and only as it was when that was found.

mod api;
mod collect;
mod graph;
mod monitors;

use crate::Context;
use crate::events::Subject;
use api::Api;
use collect::Collector;
use graph::{Graph, Identity, Owner, Work};
use kubelith_meta::Str;
use kubelith_server::controller::{Backoff, Controller, Next, Queue};
use monitors::Monitors;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

const ACCOUNT: &str = "generic-garbage-collector";
/// Objects looked at a time, of each queue: what is deleted together is written to the disk together.
const WORKERS: usize = 64;
/// References to other namespaces that wait to be told. There is no need to tell all.
const REPORTS: usize = 100;
const RETRY: Backoff = Backoff { first: Duration::from_millis(5), most: Duration::from_secs(1000) };

/// The graph, and the queues that what it asks for goes to.
pub struct Shared {
    graph: Mutex<Graph>,
    delete: OnceLock<Queue>,
    orphan: OnceLock<Queue>,
    reports: tokio::sync::mpsc::Sender<(Identity, Owner)>,
}

impl Shared {
    fn new(reports: tokio::sync::mpsc::Sender<(Identity, Owner)>) -> Shared {
        Shared { graph: Mutex::default(), delete: OnceLock::new(), orphan: OnceLock::new(), reports }
    }

    /// Changes the graph and passes on what it asks for.
    fn with<T>(&self, change: impl FnOnce(&mut Graph) -> T) -> T {
        let (answer, work) = {
            let mut graph = self.graph();
            let answer = change(&mut graph);
            (answer, graph.take_work())
        };
        for work in work {
            self.pass_on(work);
        }
        answer
    }

    fn pass_on(&self, work: Work) {
        let (Some(delete), Some(orphan)) = (self.delete.get(), self.orphan.get()) else { return };
        match work {
            Work::Delete(uid) => delete.add(uid),
            Work::DeleteLater(uid) => delete.retry(uid),
            Work::Orphan(uid) => orphan.add(uid),
            Work::WrongNamespace { dependent, owner } => drop(self.reports.try_send((dependent, owner))),
        }
    }

    fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().expect("no panic under this lock")
    }
}

pub fn start(context: &Context) {
    let (reports, mut reported) = tokio::sync::mpsc::channel(REPORTS);
    let shared = Arc::new(Shared::new(reports));
    let api = Arc::new(Api::new(context.client(ACCOUNT), context.world.clone()));
    let monitors = Monitors::new(context, shared.clone(), api.clone());
    let collector = Arc::new(Collector { shared: shared.clone(), api, monitors: monitors.clone() });

    let delete = collector.clone();
    let delete = Controller::new("garbage_collector_attempt_to_delete", move |uid: Str| {
        let collector = delete.clone();
        async move { collector.attempt_to_delete(&uid).await }
    });
    let orphan = Controller::new("garbage_collector_attempt_to_orphan", move |uid: Str| {
        let collector = collector.clone();
        async move { collector.attempt_to_orphan(&uid).await.map(|()| Next::Done) }
    });
    let run = |controller: Controller| {
        controller.workers(WORKERS).backoff(RETRY).metrics(&context.metrics).start(&context.tasks).queue().clone()
    };
    let _ = shared.delete.set(run(delete));
    let _ = shared.orphan.set(run(orphan));
    monitors.start();

    let recorder = context.recorder(ACCOUNT, "garbage-collector-controller");
    context.tasks.spawn_until_stopped("garbage-collector-events", async move {
        while let Some((dependent, owner)) = reported.recv().await {
            let subject = Subject {
                api_version: dependent.api_version.to_string(),
                kind: dependent.kind.to_string(),
                namespace: dependent.namespace.to_string(),
                name: dependent.name.to_string(),
                uid: dependent.uid.to_string(),
                resource_version: String::new(),
            };
            let namespace = &dependent.namespace;
            let message = format!("ownerRef {} does not exist in namespace \"{namespace}\"", owner.identity(namespace));
            recorder.warning(&subject, "OwnerRefInvalidNamespace", &message).await;
        }
    });
}
