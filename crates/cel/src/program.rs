//! An expression made ready to run: names became slots, constants are folded, patterns and sets are prepared.

use crate::ast::Checked;
use crate::cost::{Cost, PER_CALL_LIMIT};
use crate::declared::Object;
use crate::env::Env;
use crate::eval::{Activation, Machine};
use crate::libraries::Run;
use crate::libraries::arithmetic::Arith;
use crate::libraries::regex::Finder;
use crate::plan;
use crate::stack::on_stack;
use crate::types::Type;
use crate::value::{EvalError, Key, Res, Val};
use kubelith_meta::Head;
use kubelith_schema::go_regexp::Matcher;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

/// Expressions that are nested deeper run in a thread of their own, whose stack is made for it.
pub(crate) const SHALLOW: u32 = 200;
/// The stack that one level may take.
const STACK_PER_LEVEL: usize = 8 << 10;
/// Said of a deep expression where the system has no thread left.
const NO_STACK: &str = "operation cancelled: no memory for an expression that is nested this deep";

#[derive(Debug)]
pub struct Program {
    pub(crate) nodes: Vec<Node>,
    pub(crate) root: u32,
    /// How many variables of comprehensions there are.
    pub(crate) locals: u32,
    /// The nodes that accumulators begin with, by slot.
    pub(crate) inits: Vec<Option<u32>>,
    pub(crate) depth: u32,
    /// The names of the variables, for messages.
    pub(crate) variables: Vec<Arc<str>>,
}

#[derive(Debug)]
pub(crate) enum Node {
    Const(Val<'static>),
    Attr(Attr),
    /// `has(a.b)`.
    Has(Attr),
    And(u32, u32),
    Or(u32, u32),
    Not(u32),
    Negate(u32),
    NotStrictlyFalse(u32),
    Equal(u32, u32),
    NotEqual(u32, u32),
    Arith(Arith, Cost, u32, u32),
    Compare(Comparison, Cost, u32, u32),
    In(Cost, u32, u32),
    /// `x in [1, 2]`.
    InSet(u32, Box<Members>),
    Size(u32),
    TypeOf(u32),
    Same(u32),
    Matches(Cost, u32, u32),
    /// `matches`, `find` and `findAll` with a constant pattern.
    Pattern(Box<Pattern>),
    Sort(Cost, u32),
    SortBy(Cost, u32, u32),
    Call(Box<Call>),
    OrOptional(u32, u32),
    OrValue(u32, u32),
    List {
        elements: Box<[u32]>,
        optional: Option<Box<[bool]>>,
    },
    Map {
        entries: Box<[(u32, u32, bool)]>,
    },
    Struct {
        name: Arc<str>,
        fields: Box<[(Arc<str>, u32, bool)]>,
    },
    Fold(Box<Fold>),
    /// `all` and `exists`: comprehensions whose accumulator is nothing but what is known so far.
    Quantifier(Box<Quantifier>),
    /// `accu + x` in the step of a comprehension: the list grows in its place.
    Append {
        accu: u32,
        item: u32,
    },
    /// `cel.@mapInsert(accu, k, v)`.
    Insert {
        accu: u32,
        key: u32,
        value: u32,
    },
    InsertAll {
        accu: u32,
        map: u32,
    },
}

/// Constants that a value may be one of.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub texts: HashSet<Arc<str>>,
    pub others: HashSet<Key>,
}

