//! The set of a manager: written, read, or both.

use super::outline::Outline;
use super::outlines::Outlines;
use super::set::Set;
use super::wire::FieldsError;
use kubelith_meta::Value;
use std::sync::{Arc, OnceLock};

/// A set that is read from its text when it must be, and written when it has changed.
#[derive(Debug, Clone)]
pub(crate) struct Owned {
    /// Of the text, once somebody has asked for it; none if it must be read.
    outline: OnceLock<Option<Arc<Outline>>>,
    /// `fieldsV1` as it was read, as long as the set is what it was. Most entries leave a request as they came, and are
    /// not written anew.
    wire: Option<Value>,
    /// Always there if there is no outline of the text.
    set: OnceLock<Set>,
}

impl From<Set> for Owned {
    fn from(set: Set) -> Owned {
        Owned { outline: OnceLock::from(None), wire: None, set: OnceLock::from(set) }
    }
}

impl Owned {
    /// Of `fieldsV1`.
    pub(crate) fn read(fields: Option<&Value>, outlines: Option<&Outlines>) -> Result<Owned, FieldsError> {
        let outline = match fields {
            Some(Value::Raw(text)) => match outlines {
                Some(outlines) => outlines.of(text),
                None => Outline::of(text).map(Arc::new),
            },
            _ => None,
        };
        let set = match &outline {
            Some(_) => OnceLock::new(),
            None => OnceLock::from(Set::from_fields(fields.unwrap_or(&Value::Null))?),
        };
        let wire = match &outline {
            Some(outline) => Some(Value::Raw(outline.text().clone())),
            // What came in another form is written anew.
            None => fields.filter(|w| matches!(w, Value::Raw(_))).cloned(),
        };
        Ok(Owned { outline: OnceLock::from(outline), wire, set })
    }

    pub(crate) fn set(&self) -> &Set {
        self.set.get_or_init(|| {
            let read = |wire| Set::from_fields(wire).expect("what has an outline can be read");
            self.wire.as_ref().map(read).unwrap_or_default()
        })
    }

    /// The set without reading it, if there is one.
    pub(crate) fn outline(&self) -> Option<&Outline> {
        self.outline.get_or_init(|| self.text().and_then(Outline::of).map(Arc::new)).as_deref()
    }

    /// The set as it was read, if it still is that.
    pub(crate) fn wire(&self) -> Option<&Value> {
        self.wire.as_ref()
    }

    /// The text of the set, if it is known.
    pub(crate) fn text(&self) -> Option<&Arc<str>> {
        match &self.wire {
            Some(Value::Raw(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self.outline.get() {
            // Something was gained.
            None => false,
            Some(outline) => outline.as_ref().map_or_else(|| self.set().is_empty(), |outline| outline.is_empty()),
        }
    }

    pub(crate) fn is_disjoint(&self, fields: &Set) -> bool {
        fields.is_empty() || self.outline().map_or_else(|| self.set().is_disjoint(fields), |o| o.is_disjoint(fields))
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
        let has_all = self.outline().map_or_else(|| fields.is_subset(self.set()), |o| o.covers(&fields));
        if has_all {
            return;
        }
        match self.outline().and_then(|outline| outline.with(&fields)) {
            Some(text) => {
                *self = Owned { outline: OnceLock::new(), wire: Some(Value::Raw(text.into())), set: OnceLock::new() };
            }
            None => self.change().add(fields),
        }
    }

    fn change(&mut self) -> &mut Set {
        self.set();
        (self.outline, self.wire) = (OnceLock::from(None), None);
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
