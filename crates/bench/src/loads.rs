//! The loads: many clients that each send one request after the other.

use crate::Result;
use crate::client::{Call, Connection, JSON, PROTOBUF};
use crate::controllers::{Content, Deletion, Propagation};
use crate::objects::{self, IN_GROUP, Kind, NAMESPACE};
use crate::outcome::Outcome;
use crate::target::Target;
use crate::watch::{self, Crowd, Watched};
use crate::webhook::Webhook;
use crate::{admission, controllers, crds, definitions, upkeep};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    Create,
    Get,
    List,
    ListProto,
    ListLabel,
    ListField,
    Patch,
    Apply,
    Watch,
    WatchNodes,
    Delete,
    CustomCreate,
    CustomGet,
    CustomList,
    CustomPatch,
    CustomWatch,
    CrdReady,
    Crds,
    CrdDiscovery,
    Admit,
    AdmitPolicy,
    AdmitOthers,
    AdmitWebhook,
    AdmitBeside,
    NamespaceDelete,
    Collect,
    CollectForeground,
    ListFew,
    WatchStart,
    Restart,
    PatchBackup,
    PatchCompact,
}

impl Load {
    /// Those that run if none is named.
    pub const USUAL: [Load; 10] = [
        Load::Create,
        Load::Get,
        Load::List,
        Load::ListProto,
        Load::ListLabel,
        Load::ListField,
        Load::Patch,
        Load::Apply,
        Load::Watch,
        Load::Delete,
    ];
    /// The same on objects of a custom kind, and what definitions of such kinds cost.
    const CUSTOM: [Load; 8] = [
        Load::CustomCreate,
        Load::CustomGet,
        Load::CustomList,
        Load::CustomPatch,
        Load::CustomWatch,
        Load::CrdReady,
        Load::Crds,
        Load::CrdDiscovery,
    ];

    /// What admission costs.
    const ADMISSION: [Load; 5] =
        [Load::Admit, Load::AdmitPolicy, Load::AdmitOthers, Load::AdmitBeside, Load::AdmitWebhook];

    /// What controllers in the process do.
    const CONTROLLERS: [Load; 3] = [Load::NamespaceDelete, Load::Collect, Load::CollectForeground];

    /// What grows with the number of objects, or must not.
    pub const MANY: [Load; 5] = [Load::ListFew, Load::WatchStart, Load::Restart, Load::PatchBackup, Load::PatchCompact];

    /// What is done at each of `--sizes`, if nothing is named.
    pub const AT_SIZES: [Load; 8] = [
        Load::Get,
        Load::List,
        Load::ListFew,
        Load::Patch,
        Load::WatchStart,
        Load::Create,
        Load::Delete,
        Load::Restart,
    ];

    pub fn needs_controllers(self) -> bool {
        Load::CONTROLLERS.contains(&self)
    }

