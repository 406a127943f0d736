//! Where a value comes from, as steps from a variable: its schema bounds its size.
//!
//! Paths grow as Go's slices do, which is part of the reference's estimates: two paths that were made by extending the
//! same one can share their storage, and then the second takes the place of the first one's last step. A loop's range is
//! sized after its body was looked at, so `p.a.all(x, p.b > 0)` can be sized by `b`.

use super::{Size, Sizes};
use crate::declared::{Declared, MemberKind, Object};

#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// The variable at the beginning.
    Variable(&'a str),
    Field(&'a str),
    Items,
    Values,
    Keys,
    Indices,
}

/// A slice of steps. Of length 0: nowhere.
#[derive(Debug, Clone, Copy, Default)]
pub struct Path {
    storage: u32,
    len: u32,
    capacity: u32,
}

impl Path {
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

#[derive(Debug)]
pub struct Paths<'a> {
    sizes: Sizes<'a>,
    storage: Vec<Vec<Step<'a>>>,
}

impl<'a> Paths<'a> {
    pub fn new(sizes: Sizes<'a>) -> Paths<'a> {
        Paths { sizes, storage: Vec::new() }
    }

    /// The path to a variable.
    pub fn root(&mut self, name: &'a str) -> Path {
        self.extend(Path::default(), Step::Variable(name))
    }

    pub fn extend(&mut self, path: Path, step: Step<'a>) -> Path {
        // Without a schema nobody asks where a value comes from.
        if let Sizes::Unknown = self.sizes {
            return Path { storage: 0, len: path.len + 1, capacity: 0 };
        }
        if path.len < path.capacity {
            let steps = &mut self.storage[path.storage as usize];
            match steps.get_mut(path.len as usize) {
                Some(taken) => *taken = step,
                None => steps.push(step),
            }
            return Path { len: path.len + 1, ..path };
        }
        let mut steps = Vec::new();
        if path.len > 0 {
            steps.extend_from_slice(&self.storage[path.storage as usize][..path.len as usize]);
        }
        steps.push(step);
        self.storage.push(steps);
        let capacity = (path.capacity * 2).max(1);
        Path { storage: (self.storage.len() - 1) as u32, len: path.len + 1, capacity }
    }

    /// The size that the schema of a value allows. Numbers and objects have none, which counts as nothing.
    pub fn size(&self, path: Path) -> Option<Size> {
        Some(Size { min: 0, max: self.at(path)?.max_elements() })
    }

    /// The same for the elements of a list.
    pub fn item_size(&self, list: Path) -> Option<Size> {
        Some(Size { min: 0, max: self.at(list)?.step(Step::Items)?.max_elements() })
    }

    fn at(&self, path: Path) -> Option<At<'a>> {
        if path.is_empty() {
            return None;
        }
        let (first, rest) = self.storage.get(path.storage as usize)?.get(..path.len as usize)?.split_first()?;
        let root = match self.sizes {
            Sizes::Unknown => return None,
            Sizes::Schema(root) => root,
            Sizes::Variable(name, root) => match first {
                Step::Variable(first) if *first == name => root,
                _ => return None,
            },
        };
        rest.iter().try_fold(At::Declared(root), |at, step| at.step(*step))
    }
}

#[derive(Clone, Copy)]
enum At<'a> {
    Declared(&'a Declared),
    /// The key of a map, and how long it is at most.
    Key(u64),
}

impl<'a> At<'a> {
    fn step(self, step: Step<'_>) -> Option<At<'a>> {
        let At::Declared(declared) = self else { return None };
        match (step, &declared.kind) {
            (Step::Items | Step::Values, MemberKind::List(list)) => Some(At::Declared(&list.element)),
            (Step::Items | Step::Values, MemberKind::Map(map)) => Some(At::Declared(&map.value)),
            (Step::Keys, MemberKind::Map(map)) => Some(At::Key(map.max_key)),
            (Step::Field(_), MemberKind::Map(map)) if map.sized_by_name => Some(At::Declared(&map.value)),
            (Step::Field(name), MemberKind::Object(object)) => field(object, name),
            _ => None,
        }
    }

    fn max_elements(self) -> u64 {
        match self {
            At::Declared(declared) => declared.max_elements,
            At::Key(longest) => longest,
        }
    }
}

fn field<'a>(object: &'a Object, name: &str) -> Option<At<'a>> {
    object.field(name).map(|f| At::Declared(&f.declared))
}
