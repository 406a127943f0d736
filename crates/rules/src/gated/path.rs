//! Where a field is: `a.b[].c{}.d` goes through all elements of a list and all entries of a map. `@` stands for the three
//! lists of containers.

use kubelith_meta::Value;

#[derive(Debug, Clone)]
pub struct FieldPath(Vec<Step>);

#[derive(Debug, Clone)]
struct Step {
    key: String,
    into: Into,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Into {
    Member,
    Elements,
    Entries,
}

const CONTAINERS: [&str; 3] = ["containers[]", "initContainers[]", "ephemeralContainers[]"];

impl FieldPath {
    /// The paths that a text stands for, below a member; that of the member itself if the text is empty.
    pub fn all(below: &[&str], text: &str) -> Vec<FieldPath> {
        let texts = match text.strip_prefix("@.") {
            Some(rest) => CONTAINERS.map(|list| format!("{list}.{rest}")).to_vec(),
            None => vec![text.to_owned()],
        };
        let step = |text: &str| {
            let (key, into) = match (text.strip_suffix("[]"), text.strip_suffix("{}")) {
                (Some(key), _) => (key, Into::Elements),
                (_, Some(key)) => (key, Into::Entries),
                _ => (text, Into::Member),
            };
            Step { key: key.to_owned(), into }
        };
        let path = |text: &String| {
            FieldPath(below.iter().copied().chain(text.split('.').filter(|part| !part.is_empty())).map(step).collect())
        };
        texts.iter().map(path).collect()
    }

    /// Whether it is anywhere in the object, and not empty.
    pub fn is_in(&self, object: &Value) -> bool {
        any(&self.0, object, |value| !value.is_null())
    }

    /// Whether it is anywhere in the object with a value that is not empty.
    pub fn is_full_in(&self, object: &Value) -> bool {
        any(&self.0, object, |value| !value.is_empty())
    }

    /// Whether both objects have the very same part that it leads into.
    pub fn is_shared(&self, object: &Value, other: &Value) -> bool {
        self.0.first().is_some_and(|step| object.shares(&step.key, other))
    }

    /// Whether objects of a type have a field there.
    #[cfg(any(test, feature = "testing"))]
    pub fn is_known(&self, schema: &kubelith_schema::TypedSchema) -> bool {
        use kubelith_schema::{Schema, Shape};
        let mut at: &Schema = &schema.root;
        for step in &self.0 {
            let Shape::Named(id) = &at.shape else { return false };
            let fields = &schema.table.get(*id).fields;
            let Some(field) = fields.iter().find(|field| *field.name == *step.key) else { return false };
            at = match (step.into, &field.schema.shape) {
                (Into::Member, _) => &field.schema,
                (Into::Elements, Shape::List(of)) | (Into::Entries, Shape::Map(of)) => of,
                _ => return false,
            };
        }
        true
    }

    /// Removes it everywhere; what holds nothing any more goes with it, so many levels up.
    pub fn remove(&self, object: &mut Value, prune: usize) {
        remove(&self.0, object, prune);
    }

    /// Does something to the values that the path leads to.
    pub fn each(&self, object: &mut Value, change: fn(&mut Value)) {
        each(&self.0, object, change);
    }
}

fn any(steps: &[Step], value: &Value, is_it: fn(&Value) -> bool) -> bool {
    let Some((step, rest)) = steps.split_first() else { return is_it(value) };
    let Some(found) = value.get(&step.key) else { return false };
    match step.into {
        Into::Member => any(rest, found, is_it),
        Into::Elements => found.as_array().unwrap_or_default().iter().any(|element| any(rest, element, is_it)),
        Into::Entries => found.as_object().is_some_and(|map| map.iter().any(|(_, entry)| any(rest, entry, is_it))),
    }
}

/// Whether the value lost something and is empty now.
fn remove(steps: &[Step], value: &mut Value, prune: usize) -> bool {
    let Some((step, rest)) = steps.split_first() else { return false };
    if rest.is_empty() {
        let Some(map) = value.as_object_mut() else { return false };
        return map.remove(&step.key).is_some() && map.is_empty();
    }
    let Some(found) = value.get_mut(&step.key) else { return false };
    match step.into {
        Into::Member => {
            let is_emptied = remove(rest, found, prune);
            if is_emptied && rest.len() <= prune {
                value.as_object_mut().is_some_and(|map| map.remove(&step.key).is_some() && map.is_empty())
            } else {
                false
            }
        }
        _ => {
            for_each(step, found, |inner| {
                remove(rest, inner, prune);
            });
            false
        }
    }
}

fn each(steps: &[Step], value: &mut Value, change: fn(&mut Value)) {
    let Some((step, rest)) = steps.split_first() else { return change(value) };
    let Some(found) = value.get_mut(&step.key) else { return };
    for_each(step, found, |inner| each(rest, inner, change));
}

fn for_each(step: &Step, found: &mut Value, mut change: impl FnMut(&mut Value)) {
    match step.into {
        Into::Member => change(found),
        Into::Elements => found.as_array_mut().into_iter().flatten().for_each(change),
        Into::Entries => {
            let keys: Vec<String> = found.as_object().into_iter().flat_map(|m| m.keys()).map(str::to_owned).collect();
            for key in keys {
                found.get_mut(&key).into_iter().for_each(&mut change);
            }
        }
    }
}
