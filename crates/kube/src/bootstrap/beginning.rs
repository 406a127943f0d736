//! Objects of a new store that are the same in all of them, but for their uids and times: namespaces, priority classes, flow control's
//! defaults, RBAC's policy. Where nobody but this server writes to the store and nobody has a say in what it writes, they are written in
//! one go before it serves. What a create would make of them is found once in a process.
//!
//! Everywhere else the hooks make them through the front door.

use super::{flow_control, namespaces, priority, roles};
use crate::Resources;
use futures::future::try_join_all;
use kubelith_auth::User;
use kubelith_auth::user::{API_SERVER, GROUP_AUTHENTICATED, GROUP_MASTERS};
use kubelith_features::FeatureGates;
use kubelith_handlers::By;
use kubelith_handlers::api::Routes;
use kubelith_meta::{GroupVersionResource, Status, Str, Value};
use kubelith_registry::{Call, Mode, Prepared, TIME_OF_PREPARED, Warnings};
use kubelith_server::lifecycle::Begun;
use kubelith_store::cache::Hub;
use std::panic::resume_unwind;
use std::sync::{Arc, OnceLock};
use std::thread::ScopedJoinHandle;

/// Who owns the fields of what the server writes as itself.
const MANAGER: &str = "kube-apiserver";

/// Whether the objects of a new store are there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Beginning {
    Written,
    /// Hooks make what is missing.
    #[default]
    Left,
}

impl Beginning {
    /// Whether hooks of a server that began so have to look.
    pub(super) fn is_left_to(self, begun: Begun) -> bool {
        self == Beginning::Left && begun == Begun::Anew
    }
}

/// An object that this server makes by itself.
pub struct Own {
    pub resource: GroupVersionResource,
    pub object: Value,
    pub manager: &'static str,
    /// What is applied to its status when it is there, and by whom.
    pub status: Option<(&'static str, Value)>,
}

impl Own {
    pub fn new(resource: GroupVersionResource, object: Value) -> Own {
        Own { resource, object, manager: MANAGER, status: None }
    }
}

/// What they follow from.
pub struct FirstObjects<'a> {
    pub routes: &'a Routes,
    pub resources: &'a Resources,
    pub hub: &'a Hub,
    pub gates: &'a FeatureGates,
    /// Whether RBAC's policy is kept.
    pub roles: bool,
    /// Objects that a layer above keeps.
    pub others: &'a (dyn Fn() -> Vec<Own> + Sync),
    /// The number of the rules by which objects are completed, and what is served.
    pub same_if: (u64, Vec<String>),
}

/// What creates make of all of them, with the place of each resource among the resources.
struct Made {
    same_if: (u64, Vec<String>),
    roles: bool,
    objects: Vec<((Str, Str), Prepared)>,
}

/// What became of one.
enum Preparation {
    Done((Str, Str), Box<Prepared>),
    /// A group that is switched off brings no objects.
    NotServed,
    /// They are left to the hooks.
    InTheWay,
}

/// More would have too little to do.
const MOST_THREADS: usize = 4;

/// Of the first server of the process: most are alike.
static MADE: OnceLock<Arc<Made>> = OnceLock::new();

impl FirstObjects<'_> {
    /// Writes them if there is nothing yet. Otherwise, or if something is in the way, they are left to the hooks.
    pub async fn write(self) -> Beginning {
        if self.resources.values().any(|resource| !resource.cache.is_empty()) {
            return Beginning::Left;
        }
        match self.write_all().await {
            Ok(beginning) => beginning,
            Err(why) => {
                tracing::warn!(err = %why, "the first objects are made one by one");
                Beginning::Left
            }
        }
    }

    async fn write_all(self) -> Result<Beginning, Status> {
        let is_same = |made: &&Arc<Made>| made.same_if == self.same_if && made.roles == self.roles;
        let made = match MADE.get().filter(is_same) {
            Some(made) => made.clone(),
            None => {
                let Some(made) = self.make()? else { return Ok(Beginning::Left) };
                // Whoever was first stays.
                let made = Arc::new(made);
                MADE.get_or_init(|| made.clone());
                made
            }
        };
        let writes = made.objects.iter().filter_map(|(resource, prepared)| {
            let resource = self.resources.get(resource)?;
            Some(resource.create_prepared(prepared))
        });
        try_join_all(writes).await?;
        Ok(if self.hub.caught_up().await { Beginning::Written } else { Beginning::Left })
    }

    /// Side by side: it is a large part of a first start.
    fn make(&self) -> Result<Option<Made>, Status> {
        let roles = self.roles.then(|| roles::first_objects(self.gates)).into_iter().flatten();
        let mut all: Vec<Own> = namespaces::first_objects()
            .chain(priority::first_objects())
            .chain(flow_control::first_objects())
            .chain(roles)
            .chain((self.others)())
            .collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
        let share = all.len().div_ceil(threads).max(1);
        let mut parts = Vec::new();
        while !all.is_empty() {
            parts.push(all.split_off(all.len().saturating_sub(share)));
        }
        let mut objects = Vec::new();
        let prepared = std::thread::scope(|scope| {
            let part =
                |part: Vec<Own>| scope.spawn(|| part.into_iter().map(|own| self.prepare(own)).collect::<Vec<_>>());
            let running: Vec<_> = parts.into_iter().rev().map(part).collect();
            let ended = |thread: ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|why| resume_unwind(why));
            running.into_iter().flat_map(ended).collect::<Vec<Result<_, Status>>>()
        });
        for one in prepared {
            match one? {
                Preparation::Done(resource, prepared) => objects.push((resource, *prepared)),
                Preparation::NotServed => {}
                Preparation::InTheWay => return Ok(None),
            }
        }
        Ok(Some(Made { same_if: self.same_if.clone(), roles: self.roles, objects }))
    }

    fn prepare(&self, own: Own) -> Result<Preparation, Status> {
        let Some(endpoint) = self.endpoint(&own.resource) else { return Ok(Preparation::NotServed) };
        let meta = own.object.meta();
        let call = Call {
            user: Arc::new(User::named(API_SERVER).with_groups(&[GROUP_MASTERS, GROUP_AUTHENTICATED])),
            verb: "create".into(),
            resource: endpoint.resource.descriptor.group_resource(),
            version: own.resource.version.clone(),
            kind: endpoint.kind.clone(),
            namespace: Str::from(meta.namespace()),
            name: Str::from(meta.name()),
            subresource: Str::default(),
            mode: Mode::Real,
            deadline: None,
            warnings: Warnings::default(),
        };
        let by = |manager, subresource| By { manager, subresource, now: TIME_OF_PREPARED };
        let object = endpoint.own_create(&by(own.manager, ""), own.object)?;
        let apply = |object: Value| match &own.status {
            Some((manager, status)) => endpoint.own_apply(&by(manager, "status"), object, status),
            None => Ok(object),
        };
        Ok(match endpoint.resource.prepare(&call, object, apply)? {
            Some(prepared) => Preparation::Done((own.resource.group, own.resource.resource), Box::new(prepared)),
            None => Preparation::InTheWay,
        })
    }

    fn endpoint(&self, resource: &GroupVersionResource) -> Option<&kubelith_handlers::Endpoint> {
        let served = self.routes.versions.get(&resource.group_version())?.get(&resource.resource)?;
        served.endpoint.as_deref()
    }
}
