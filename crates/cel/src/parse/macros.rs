//! Macros: calls that become other trees while they are parsed. Every node of the new tree stands at the place of the
//! call's parenthesis.

use super::Parser;
use crate::ast::{Comprehension, Expr, ExprId, Literal, MacroCall};
use kubelith_meta::Str;

/// The variable that collects the result of a loop. No expression can write it.
pub const ACCUMULATOR: &str = "@result";
/// What it was called before; still refused.
const OLD_ACCUMULATOR: &str = "__result__";
/// The variable of loops that run over nothing.
const UNUSED: &str = "#unused";
/// The list that `sortBy` sorts.
const SORTED: &str = "@__sortBy_input__";
/// What `bind` is called on, and what is said of a variable of it that is no name.
pub const BIND_NAMESPACE: &str = "cel";
pub const BIND_NAMES: &str = "cel.bind() variable names must be simple identifiers";
pub const OVERWRITES: &str = "iteration variable overwrites accumulator variable";

/// The macros of libraries that some environments have and others do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Macros {
    /// `list.sortBy(x, key)`, of the library of lists.
    pub sort_by: bool,
    /// `cel.bind(x, value, expression)`.
    pub bind: bool,
}

/// Why a call is no macro although its name is one's: the argument at fault, and the message.
type Bad = (ExprId, String);
type Expanded = Result<ExprId, Bad>;

/// What a loop does with its elements.
struct Loop {
    init: ExprId,
    condition: ExprId,
    step: ExprId,
    result: ExprId,
}