    pub fn name(self) -> &'static str {
        match self {
            Load::Create => "create",
            Load::Get => "get",
            Load::List => "list",
            Load::ListProto => "list-proto",
            Load::ListLabel => "list-label",
            Load::ListField => "list-field",
            Load::Patch => "patch",
            Load::Apply => "apply",
            Load::Watch => "watch",
            Load::WatchNodes => "watch-nodes",
            Load::Delete => "delete",
            Load::CustomCreate => "custom-create",
            Load::CustomGet => "custom-get",
            Load::CustomList => "custom-list",
            Load::CustomPatch => "custom-patch",
            Load::CustomWatch => "custom-watch",
            Load::CrdReady => "crd-ready",
            Load::Crds => "crds",
            Load::CrdDiscovery => "crd-discovery",
            Load::Admit => "admit",
            Load::AdmitPolicy => "admit-policy",
            Load::AdmitOthers => "admit-others",
            Load::AdmitWebhook => "admit-webhook",
            Load::AdmitBeside => "admit-beside",
            Load::NamespaceDelete => "namespace-delete",
            Load::Collect => "collect",
            Load::CollectForeground => "collect-foreground",
            Load::ListFew => "list-few",
            Load::WatchStart => "watch-start",
            Load::Restart => "restart",
            Load::PatchBackup => "patch-backup",
            Load::PatchCompact => "patch-compact",
        }
    }

    pub fn parse(name: &str) -> Option<Load> {
        let others = Load::CUSTOM.into_iter().chain(Load::ADMISSION).chain(Load::CONTROLLERS).chain(Load::MANY);
        let others = others.chain([Load::WatchNodes]);
        Load::USUAL.into_iter().chain(others).find(|load| load.name() == name)
    }

    /// The others run for a time.
    fn touches_each_pod_once(self) -> bool {
        matches!(self, Load::Create | Load::Delete | Load::CustomCreate)
    }

    /// The request number `index`; `any` is a random pod.
    fn call(self, kind: Kind, index: usize, any: usize) -> Call {
        let pods = kind.path();
        let one = |index| kind.one(index);
        let one_widget = |index| format!("{}/{}", definitions::widgets(), objects::pod_name(index));
        match self {
            Load::Create => Call::post(pods, kind.object(index)),
            Load::Admit | Load::AdmitPolicy | Load::AdmitOthers | Load::AdmitBeside | Load::AdmitWebhook => {
                Call::post(format!("{pods}?dryRun=All"), objects::pod(DRY + index))
            }
            Load::Get => Call::get(one(any)),
            Load::List => Call::get(format!("{pods}?limit=500")),
            Load::ListProto => Call { accept: PROTOBUF, ..Call::get(format!("{pods}?limit=500")) },
            // One of a thousand, and one of five hundred.
            Load::ListLabel => Call::get(format!("{pods}?labelSelector=shard%3D{}", any % 1000)),
            Load::ListFew => Call::get(format!("{pods}?labelSelector=group%3D{}", any / IN_GROUP)),
            Load::ListField => Call::get(format!("{pods}?fieldSelector=spec.nodeName%3Dnode-{}", any % 500)),
            Load::Patch | Load::PatchBackup | Load::PatchCompact => {
                let body = format!(r#"{{"metadata":{{"labels":{{"step":"{index}"}}}}}}"#);
                change(one(any), "application/merge-patch+json", body)
            }
            Load::Apply => {
                let name = objects::pod_name(any);
                let body = format!(
                    r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","labels":{{"applied":"{index}"}}}}}}"#
                );
                change(format!("{}?fieldManager=bench&force=true", one(any)), "application/apply-patch+yaml", body)
            }
            Load::Delete => Call { method: "DELETE", ..Call::get(format!("{}?gracePeriodSeconds=0", one(index))) },
            Load::CustomCreate => Call::post(definitions::widgets(), objects::widget(index)),
            Load::CustomGet => Call::get(one_widget(any)),
            Load::CustomList => Call::get(format!("{}?limit=500", definitions::widgets())),
            Load::CustomPatch => {
                let body = format!(r#"{{"metadata":{{"labels":{{"step":"{index}"}}}}}}"#);
                change(one_widget(any), "application/merge-patch+json", body)
            }
            Load::Watch
            | Load::WatchStart
            | Load::Restart
            | Load::WatchNodes
            | Load::CustomWatch
            | Load::CrdReady
            | Load::Crds
            | Load::CrdDiscovery
            | Load::NamespaceDelete
            | Load::Collect
            | Load::CollectForeground => unreachable!("a load of its own kind"),
        }
    }
}

fn change(path: String, content_type: &'static str, body: String) -> Call {
    Call { method: "PATCH", path, content_type, accept: JSON, body: Bytes::from(body) }
}

#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub kind: Kind,
    /// Objects that are there, or that are created.
    pub pods: usize,
    /// What is created or deleted begins with this number, and is so many.
    pub first: usize,
    pub once: usize,
    pub duration: Duration,
    pub clients: usize,
    pub crowd: Crowd,
    pub definitions: usize,
    /// Of the loads of controllers; 0 stands for the usual number of each.
    pub objects: usize,
}

impl Size {
    fn content(&self, usual: usize) -> Content {
        Content { objects: if self.objects == 0 { usual } else { self.objects }, clients: self.clients }
    }
}

impl From<Deletion> for Outcome {
    fn from(deletion: Deletion) -> Outcome {
        let Deletion { elapsed, usage } = deletion;
        Outcome { latencies: vec![elapsed], elapsed, usage: Some(usage), ..Outcome::default() }
    }
}

/// Objects in a namespace, and in a tree of owners.
const IN_NAMESPACE: usize = 10_000;
const IN_TREE: usize = 30_000;

/// Names of pods that are never kept begin with this number, so that none is there.
const DRY: usize = 500_000;

/// Clients share connections, as those of one program do.
const CLIENTS_PER_CONNECTION: usize = 8;

