//! In which order a write asks the strategy, admission and the store, and what happens to reservations. One double plays all three and
//! keeps the list of what it was asked.

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::random::MadeUp;
use kubelith_meta::time::SystemClock;
use kubelith_meta::user::User;
use kubelith_meta::{GroupResource, GroupVersionKind, Status, Str, Value};
use kubelith_registry::admission::{Admission, Operation, Request};
use kubelith_registry::{
    Begun, Call, Change, Conversion, Created, DeleteBy, DeleteOptions, DeleteResult, Deletion, IfAbsent, Mode, Outcome,
    Part, Reservation, Resource, Strategy, Turns, TypedCodec, TypedShape, Wanted, Warnings, WorkingVersion,
};
use kubelith_store::cache::Hub;

use kubelith_store::{Expect, MemoryStore, Store, StoreError, Watch};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// What was asked, in order.
#[derive(Clone, Default)]
struct Record(Arc<Mutex<Vec<&'static str>>>);

impl Record {
    fn note(&self, what: &'static str) {
        self.0.lock().unwrap().push(what);
    }

    fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Where the double refuses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refuses {
    Nothing,
    Validation,
    Admission,
}

struct Double {
    record: Record,
    refuses: Mutex<Refuses>,
}

impl Double {
    fn refuses(&self, what: Refuses) -> bool {
        *self.refuses.lock().unwrap() == what
    }

    fn judged(&self) -> ErrorList {
        let mut errors = ErrorList::default();
        if self.refuses(Refuses::Validation) {
            errors.push(Error::required(&Path::new("data"), "always"));
        }
        errors
    }
}

impl Strategy for Double {
    fn prepare_for_create(&self, _: &Call, _: &mut Value) {
        self.record.note("prepare");
    }

    fn validate(&self, _: &Call, _: &Value) -> ErrorList {
        self.record.note("validate");
        self.judged()
    }

    fn warnings_on_create(&self, _: &Call, _: &Value) -> Vec<String> {
        self.record.note("warn");
        Vec::new()
    }

    fn prepare_for_update(&self, _: &Call, _: Part<'_>, _: &mut Value, _: &Value) {
        self.record.note("prepare");
    }

    fn validate_update(&self, _: &Call, _: Part<'_>, _: &Value, _: &Value) -> ErrorList {
        self.record.note("validate");
        self.judged()
    }

    fn warnings_on_update(&self, _: &Call, _: Part<'_>, _: &Value, _: &Value) -> Vec<String> {
        self.record.note("warn");
        Vec::new()
    }

    fn canonicalize(&self, _: &mut Value) {
        self.record.note("canonicalize");
    }

    fn before_delete(&self, _: &Call, _: &DeleteOptions, _: Deletion) -> Result<(), Status> {
        self.record.note("before delete");
        Ok(())
    }

    fn begin_create<'a>(&'a self, _: &'a Call, object: &'a mut Value) -> BoxFuture<'a, Result<Begun, Status>> {
        assert!(
            !object.str_at(&["metadata", "uid"]).is_empty(),
            "what is reserved is reserved for an object with a uid"
        );
        self.begin()
    }

    fn begin_update<'a>(&'a self, _: &'a Call, _: &'a mut Value, _: &'a Value) -> BoxFuture<'a, Result<Begun, Status>> {
        self.begin()
    }

    fn after_delete<'a>(&'a self, _: &'a Call, _: &'a Value) -> BoxFuture<'a, ()> {
        self.record.note("after delete");
        std::future::ready(()).boxed()
    }
}

impl Double {
    fn begin(&self) -> BoxFuture<'_, Result<Begun, Status>> {
        self.record.note("reserve");
        let reserved: Box<dyn Reservation> = Box::new(Reserved(self.record.clone()));
        std::future::ready(Ok(Some(reserved))).boxed()
    }
}

struct Reserved(Record);

impl Reservation for Reserved {
    fn commit(self: Box<Self>) -> BoxFuture<'static, ()> {
        self.0.note("commit");
        std::future::ready(()).boxed()
    }

    fn revert(self: Box<Self>) -> BoxFuture<'static, ()> {
        self.0.note("revert");
        std::future::ready(()).boxed()
    }
}

