//! The fields of a struct, and finding them by name: by the heads of the names, which lie side by side.

use crate::Field;
use crate::canonical::is_always_printed;
use crate::defaults::own_default;
use kubelith_meta::keys::{self, Tail};
use kubelith_meta::{Head, Key};
use std::ops::Deref;

/// The fields of a struct, sorted by JSON name.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    list: Vec<Field>,
    /// Those of the names.
    heads: Box<[Head]>,
    tails: Box<[Tail]>,
    /// The positions of those that are printed even if nothing is known of them.
    always_printed: Box<[usize]>,
    /// The same as bits, if all fields have one.
    printed_bits: Option<u128>,
    /// As bits, those with a default, if they have a bit.
    default_bits: u128,
    /// Whether they are pointers, lists or maps.
    nilable: Box<[bool]>,
    /// Whether all names are letters and digits.
    plain: bool,
}

/// With this many fields for each name it pays to search: schemas have forty fields, and most objects say three things.
const SPARSE: usize = 4;

/// Finds fields by names that come in ascending order.
pub struct InOrder<'a> {
    fields: &'a Fields,
    /// Fields before this one sort before every name to come.
    passed: usize,
    sparse: bool,
}

impl Fields {
    /// Where the field `name` is.
    pub fn position(&self, head: Head, name: &str) -> Option<usize> {
        let at = self.heads.partition_point(|h| *h < head);
        self.first_from(at, head, name)
    }

    /// The field `name`, if it is the one at `index`.
    #[inline]
    pub fn is_at(&self, index: usize, head: Head, name: &str) -> bool {
        self.heads.get(index) == Some(&head) && self.has_tail(index, name)
    }

    /// Whether the field at `index`, which has the head of `name`, has this name. Mostly without a look at the field.
    #[inline]
    fn has_tail(&self, index: usize, name: &str) -> bool {
        self.tails[index].is_of(name, || &self.list[index].name)
    }

    /// The name of the field at `index` as a key.
    #[inline]
    pub fn key(&self, index: usize) -> Key {
        Key::with_head(self.heads[index], self.list[index].name.clone())
    }

    /// The head of the name of the field at `index`.
    #[inline]
    pub fn head(&self, index: usize) -> Head {
        self.heads[index]
    }

    /// The positions of the fields that are printed even if nothing is known of them: those without omitempty, and
    /// structs.
    #[inline]
    pub fn always_printed(&self) -> &[usize] {
        &self.always_printed
    }

    /// The same as bits, the first field's being the lowest. `None` if there are more fields than bits.
    #[inline]
    pub fn printed_bits(&self) -> Option<u128> {
        self.printed_bits
    }

    /// As bits, the fields that defaulting adds to an object that lacks them. It is a hint: a field may have no bit.
    #[inline]
    pub fn default_bits(&self) -> u128 {
        self.default_bits
    }

    /// Whether the field at `index` is a pointer, a list or a map in Go. It says what `presence` of the field does, but
    /// without a look at the field, which most walks over a struct do not need otherwise: it is absent.
    #[inline]
    pub fn is_nilable(&self, index: usize) -> bool {
        self.nilable[index]
    }

    /// Looks up `names` names that come in order.
    #[inline]
    pub fn in_order(&self, names: usize) -> InOrder<'_> {
        InOrder { fields: self, passed: 0, sparse: self.list.len() > SPARSE * names }
    }

    /// Whether all names are letters and digits, as those of built-in types are: no encoding escapes them.
    #[inline]
    pub fn are_plain(&self) -> bool {
        self.plain
    }

    /// Where the field `name` is. The fields with its head begin at `at`, if there are any.
    #[inline]
    fn first_from(&self, at: usize, head: Head, name: &str) -> Option<usize> {
        self.heads.get(at).filter(|first| **first == head)?;
        if self.has_tail(at, name) { Some(at) } else { self.search_behind(at, head, name) }
    }

    /// Where the field `name` is, if other fields with its head come first. There are few, or thousands, in a custom
    /// resource.
    #[cold]
    #[inline(never)]
    fn search_behind(&self, first: usize, head: Head, name: &str) -> Option<usize> {
        const FEW: usize = 4;
        for at in first + 1..first + FEW {
            if self.heads.get(at) != Some(&head) {
                return None;
            }
            if self.has_tail(at, name) {
                return Some(at);
            }
        }
        self.list.binary_search_by(|f| keys::order(&f.name, name)).ok()
    }
}

