//! The objects of all resources, for code that judges or completes one object by looking at others: admission
//! plugins and allocators. Filled once, when every resource is built.

use crate::options::ReadAt;
use crate::resource::Resource;
use kubelith_meta::call::{Call, Mode, Warnings};
use kubelith_meta::names::{self, NameUse};
use kubelith_meta::quick_hash::QuickHash;
use kubelith_meta::text::Quoted;
use kubelith_meta::user::User;
use kubelith_meta::{GroupResource, Status, Str, Value};
pub use kubelith_store::cache::CachedObject;
use memchr::memmem::Finder;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock, Weak};

/// Resources by group and plural.
pub type Resources = HashMap<(Str, Str), Arc<Resource>, QuickHash>;

/// A way to all resources that exists before they do: their own admission and strategies hold it. It does not keep them: a
/// server that is gone leaves nothing behind.
#[derive(Default)]
pub struct Objects(OnceLock<HashMap<(Str, Str), Weak<Resource>, QuickHash>>);

impl Objects {
    pub fn new() -> Arc<Objects> {
        Arc::default()
    }

    /// Called once, before the first request.
    pub fn fill(&self, resources: &Resources) {
        let _ = self.0.set(resources.iter().map(|(name, r)| (name.clone(), Arc::downgrade(r))).collect());
    }

    /// `None` also when the server is gone.
    pub fn resource(&self, group: &str, plural: &str) -> Option<Arc<Resource>> {
        self.0.get()?.get(&(Str::from(group), Str::from(plural)))?.upgrade()
    }

    /// The other resources whose objects are stored in the same place: events are those of two groups.
    pub fn twins<'a>(&'a self, resource: &'a Resource) -> impl Iterator<Item = Arc<Resource>> + 'a {
        let stored = &resource.descriptor.storage;
        let others = self.0.get().into_iter().flat_map(HashMap::values).filter_map(Weak::upgrade);
        others.filter(move |other| {
            other.descriptor.storage.prefix == stored.prefix && other.descriptor.group != resource.descriptor.group
        })
    }

    /// Waits until the watch caches hold what this server has written by now, as far as it matters to a write of `judged`:
    /// whoever changed a policy and then writes is judged by it.
    pub async fn caught_up(&self, judged: &GroupResource) {
        let Some(namespaces) = self.resource("", "namespaces") else { return };
        // Stricter ones are told of the pods that they have.
        match judged.resource == "namespaces" {
            true => namespaces.hub.caught_up().await,
            false => namespaces.hub.caught_up_for_admission().await,
        };
    }

