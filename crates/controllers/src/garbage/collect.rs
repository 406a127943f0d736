//! Looks at single objects, and deletes those that nobody owns any more.

use super::Shared;
use super::api::{Api, Place, Unreachable};
use super::graph::{FOREGROUND, Identity, ORPHAN, Owner, Seen, View};
use super::monitors::Monitors;
use futures::StreamExt;
use kubelith_meta::text::aggregate;
use kubelith_meta::{Status, Str};
use kubelith_server::controller::Next;
use std::sync::Arc;

/// Dependents of one object that are made to forget it at a time.
const ORPHANS: usize = 32;

pub struct Collector {
    pub shared: Arc<Shared>,
    pub api: Arc<Api>,
    pub monitors: Arc<Monitors>,
}

/// What an object's owners are to it.
#[derive(Default)]
struct Owners {
    /// There, and there to stay.
    solid: Vec<Owner>,
    absent: Vec<Owner>,
    /// Going, but not before their dependents.
    waiting: Vec<Owner>,
}

/// Why owners could not be judged.
enum Failed {
    /// Nothing will ever make it right; the object is left alone.
    ForGood,
    ForNow(String),
}

impl From<Status> for Failed {
    fn from(status: Status) -> Failed {
        Failed::ForNow(status.message)
    }
}

impl From<Unreachable> for Failed {
    fn from(why: Unreachable) -> Failed {
        match why {
            Unreachable::NoNamespace => Failed::ForGood,
            Unreachable::Unknown(why) => Failed::ForNow(why),
        }
    }
}

impl Collector {
    pub async fn attempt_to_delete(&self, uid: &Str) -> Result<Next, String> {
        let Some(view) = self.shared.graph().view(uid) else { return Ok(Next::Done) };
        match self.look_at(&view).await {
            Ok(()) | Err(Failed::ForGood) => Ok(Next::Done),
            Err(Failed::ForNow(why)) => Err(format!("error syncing item {}: {why}", view.identity)),
        }
    }

    async fn look_at(&self, view: &View) -> Result<(), Failed> {
        if view.being_deleted && !view.deleting_dependents {
            return Ok(());
        }
        let place = self.api.place(&view.identity)?;
        let latest = self.api.latest(&place).await?;
        let Some(latest) = latest.filter(|latest| latest.identity.uid == view.identity.uid) else {
            self.nothing_there(view, &place);
            return Ok(());
        };
        if view.is_virtual {
            // It may have been deleted meanwhile, which the graph knows then.
            self.shared.with(|graph| {
                if graph.view(&view.identity.uid).is_some_and(|v| v.is_virtual) {
                    graph.observe(&latest, None);
                }
            });
            return Ok(());
        }
        if view.deleting_dependents {
            return self.after_dependents(&view.identity.uid, &place).await;
        }
        if latest.owners.is_empty() {
            return Ok(());
        }
        let owners = self.judge(&view.identity, &latest.owners).await?;
        self.act(view, &place, &latest, owners).await
    }

    /// There is no such object where it should be. An owner that was never seen may be in another namespace.
    fn nothing_there(&self, view: &View, place: &Place) {
        let elsewhere = view.is_virtual.then(|| self.api.elsewhere(place, &view.identity.uid)).flatten();
        self.shared.with(|graph| match elsewhere {
            Some(seen) => graph.observe(&seen, None),
            None => graph.absent(&view.identity),
        });
    }

    async fn act(&self, view: &View, place: &Place, latest: &Seen, owners: Owners) -> Result<(), Failed> {
        let Owners { solid, absent, waiting } = owners;
        let uid = &view.identity.uid;
        if !solid.is_empty() {
            if absent.is_empty() && waiting.is_empty() {
                return Ok(());
            }
            let gone: Vec<Str> = absent.iter().chain(&waiting).map(|o| o.uid.clone()).collect();
            return match self.api.remove_owners(place, uid, &gone).await {
                Err(status) if status.is_not_found() => Ok(()),
                outcome => Ok(outcome?),
            };
        }
        let policy = if !waiting.is_empty() && !view.dependents.is_empty() {
            // Two that wait for each other would wait for ever.
            if view.dependents.iter().any(|d| d.deleting_dependents) && latest.owners.iter().any(|o| o.blocks) {
                self.api.unblock(place, uid, &latest.owners).await?;
                let Some(fresh) = self.api.live(place).await?.filter(|f| f.identity.uid == *uid) else { return Ok(()) };
                return self.delete(view, place, &fresh, "Foreground").await;
            }
            "Foreground"
        } else if latest.has_finalizer(ORPHAN) {
            "Orphan"
        } else if latest.has_finalizer(FOREGROUND) {
            "Foreground"
        } else {
            "Background"
        };
        self.delete(view, place, latest, policy).await
    }

