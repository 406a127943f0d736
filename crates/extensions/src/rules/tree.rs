//! The programs of all rules in a schema, as a tree of the same form. Parts without rules are not in it.

use super::compile::{Compiled, Known, compile, declare};
use kubelith_cel::Declared;
use kubelith_cel::declared::Root;
use kubelith_cel::value::escape;
use kubelith_meta::Str;
use kubelith_schema::structural::{List, Structural};
use std::sync::Arc;

/// The rules of a schema and of all schemas in it.
pub struct RuleTree {
    pub(super) schema: Arc<Structural>,
    pub(super) root: Node,
}

/// The rules that stand at one schema, and those below it.
pub(super) struct Node {
    /// What the values are, as rules see them.
    pub declared: Declared,
    /// `type` of the schema, which errors show.
    pub kind: &'static str,
    pub rules: Vec<Compiled>,
    pub all_of: Vec<Node>,
    pub items: Option<Box<Node>>,
    /// The keys by which items are found again, if the list is a map.
    pub keys: Vec<Str>,
    /// Sorted by name.
    pub properties: Vec<(Str, Node)>,
    pub additional: Option<Box<Node>>,
}

impl RuleTree {
    /// `None` if there are no rules.
    pub fn new(schema: &Arc<Structural>, root: Root) -> Option<RuleTree> {
        if !schema.has_cel() {
            return None;
        }
        let root = node(schema, schema, declare(schema, root).as_ref())?;
        Some(RuleTree { schema: schema.clone(), root })
    }
}

/// The rules that `rules` has for values of `schema`: the two are the same but inside of `allOf`, which has rules for
/// what the schema around it describes.
fn node(rules: &Structural, schema: &Structural, declared: Option<&Declared>) -> Option<Node> {
    let own = rules.rules.as_deref();
    let declared = declared?;
    let element = declared.element();
    let below = |rules: &Structural, schema: &Structural| node(rules, schema, element).map(Box::new);
    let items = rules.items.as_deref().zip(schema.items.as_deref()).and_then(|(r, s)| below(r, s));
    let additional = rules.additional_schema().zip(schema.additional_schema()).and_then(|(r, s)| below(r, s));
    let properties = rules.properties.iter().filter_map(|(name, rules)| {
        let schema = schema.property(name)?;
        // A name that cannot be escaped is no field; its rules see it all the same.
        let own = match declared.property(name) {
            Some(field) => Some(field.clone()),
            None if escape(name).is_some() => None,
            None => declare(schema, Root::of(schema)),
        };
        Some((name.clone(), node(rules, schema, own.as_ref())?))
    });
    let found = Node {
        kind: schema.kind.map_or("", |kind| kind.name()),
        rules: compile(own.map_or(&[][..], |r| &r.cel), schema, declared, Known::All),
        all_of: own.into_iter().flat_map(|r| &r.all_of).filter_map(|r| node(r, schema, Some(declared))).collect(),
        items,
        keys: match &schema.list {
            Some(List::Map(keys)) => keys.clone(),
            _ => Vec::new(),
        },
        properties: properties.collect(),
        additional,
        declared: declared.clone(),
    };
    let is_empty = found.rules.is_empty() && found.all_of.is_empty() && found.properties.is_empty();
    (!is_empty || found.items.is_some() || found.additional.is_some()).then_some(found)
}
