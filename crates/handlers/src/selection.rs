//! Which objects a list or watch is about: a key prefix, and selectors over what the cache parsed before.

use super::context::Context;
use super::options::ListOptions;
use super::shards::ShardSelector;
use super::views;
use kubelith_meta::selector::Fields;
use kubelith_meta::{FieldSelector, LabelSelector, Status, Str};
use kubelith_schema::{Descriptor, SelectableField};
use kubelith_store::cache::{CachedObject, Scope};

pub struct Selection {
    /// Keys begin with this: `namespace/`, or nothing.
    pub prefix: String,
    pub labels: LabelSelector,
    pub fields: FieldSelector,
    /// The part of all objects that is meant.
    pub shards: Option<ShardSelector>,
    /// The fields beyond name and namespace that are selected by, and where the cache has them.
    columns: Vec<(Str, usize)>,
    namespaced: bool,
}

impl Selection {
    pub fn new(cx: &Context, options: &ListOptions) -> Result<Selection, Status> {
        let resource = &cx.endpoint.resource;
        let namespaced = resource.namespaced();
        let selectable = &cx.endpoint.version().selectable;
        let unselectable = &cx.endpoint.version().unselectable;
        let check = |field: Str, value: Str| {
            let known = match field.as_str() {
                "metadata.name" => true,
                "metadata.namespace" => !unselectable.namespace,
                other => selectable.iter().any(|s| s.name == other),
            };
            if known { Ok((field, value)) } else { Err(Status::bad_request(unselectable.message_for(&field))) }
        };
        let mut fields = options.fields.clone().transform(check)?;
        let name = &cx.info.name;
        if !name.is_empty() {
            if fields.is_everything() {
                fields = FieldSelector::equals("metadata.name", name.clone());
            } else if fields.exact_value("metadata.name") != Some(name.as_str()) {
                return Err(Status::bad_request("fieldSelector metadata.name doesn't match requested name"));
            }
        }
        let namespace = if namespaced { cx.info.namespace.as_str() } else { "" };
        resource.check_namespace(namespace)?;
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let columns = if fields.is_everything() { Vec::new() } else { columns(&resource.descriptor, selectable) };
        let shards = match cx.query.get("shardSelector").filter(|text| cx.endpoint.limits.shards && !text.is_empty()) {
            Some(text) => Some(
                ShardSelector::parse(text).map_err(|why| Status::unknown(format!("invalid shard selector: {why}")))?,
            ),
            None => None,
        };
        Ok(Selection { prefix, labels: options.labels.clone(), fields, shards, columns, namespaced })
    }

    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything() && self.shards.is_none()
    }

    pub fn matches(&self, object: &CachedObject) -> bool {
        object.key.starts_with(&self.prefix)
            && (self.labels.is_everything() || self.labels.matches(&*object.labels))
            && (self.fields.is_everything()
                || self.fields.matches(&Selectable { selection: self, object, fields: &object.fields }))
            && self.shards.as_ref().is_none_or(|shards| shards.matches(object))
    }

    /// Whether objects must be seen as the endpoint shows them to be judged: a webhook may give them other labels and
    /// fields in its version than those that are cached.
    pub fn judges_shown(&self, cx: &Context) -> bool {
        cx.endpoint.resource.conversion.rewrites()
            && !self.is_everything()
            && (!self.labels.is_everything() || self.fields.exact_value("metadata.name").is_none())
    }

    /// As [`Selection::matches`], by what the endpoint shows of the object.
    pub async fn matches_shown(&self, cx: &Context, object: &CachedObject) -> Result<bool, Status> {
        if !self.judges_shown(cx) || views::is_native(cx, object) {
            return Ok(self.matches(object));
        }
        if !object.key.starts_with(&self.prefix) {
            return Ok(false);
        }
        let shown = kubelith_registry::render(&views::value_of(cx, object).await?, &cx.endpoint.version().selectable);
        let fields = Selectable { selection: self, object, fields: &shown.fields };
        let in_shard = self.shards.as_ref().is_none_or(|shards| shards.matches(object));
        Ok(in_shard && self.labels.matches(&*shown.labels) && self.fields.matches(&fields))
    }

    /// The narrowest index that covers the selection. `indexed` is the resource's indexed field, if it has one.
    pub fn scope(&self, indexed: Option<&str>) -> Scope {
        if let Some(name) = self.fields.exact_value("metadata.name") {
            if !self.namespaced {
                return Scope::Key(name.into());
            }
            if !self.prefix.is_empty() {
                return Scope::Key(format!("{}{name}", self.prefix).into());
            }
        }
        if let Some(value) = indexed.and_then(|field| self.fields.exact_value(field)) {
            return Scope::Indexed(value.into());
        }
        if self.prefix.is_empty() { Scope::All } else { Scope::Namespace(self.prefix.trim_end_matches('/').into()) }
    }

    /// If only one object can match: its key.
    pub fn single_key(&self) -> Option<String> {
        let name = self.fields.exact_value("metadata.name")?;
        if self.namespaced && self.prefix.is_empty() { None } else { Some(format!("{}{name}", self.prefix)) }
    }
}

/// Objects are cached in the form in which they are stored, and so are their fields.
fn columns(descriptor: &Descriptor, selectable: &[SelectableField]) -> Vec<(Str, usize)> {
    let own = || selectable.iter().enumerate().map(|(i, field)| (field.name.clone(), i)).collect();
    if descriptor.storage.kind.group == descriptor.group {
        return own();
    }
    let catalog = kubelith_catalog::builtin();
    let stored = catalog.descriptor(&descriptor.storage.resource.group, &descriptor.storage.resource.resource);
    let Some(stored) = stored.and_then(|d| d.version(&descriptor.storage.kind.version)) else { return own() };
    let find = |name: &Str| {
        let label = kubelith_catalog::stored_label(&descriptor.group, name);
        stored.selectable.iter().position(|field| field.name == label)
    };
    selectable.iter().filter_map(|field| Some((field.name.clone(), find(&field.name)?))).collect()
}

struct Selectable<'a> {
    selection: &'a Selection,
    object: &'a CachedObject,
    fields: &'a [Str],
}

impl Fields for Selectable<'_> {
    fn field(&self, field: &str) -> &str {
        match field {
            "metadata.name" => self.object.name(),
            "metadata.namespace" => self.object.namespace(),
            _ => {
                let column = self.selection.columns.iter().find(|(name, _)| name == field);
                column.and_then(|(_, i)| self.fields.get(*i)).map_or("", Str::as_str)
            }
        }
    }
}