    async fn delete(&self, view: &View, place: &Place, latest: &Seen, policy: &str) -> Result<(), Failed> {
        match self.api.delete(place, latest, policy).await {
            Err(status) if status.is_not_found() => {
                self.shared.with(|graph| graph.absent(&view.identity));
                Ok(())
            }
            outcome => Ok(outcome?),
        }
    }

    /// The owner goes once nothing that blocks it is left.
    async fn after_dependents(&self, uid: &Str, place: &Place) -> Result<(), Failed> {
        // What was created before the owner's deletion must be known by now.
        self.monitors.caught_up().await;
        let Some(view) = self.shared.graph().view(uid) else { return Ok(()) };
        let blocking: Vec<_> = view.dependents.iter().filter(|d| d.blocks).collect();
        if blocking.is_empty() {
            return self.api.remove_finalizer(place, &view.identity, FOREGROUND).await.map_err(Failed::ForNow);
        }
        let Some(queue) = self.shared.delete.get() else { return Ok(()) };
        for dependent in blocking.into_iter().filter(|d| !d.deleting_dependents) {
            queue.add(dependent.identity.uid.clone());
        }
        Ok(())
    }

    async fn judge(&self, item: &Identity, references: &[Owner]) -> Result<Owners, Failed> {
        let mut owners = Owners::default();
        for reference in references {
            match self.owner(item, reference).await? {
                None => owners.absent.push(reference.clone()),
                Some(owner) if owner.waits_for_dependents() => owners.waiting.push(reference.clone()),
                Some(_) => owners.solid.push(reference.clone()),
            }
        }
        Ok(owners)
    }

    /// `None` if there is no such owner.
    async fn owner(&self, item: &Identity, reference: &Owner) -> Result<Option<Seen>, Failed> {
        let mut identity = reference.identity(&item.namespace);
        {
            let graph = self.shared.graph();
            let anywhere = Identity { namespace: Str::default(), ..identity.clone() };
            if graph.is_absent(&anywhere) || graph.is_absent(&identity) {
                return Ok(None);
            }
        }
        let place = self.api.place(&identity)?;
        if !place.known.namespaced {
            identity.namespace = Str::default();
        }
        let owner = self.api.latest(&place).await?.filter(|owner| owner.identity.uid == reference.uid);
        if owner.is_none() {
            self.shared.graph().add_absent(identity);
        }
        Ok(owner)
    }

    pub async fn attempt_to_orphan(&self, uid: &Str) -> Result<(), String> {
        // Dependents that were created before the owner's deletion must be known, or they would be deleted as its orphans.
        self.monitors.caught_up().await;
        let Some(view) = self.shared.graph().view(uid) else { return Ok(()) };
        let owner = [uid.clone()];
        let forget = |dependent: &super::graph::Dependent| {
            let (identity, owner, api) = (dependent.identity.clone(), owner.clone(), self.api.clone());
            async move {
                let failed = |why: &str| Err(format!("orphaning {identity} failed, {why}"));
                let place = match api.place(&identity) {
                    Ok(place) => place,
                    Err(Unreachable::NoNamespace) => return Ok(()),
                    Err(Unreachable::Unknown(why)) => return failed(&why),
                };
                match api.remove_owners(&place, &identity.uid, &owner).await {
                    Err(status) if !status.is_not_found() => failed(&status.message),
                    _ => Ok(()),
                }
            }
        };
        let outcomes = futures::stream::iter(view.dependents.iter().map(forget)).buffer_unordered(ORPHANS);
        let errors: Vec<String> = outcomes.filter_map(|o| async move { o.err() }).collect().await;
        if !errors.is_empty() {
            let errors = aggregate(errors);
            return Err(format!("failed to orphan dependents of owner {}, got errors: {errors}", view.identity));
        }
        match self.api.place(&view.identity) {
            Ok(place) => self.api.remove_finalizer(&place, &view.identity, ORPHAN).await,
            Err(Unreachable::NoNamespace) => Ok(()),
            Err(Unreachable::Unknown(why)) => Err(why),
        }
    }
}
