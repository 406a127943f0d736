//! Which objects a list or watch is about: a key prefix, and selectors over what the cache parsed before.

use super::context::Context;
use super::options::ListOptions;
use super::shards::ShardSelector;
use super::views;
use kubelith_meta::selector::{Fields, Operator, Requirement};
use kubelith_meta::{FieldSelector, LabelSelector, Status, Str};
use kubelith_schema::{Descriptor, SelectableField};
use kubelith_store::cache::{CachedObject, Clause, EventKind, Interest, Scope, Snapshot, Term};
use std::sync::Arc;

/// A watch of more values of a label than this follows more than it wants, and looks at each event.
const MAX_SCOPES: usize = 16;

pub struct Selection {
    /// Keys begin with this: `namespace/`, or nothing.
    pub prefix: String,
    pub labels: LabelSelector,
    pub fields: FieldSelector,
    /// The part of all objects that is meant.
    pub shards: Option<ShardSelector>,
    /// The fields beyond name and namespace that are selected by, and where the cache has them.
    columns: Box<[(Str, usize)]>,
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
        let columns = columns(&fields, &resource.descriptor, selectable);
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

    /// The objects among which are all that match and whose key is `from` or greater, in key order, if an index names them.
    /// `indexed` is the place of the resource's indexed field, if it has one.
    pub fn candidates(
        &self,
        snapshot: &Snapshot,
        indexed: Option<usize>,
        from: Option<&str>,
    ) -> Option<Vec<Arc<CachedObject>>> {
        let labels = self.labels.requirements().iter().filter_map(|requirement| {
            let label = |value| Term::Label(requirement.key(), value);
            Some(values_of(requirement)?.iter().map(|value| label(value.as_str())).collect())
        });
        let mut clauses: Vec<Clause<'_>> = labels.collect();
        clauses.extend(
            self.indexed_value(indexed).filter(|value| !value.is_empty()).map(|value| vec![Term::Indexed(value)]),
        );
        let namespace =
            self.fields.exact_value("metadata.namespace").filter(|_| self.namespaced && self.prefix.is_empty());
        let below = namespace.map(|namespace| format!("{namespace}/"));
        let found = snapshot.candidates(below.as_deref().unwrap_or(&self.prefix), from, &clauses);
        found.or_else(|| {
            // Without an index, keys tell names and namespaces.
            match (below, self.fields.exact_value("metadata.name")) {
                (Some(below), _) => Some(snapshot.range_from(&below, from).cloned().collect()),
                (None, Some(name)) if self.namespaced && self.prefix.is_empty() => Some(snapshot.named(name, from)),
                _ => None,
            }
        })
    }

    /// The value that the indexed field must have.
    fn indexed_value(&self, indexed: Option<usize>) -> Option<&str> {
        let (field, _) = self.columns.iter().find(|(_, column)| Some(*column) == indexed)?;
        self.fields.exact_value(field)
    }

    /// What a watch is woken for.
    pub fn interest(self: &Arc<Self>, indexed: Option<usize>) -> Interest {
        let (scopes, exact) = self.scopes(indexed);
        let interest = Interest::in_any(scopes);
        if exact == Exact::Yes {
            return interest;
        }
        let selection = self.clone();
        interest.filtered(move |event| {
            (event.kind != EventKind::Deleted && selection.matches(&event.object))
                || event.prev.as_ref().is_some_and(|prev| selection.matches(prev))
        })
    }

    /// What a watch is woken for that cannot tell what is selected from what is cached.
    pub fn range_interest(&self) -> Interest {
        let namespace = self.prefix.trim_end_matches('/');
        Interest::from(if namespace.is_empty() { Scope::All } else { Scope::Namespace(namespace.into()) })
    }

    /// The narrowest scopes that cover the selection.
    fn scopes(&self, indexed: Option<usize>) -> (Vec<Scope>, Exact) {
        let conditions = self.labels.requirements().len() + self.fields.terms().len();
        let alone = |exact: bool| if exact && self.shards.is_none() { Exact::Yes } else { Exact::No };
        if let Some(key) = self.single_key() {
            return (vec![Scope::Key(key.into())], alone(conditions == 1));
        }
        if let Some(value) = self.indexed_value(indexed) {
            return (vec![Scope::Indexed(value.into())], alone(conditions == 1 && self.prefix.is_empty()));
        }
        let namespace = self.prefix.trim_end_matches('/');
        let labels = self.labels.requirements().iter().filter_map(|r| Some((r.key(), values_of(r)?)));
        if let Some((key, values)) =
            labels.min_by_key(|(_, values)| values.len()).filter(|(_, v)| v.len() <= MAX_SCOPES)
        {
            let label =
                |value: &Str| Scope::Label { namespace: namespace.into(), key: key.into(), value: value.clone() };
            return (values.iter().map(label).collect(), alone(conditions == 1));
        }
        let scope = if namespace.is_empty() { Scope::All } else { Scope::Namespace(namespace.into()) };
        (vec![scope], alone(self.is_everything()))
    }

    /// If only one object can match: its key.
    pub fn single_key(&self) -> Option<String> {
        let name = self.fields.exact_value("metadata.name")?;
        if self.namespaced && self.prefix.is_empty() { None } else { Some(format!("{}{name}", self.prefix)) }
    }
}

/// Whether scopes hold nothing but what is selected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exact {
    Yes,
    No,
}

/// The values one of which a label must have.
fn values_of(requirement: &Requirement) -> Option<&[Str]> {
    match requirement.operator() {
        Operator::In | Operator::Equals | Operator::DoubleEquals => Some(requirement.values()),
        _ => None,
    }
}

/// Objects are cached in the form in which they are stored, and so are their fields.
fn columns(selector: &FieldSelector, descriptor: &Descriptor, selectable: &[SelectableField]) -> Box<[(Str, usize)]> {
    let is_asked = |field: &&SelectableField| selector.terms().iter().any(|term| term.field == field.name);
    let own = || {
        let all = selectable.iter().enumerate();
        all.filter(|(_, field)| is_asked(field)).map(|(i, field)| (field.name.clone(), i)).collect()
    };
    if selector.is_everything() {
        return Box::default();
    }
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
    selectable.iter().filter(is_asked).filter_map(|field| Some((field.name.clone(), find(&field.name)?))).collect()
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
