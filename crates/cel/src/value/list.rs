//! Lists: those that expressions make, and those of JSON.

use super::{EvalError, MAX_DEPTH, Res, Val, json};
use crate::declared;
use kubelith_meta::Value;

#[derive(Debug, Clone)]
pub struct List<'a> {
    pub items: Vec<Val<'a>>,
    pub form: Form<'a>,
    pub depth: u32,
}

/// What a list is to the reference, which shows in how lists are compared.
#[derive(Debug, Clone, Copy)]
pub enum Form<'a> {
    Plain,
    /// Two lists behind each other.
    Concat,
    /// A list of a schema to which something was added.
    Typed(&'a declared::List),
}

impl<'a> List<'a> {
    pub fn new(items: Vec<Val<'a>>) -> Result<List<'a>, EvalError> {
        let depth = items.iter().map(Val::depth).max().unwrap_or(0) + 1;
        if depth > MAX_DEPTH {
            return Err(EvalError::size());
        }
        Ok(List { items, form: Form::Plain, depth })
    }

    /// A list of what cannot be nested.
    pub fn flat(items: Vec<Val<'a>>) -> List<'a> {
        List { items, form: Form::Plain, depth: 1 }
    }

    pub fn push(&mut self, item: Val<'a>) -> Result<(), EvalError> {
        let depth = item.depth() + 1;
        if depth > self.depth {
            if depth > MAX_DEPTH {
                return Err(EvalError::size());
            }
            self.depth = depth;
        }
        self.items.push(item);
        Ok(())
    }

    pub fn go_type(&self) -> &'static str {
        match self.form {
            Form::Plain => "*types.baseList",
            Form::Concat => "*types.concatList",
            Form::Typed(list) => list.kind.go_type(),
        }
    }
}

/// A list, wherever it is.
#[derive(Debug, Clone, Copy)]
pub enum ListView<'v, 'a> {
    Items(&'v List<'a>),
    Json(&'a [Value], Option<&'a declared::List>),
}

impl<'v, 'a> ListView<'v, 'a> {
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            ListView::Items(list) => list.items.len(),
            ListView::Json(items, _) => items.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at an index that is there.
    #[inline]
    pub fn at(&self, index: usize) -> Res<'a> {
        match self {
            ListView::Items(list) => Ok(list.items[index].clone()),
            ListView::Json(items, None) => Ok(json::json_val(&items[index])),
            ListView::Json(items, Some(list)) => json::typed(&items[index], &list.element),
        }
    }

    pub fn iter(self) -> impl Iterator<Item = Res<'a>> + use<'v, 'a> {
        (0..self.len()).map(move |i| self.at(i))
    }

    /// Whether one of the elements equals `item`. Lists of a schema say so if none does and one could not be compared.
    pub fn contains(&self, item: &Val<'a>) -> Result<bool, EvalError> {
        let typed = self.declared().is_some();
        let mut failed = None;
        for i in 0..self.len() {
            let equal = self.at(i).and_then(|own| if typed { own.equal(item) } else { item.equal(&own) });
            match equal {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(e) => failed = failed.or(Some(e)),
            }
        }
        match failed {
            Some(e) if typed => Err(e),
            _ => Ok(false),
        }
    }

    /// What its schema says of it.
    pub fn declared(&self) -> Option<&'a declared::List> {
        match self {
            ListView::Items(List { form: Form::Typed(list), .. }) => Some(list),
            ListView::Items(_) => None,
            ListView::Json(_, declared) => *declared,
        }
    }
}
