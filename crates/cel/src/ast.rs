//! Expressions as a tree in one arena: nodes are numbered, children are numbers. A deep tree is dropped without
//! recursion, and what is known of a node (position, type, what it refers to) is a table beside it.
//!
//! A node can have two parents: the macros `optMap` and `optFlatMap` use their target twice. Who walks the tree and keeps
//! what it finds per node must not do so twice, or chains of them cost twice as much with every link.

use crate::decl::{Function, Functions, Overload};
use crate::types::Type;
use kubelith_meta::Str;
use std::sync::Arc;

/// A node of an [`Ast`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub u32);

/// Some nodes in a row: arguments, elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Range {
    pub start: u32,
    pub len: u32,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Str),
    Bytes(Arc<[u8]>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    Literal(Literal),
    /// A variable, or a type, or the beginning of a qualified name. `.a` keeps its dot.
    Ident(Str),
    /// `operand.field`, or `has(operand.field)`.
    Select {
        operand: ExprId,
        field: Str,
        test_only: bool,
    },
    /// `function(args)`, `target.function(args)`. Operators are functions with names like `_+_`.
    Call {
        function: Str,
        target: Option<ExprId>,
        args: Range,
    },
    /// `[a, ?b]`.
    List {
        elements: Range,
        optional: Range,
    },
    /// `{k: v, ?k: v}`: entries of [`Ast::entries`].
    Map(Range),
    /// `Type{field: value}`: fields of [`Ast::fields`].
    Struct {
        name: Str,
        fields: Range,
    },
    /// What macros become. The two variables of the iteration are the element, or the index/key and the element.
    Comprehension(Box<Comprehension>),
}

/// `accu = init; for iter in range { if !condition { break } accu = step }; result`
#[derive(Debug, Clone, PartialEq)]
pub struct Comprehension {
    pub range: ExprId,
    pub iter_var: Str,
    /// With two variables the first is the index or the key.
    pub iter_var2: Option<Str>,
    pub accu_var: Str,
    pub accu_init: ExprId,
    pub condition: ExprId,
    pub step: ExprId,
    pub result: ExprId,
}

/// An entry of a map, or a field of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry {
    /// The entry itself, as a place in the text (no expression).
    pub offset: u32,
    pub key: ExprId,
    pub value: ExprId,
    pub optional: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub offset: u32,
    pub name: Str,
    pub value: ExprId,
    pub optional: bool,
}

/// A macro as it was written, for printing.
#[derive(Debug, Clone, PartialEq)]
pub struct MacroCall {
    /// What it became.
    pub id: ExprId,
    pub function: Str,
    pub target: Option<ExprId>,
    pub args: Range,
}

#[derive(Debug, Clone, Default)]
pub struct Ast {
    pub root: Option<ExprId>,
    nodes: Vec<Expr>,
    /// Where a node is in the text, in bytes.
    offsets: Vec<u32>,
    lists: Vec<ExprId>,
    /// Which elements of lists are optional.
    optional: Vec<u32>,
    entries: Vec<Entry>,
    fields: Vec<Field>,
    pub macros: Vec<MacroCall>,
}

impl Ast {
    pub fn with_capacity(nodes: usize) -> Ast {
        Ast { nodes: Vec::with_capacity(nodes), offsets: Vec::with_capacity(nodes), ..Ast::default() }
    }

    /// The expression. An AST that a parse returned has one.
    pub fn root(&self) -> ExprId {
        self.root.unwrap_or(ExprId(0))
    }

    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.nodes[id.0 as usize]
    }

    /// Whether a node is this name.
    pub fn is_ident(&self, index: usize, name: &str) -> bool {
        matches!(self.nodes.get(index), Some(Expr::Ident(ident)) if ident == name)
    }

    pub fn offset(&self, id: ExprId) -> u32 {
        self.offsets[id.0 as usize]
    }

    /// The nodes of arguments or elements.
    pub fn list(&self, range: Range) -> &[ExprId] {
        slice(&self.lists, range)
    }

    /// Which of the elements are optional, in order.
    pub fn optional(&self, range: Range) -> &[u32] {
        slice(&self.optional, range)
    }

    pub fn entries(&self, range: Range) -> &[Entry] {
        slice(&self.entries, range)
    }

    pub fn fields(&self, range: Range) -> &[Field] {
        slice(&self.fields, range)
    }

    pub fn add(&mut self, expr: Expr, offset: u32) -> ExprId {
        self.nodes.push(expr);
        self.offsets.push(offset);
        ExprId((self.nodes.len() - 1) as u32)
    }

    pub fn add_list(&mut self, ids: &[ExprId]) -> Range {
        append(&mut self.lists, ids)
    }

    pub fn add_optional(&mut self, indices: &[u32]) -> Range {
        append(&mut self.optional, indices)
    }

    pub fn add_entries(&mut self, entries: &[Entry]) -> Range {
        append(&mut self.entries, entries)
    }

    pub fn add_fields(&mut self, fields: &[Field]) -> Range {
        append(&mut self.fields, fields)
    }

    /// Puts another expression in the place of a node: a qualified name that turned out to be one variable.
    pub fn replace(&mut self, id: ExprId, expr: Expr) {
        self.nodes[id.0 as usize] = expr;
    }

    /// The macro that became this node.
    pub fn macro_call(&self, id: ExprId) -> Option<&MacroCall> {
        self.macros.iter().find(|m| m.id == id)
    }
}

fn slice<T>(all: &[T], range: Range) -> &[T] {
    &all[range.start as usize..(range.start + range.len) as usize]
}

fn append<T: Clone>(all: &mut Vec<T>, more: &[T]) -> Range {
    let start = all.len() as u32;
    all.extend_from_slice(more);
    Range { start, len: more.len() as u32 }
}

/// What a node refers to.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Reference {
    /// Nothing: a literal, a field of something.
    #[default]
    None,
    /// A variable; the name is the node's (`a.b.c` became one identifier if a variable has that name).
    Variable,
    /// The name of a type, whose value is that type.
    Type,
    /// A constant of a library.
    Constant(Literal),
    /// A function, and the overloads that fit: bit `n` is the n-th overload.
    Function { index: u32, overloads: u64 },
}

/// An expression whose types are known.
#[derive(Debug, Clone)]
pub struct Checked {
    pub ast: Ast,
    /// The text, for messages.
    pub source: Arc<str>,
    /// By node.
    pub types: Vec<Type>,
    /// By node.
    pub references: Vec<Reference>,
    pub functions: Arc<Functions>,
}

impl Checked {
    pub fn result_type(&self) -> &Type {
        self.type_of(self.ast.root())
    }

    pub fn type_of(&self, id: ExprId) -> &Type {
        &self.types[id.0 as usize]
    }

    pub fn reference(&self, id: ExprId) -> &Reference {
        &self.references[id.0 as usize]
    }

    /// The function that a node calls.
    pub fn function(&self, id: ExprId) -> Option<&Function> {
        match self.reference(id) {
            Reference::Function { index, .. } => Some(self.functions.get(*index)),
            _ => None,
        }
    }

    /// The overloads that a call may turn out to be, in the order of their declaration.
    pub fn overloads(&self, id: ExprId) -> impl Iterator<Item = &Overload> {
        let (function, bits) = match self.reference(id) {
            Reference::Function { index, overloads } => (Some(self.functions.get(*index)), *overloads),
            _ => (None, 0),
        };
        let all = function.map_or(&[][..], |f| &f.overloads[..]);
        all.iter().enumerate().filter(move |(i, _)| bits >> i & 1 == 1).map(|(_, o)| o)
    }
}
