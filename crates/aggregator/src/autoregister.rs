//! Keeps an APIService for each group version that this server itself serves: those of built-in groups are put right when
//! it starts, those of custom resources always. Others are never touched.
//!
//! ```text
//!                              wanted: no     wanted: on start    wanted: always
//! there is none                -              create, once        create
//! one that people keep         -              -                   -
//! onstart, made since we run   -              -                   -
//! onstart, was there before    delete, once   update, once        update, once
//! always                       delete         update, once        update
//! ```
//!
//! Nothing is deleted while some definition cannot be read: what it serves is wanted, whoever knows what that is.

use crate::api_service::{ApiService, ApiServices, Managed};
use kubelith_meta::{GroupVersion, GroupVersionResource, Status, Str, Value};
use kubelith_server::controller::{Next, Queue};
use kubelith_server::loopback::{LoopbackClient, ResourceRef};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};

/// A group version that is served here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    pub gv: GroupVersion,
    pub group_priority: i32,
    pub version_priority: i32,
}

impl Local {
    pub fn name(&self) -> Str {
        [&self.gv.version, ".", &self.gv.group].concat().into()
    }

    fn spec(&self) -> Value {
        let mut spec = Value::from([
            ("version", Value::String(self.gv.version.clone())),
            ("groupPriorityMinimum", Value::Int(self.group_priority.into())),
            ("versionPriority", Value::Int(self.version_priority.into())),
        ]);
        if !self.gv.group.is_empty() {
            spec.set_at(&["group"], Value::String(self.gv.group.clone()));
        }
        spec
    }

    /// The APIService of it.
    pub fn object(&self, managed: Managed) -> Value {
        let label = managed.label_value().unwrap_or_default();
        Value::from([
            ("apiVersion", Value::from("apiregistration.k8s.io/v1")),
            ("kind", Value::from("APIService")),
            (
                "metadata",
                Value::from([("name", Value::String(self.name())), ("labels", Value::from([(Managed::LABEL, label)]))]),
            ),
            ("spec", self.spec()),
        ])
    }

    fn is_as(&self, other: &ApiService) -> bool {
        other.gv == self.gv
            && other.service.is_none()
            && !other.insecure_skip_tls_verify
            && other.ca_bundle.is_empty()
            && (other.group_priority, other.version_priority) == (self.group_priority, self.version_priority)
    }
}

pub fn api_services_resource() -> GroupVersionResource {
    GroupVersionResource::new("apiregistration.k8s.io", "v1", "apiservices")
}

/// Whether all that is wanted is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Knowledge {
    Complete,
    Partial,
}

/// What there should be, and what was done about it.
pub struct AutoRegister {
    api_services: ApiServices,
    client: LoopbackClient,
    wanted: Mutex<HashMap<Str, (Local, Managed)>>,
    synced: Mutex<HashSet<Str>>,
    /// Names of the APIServices that were there before we were.
    at_start: OnceLock<HashSet<Str>>,
    /// Where names go that must be looked at, once the controller runs.
    queue: OnceLock<Queue>,
    knowledge: Mutex<Knowledge>,
}

/// What to do about one name.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Nothing,
    Create,
    Delete,
    Update,
}

impl AutoRegister {
    pub fn new(api_services: ApiServices, client: LoopbackClient) -> Arc<AutoRegister> {
        Arc::new(AutoRegister {
            api_services,
            client,
            wanted: Mutex::default(),
            synced: Mutex::default(),
            at_start: OnceLock::new(),
            queue: OnceLock::new(),
            knowledge: Mutex::new(Knowledge::Complete),
        })
    }

    pub fn want(&self, local: Local, managed: Managed) {
        let name = local.name();
        self.wanted.lock().expect("no panic under this lock").insert(name.clone(), (local, managed));
        self.look_at(name);
    }

    pub fn unwant(&self, name: &str) {
        let was = self.wanted.lock().expect("no panic under this lock").remove(name);
        if was.is_some() {
            self.look_at(name.into());
        }
    }

    /// With the last of it known, everything is looked at again.
    pub fn set_knowledge(&self, now: Knowledge) {
        let before = std::mem::replace(&mut *self.knowledge.lock().expect("no panic under this lock"), now);
        if (before, now) == (Knowledge::Partial, Knowledge::Complete) {
            self.api_services.cache.snapshot().objects.values().for_each(|o| self.look_at(o.name().into()));
        }
    }

    fn look_at(&self, name: Str) {
        if let Some(queue) = self.queue.get() {
            queue.add(name);
        }
    }

    /// Remembers what is there before anything is done about it.
    pub fn remember(&self) {
        let there = self.api_services.cache.snapshot().objects.values().map(|o| Str::from(o.name())).collect();
        let _ = self.at_start.set(there);
    }

    /// Names go to this queue from now on; first those that are wanted already.
    pub fn started(&self, queue: &Queue) {
        let _ = self.queue.set(queue.clone());
        for name in self.wanted.lock().expect("no panic under this lock").keys() {
            queue.add(name.clone());
        }
    }

