//! The set of a manager: written, read, or both.

use super::outline::Outline;
use super::set::Set;
use super::wire::FieldsError;
use kubelith_meta::Value;
use std::sync::{Arc, OnceLock};

/// A set that is read from its text when it must be, and written when it has changed.
#[derive(Debug, Clone)]
pub(crate) struct Owned {
    outline: Option<Outline>,
    /// `fieldsV1` as it was read, as long as the set is what it was. Most entries leave a request as they came, and are
    /// not written anew.
    wire: Option<Value>,
    /// Always there if there is no outline.
    set: OnceLock<Set>,
}

impl From<Set> for Owned {
    fn from(set: Set) -> Owned {
        Owned { outline: None, wire: None, set: OnceLock::from(set) }
    }
}

impl Owned {
    /// Of `fieldsV1`.
    pub(crate) fn read(fields: Option<&Value>) -> Result<Owned, FieldsError> {
        let outline = match fields {
            Some(Value::Raw(text)) => Outline::of(text),
            _ => None,
        };
        let set = match &outline {
            Some(_) => OnceLock::new(),
            None => OnceLock::from(Set::from_fields(fields.unwrap_or(&Value::Null))?),
        };
        // What came in another form is written anew.
        let wire = fields.filter(|w| matches!(w, Value::Raw(_))).cloned();
        Ok(Owned { outline, wire, set })
    }

    pub(crate) fn set(&self) -> &Set {
        self.set.get_or_init(|| self.outline.as_ref().map(read_outlined).unwrap_or_default())
    }

    /// The set without reading it, if there is one.
    pub(crate) fn outline(&self) -> Option<&Outline> {
        self.outline.as_ref()
    }

    /// The set as it was read, if it still is that.
    pub(crate) fn wire(&self) -> Option<&Value> {
        self.wire.as_ref()
    }

    /// The text of the set, if it is known.
    pub(crate) fn text(&self) -> Option<&Arc<str>> {
        self.outline.as_ref().map(Outline::text)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.outline.as_ref().map_or_else(|| self.set().is_empty(), Outline::is_empty)
    }

    pub(crate) fn is_disjoint(&self, fields: &Set) -> bool {
        fields.is_empty()
            || self.outline.as_ref().map_or_else(|| self.set().is_disjoint(fields), |o| o.is_disjoint(fields))
    }

    /// What is in both sets.
    pub(crate) fn intersection(&self, fields: &Set) -> Set {
        if self.is_disjoint(fields) { Set::new() } else { self.set().intersection(fields) }
    }

    /// Takes fields away.
    pub(crate) fn lose(&mut self, fields: &Set) {
        if !self.is_disjoint(fields) {
            self.change().remove(fields);
        }
    }

    /// Adds fields.
    pub(crate) fn gain(&mut self, fields: Set) {
        // Who writes a field again owns it already.
        let has_all = self.outline.as_ref().map_or_else(|| fields.is_subset(self.set()), |o| o.covers(&fields));
        if !has_all && !self.gain_in_text(&fields) {
            self.change().add(fields);
        }
    }

    /// Adds fields to a set that is not read for that, if its text allows it.
    fn gain_in_text(&mut self, fields: &Set) -> bool {
        let Some(text) = self.outline.as_ref().and_then(|outline| outline.with(fields)).map(Arc::from) else {
            return false;
        };
        let Some(outline) = Outline::of(&text) else { return false };
        *self = Owned { outline: Some(outline), wire: Some(Value::Raw(text)), set: OnceLock::new() };
        true
    }

    fn change(&mut self) -> &mut Set {
        self.set();
        (self.outline, self.wire) = (None, None);
        self.set.get_mut().expect("it was read")
    }

    /// The set as `fieldsV1`.
    pub(crate) fn into_fields(self) -> Value {
        match self.wire {
            Some(wire) => wire,
            None => self.set().to_fields(),
        }
    }
}

fn read_outlined(outline: &Outline) -> Set {
    Set::from_fields(&Value::Raw(outline.text().clone())).expect("what has an outline can be read")
}