impl Parser<'_> {
    /// The tree of a macro, or `None` if the call is an ordinary one.
    pub(super) fn expand(&mut self, name: &str, target: Option<ExprId>, args: &[ExprId], at: u32) -> Option<ExprId> {
        let expanded = match (target, name, args) {
            (None, "has", [arg]) => self.has(*arg, at),
            (Some(range), "all" | "exists" | "exists_one", [var, test]) => {
                self.quantifier(name, range, *var, None, *test, at)
            }
            (Some(range), "all" | "exists" | "exists_one" | "existsOne", [var, var2, test]) => {
                self.quantifier(name, range, *var, Some(*var2), *test, at)
            }
            (Some(range), "map", [var, transform]) => self.map_list(range, *var, None, *transform, at),
            (Some(range), "map", [var, filter, transform]) => self.map_list(range, *var, Some(*filter), *transform, at),
            (Some(range), "filter", [var, test]) => self.map_list(range, *var, Some(*test), *var, at),
            (Some(list), "sortBy", [var, key]) if self.macros.sort_by => self.sort_by(list, *var, *key, at),
            (Some(target), "bind", [var, init, result])
                if self.macros.bind && self.ident(target).is_some_and(|name| name == BIND_NAMESPACE) =>
            {
                self.bind(*var, *init, *result, at)
            }
            (Some(of), "optMap" | "optFlatMap", [var, transform]) => self.opt_map(name, of, *var, *transform, at),
            (Some(range), "transformList" | "transformMap" | "transformMapEntry", [var, var2, rest @ ..])
                if matches!(rest.len(), 1 | 2) =>
            {
                self.transform(name, range, [*var, *var2], rest, at)
            }
            _ => return None,
        };
        Some(match expanded {
            Ok(id) => {
                let args = self.ast.add_list(args);
                self.ast.macros.push(MacroCall { id, function: name.into(), target, args });
                id
            }
            Err((arg, message)) => {
                let offset = self.ast.offset(arg);
                self.broken(offset, message).id
            }
        })
    }

    fn has(&mut self, arg: ExprId, at: u32) -> Expanded {
        match self.ast.expr(arg) {
            Expr::Select { operand, field, test_only: false } => {
                let test = Expr::Select { operand: *operand, field: field.clone(), test_only: true };
                Ok(self.ast.add(test, at))
            }
            // `has(has(a.b))`: a presence test is a selection, too.
            Expr::Select { .. } => {
                let test = self.ast.expr(arg).clone();
                Ok(self.ast.add(test, at))
            }
            _ => Err((arg, "invalid argument to has() macro".into())),
        }
    }

    fn ident(&self, arg: ExprId) -> Option<Str> {
        match self.ast.expr(arg) {
            Expr::Ident(name) => Some(name.clone()),
            _ => None,
        }
    }

    fn variable(&self, arg: ExprId, otherwise: &str) -> Result<Str, Bad> {
        let name = self.ident(arg).ok_or_else(|| (arg, otherwise.to_owned()))?;
        if is_accumulator(&name) { Err((arg, OVERWRITES.into())) } else { Ok(name) }
    }

    /// The variables of a loop with two of them.
    fn variables(&self, args: [ExprId; 2]) -> Result<(Str, Str), Bad> {
        let simple = |arg| self.ident(arg).ok_or_else(|| (arg, "argument must be a simple name".to_owned()));
        let (first, second) = (simple(args[0])?, simple(args[1])?);
        if first == second {
            return Err((args[1], format!("duplicate variable name: {first}")));
        }
        match [&first, &second].iter().position(|name| is_accumulator(name)) {
            Some(i) => Err((args[i], OVERWRITES.into())),
            None => Ok((first, second)),
        }
    }

    fn quantifier(
        &mut self,
        name: &str,
        range: ExprId,
        var: ExprId,
        var2: Option<ExprId>,
        test: ExprId,
        at: u32,
    ) -> Expanded {
        let (iter, iter2) = match var2 {
            None => (self.variable(var, "argument must be a simple name")?, None),
            Some(var2) => self.variables([var, var2]).map(|(first, second)| (first, Some(second)))?,
        };
        let of = match name {
            "all" => {
                let init = self.bool(true, at);
                let accu = self.accu(at);
                let condition = self.call("@not_strictly_false", &[accu], at);
                let accu = self.accu(at);
                let step = self.call("_&&_", &[accu, test], at);
                Loop { init, condition, step, result: self.accu(at) }
            }
            "exists" => {
                let init = self.bool(false, at);
                let accu = self.accu(at);
                let not = self.call("!_", &[accu], at);
                let condition = self.call("@not_strictly_false", &[not], at);
                let accu = self.accu(at);
                let step = self.call("_||_", &[accu, test], at);
                Loop { init, condition, step, result: self.accu(at) }
            }
            _ => {
                let init = self.int(0, at);
                let condition = self.bool(true, at);
                let (accu, one) = (self.accu(at), self.int(1, at));
                let more = self.call("_+_", &[accu, one], at);
                let accu = self.accu(at);
                let step = self.call("_?_:_", &[test, more, accu], at);
                let (accu, one) = (self.accu(at), self.int(1, at));
                Loop { init, condition, step, result: self.call("_==_", &[accu, one], at) }
            }
        };
        Ok(self.comprehension(range, iter, iter2, of, at))
    }

    /// `map` and `filter`.
    fn map_list(&mut self, range: ExprId, var: ExprId, filter: Option<ExprId>, transform: ExprId, at: u32) -> Expanded {
        let iter = self.variable(var, "argument is not an identifier")?;
        let of = self.appending(filter, transform, at);
        Ok(self.comprehension(range, iter, None, of, at))
    }

    /// A loop that makes a list.
    fn appending(&mut self, filter: Option<ExprId>, transform: ExprId, at: u32) -> Loop {
        let init = self.new_list(&[], at);
        let condition = self.bool(true, at);
        let (accu, element) = (self.accu(at), self.new_list(&[transform], at));
        let step = self.call("_+_", &[accu, element], at);
        let step = self.filtered(filter, step, at);
        Loop { init, condition, step, result: self.accu(at) }
    }

    fn filtered(&mut self, filter: Option<ExprId>, step: ExprId, at: u32) -> ExprId {
        let Some(filter) = filter else { return step };
        let accu = self.accu(at);
        self.call("_?_:_", &[filter, step, accu], at)
    }

    fn transform(&mut self, name: &str, range: ExprId, vars: [ExprId; 2], rest: &[ExprId], at: u32) -> Expanded {
        let (iter, iter2) = self.variables(vars)?;
        let (filter, transform) = match rest {
            [filter, transform] => (Some(*filter), *transform),
            _ => (None, rest[0]),
        };
        let of = if name == "transformList" {
            self.appending(filter, transform, at)
        } else {
            let entries = self.ast.add_entries(&[]);
            let init = self.ast.add(Expr::Map(entries), at);
            let condition = self.bool(true, at);
            let accu = self.accu(at);
            let step = if name == "transformMap" {
                let key = self.ast.add(Expr::Ident(iter.clone()), at);
                self.call("cel.@mapInsert", &[accu, key, transform], at)
            } else {
                self.call("cel.@mapInsert", &[accu, transform], at)
            };
            let step = self.filtered(filter, step, at);
            Loop { init, condition, step, result: self.accu(at) }
        };
        Ok(self.comprehension(range, iter, Some(iter2), of, at))
    }

    /// `of.hasValue() ? optional.of(let var = of.value() in transform) : optional.none()`. `of` is in it twice.
    fn opt_map(&mut self, name: &str, of: ExprId, var: ExprId, transform: ExprId, at: u32) -> Expanded {
        let Some(accu_var) = self.ident(var) else {
            return Err((var, format!("{name}() variable name must be a simple identifier")));
        };
        let has = self.member_call("hasValue", of, at);
        let init = self.member_call("value", of, at);
        let mut value = self.bound(accu_var, init, transform, at);
        if name == "optMap" {
            value = self.call("optional.of", &[value], at);
        }
        let none = self.call("optional.none", &[], at);
        Ok(self.call("_?_:_", &[has, value, none], at))
    }

    fn bind(&mut self, var: ExprId, init: ExprId, result: ExprId, at: u32) -> Expanded {
        match self.ident(var) {
            Some(name) => Ok(self.bound(name, init, result, at)),
            None => Err((var, BIND_NAMES.into())),
        }
    }

    /// A variable for a value: a loop over nothing.
    fn bound(&mut self, accu_var: Str, accu_init: ExprId, result: ExprId, at: u32) -> ExprId {
        let bound = Comprehension {
            range: self.new_list(&[], at),
            iter_var: Str::const_new(UNUSED),
            iter_var2: None,
            accu_var: accu_var.clone(),
            accu_init,
            condition: self.bool(false, at),
            step: self.ast.add(Expr::Ident(accu_var), at),
            result,
        };
        self.ast.add(Expr::Comprehension(Box::new(bound)), at)
    }

    /// `let input = list in input.@sortByAssociatedKeys(input.map(var, key))`
    fn sort_by(&mut self, list: ExprId, var: ExprId, key: ExprId, at: u32) -> Expanded {
        if let Expr::Literal(_) | Expr::Map(_) | Expr::Struct { .. } = self.ast.expr(list) {
            let says = "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return Err((list, says.into()));
        }
        let input = |parser: &mut Self| parser.ast.add(Expr::Ident(Str::const_new(SORTED)), at);
        let mapped = input(self);
        let keys = self.map_list(mapped, var, None, key, at)?;
        let target = input(self);
        let args = self.ast.add_list(&[keys]);
        let function = Str::const_new("@sortByAssociatedKeys");
        let result = self.ast.add(Expr::Call { function, target: Some(target), args }, at);
        Ok(self.bound(Str::const_new(SORTED), list, result, at))
    }

    fn comprehension(&mut self, range: ExprId, iter_var: Str, iter_var2: Option<Str>, of: Loop, at: u32) -> ExprId {
        let comprehension = Comprehension {
            range,
            iter_var,
            iter_var2,
            accu_var: Str::const_new(ACCUMULATOR),
            accu_init: of.init,
            condition: of.condition,
            step: of.step,
            result: of.result,
        };
        self.ast.add(Expr::Comprehension(Box::new(comprehension)), at)
    }

    fn accu(&mut self, at: u32) -> ExprId {
        self.ast.add(Expr::Ident(Str::const_new(ACCUMULATOR)), at)
    }

    fn bool(&mut self, value: bool, at: u32) -> ExprId {
        self.ast.add(Expr::Literal(Literal::Bool(value)), at)
    }

    fn int(&mut self, value: i64, at: u32) -> ExprId {
        self.ast.add(Expr::Literal(Literal::Int(value)), at)
    }

    fn new_list(&mut self, elements: &[ExprId], at: u32) -> ExprId {
        let elements = self.ast.add_list(elements);
        let optional = self.ast.add_optional(&[]);
        self.ast.add(Expr::List { elements, optional }, at)
    }

    fn member_call(&mut self, function: &'static str, target: ExprId, at: u32) -> ExprId {
        let args = self.ast.add_list(&[]);
        self.ast.add(Expr::Call { function: Str::const_new(function), target: Some(target), args }, at)
    }
}

pub fn is_accumulator(name: &str) -> bool {
    name == ACCUMULATOR || name == OLD_ACCUMULATOR
}