impl Members {
    pub fn has(&self, val: &Val<'_>) -> Result<bool, EvalError> {
        if let Some(text) = val.as_str() {
            return Ok(self.texts.contains(text));
        }
        Ok(Key::of(val)?.is_some_and(|key| self.others.contains(&key)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Debug, Clone)]
pub(crate) struct Attr {
    pub base: Base,
    pub path: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(crate) enum Base {
    Variable(u32),
    /// A variable of a comprehension.
    Local(u32),
    Node(u32),
    Either {
        condition: u32,
        then: Box<Attr>,
        or_else: Box<Attr>,
    },
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub key: StepKey,
    pub optional: bool,
    /// Only whether it is there is asked.
    pub test: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum StepKey {
    Field(Field),
    /// A field of an object that a mutation makes.
    Made(Arc<str>),
    Const(Val<'static>),
    /// An index that is itself a path: only its steps are paid for.
    Path(Box<Attr>),
    Node(u32),
}

#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub name: Arc<str>,
    pub head: Head,
    /// Where it is in the type that the checker saw.
    pub known: Option<(Arc<Object>, usize, Head)>,
}

#[derive(Debug)]
pub(crate) struct Pattern {
    pub kind: PatternKind,
    pub text: Arc<str>,
    /// Made when it is first used: that takes longer than all else in a plan, and most rules are never run.
    pub compiled: OnceLock<Compiled>,
    pub cost: Cost,
    pub args: Box<[u32]>,
}

#[derive(Debug)]
pub(crate) enum Compiled {
    Matcher(Matcher),
    Finder(Finder),
    Failed(String),
}

impl Pattern {
    pub fn compiled(&self) -> &Compiled {
        self.compiled.get_or_init(|| {
            let compiled = match self.kind {
                PatternKind::Matches => Matcher::new(&self.text).map(Compiled::Matcher),
                PatternKind::Find | PatternKind::FindAll => Finder::new(&self.text).map(Compiled::Finder),
            };
            compiled.unwrap_or_else(Compiled::Failed)
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternKind {
    Matches,
    Find,
    FindAll,
}

#[derive(Debug)]
pub(crate) struct Call {
    pub function: Arc<str>,
    pub args: Box<[u32]>,
    pub overloads: Box<[Overload]>,
    pub cost: Cost,
    /// Ends at the first argument that is an error.
    pub many: bool,
}

#[derive(Debug)]
pub(crate) struct Overload {
    pub run: Run,
    /// `None`: the function looks at its arguments itself.
    pub args: Option<Box<[Type]>>,
}

#[derive(Debug)]
pub(crate) struct Fold {
    pub range: u32,
    /// The slots of the accumulator and of the variables.
    pub accu: u32,
    pub iter: u32,
    pub iter2: Option<u32>,
    pub condition: u32,
    pub step: u32,
    pub result: u32,
}

/// A comprehension that asks the same of each element, until one answer decides.
#[derive(Debug)]
pub(crate) struct Quantifier {
    pub range: u32,
    /// The slots of the variables.
    pub iter: u32,
    pub iter2: Option<u32>,
    pub predicate: u32,
    /// The answer that decides: false of `all`, true of `exists`.
    pub wins: bool,
}

impl Program {
    /// Plans an expression. The error is what follows `program instantiation failed: `.
    pub fn new(env: &Env, checked: &Checked) -> Result<Program, String> {
        if checked.ast.len() <= SHALLOW as usize {
            return plan::plan(env, checked);
        }
        let stack = (checked.ast.len() * STACK_PER_LEVEL).max(1 << 20);
        on_stack(stack, || plan::plan(env, checked)).unwrap_or_else(|| Err(NO_STACK.to_owned()))
    }

    /// Runs it: the value or the error, and what it cost.
    pub fn eval<'a>(&'a self, activation: &'a dyn Activation<'a>) -> (Res<'a>, u64) {
        self.eval_within(activation, PER_CALL_LIMIT)
    }

    pub fn eval_within<'a>(&'a self, activation: &'a dyn Activation<'a>, limit: u64) -> (Res<'a>, u64) {
        let run = || {
            let mut machine = Machine::new(self, activation, limit);
            let result = machine.eval(self.root);
            (result, machine.cost)
        };
        if self.depth <= SHALLOW {
            return run();
        }
        let stack = (self.depth as usize * STACK_PER_LEVEL).max(1 << 20);
        on_stack(stack, run).unwrap_or_else(|| (Err(EvalError::end(NO_STACK)), 0))
    }

    /// The value of a node that needs no variables.
    pub(crate) fn fold<'a>(&'a self, node: u32) -> Res<'a> {
        Machine::new(self, &crate::eval::NoVariables, u64::MAX).eval(node)
    }
}