/// The namespace, and the account without which no pod is made.
pub async fn prepare(target: &Target) -> Result<()> {
    let mut connection = target.endpoint.connect().await?;
    let namespace = format!(r#"{{"metadata":{{"name":"{NAMESPACE}"}}}}"#);
    for (path, body) in [
        ("/api/v1/namespaces".to_owned(), namespace),
        (format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"), r#"{"metadata":{"name":"default"}}"#.to_owned()),
    ] {
        let (status, _) = connection.send(Call::post(path.clone(), body)).await?;
        if status != 201 && status != 409 {
            return Err(format!("{path} answered {status}").into());
        }
    }
    Ok(())
}

pub async fn run(load: Load, target: &Target, size: &Size) -> Result<Outcome> {
    match load {
        Load::Watch => return watch::run(target, &size.crowd, Watched::CONFIG_MAPS).await,
        Load::WatchNodes => return watch::run(target, &size.crowd, Watched::NODES).await,
        Load::CustomWatch => {
            crds::prepare_widgets(target).await?;
            return watch::run(target, &size.crowd, Watched::WIDGETS).await;
        }
        Load::CrdReady => return crds::ready(target).await,
        Load::Crds => return crds::many(target, size).await,
        Load::CrdDiscovery => return crds::discovery(target).await,
        Load::NamespaceDelete => {
            return controllers::namespace(target, size.content(IN_NAMESPACE)).await.map(Outcome::from);
        }
        Load::Collect | Load::CollectForeground => {
            let propagation = match load {
                Load::Collect => Propagation::Background,
                _ => Propagation::Foreground,
            };
            return controllers::tree(target, size.content(IN_TREE), propagation).await.map(Outcome::from);
        }
        Load::WatchStart => return upkeep::watch_starts(target, size).await,
        Load::PatchBackup => return upkeep::beside_backup(load, target, size).await,
        Load::PatchCompact => return upkeep::while_compacting(load, target, size).await,
        Load::Restart => unreachable!("it needs the target for itself"),
        Load::CustomCreate => crds::prepare_widgets(target).await?,
        load if Load::ADMISSION.contains(&load) => {
            admission::prepare(load, target).await?;
            let before = target.usage()?;
            let mut outcome = put(load, target, size, admission::asked_by_clients(load)?).await?;
            outcome.usage = Some((before, target.usage()?));
            admission::clean(load, target).await?;
            return Ok(outcome);
        }
        _ => {}
    }
    put(load, target, size, None).await
}

/// Many clients send the requests of a load.
async fn put(load: Load, target: &Target, size: &Size, webhook: Option<u16>) -> Result<Outcome> {
    let end = match load.touches_each_pod_once() {
        true => End::Count(size.once),
        false => End::Elapsed(size.duration),
    };
    put_until(end, load, target, size, webhook).await
}

/// When a load has run long enough.
#[derive(Clone)]
pub enum End {
    Count(usize),
    Elapsed(Duration),
    /// Once this is set.
    Told(Arc<AtomicBool>),
}

impl End {
    fn is_over(&self, sent: usize, begin: Instant) -> bool {
        match self {
            End::Count(count) => sent >= *count,
            End::Elapsed(duration) => begin.elapsed() >= *duration,
            End::Told(over) => over.load(Ordering::Relaxed),
        }
    }
}

pub async fn put_until(end: End, load: Load, target: &Target, size: &Size, webhook: Option<u16>) -> Result<Outcome> {
    let mut connections = Vec::new();
    for _ in 0..size.clients.div_ceil(CLIENTS_PER_CONNECTION) {
        connections.push(target.endpoint.connect().await?);
    }
    let mut webhooks = Vec::new();
    for _ in 0..size.clients {
        webhooks.push(match webhook {
            Some(port) => Some(Webhook::connect(port).await?),
            None => None,
        });
    }
    let next = Arc::new(AtomicUsize::new(0));
    let begin = Instant::now();
    let clients: Vec<_> = webhooks
        .into_iter()
        .enumerate()
        .map(|(client, webhook)| {
            let asked = Asked { server: connections[client / CLIENTS_PER_CONNECTION].clone(), webhook };
            tokio::spawn(one_client((load, end.clone()), *size, asked, next.clone(), begin, client))
        })
        .collect();
    let mut total = Outcome::default();
    for client in clients {
        let seen = client.await??;
        total.latencies.extend(seen.latencies);
        total.failures += seen.failures;
        total.bytes += seen.bytes;
    }
    total.elapsed = begin.elapsed();
    Ok(total)
}

/// Whom a client asks: the server, and with each request a webhook, if there is one.
struct Asked {
    server: Connection,
    webhook: Option<Webhook>,
}

async fn one_client(
    (load, end): (Load, End),
    size: Size,
    mut asked: Asked,
    next: Arc<AtomicUsize>,
    begin: Instant,
    client: usize,
) -> Result<Outcome> {
    let mut seen = Outcome::default();
    let mut random = Random::new(client);
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if end.is_over(index, begin) {
            return Ok(seen);
        }
        let call = load.call(size.kind, size.first + index, random.below(size.pods));
        let object = call.body.clone();
        let sent = Instant::now();
        let (status, length) = asked.server.send(call).await?;
        seen.latencies.push(sent.elapsed());
        if let Some(webhook) = &mut asked.webhook {
            webhook.ask(&object).await?;
        }
        seen.bytes += length;
        seen.failures += usize::from(status >= 300);
    }
}

/// xorshift: enough to spread requests over the pods, the same in each run.
struct Random(u64);

impl Random {
    fn new(seed: usize) -> Random {
        Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed as u64 + 1))
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}
