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
    /// What the values are, as rules see them. Nothing below an `items` of what is no list: there is no telling.
    pub declared: Option<Declared>,
    /// `type` of the schema, which errors show.
    pub kind: &'static str,
    /// None where there is nothing for them to see, though there may be some.
    pub rules: Result<Vec<Compiled>, Unseeing>,
    pub all_of: Vec<Node>,
    pub items: Option<Box<Node>>,
    /// The keys by which items are found again, if the list is a map.
    pub keys: Vec<Str>,
    /// Sorted by name.
    pub properties: Vec<(Str, Node)>,
    pub additional: Option<Box<Node>>,
}

/// There are rules, and nothing that they could be about.
pub(super) struct Unseeing;

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
    let element = declared.and_then(Declared::element);
    let below = |rules: &Structural, schema: &Structural| node(rules, schema, element).map(Box::new);
    let items = rules.items.as_deref().zip(schema.items.as_deref()).and_then(|(r, s)| below(r, s));
    let additional = rules.additional_schema().zip(schema.additional_schema()).and_then(|(r, s)| below(r, s));
    let properties = rules.properties.iter().filter_map(|(name, rules)| {
        let schema = schema.property(name)?;
        // A name that cannot be escaped is no field; its rules see it all the same.
        let own = match declared.and_then(|declared| declared.property(name)) {
            Some(field) => field.clone(),
            None if escape(name).is_some() => return None,
            None => declare(schema, Root::of(schema))?,
        };
        Some((name.clone(), node(rules, schema, Some(&own))?))
    });
    let cel = own.map_or(&[][..], |r| &r.cel);
    let found = Node {
        kind: schema.kind.map_or("", |kind| kind.name()),
        rules: match declared {
            Some(declared) => Ok(compile(cel, schema, declared, Known::All)),
            None if cel.is_empty() => Ok(Vec::new()),
            None => Err(Unseeing),
        },
        all_of: own.into_iter().flat_map(|r| &r.all_of).filter_map(|r| node(r, schema, declared)).collect(),
        items,
        keys: match &schema.list {
            Some(List::Map(keys)) => keys.clone(),
            _ => Vec::new(),
        },
        properties: properties.collect(),
        additional,
        declared: declared.cloned(),
    };
    let has_none = found.rules.as_ref().is_ok_and(Vec::is_empty);
    let is_empty = has_none && found.all_of.is_empty() && found.properties.is_empty();
    (!is_empty || found.items.is_some() || found.additional.is_some()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_codec::json;
    use kubelith_meta::Value;

    fn value(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn rules_of_items_of_what_is_no_list_fail_where_a_list_stands() {
        let schema = r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"backend":{"type":"object",
            "items":{"type":"object","properties":{"replicas":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 0"}]}},
            "x-kubernetes-validations":[{"rule":"self.replicas < 10"}]}}}}}}"#;
        let tree = RuleTree::new(&Arc::new(Structural::parse(&value(schema))), Root::Resource).unwrap();
        let errors = |object: &str| {
            let outcome = tree.check(&value(object), None);
            outcome.errors.iter().map(ToString::to_string).collect::<Vec<String>>()
        };
        assert_eq!(errors(r#"{"spec":{"backend":{"replicas":1}}}"#), [""; 0]);
        assert_eq!(
            errors(r#"{"spec":{"backend":[{"replicas":0}]}}"#),
            [
                r#"spec.backend[0]: Invalid value: "object": rule compiler initialization error: failed to convert to declType for CEL validation rules"#
            ]
        );
    }
}
