//! What an expression may cost at least and at most, before it runs: the limits of rules are checked with it. Every
//! figure is the reference's, whose estimates decide which definitions are accepted.

mod calls;
mod figures;
mod paths;

pub use figures::{Cost, Size};

use crate::ast::{Checked, Comprehension, Expr, ExprId, Literal};
use crate::declared::Declared;
use crate::types::{Scalar, Type};
use kubelith_meta::Str;
use paths::{Path, Paths, Step};

/// Nodes that two parents share are counted for each, as if they were copies, up to this many steps.
const MAX_REPEATED: usize = 100_000;
/// The cost of reading a variable or a field.
const READ: Cost = Cost::fixed(1);
const LIST: Cost = Cost::fixed(10);
const MAP: Cost = Cost::fixed(30);
const MESSAGE: Cost = Cost::fixed(40);

/// What is known of the sizes of variables.
#[derive(Debug, Clone, Copy)]
pub enum Sizes<'a> {
    Unknown,
    /// The schema of a custom resource: every path is taken to begin there, whatever it begins with.
    Schema(&'a Declared),
    /// One variable, by its name.
    Variable(&'a str, &'a Declared),
}

impl<'a> From<Option<&'a Declared>> for Sizes<'a> {
    fn from(schema: Option<&'a Declared>) -> Sizes<'a> {
        schema.map_or(Sizes::Unknown, Sizes::Schema)
    }
}

/// The estimate of an expression.
pub fn cost<'a>(checked: &'a Checked, sizes: impl Into<Sizes<'a>>) -> Cost {
    let mut coster = Coster::new(checked, sizes.into());
    coster.cost(checked.ast.root())
}

/// The estimates of all nodes, as they add up: what each and what is below it costs.
pub fn costs<'a>(checked: &'a Checked, sizes: impl Into<Sizes<'a>>) -> Vec<Cost> {
    let mut coster = Coster::new(checked, sizes.into());
    coster.cost(checked.ast.root());
    coster.costs.into_iter().map(Option::unwrap_or_default).collect()
}

/// The sizes of a container's elements.
#[derive(Debug, Clone, Copy)]
struct Entries {
    kind: Container,
    key: Size,
    value: Size,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    List,
    Map,
}

/// A variable of a comprehension.
#[derive(Debug, Clone)]
struct Local {
    name: Str,
    path: Path,
    size: Option<Size>,
    entries: Option<Entries>,
}

struct Coster<'a> {
    checked: &'a Checked,
    paths: Paths<'a>,
    node_paths: Vec<Path>,
    sizes: Vec<Option<Size>>,
    entries: Vec<Option<Entries>>,
    costs: Vec<Option<Cost>>,
    locals: Vec<Local>,
    steps: usize,
}