impl Admission for Double {
    fn admit<'a>(&'a self, _: Request<'a>, _: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        self.record.note("admit");
        std::future::ready(Ok(())).boxed()
    }

    fn validate<'a>(&'a self, request: Request<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        self.record.note(match request.operation {
            Operation::Create => "judge create",
            Operation::Update => "judge update",
            Operation::Delete => "judge delete",
            Operation::Connect => "judge connect",
        });
        assert!(!request.call.name.is_empty(), "admission judges an object that has its name");
        let refused = self.refuses(Refuses::Admission).then(|| request.forbidden(object, "always"));
        std::future::ready(refused.map_or(Ok(()), Err)).boxed()
    }
}

/// A store that notes writes. Events can be held back until it is asked how far it is.
struct Noting {
    inner: Arc<MemoryStore>,
    record: Record,
    late: Arc<Late>,
}

/// How a store's events come.
struct Late {
    held: watch::Sender<bool>,
    questions: AtomicUsize,
}

impl Default for Late {
    fn default() -> Late {
        Late { held: watch::Sender::new(false), questions: AtomicUsize::new(0) }
    }
}

impl Store for Noting {
    fn get(
        &self,
        key: bytes::Bytes,
        at: Option<kubelith_store::Revision>,
    ) -> BoxFuture<'_, kubelith_store::Result<kubelith_store::GetResponse>> {
        self.inner.get(key, at)
    }

    fn range(
        &self,
        request: kubelith_store::RangeRequest,
    ) -> BoxFuture<'_, kubelith_store::Result<kubelith_store::RangeResponse>> {
        self.inner.range(request)
    }

    fn put(
        &self,
        key: bytes::Bytes,
        value: bytes::Bytes,
        expect: Expect,
        ttl: Option<std::time::Duration>,
    ) -> BoxFuture<'_, kubelith_store::Result<kubelith_store::Revision>> {
        let record = self.record.clone();
        let written = self.inner.put(key, value, expect, ttl);
        async move {
            let written = written.await;
            record.note(if matches!(written, Err(StoreError::Conflict { .. })) { "put: conflict" } else { "put" });
            written
        }
        .boxed()
    }

    fn delete(
        &self,
        key: bytes::Bytes,
        expect: Expect,
    ) -> BoxFuture<'_, kubelith_store::Result<kubelith_store::Deleted>> {
        self.record.note("delete");
        self.inner.delete(key, expect)
    }

    fn watch(
        &self,
        request: kubelith_store::WatchRequest,
    ) -> BoxFuture<'_, kubelith_store::Result<kubelith_store::Watch>> {
        let held = self.late.held.subscribe();
        async move {
            let (batches, control) = self.inner.watch(request).await?.into_parts();
            let late = batches.then(move |batch| {
                let mut held = held.clone();
                async move {
                    let _ = held.wait_for(|held| !held).await;
                    batch
                }
            });
            Ok(Watch::new(late.boxed(), control))
        }
        .boxed()
    }

    fn current_revision(&self) -> BoxFuture<'_, kubelith_store::Result<kubelith_store::Revision>> {
        self.late.questions.fetch_add(1, Ordering::SeqCst);
        self.late.held.send_replace(false);
        self.inner.current_revision()
    }

    fn compact(&self, revision: kubelith_store::Revision) -> BoxFuture<'_, kubelith_store::Result<()>> {
        self.inner.compact(revision)
    }

    fn stats(&self) -> BoxFuture<'_, kubelith_store::Result<kubelith_store::StoreStats>> {
        self.inner.stats()
    }

    fn health(&self) -> BoxFuture<'_, kubelith_store::Result<()>> {
        self.inner.health()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.close()
    }
}

/// There is one version.
struct NoConversion;

impl Conversion for NoConversion {
    fn convert<'a>(&'a self, object: Value, _: &'a GroupVersionKind) -> BoxFuture<'a, Result<Value, Status>> {
        std::future::ready(Ok(object)).boxed()
    }
}

struct Site {
    resource: Resource,
    double: Arc<Double>,
    late: Arc<Late>,
}

impl Site {
    async fn start() -> Site {
        Site::on(Arc::new(MemoryStore::new(kubelith_store::HistoryLimits::default()))).await
    }