impl InOrder<'_> {
    /// Where the field with the next name is.
    #[inline]
    pub fn find(&mut self, head: Head, name: &str) -> Option<usize> {
        let heads = &*self.fields.heads;
        let mut at = self.passed;
        if self.sparse {
            at += heads[at..].partition_point(|h| *h < head);
        } else {
            while at < heads.len() && heads[at] < head {
                at += 1;
            }
        }
        self.passed = at;
        self.fields.first_from(at, head, name)
    }
}

impl Deref for Fields {
    type Target = [Field];

    #[inline]
    fn deref(&self) -> &[Field] {
        &self.list
    }
}

impl From<Vec<Field>> for Fields {
    /// Of fields in any order, each name once.
    fn from(mut list: Vec<Field>) -> Fields {
        list.sort_by(|a, b| a.name.cmp(&b.name));
        let heads = list.iter().map(|f| Head::of(&f.name)).collect();
        let tails = list.iter().map(|f| Tail::of(&f.name)).collect();
        let always_printed: Box<[usize]> =
            list.iter().enumerate().filter(|(_, f)| is_always_printed(f)).map(|(i, _)| i).collect();
        let printed_bits = always_printed.iter().try_fold(0, |bits, i| Some(bits | 1u128.checked_shl(*i as u32)?));
        let with_default = list.iter().zip(0u32..).filter(|(f, _)| own_default(f).is_some());
        let default_bits = with_default.fold(0, |bits, (_, i)| bits | 1u128.checked_shl(i).unwrap_or(0));
        let nilable = list.iter().map(|f| f.presence.nilable).collect();
        let plain = list.iter().all(|f| f.name.bytes().all(|b| b.is_ascii_alphanumeric()));
        Fields { list, heads, tails, always_printed, printed_bits, default_bits, nilable, plain }
    }
}

impl From<Fields> for Vec<Field> {
    fn from(fields: Fields) -> Vec<Field> {
        fields.list
    }
}

impl FromIterator<Field> for Fields {
    fn from_iter<I: IntoIterator<Item = Field>>(fields: I) -> Fields {
        Fields::from(fields.into_iter().collect::<Vec<Field>>())
    }
}

impl<'a> IntoIterator for &'a Fields {
    type Item = &'a Field;
    type IntoIter = std::slice::Iter<'a, Field>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Presence, Schema};

    const NAMES: [&str; 10] = [
        "a",
        "terminationGracePeriod",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "terminationMessages",
        "terminationTime",
        "terminatio",
        "termin",
        "x",
        "name",
    ];

    fn fields() -> Fields {
        let field = |name: &&str| Field {
            name: (*name).into(),
            schema: Schema::default(),
            required: false,
            presence: Presence::default(),
        };
        NAMES.iter().map(field).collect()
    }

    #[test]
    fn fields_are_found_by_name() {
        let fields = fields();
        assert!(fields.is_sorted_by(|a, b| a.name < b.name));
        for name in NAMES.iter().chain(&["", "b", "termination", "terminationMessagePatz", "terminationZ", "z"]) {
            let want = fields.iter().position(|f| f.name == *name);
            assert_eq!(fields.position(Head::of(name), name), want, "{name}");
            for index in 0..NAMES.len() {
                assert_eq!(fields.is_at(index, Head::of(name), name), want == Some(index), "{name} {index}");
            }
            if let Some(index) = want {
                assert_eq!(fields.key(index).as_str(), *name);
            }
        }
    }

    #[test]
    fn names_in_order_are_found_on_the_way() {
        let fields = fields();
        let unknown = ["", "b", "termination", "terminationMessagePatz", "z"];
        let mut names: Vec<&str> = NAMES.iter().chain(&unknown).copied().collect();
        names.sort_unstable();
        // Every selection of the names, however many there are.
        for selection in 0u32..1 << names.len() {
            let selected = || names.iter().enumerate().filter(|(i, _)| selection & 1 << i != 0).map(|(_, name)| *name);
            let mut found = fields.in_order(selected().count());
            for name in selected() {
                let want = fields.iter().position(|f| f.name == name);
                assert_eq!(found.find(Head::of(name), name), want, "{name} of {selection:b}");
            }
        }
    }
}
