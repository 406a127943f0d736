//! Which objects a list or watch is about: a key prefix, and selectors over what the cache parsed before.

use super::context::Context;
use super::options::ListOptions;
use kubelith_meta::selector::Fields;
use kubelith_meta::{FieldSelector, LabelSelector, Status, Str};
use kubelith_schema::SelectableField;
use kubelith_store::cache::{CachedObject, Scope};

pub struct Selection {
    /// Keys begin with this: `namespace/`, or nothing.
    pub prefix: String,
    pub labels: LabelSelector,
    pub fields: FieldSelector,
    selectable: Vec<SelectableField>,
    namespaced: bool,
}

impl Selection {
    pub fn new(cx: &Context, options: &ListOptions) -> Result<Selection, Status> {
        let resource = &cx.endpoint.resource;
        let namespaced = resource.namespaced();
        let selectable = cx.endpoint.version().selectable.clone();
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
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        Ok(Selection { prefix, labels: options.labels.clone(), fields, selectable, namespaced })
    }

    pub fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }

    pub fn matches(&self, object: &CachedObject) -> bool {
        object.key.starts_with(&self.prefix)
            && (self.labels.is_everything() || self.labels.matches(&*object.labels))
            && (self.fields.is_everything() || self.fields.matches(&Selectable { selection: self, object }))
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

struct Selectable<'a> {
    selection: &'a Selection,
    object: &'a CachedObject,
}

impl Fields for Selectable<'_> {
    fn field(&self, field: &str) -> &str {
        match field {
            "metadata.name" => self.object.name(),
            "metadata.namespace" => self.object.namespace(),
            _ => {
                let index = self.selection.selectable.iter().position(|s| s.name == field);
                index.and_then(|i| self.object.fields.get(i)).map_or("", Str::as_str)
            }
        }
    }
}