    /// One of several servers over a store.
    async fn on(inner: Arc<MemoryStore>) -> Site {
        let late = Arc::new(Late::default());
        let record = Record::default();
        let double = Arc::new(Double { record: record.clone(), refuses: Mutex::new(Refuses::Nothing) });
        let store = Arc::new(Noting { inner, record, late: late.clone() });
        let hub = Hub::start(store, "/registry/").await.unwrap();
        let catalog = kubelith_catalog::builtin();
        let descriptor = catalog.descriptor("", "configmaps").unwrap();
        let kind = descriptor.storage.kind.clone();
        let codec =
            Arc::new(TypedCodec::new(Arc::new(TypedShape::new(catalog, descriptor, &kind).unwrap()), double.clone()));
        let cache = hub.register(&descriptor.storage.prefix, None, codec.clone()).await.unwrap();
        let resource = Resource {
            descriptor: descriptor.clone(),
            strategy: double.clone(),
            conversion: Arc::new(NoConversion),
            encoder: codec.clone(),
            renderer: codec,
            admission: double.clone(),
            hub,
            cache,
            clock: Arc::new(SystemClock),
            made_up: MadeUp::Random,
            working: WorkingVersion::One(kind),
            served: Arc::from([Str::from("v1")]),
            garbage_collection: true,
            turns: Turns::default(),
        };
        Site { resource, double, late }
    }

    /// Two servers that both know the object "a", of which the first hears no more of the other until it asks.
    async fn behind() -> (Site, Site) {
        let store = Arc::new(MemoryStore::new(kubelith_store::HistoryLimits::default()));
        let (site, other) = (Site::on(store.clone()).await, Site::on(store).await);
        other.create("a", Mode::Real).await.unwrap();
        site.resource.hub.fresh().await.unwrap();
        site.late.held.send_replace(true);
        site.late.questions.store(0, Ordering::SeqCst);
        (site, other)
    }

    fn questions(&self) -> usize {
        self.late.questions.load(Ordering::SeqCst)
    }

    async fn data(&self) -> String {
        self.resource.hub.fresh().await.unwrap();
        String::from_utf8(self.resource.cache.get("default/a").unwrap().json().to_vec()).unwrap()
    }

    fn refuse(&self, what: Refuses) {
        *self.double.refuses.lock().unwrap() = what;
    }

    /// What was asked since the last time.
    fn asked(&self) -> Vec<&'static str> {
        self.double.record.take()
    }

    async fn create(&self, name: &str, mode: Mode) -> Result<Created, Status> {
        self.resource.create(&call("", mode), config_map(name, "1"), None, Wanted::Object).await
    }

    async fn delete(&self, name: &str) -> Result<DeleteResult, Status> {
        self.resource.delete(&call(name, Mode::Real), &DeleteOptions::default(), DeleteBy::Server).await
    }

    async fn put(&self, name: &str, data: &str, if_absent: IfAbsent) -> Result<Outcome, Status> {
        let mut change = Put { object: config_map(name, data), record: self.double.record.clone() };
        self.resource.update(&call(name, Mode::Real), &mut change, if_absent, None).await.map(|updated| updated.outcome)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.resource.hub.stop();
    }
}

struct Put {
    object: Value,
    record: Record,
}

impl Change for Put {
    fn apply<'a>(&'a mut self, existing: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
        self.record.note(if existing.is_some() { "apply to object" } else { "apply to nothing" });
        std::future::ready(Ok(self.object.clone())).boxed()
    }

    fn may_create(&mut self) -> BoxFuture<'_, Result<(), Status>> {
        self.record.note("may create");
        std::future::ready(Ok(())).boxed()
    }
}

fn call(name: &str, mode: Mode) -> Call {
    Call {
        user: Arc::new(User::named("someone")),
        verb: Str::default(),
        resource: GroupResource::new("", "configmaps"),
        version: "v1".into(),
        kind: GroupVersionKind::new("", "v1", "ConfigMap"),
        namespace: "default".into(),
        name: name.into(),
        subresource: Str::default(),
        mode,
        deadline: None,
        warnings: Warnings::default(),
    }
}

fn config_map(name: &str, data: &str) -> Value {
    let meta = Value::from([("name", name)]);
    Value::from([
        ("apiVersion", "v1".into()),
        ("kind", "ConfigMap".into()),
        ("metadata", meta),
        ("data", Value::from([("key", data)])),
    ])
}

const PREPARED: [&str; 5] = ["reserve", "prepare", "validate", "warn", "canonicalize"];