impl<'a> Coster<'a> {
    fn new(checked: &'a Checked, sizes: Sizes<'a>) -> Coster<'a> {
        let nodes = checked.ast.len();
        Coster {
            checked,
            paths: Paths::new(sizes),
            node_paths: vec![Path::default(); nodes],
            sizes: vec![None; nodes],
            entries: vec![None; nodes],
            costs: vec![None; nodes],
            locals: Vec::new(),
            steps: 0,
        }
    }

    fn expr(&self, id: ExprId) -> &'a Expr {
        self.checked.ast.expr(id)
    }

    fn type_of(&self, id: ExprId) -> &'a Type {
        self.checked.type_of(id)
    }

    fn cost(&mut self, id: ExprId) -> Cost {
        self.steps += 1;
        if let Some(known) = self.costs[id.0 as usize]
            && self.steps > MAX_REPEATED
        {
            return known;
        }
        let cost = match self.expr(id) {
            Expr::Literal(_) => Cost::default(),
            Expr::Ident(name) => self.ident(id, name),
            Expr::Select { operand, field, test_only } => self.select(id, *operand, field, *test_only),
            Expr::Call { .. } => self.call(id),
            Expr::List { elements, .. } => {
                let elements = self.checked.ast.list(*elements);
                let (mut sum, mut size) = (LIST, Size::nothing(elements.is_empty()));
                for element in elements {
                    sum = sum + self.cost(*element);
                    size = size.union(self.size_or_unknown(*element));
                }
                self.entries[id.0 as usize] = Some(Entries { kind: Container::List, key: Size::fixed(1), value: size });
                sum
            }
            Expr::Map(entries) => {
                let entries = self.checked.ast.entries(*entries);
                let mut sum = MAP;
                let mut key = Size::nothing(entries.is_empty());
                let mut value = key;
                for entry in entries {
                    sum = sum + self.cost(entry.key) + self.cost(entry.value);
                    key = key.union(self.size_or_unknown(entry.key));
                    value = value.union(self.size_or_unknown(entry.value));
                }
                self.entries[id.0 as usize] = Some(Entries { kind: Container::Map, key, value });
                sum
            }
            Expr::Struct { fields, .. } => {
                self.checked.ast.fields(*fields).iter().fold(MESSAGE, |sum, field| sum + self.cost(field.value))
            }
            Expr::Comprehension(of) if self.is_bind(of) => self.bind(id, of),
            Expr::Comprehension(of) => self.comprehension(id, of),
        };
        self.costs[id.0 as usize] = Some(cost);
        cost
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|l| l.name == name)
    }

    fn ident(&mut self, id: ExprId, name: &'a Str) -> Cost {
        let path = match self.local(name) {
            Some(local) => local.path,
            None => self.paths.root(name),
        };
        self.node_paths[id.0 as usize] = path;
        READ
    }

    fn select(&mut self, id: ExprId, operand: ExprId, field: &'a Str, test_only: bool) -> Cost {
        let cost = self.cost(operand);
        if test_only {
            return cost;
        }
        let path = self.path(operand);
        self.node_paths[id.0 as usize] = self.paths.extend(path, Step::Field(field));
        match self.type_of(operand) {
            Type::Map(_) | Type::Object(_) => cost + READ,
            of @ Type::Named(_) if !of.is_opaque() => cost + READ,
            _ => cost,
        }
    }

    fn path(&self, id: ExprId) -> Path {
        match self.expr(id) {
            Expr::Ident(name) => match self.local(name) {
                Some(local) => local.path,
                None => self.node_paths[id.0 as usize],
            },
            _ => self.node_paths[id.0 as usize],
        }
    }

    fn size_or_unknown(&mut self, id: ExprId) -> Size {
        self.size(id).unwrap_or(Size::UNKNOWN)
    }

    /// How large a value is: as it was computed, as it is written, as its schema says, as its type says.
    fn size(&mut self, id: ExprId) -> Option<Size> {
        if let Some(known) = self.sizes[id.0 as usize] {
            return Some(known);
        }
        if let Some(size) = self.written_size(id) {
            return Some(size);
        }
        let path = self.path(id);
        if let Some(size) = self.paths.size(path) {
            self.sizes[id.0 as usize] = Some(size);
            return Some(size);
        }
        if is_scalar(self.type_of(id)) {
            return Some(Size::fixed(1));
        }
        match self.expr(id) {
            Expr::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }

    fn written_size(&self, id: ExprId) -> Option<Size> {
        let size = match self.expr(id) {
            Expr::Literal(Literal::String(text)) => text.chars().count() as u64,
            Expr::Literal(Literal::Bytes(bytes)) => bytes.len() as u64,
            Expr::Literal(_) => 1,
            Expr::List { elements, .. } => elements.len.into(),
            Expr::Map(entries) => entries.len.into(),
            _ => return None,
        };
        Some(Size::fixed(size))
    }

    fn entries_of(&self, id: ExprId) -> Option<Entries> {
        self.entries[id.0 as usize].or_else(|| match self.expr(id) {
            Expr::Ident(name) => self.local(name)?.entries,
            _ => None,
        })
    }

    /// The variable of a loop: `of` says which part of an element it is.
    fn push_iter(&mut self, name: &Str, range: ExprId, of: Part) {
        let entries = self.entries_of(range);
        let is_list = match entries {
            Some(entries) => entries.kind == Container::List,
            None => matches!(self.type_of(range), Type::List(_)),
        };
        let key = entries.map(|e| e.key);
        let value = entries.map(|e| e.value);
        let (step, size) = match (of, is_list) {
            (Part::Key, true) => (Step::Indices, key),
            (Part::Key, false) | (Part::Single, false) => (Step::Keys, key),
            (Part::Value, true) | (Part::Single, true) => (Step::Items, value),
            (Part::Value, false) => (Step::Values, value),
        };
        let path = self.path(range);
        let path = self.paths.extend(path, step);
        self.locals.push(Local { name: name.clone(), path, size, entries: None });
    }

    fn push_local(&mut self, name: &Str, of: ExprId) {
        let entries = self.entries_of(of);
        let size = self.size(of);
        let path = self.path(of);
        self.locals.push(Local { name: name.clone(), path, size, entries });
    }

    fn comprehension(&mut self, id: ExprId, of: &'a Comprehension) -> Cost {
        let mut sum = self.cost(of.range) + self.cost(of.accu_init);
        let depth = self.locals.len();
        self.push_local(&of.accu_var, of.accu_init);
        match &of.iter_var2 {
            Some(second) => {
                self.push_iter(&of.iter_var, of.range, Part::Key);
                self.push_iter(second, of.range, Part::Value);
            }
            None => self.push_iter(&of.iter_var, of.range, Part::Single),
        }
        let step = self.cost(of.condition) + self.cost(of.step);
        self.locals.truncate(depth + 1);
        sum = sum + self.cost(of.result);
        self.locals.truncate(depth);
        let count = self.size_or_unknown(of.range);
        sum = sum + count.times(step);
        match self.expr(of.accu_init) {
            Expr::Literal(_) => {
                if let Some(size) = self.size(of.accu_init) {
                    self.sizes[id.0 as usize] = Some(size);
                }
            }
            Expr::List { .. } | Expr::Map(_) => {
                self.sizes[id.0 as usize] = Some(count);
                if let Some(entries) = self.entries_of(of.step) {
                    self.entries[id.0 as usize] = Some(entries);
                }
            }
            _ => {}
        }
        sum
    }

    /// A loop over nothing: a variable for a value.
    fn is_bind(&self, of: &Comprehension) -> bool {
        let nothing = matches!(self.expr(of.range), Expr::List { elements, .. } if elements.len == 0);
        nothing && matches!(self.expr(of.condition), Expr::Literal(Literal::Bool(false)))
    }

    fn bind(&mut self, id: ExprId, of: &'a Comprehension) -> Cost {
        let sum = self.cost(of.range) + self.cost(of.accu_init);
        let depth = self.locals.len();
        self.push_local(&of.accu_var, of.accu_init);
        let sum = sum + self.cost(of.result);
        self.locals.truncate(depth);
        self.copy_sizes(id, of.result);
        sum
    }

    fn copy_sizes(&mut self, to: ExprId, from: ExprId) {
        if let Some(size) = self.size(from) {
            self.sizes[to.0 as usize] = Some(size);
        }
        if let Some(entries) = self.entries_of(from) {
            self.entries[to.0 as usize] = Some(entries);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Key,
    Value,
    /// With one variable: an element of a list, or a key of a map.
    Single,
}

/// Whether values of a type always have the same size.
fn is_scalar(of: &Type) -> bool {
    match of {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        Type::Wrapper(scalar) => !matches!(scalar, Scalar::String | Scalar::Bytes),
        Type::Optional(of) => is_scalar(of),
        _ => false,
    }
}