    /// An object as the watch cache has it, which may be a moment old. `namespace` is empty for cluster-scoped ones.
    pub fn cached(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Arc<CachedObject>> {
        self.resource(group, plural)?.cached(namespace, name)
    }

    /// An object from the watch cache, or from the store if the cache does not know it: absence is never stale.
    pub async fn find(
        &self,
        group: &str,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<CachedObject>>, Status> {
        if let Some(found) = self.cached(group, plural, namespace, name) {
            return Ok(Some(found));
        }
        self.live(group, plural, namespace, name).await
    }

    /// An object as it is now.
    pub async fn live(
        &self,
        group: &str,
        plural: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Arc<CachedObject>>, Status> {
        let Some(resource) = self.resource(group, plural) else { return Ok(None) };
        check_name(name)?;
        resource.get(&self.own_call(&resource, namespace, name), ReadAt::Latest).await
    }

    /// All objects of a resource (below `namespace`, unless it is empty) that the watch cache has.
    pub fn list(&self, group: &str, plural: &str, namespace: &str) -> Vec<Value> {
        self.list_with(group, plural, namespace, &ANY)
    }

    /// As `list`, but only those whose JSON has this text in it: finding that costs less than reading the object.
    pub fn list_with(&self, group: &str, plural: &str, namespace: &str, text: &Finder<'_>) -> Vec<Value> {
        self.resource(group, plural).map(|resource| resource.list_with(namespace, text)).unwrap_or_default()
    }

    /// The objects of one resource.
    pub fn of(self: &Arc<Self>, group: &'static str, plural: &'static str) -> Collection {
        Collection { objects: self.clone(), group, plural, resource: OnceLock::new() }
    }

    /// A call of the server itself.
    pub fn own_call(&self, resource: &Resource, namespace: &str, name: &str) -> Call {
        let descriptor = &resource.descriptor;
        Call {
            verb: Str::default(),
            user: Arc::new(User::named("system:apiserver").with_groups(&["system:masters"])),
            resource: GroupResource::new(descriptor.group.clone(), descriptor.plural.clone()),
            version: descriptor.storage.kind.version.clone(),
            kind: descriptor.storage.kind.clone(),
            namespace: namespace.into(),
            name: name.into(),
            subresource: Str::default(),
            mode: Mode::Real,
            deadline: None,
            warnings: Warnings::default(),
        }
    }
}

/// Whether a name can be asked for, in the words of the client by which the reference asks itself.
fn check_name(name: &str) -> Result<(), Status> {
    if name.is_empty() {
        return Err(Status::unknown("resource name may not be empty"));
    }
    match names::name_is_path_segment(name, NameUse::Full) {
        problems if problems.is_empty() => Ok(()),
        problems => Err(Status::unknown(format!("invalid resource name {}: [{}]", Quoted(name), problems.join(" ")))),
    }
}

/// The objects of one resource, which is looked up once.
pub struct Collection {
    objects: Arc<Objects>,
    group: &'static str,
    plural: &'static str,
    resource: OnceLock<Weak<Resource>>,
}

impl Collection {
    fn resource(&self) -> Option<Arc<Resource>> {
        if let Some(found) = self.resource.get() {
            return found.upgrade();
        }
        let found = self.objects.resource(self.group, self.plural)?;
        let _ = self.resource.set(Arc::downgrade(&found));
        Some(found)
    }

    /// As [`Objects::cached`].
    pub fn cached(&self, namespace: &str, name: &str) -> Option<Arc<CachedObject>> {
        self.resource()?.cached(namespace, name)
    }

    /// As [`Objects::find`].
    pub async fn find(&self, namespace: &str, name: &str) -> Result<Option<Arc<CachedObject>>, Status> {
        match self.cached(namespace, name) {
            Some(found) => Ok(Some(found)),
            None => self.live(namespace, name).await,
        }
    }

    /// As [`Objects::live`].
    pub async fn live(&self, namespace: &str, name: &str) -> Result<Option<Arc<CachedObject>>, Status> {
        self.objects.live(self.group, self.plural, namespace, name).await
    }

    /// As [`Objects::list`].
    pub fn list(&self, namespace: &str) -> Vec<Value> {
        self.list_with(namespace, &ANY)
    }

    /// A number that is another one whenever the watch cache has changed.
    pub fn changes(&self) -> u64 {
        self.resource().map_or(0, |resource| resource.cache.changes())
    }

    /// Whether there is one below `namespace`.
    pub fn any(&self, namespace: &str) -> bool {
        self.resource().is_some_and(|resource| resource.any(namespace))
    }

    /// As [`Objects::list_with`].
    pub fn list_with(&self, namespace: &str, text: &Finder<'_>) -> Vec<Value> {
        self.resource().map(|resource| resource.list_with(namespace, text)).unwrap_or_default()
    }
}

/// What every text has in it.
static ANY: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(""));

impl Resource {
    fn cached(&self, namespace: &str, name: &str) -> Option<Arc<CachedObject>> {
        match namespace {
            "" => self.cache.get(name),
            namespace => self.cache.get(&[namespace, "/", name].concat()),
        }
    }

    fn any(&self, namespace: &str) -> bool {
        let snapshot = self.cache.snapshot();
        !snapshot.objects.is_empty() && below(&snapshot.objects, namespace).next().is_some()
    }

    fn list_with(&self, namespace: &str, text: &Finder<'_>) -> Vec<Value> {
        let snapshot = self.cache.snapshot();
        if snapshot.objects.is_empty() {
            return Vec::new();
        }
        let below = below(&snapshot.objects, namespace);
        let found = below.filter(|(_, object)| text.find(&object.json()).is_some());
        found.filter_map(|(_, object)| parse(object)).collect()
    }
}

/// Those of a namespace, or all.
fn below<'a>(
    objects: &'a kubelith_store::cache::Objects,
    namespace: &str,
) -> impl Iterator<Item = (&'a Arc<str>, &'a Arc<CachedObject>)> {
    let prefix = if namespace.is_empty() { String::new() } else { [namespace, "/"].concat() };
    objects.from(prefix.as_str()).take_while(move |(key, _)| key.starts_with(prefix.as_str()))
}

/// The object as a value; `None` if it cannot be read.
pub fn parse(object: &CachedObject) -> Option<Value> {
    kubelith_codec::json::parse_stored(&object.json()).ok()
}