fn order(parts: &[&[&'static str]]) -> Vec<&'static str> {
    parts.concat()
}

#[tokio::test]
async fn a_create_is_prepared_then_judged_then_stored() {
    let site = Site::start().await;
    site.create("a", Mode::Real).await.unwrap();
    assert_eq!(site.asked(), order(&[&PREPARED, &["judge create", "put", "commit"]]));
}

#[tokio::test]
async fn a_dry_run_goes_all_the_way_but_to_the_store() {
    let site = Site::start().await;
    site.create("a", Mode::DryRun).await.unwrap();
    assert_eq!(site.asked(), order(&[&PREPARED, &["judge create", "commit"]]));
    site.create("a", Mode::Real).await.unwrap();
    site.asked();
    assert!(site.create("a", Mode::DryRun).await.unwrap_err().is_already_exists());
    assert_eq!(site.asked(), order(&[&PREPARED, &["judge create", "revert"]]));
}

#[tokio::test]
async fn what_is_refused_gives_its_reservation_back_and_reaches_nothing_behind() {
    let site = Site::start().await;
    site.refuse(Refuses::Validation);
    assert_eq!(site.create("a", Mode::Real).await.unwrap_err().code, 422);
    assert_eq!(site.asked(), ["reserve", "prepare", "validate", "revert"]);
    site.refuse(Refuses::Admission);
    assert_eq!(site.create("a", Mode::Real).await.unwrap_err().code, 403);
    assert_eq!(site.asked(), order(&[&PREPARED, &["judge create", "revert"]]));
}

#[tokio::test]
async fn a_name_that_is_taken_gives_the_reservation_back() {
    let site = Site::start().await;
    site.create("a", Mode::Real).await.unwrap();
    site.asked();
    assert!(site.create("a", Mode::Real).await.unwrap_err().is_already_exists());
    assert_eq!(site.asked(), order(&[&PREPARED, &["judge create", "put: conflict", "revert"]]));
}

#[tokio::test]
async fn an_update_of_nothing_is_a_create_by_one_who_may() {
    let site = Site::start().await;
    let refused = site.put("a", "1", IfAbsent::Strategy).await.unwrap_err();
    assert!(refused.is_not_found());
    assert!(site.asked().is_empty());
    assert_eq!(site.put("a", "1", IfAbsent::Create).await.unwrap(), Outcome::Created);
    let expected = order(&[&["apply to nothing"], &PREPARED, &["may create", "judge create", "put", "commit"]]);
    assert_eq!(site.asked(), expected);
}

#[tokio::test]
async fn an_update_is_applied_prepared_judged_and_stored_unless_nothing_changes() {
    let site = Site::start().await;
    site.create("a", Mode::Real).await.unwrap();
    site.asked();
    const UPDATED: [&str; 6] = ["apply to object", "reserve", "prepare", "validate", "canonicalize", "warn"];
    assert_eq!(site.put("a", "2", IfAbsent::Strategy).await.unwrap(), Outcome::Updated);
    assert_eq!(site.asked(), order(&[&UPDATED, &["judge update", "put", "commit"]]));
    site.put("a", "2", IfAbsent::Strategy).await.unwrap();
    assert_eq!(site.asked(), order(&[&UPDATED, &["judge update", "commit"]]), "nothing was written");
    site.refuse(Refuses::Admission);
    site.put("a", "3", IfAbsent::Strategy).await.unwrap_err();
    assert_eq!(site.asked(), order(&[&UPDATED, &["judge update", "revert"]]));
}

#[tokio::test]
async fn an_update_asks_the_store_nothing_that_its_write_tells() {
    let (site, _) = Site::behind().await;
    site.put("a", "2", IfAbsent::Strategy).await.unwrap();
    site.put("a", "3", IfAbsent::Strategy).await.unwrap();
    assert_eq!(site.questions(), 0, "also of what it has just written itself, and did not hear of yet");
    assert!(site.asked().ends_with(&["put", "commit"]));
    assert!(site.data().await.contains(r#""key":"3""#));
}

#[tokio::test]
async fn an_update_of_what_another_server_changed_begins_again() {
    let (site, other) = Site::behind().await;
    other.put("a", "2", IfAbsent::Strategy).await.unwrap();
    site.put("a", "3", IfAbsent::Strategy).await.unwrap();
    let asked = site.asked();
    assert_eq!(asked.iter().filter(|what| what.starts_with("put")).collect::<Vec<_>>(), [&"put: conflict", &"put"]);
    assert!(site.data().await.contains(r#""key":"3""#));
}

#[tokio::test]
async fn nothing_changes_only_if_the_newest_state_says_so() {
    let (site, other) = Site::behind().await;
    other.put("a", "2", IfAbsent::Strategy).await.unwrap();
    // What the object is as far as this server knows.
    site.put("a", "1", IfAbsent::Strategy).await.unwrap();
    assert!(site.data().await.contains(r#""key":"1""#), "written over what the other server wrote");
    site.late.questions.store(0, Ordering::SeqCst);
    site.put("a", "1", IfAbsent::Strategy).await.unwrap();
    assert_eq!(site.questions(), 1);
}

#[tokio::test]
async fn an_update_is_refused_by_the_newest_state_only() {
    /// Refuses objects that the other server has not changed.
    struct AfterTwo;
    impl Change for AfterTwo {
        fn apply<'a>(&'a mut self, existing: Option<&'a Value>) -> BoxFuture<'a, Result<Value, Status>> {
            let is_two = existing.is_some_and(|object| object.str_at(&["data", "key"]) == "2");
            let object = if is_two { Ok(config_map("a", "3")) } else { Err(Status::internal_error("too early")) };
            std::future::ready(object).boxed()
        }
    }
    let (site, other) = Site::behind().await;
    let change = || async {
        let call = call("a", Mode::Real);
        site.resource.update(&call, &mut AfterTwo, IfAbsent::Strategy, None).await.map(|updated| updated.outcome)
    };
    assert_eq!(change().await.unwrap_err().code, 500);
    site.late.held.send_replace(true);
    other.put("a", "2", IfAbsent::Strategy).await.unwrap();
    assert_eq!(change().await.unwrap(), Outcome::Updated);
    assert!(site.data().await.contains(r#""key":"3""#));
    site.late.held.send_replace(true);
    other.delete("a").await.unwrap();
    assert!(change().await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_delete_asks_the_store_nothing_that_its_write_tells() {
    let (site, _) = Site::behind().await;
    site.delete("a").await.unwrap();
    assert_eq!(site.questions(), 0);
    assert!(site.delete("a").await.unwrap_err().is_not_found(), "also as long as this server knows it");
    let (site, other) = Site::behind().await;
    other.put("a", "2", IfAbsent::Strategy).await.unwrap();
    let deleted = site.delete("a").await.unwrap();
    assert_eq!(deleted.object.str_at(&["data", "key"]), "2", "what another server made of it goes");
    let (site, other) = Site::behind().await;
    other.delete("a").await.unwrap();
    assert!(site.delete("a").await.unwrap_err().is_not_found());
}

#[tokio::test]
async fn a_delete_is_refused_by_the_newest_state_only() {
    let (site, other) = Site::behind().await;
    let site = &site;
    other.put("a", "2", IfAbsent::Strategy).await.unwrap();
    other.resource.hub.fresh().await.unwrap();
    let newest = other.resource.cache.get("default/a").unwrap().revision.to_string();
    let delete_at = |version: &str| {
        let mut options = DeleteOptions::default();
        options.preconditions.resource_version = Some(version.into());
        async move { site.resource.delete(&call("a", Mode::Real), &options, DeleteBy::Server).await }
    };
    let refused = delete_at("1").await.unwrap_err().message;
    assert!(refused.contains(&format!("in record ({newest})")), "{refused}");
    site.late.held.send_replace(true);
    delete_at(&newest).await.unwrap();
}

#[tokio::test]
async fn a_delete_is_judged_before_the_object_goes() {
    let site = Site::start().await;
    site.create("a", Mode::Real).await.unwrap();
    site.asked();
    let options = (DeleteOptions::default(), Value::object());
    let delete = |by| site.resource.delete(&DELETE, &options.0, by);
    static DELETE: std::sync::LazyLock<Call> = std::sync::LazyLock::new(|| call("a", Mode::Real));
    site.refuse(Refuses::Admission);
    delete(DeleteBy::Client(&options.1)).await.unwrap_err();
    assert_eq!(site.asked(), ["before delete", "admit", "judge delete"]);
    site.refuse(Refuses::Nothing);
    delete(DeleteBy::Client(&options.1)).await.unwrap();
    assert_eq!(site.asked(), ["before delete", "admit", "judge delete", "delete", "after delete"]);
    site.resource.hub.fresh().await.unwrap();
    assert!(delete(DeleteBy::Server).await.unwrap_err().is_not_found());
    assert!(site.asked().is_empty(), "the server asks nobody");
}
