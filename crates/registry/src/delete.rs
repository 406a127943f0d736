//! The life of a delete: preconditions → grace period → finalizers of the garbage collector → admission → store.

use crate::admission::Operation;
use crate::error;
use crate::judged::has_judged_spec;
use crate::resource::{Current, Known, Resource, WorkingVersion, set_resource_version};
use kubelith_meta::call::Call;
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::status::Status;
use kubelith_meta::time::Time;
use kubelith_meta::{GroupKind, GroupResource, Str, Value};
use kubelith_schema::lifecycle::{DeleteOptions, Propagation};
use kubelith_schema::lifecycle::{DeleteStep, Deletion, GarbageCollection};
use kubelith_store::cache::EventKind;
use kubelith_store::{Expect, Revision, StoreError};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What a delete did.
#[derive(Debug)]
pub struct DeleteResult {
    /// The object as it was deleted, or as it is marked for deletion; null if nobody could read it.
    pub object: Value,
    pub outcome: DeleteOutcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// It is gone.
    Gone,
    /// It waits for a grace period or finalizers.
    Pending,
}

/// On whose behalf an object is deleted.
#[derive(Debug, Clone, Copy)]
pub enum DeleteBy<'a> {
    /// A client's, with the options object of its request: admission judges it.
    Client(&'a Value),
    /// The same, for one of a collection that is deleted.
    Collector(&'a Value),
    /// The server's own.
    Server,
}

/// How a delete proceeds, given the stored object.
enum Plan {
    /// Remove it now.
    Now,
    /// Write this first. Then remove it if nothing is left to wait for.
    Mark(Value, DeleteOutcome),
    /// A graceful deletion is under way already.
    Already,
}

impl Resource {
    pub async fn delete(&self, call: &Call, options: &DeleteOptions, by: DeleteBy<'_>) -> Result<DeleteResult, Status> {
        let key = self.key(&call.namespace, &call.name)?;
        match by {
            DeleteBy::Client(_) => self.strategy.before_delete(call, options, Deletion::OfOne)?,
            DeleteBy::Collector(_) => self.strategy.before_delete(call, options, Deletion::OfCollection)?,
            DeleteBy::Server => {}
        }
        if options.ignore_read_error {
            return self.delete_unreadable(call, &key).await;
        }
        let mut current = match self.delete_at_hand(call, &key, options, by).await? {
            Ok(done) => return Ok(done),
            Err(newest) => newest,
        };
        loop {
            let Some(found) = current else { return Err(Status::not_found(&call.resource, &call.name)) };
            let plan = self.judged_plan(call, &found, options, by).await?;
            match self.carry_out(call, &key, found, plan).await? {
                Ok(done) => return Ok(done),
                Err(overtaken) => current = overtaken,
            }
        }
    }

    /// The delete of the object as this server knows it, as an update begins: the guard of the write tells if it is another
    /// one, and whatever ends without a write is decided by the newest state only. `Err` inside: what that is.
    async fn delete_at_hand(
        &self,
        call: &Call,
        key: &str,
        options: &DeleteOptions,
        by: DeleteBy<'_>,
    ) -> Result<Result<DeleteResult, Option<Current>>, Status> {
        let Some(found) = self.at_hand(call, key).await else { return Ok(Err(self.current(call, key).await?)) };
        let plan = self.judged_plan(call, &found, options, by).await;
        if matches!(plan, Err(_) | Ok(Plan::Already))
            && let Some(newest) = self.newer(call, key, found.revision).await?
        {
            return Ok(Err(newest));
        }
        self.carry_out(call, key, found, plan?).await
    }

    /// How the delete of `found` proceeds, if admission has nothing against it.
    async fn judged_plan(
        &self,
        call: &Call,
        found: &Current,
        options: &DeleteOptions,
        by: DeleteBy<'_>,
    ) -> Result<Plan, Status> {
        let (mut options, mut object) = (options.clone(), found.object.clone());
        let plan = self.plan(call, &mut object, &mut options)?;
        if !matches!(plan, Plan::Already) {
            self.judge_deletion(call, by, &found.object).await?;
        }
        Ok(plan)
    }

    /// Admission judges the stored object, once for each attempt.
    async fn judge_deletion(&self, call: &Call, by: DeleteBy<'_>, stored: &Value) -> Result<(), Status> {
        // Whoever deletes a collection names no object.
        let collecting;
        let (call, options) = match by {
            DeleteBy::Server => return Ok(()),
            DeleteBy::Client(options) => (call, options),
            DeleteBy::Collector(options) => {
                collecting = Call { name: Str::default(), ..call.clone() };
                (&collecting, options)
            }
        };
        let request = self.asks(call, Operation::Delete, Some(stored), Some(options));
        self.admission.admit(request, &mut Value::Null).await?;
        self.admission.validate(request, &Value::Null).await
    }

    /// `Err` inside: the object was changed meanwhile, and this is what it is now.
    async fn carry_out(
        &self,
        call: &Call,
        key: &str,
        mut found: Current,
        plan: Plan,
    ) -> Result<Result<DeleteResult, Option<Current>>, Status> {
        let marked = matches!(plan, Plan::Mark(..));
        let (mut object, outcome) = match plan {
            Plan::Already => {
                return Ok(Ok(DeleteResult { object: found.object, outcome: DeleteOutcome::Pending }));
            }
            Plan::Now => (std::mem::take(&mut found.object), DeleteOutcome::Gone),
            Plan::Mark(object, outcome) => (object, outcome),
        };
        if call.dry_run() {
            return Ok(Ok(DeleteResult { object, outcome }));
        }
        let mut revision = Revision(found.revision);
        if marked {
            // Also an object that goes at once is marked first: watchers see it go.
            match self.put_marked(call, key, &mut object, &found).await? {
                Ok(written) => revision = written,
                Err(e) => return self.delete_overtaken(call, e).await,
            }
        }
        if outcome == DeleteOutcome::Gone {
            match self.remove(call, key, Expect::At(revision)).await {
                Ok(deleted) => set_resource_version(&mut object, deleted.revision.0),
                // Somebody else, a kubelet perhaps, was faster.
                Err(StoreError::Conflict { current: None }) if marked => {}
                Err(e) => return self.delete_overtaken(call, e).await,
            }
            self.strategy.after_delete(call, &object).await;
        }
        Ok(Ok(DeleteResult { object, outcome }))
    }

    async fn put_marked(
        &self,
        call: &Call,
        key: &str,
        object: &mut Value,
        found: &Current,
    ) -> Result<Result<Revision, StoreError>, Status> {
        let is_judged = has_judged_spec(object);
        let known = Known { text: None, kind: EventKind::Modified, is_judged, before: Some(found) };
        let bytes = self.encode(object, known).await?;
        let ttl = self.time_to_live(object);
        let put = self.put_for(call, key, bytes, Expect::At(Revision(found.revision)), ttl).await;
        if let Ok(written) = &put {
            set_resource_version(object, written.0);
        }
        Ok(put)
    }

    async fn delete_overtaken(
        &self,
        call: &Call,
        error: StoreError,
    ) -> Result<Result<DeleteResult, Option<Current>>, Status> {
        match error {
            StoreError::Conflict { current: Some(kv) } => Ok(Err(Some(self.current_of_kv(call, &kv).await?))),
            StoreError::Conflict { current: None } => Ok(Err(None)),
            e => Err(error::from_store(e, &call.resource, &call.name)),
        }
    }

    /// Deletes what cannot be read, because the client insists: no preconditions, finalizers or admission.
    async fn delete_unreadable(&self, call: &Call, key: &str) -> Result<DeleteResult, Status> {
        self.hub.fresh().await.map_err(|e| error::from_store(e, &call.resource, &call.name))?;
        let unreadable = self.cache.get(key).is_some_and(|found| found.broken.is_some());
        if !unreadable {
            let mut errors = ErrorList::default();
            errors.push(Error::invalid(
                &Path::new("ignoreStoreReadErrorWithClusterBreakingPotential"),
                Value::Bool(true),
                "is exclusively used to delete corrupt object(s), try again by removing this option",
            ));
            // The resource stands where the kind should.
            let kind = GroupKind { group: call.resource.group.clone(), kind: call.resource.resource.clone() };
            return Err(Status::invalid(&kind, &call.name, &errors));
        }
        match self.remove(call, key, Expect::Any).await {
            Ok(_) | Err(StoreError::Conflict { .. }) => {}
            Err(e) => return Err(error::from_store(e, &call.resource, &call.name)),
        }
        tracing::info!(resource = %call.resource, namespace = %call.namespace, name = %call.name, "deleted an unreadable object");
        Ok(DeleteResult { object: Value::Null, outcome: DeleteOutcome::Gone })
    }

    fn plan(&self, call: &Call, object: &mut Value, options: &mut DeleteOptions) -> Result<Plan, Status> {
        self.check_delete_preconditions(call, object, options)?;
        match self.strategy.delete_step(object, options, self.clock.now()) {
            DeleteStep::Generic => {}
            DeleteStep::Mark => return Ok(Plan::Mark(std::mem::take(object), DeleteOutcome::Pending)),
            DeleteStep::Stay => return Ok(Plan::Already),
        }
        let graceful = match self.grace(call, object, options) {
            Grace::Pending => return Ok(Plan::Already),
            Grace::Graceful => true,
            Grace::None => false,
        };
        if let Some(finalizers) = self.collector_finalizers(call, object, options) {
            if finalizers.is_empty() {
                object.remove_at(&["metadata", "finalizers"]);
            } else {
                object.set_at(&["metadata", "finalizers"], finalizers.into());
            }
        }
        let waiting = !finalizers(object).is_empty();
        if graceful {
            // A grace period of zero with nothing to wait for ends at once.
            let ends_now = options.grace_period_seconds == Some(0) && !waiting;
            if ends_now {
                return Ok(Plan::Mark(std::mem::take(object), DeleteOutcome::Gone));
            }
            return Ok(Plan::Mark(std::mem::take(object), DeleteOutcome::Pending));
        }
        if waiting || !self.strategy.may_vanish(object) {
            mark_as_deleting(object, self.clock.now());
            return Ok(Plan::Mark(std::mem::take(object), DeleteOutcome::Pending));
        }
        Ok(Plan::Now)
    }

    fn check_delete_preconditions(&self, call: &Call, object: &Value, options: &DeleteOptions) -> Result<(), Status> {
        // The reference names the kind where the resource should stand.
        let kind = match &self.working {
            WorkingVersion::One(_) => self.stored_kind(),
            WorkingVersion::Request => call.kind.group_kind(),
        };
        let resource = GroupResource::new(kind.group, kind.kind);
        let name = object.str_at(&["metadata", "name"]);
        let is_stepwise = self.strategy.deletes_in_steps();
        if let Some(uid) = &options.preconditions.uid {
            let found = object.str_at(&["metadata", "uid"]);
            if *uid != found && is_stepwise {
                let text = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {found}");
                return Err(Status::conflict(&call.resource, name, &text));
            }
            if *uid != found {
                let text = format!(
                    "the UID in the precondition ({uid}) does not match the UID in record ({found}). \
                     The object might have been deleted and then recreated"
                );
                return Err(Status::conflict(&resource, name, &text));
            }
        }
        if let Some(version) = &options.preconditions.resource_version {
            let found = object.str_at(&["metadata", "resourceVersion"]);
            if *version != found && is_stepwise {
                let text = format!(
                    "Precondition failed: ResourceVersion in precondition: {version}, ResourceVersion in object meta: {found}"
                );
                return Err(Status::conflict(&call.resource, name, &text));
            }
            if *version != found {
                let text = format!(
                    "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record \
                     ({found}). The object might have been modified"
                );
                return Err(Status::conflict(&resource, name, &text));
            }
        }
        Ok(())
    }

    /// Decides about the grace period and, if there is one, writes it into the object.
    fn grace(&self, call: &Call, object: &mut Value, options: &mut DeleteOptions) -> Grace {
        if options.grace_period_seconds.is_some_and(|s| s < 0) {
            options.grace_period_seconds = Some(1);
        }
        if !self.strategy.is_graceful() {
            return Grace::None;
        }
        let now = self.clock.now();
        if let Some(at) = object.at(&["metadata", "deletionTimestamp"]).and_then(Value::as_str).and_then(parse_time) {
            let running = object.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(0);
            let running = if running < 0 { 1 } else { running };
            if running == 0 {
                return Grace::None;
            }
            // Only a shorter period than the one under way changes anything.
            let Some(mut wanted) = options.grace_period_seconds.filter(|wanted| *wanted < running) else {
                options.grace_period_seconds = Some(running);
                return Grace::Pending;
            };
            let mut ends = plus_seconds(at, wanted - running);
            if ends < now {
                ends = now;
                wanted = wanted.min(1);
            }
            set_deletion(object, ends, wanted);
            options.grace_period_seconds = Some(wanted);
            return Grace::Graceful;
        }
        if !self.strategy.graceful_delete(call, object, options) {
            return Grace::None;
        }
        let period = options.grace_period_seconds.unwrap_or(0);
        set_deletion(object, plus_seconds(now, period), period);
        count_generation(object);
        Grace::Graceful
    }

    /// The finalizers the object should have for the garbage collector's sake; `None` if it has them.
    fn collector_finalizers(&self, call: &Call, object: &Value, options: &DeleteOptions) -> Option<Vec<Str>> {
        if !self.garbage_collection {
            return None;
        }
        let have = finalizers(object);
        let policy = self.strategy.garbage_collection(call);
        let has = |name: &str| have.contains(&name);
        let (orphan, foreground) = match (policy, options.orphan_dependents, options.propagation) {
            (GarbageCollection::Unsupported, ..) => (false, false),
            (_, Some(orphan), _) => (orphan, false),
            (_, None, Some(p)) => (p == Propagation::Orphan, p == Propagation::Foreground),
            // Earlier finalizers decide, whichever comes first in the list.
            (_, None, None) => match have.iter().find(|f| **f == ORPHAN || **f == FOREGROUND) {
                Some(f) => (*f == ORPHAN, has(FOREGROUND) && *f == FOREGROUND),
                None => (policy == GarbageCollection::OrphanDependents, false),
            },
        };
        let mut want: Vec<Str> =
            have.iter().filter(|f| **f != ORPHAN && **f != FOREGROUND).map(|f| Str::from(*f)).collect();
        if orphan {
            want.push(ORPHAN.into());
        }
        if foreground {
            want.push(FOREGROUND.into());
        }
        let same = want.len() == have.len() && want.iter().all(|f| has(f));
        (!same).then_some(want)
    }
}

enum Grace {
    None,
    Graceful,
    /// Under way already.
    Pending,
}

fn parse_time(text: &str) -> Option<Time> {
    Time::parse(text).ok()
}

fn plus_seconds(at: Time, seconds: i64) -> Time {
    Time::from_unix_nanos(at.unix_seconds().saturating_add(seconds), at.subsec_nanos().into())
}

fn finalizers(object: &Value) -> Vec<&str> {
    let list = object.at(&["metadata", "finalizers"]).and_then(Value::as_array).unwrap_or(&[]);
    list.iter().filter_map(Value::as_str).collect()
}

fn set_deletion(object: &mut Value, at: Time, period: i64) {
    object.set_at(&["metadata", "deletionTimestamp"], at.rfc3339().into());
    object.set_at(&["metadata", "deletionGracePeriodSeconds"], Value::Int(period));
}

fn count_generation(object: &mut Value) {
    if let Some(generation) = object.at(&["metadata", "generation"]).and_then(Value::as_i64).filter(|g| *g > 0) {
        object.set_at(&["metadata", "generation"], Value::Int(generation + 1));
    }
}

fn mark_as_deleting(object: &mut Value, now: Time) {
    let at = object.at(&["metadata", "deletionTimestamp"]).and_then(Value::as_str).and_then(parse_time);
    if at.is_none() {
        count_generation(object);
    }
    set_deletion(object, at.filter(|at| *at <= now).unwrap_or(now), 0);
}