    pub async fn reconcile(self: Arc<Self>, name: Str) -> Result<Next, String> {
        let current = self.api_services.get(&name);
        let wanted = self.wanted.lock().expect("no panic under this lock").get(&name).cloned();
        let first = !self.synced.lock().expect("no panic under this lock").contains(&name);
        let at_start = self.at_start.get().is_some_and(|names| names.contains(&name));
        let step = step(current.as_deref(), wanted.as_ref(), first, at_start);
        if step == Step::Delete && *self.knowledge.lock().expect("no panic under this lock") == Knowledge::Partial {
            return Ok(Next::Done);
        }
        self.run(step, &name, current.as_deref(), wanted).await.map_err(|status| status.message)?;
        self.synced.lock().expect("no panic under this lock").insert(name);
        Ok(Next::Done)
    }

    async fn run(
        &self,
        step: Step,
        name: &str,
        current: Option<&ApiService>,
        wanted: Option<(Local, Managed)>,
    ) -> Result<(), Status> {
        let resource = api_services_resource();
        let outcome = match (step, current, wanted) {
            (Step::Create, _, Some((local, managed))) => {
                self.client.create_unseen(&ResourceRef::new(&resource), &local.object(managed)).await
            }
            (Step::Delete, Some(current), _) => {
                let uid = Value::from([("uid", current.uid.clone())]);
                let options = Value::from([
                    ("apiVersion", Value::from("v1")),
                    ("kind", Value::from("DeleteOptions")),
                    ("preconditions", uid),
                ]);
                self.client.delete_unseen(&ResourceRef::new(&resource).name(name), &options).await
            }
            (Step::Update, Some(current), Some((local, _))) => {
                let Some(mut current) = self.api_services.value_as(current) else { return Ok(()) };
                current.set_at(&["spec"], local.spec());
                self.client.update(&ResourceRef::new(&resource).name(name), &current).await.map(drop)
            }
            _ => return Ok(()),
        };
        match outcome {
            Ok(()) => Ok(()),
            // Somebody else was there meanwhile: the change brings us here again.
            Err(e) if e.is_already_exists() || e.is_not_found() || e.is_conflict() => Ok(()),
            Err(e) => Err(e),
        }
    }
}

fn step(current: Option<&ApiService>, wanted: Option<&(Local, Managed)>, first: bool, at_start: bool) -> Step {
    let once_and_done = wanted.is_some_and(|(_, m)| *m == Managed::OnStart) && !first;
    match (current, wanted) {
        (None, None) => Step::Nothing,
        _ if once_and_done => Step::Nothing,
        (None, Some(_)) => Step::Create,
        (Some(current), _) if current.managed == Managed::No => Step::Nothing,
        (Some(current), _) if current.managed == Managed::OnStart && (!at_start || !first) => Step::Nothing,
        (Some(_), None) => Step::Delete,
        (Some(current), Some((local, _))) if local.is_as(current) => Step::Nothing,
        (Some(_), Some(_)) => Step::Update,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(priority: i32) -> Local {
        Local { gv: GroupVersion::new("g", "v1"), group_priority: priority, version_priority: 100 }
    }

    fn current(managed: Managed) -> ApiService {
        ApiService::read(&local(1000).object(managed))
    }

    #[test]
    fn only_what_it_owns_is_touched() {
        use Managed::{Always, No, OnStart};
        let (same, other) = (local(1000), local(2000));
        let cases = [
            (None, None, true, false, Step::Nothing),
            (None, Some((&same, OnStart)), true, false, Step::Create),
            (None, Some((&same, OnStart)), false, false, Step::Nothing),
            (None, Some((&same, Always)), false, false, Step::Create),
            (Some(No), None, true, true, Step::Nothing),
            (Some(No), Some((&other, Always)), true, true, Step::Nothing),
            (Some(OnStart), None, true, false, Step::Nothing),
            (Some(OnStart), None, true, true, Step::Delete),
            (Some(OnStart), None, false, true, Step::Nothing),
            (Some(OnStart), Some((&other, OnStart)), true, true, Step::Update),
            (Some(OnStart), Some((&same, OnStart)), true, true, Step::Nothing),
            (Some(OnStart), Some((&other, OnStart)), false, true, Step::Nothing),
            (Some(OnStart), Some((&other, Always)), true, true, Step::Update),
            (Some(Always), None, false, false, Step::Delete),
            (Some(Always), Some((&other, Always)), false, false, Step::Update),
            (Some(Always), Some((&same, Always)), false, false, Step::Nothing),
            (Some(Always), Some((&other, OnStart)), false, true, Step::Nothing),
        ];
        for (i, (there, wanted, first, at_start, want)) in cases.into_iter().enumerate() {
            let there = there.map(current);
            let wanted = wanted.map(|(l, m)| (l.clone(), m));
            assert_eq!(step(there.as_ref(), wanted.as_ref(), first, at_start), want, "case {i}");
        }
    }
}
