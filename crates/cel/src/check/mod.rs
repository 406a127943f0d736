//! Types of expressions: every node gets one, and what it refers to. Gradual: where a type is not known (`dyn`), the
//! check is left to the evaluation, and all overloads that could be meant are kept.

mod format;
mod literals;
pub mod unify;
mod validate;

use crate::ast::{Ast, Checked, Comprehension, Expr, ExprId, Literal, Reference};
use crate::decl::{Function, Overload};
use crate::env::Env;
use crate::error::Issues;
use crate::types::Type;
use kubelith_meta::Str;
use std::fmt;
use std::fmt::Write;
use unify::{Bindings, less_specific, same};

/// Nodes that two parents share are checked for each, as if they were copies, until an expression has taken this many
/// steps: chains of `optMap` would double them with every link.
const MAX_REPEATED: usize = 100_000;
/// How deep the check goes; expressions that were parsed are less deep.
const MAX_DEPTH: u32 = 10_000;

/// Checks an expression and what its literals mean.
pub fn check(env: &Env, source: &str, ast: Ast) -> Result<Checked, Issues> {
    let nodes = ast.len();
    let root = ast.root();
    let mut checker = Checker {
        env,
        types: vec![Type::Error; nodes],
        seen: vec![false; nodes],
        references: vec![Reference::None; nodes],
        ast,
        issues: Issues::new(source),
        bindings: Bindings::default(),
        scopes: Vec::new(),
        steps: 0,
        depth: 0,
    };
    checker.check(root);
    if !checker.issues.is_empty() {
        return Err(checker.issues);
    }
    let Checker { mut types, references, ast, bindings, mut issues, .. } = checker;
    for of in &mut types {
        if let Type::Var(_) | Type::Param(_) | Type::List(_) | Type::Map(_) | Type::Optional(_) | Type::Type(_) = of {
            *of = bindings.resolve_to_dyn(of);
        }
    }
    let functions = env.functions().clone();
    let checked = Checked { ast, source: source.into(), types, references, functions };
    validate::validate(&checked, &mut issues);
    if issues.is_empty() { Ok(checked) } else { Err(issues) }
}

struct Checker<'a> {
    env: &'a Env,
    ast: Ast,
    types: Vec<Type>,
    seen: Vec<bool>,
    references: Vec<Reference>,
    issues: Issues,
    bindings: Bindings,
    /// Variables of comprehensions, innermost last.
    scopes: Vec<(Str, Type)>,
    steps: usize,
    depth: u32,
}

impl Checker<'_> {
    fn type_of(&self, id: ExprId) -> &Type {
        &self.types[id.0 as usize]
    }

    fn set_type(&mut self, id: ExprId, of: Type) {
        self.types[id.0 as usize] = of;
    }

    fn report(&mut self, id: ExprId, message: impl Into<String>) {
        self.issues.report(self.ast.offset(id), message);
    }

    fn check(&mut self, id: ExprId) {
        let at = id.0 as usize;
        self.steps += 1;
        if (self.seen[at] && self.steps > MAX_REPEATED) || self.depth > MAX_DEPTH {
            return;
        }
        self.seen[at] = true;
        self.depth += 1;
        match self.ast.expr(id) {
            Expr::Literal(literal) => self.types[at] = literal_type(literal),
            Expr::Ident(_) => self.ident(id),
            Expr::Select { .. } => self.select(id),
            Expr::Call { .. } => self.call(id),
            Expr::List { .. } => self.list(id),
            Expr::Map(_) => self.map(id),
            Expr::Struct { .. } => self.message(id),
            Expr::Comprehension(_) => self.comprehension(id),
        }
        self.depth -= 1;
    }

    /// A variable, a type, or a constant of this name.
    fn lookup(&self, name: &str) -> Option<(Type, Reference)> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some((_, of)) = self.scopes.iter().rev().find(|(n, _)| n == name) {
            return Some((of.clone(), Reference::Variable));
        }
        self.env.lookup(name)
    }

    fn undeclared(&mut self, id: ExprId, name: &str) {
        self.report(id, format!("undeclared reference to '{name}' (in container '')"));
        self.set_type(id, Type::Error);
    }

    fn ident(&mut self, id: ExprId) {
        let Expr::Ident(name) = self.ast.expr(id) else { return };
        match self.lookup(name) {
            Some((of, reference)) => {
                if let Some(absolute) = name.strip_prefix('.') {
                    let absolute = Expr::Ident(absolute.into());
                    self.ast.replace(id, absolute);
                }
                self.set_type(id, of);
                self.references[id.0 as usize] = reference;
            }
            None => {
                let name = name.clone();
                self.undeclared(id, &name);
            }
        }
    }

    /// The name that a chain of selections spells, if it begins with the name of a namespace: `a.b.c`.
    fn qualified(&self, id: ExprId, is_namespace: impl Fn(&str) -> bool) -> Option<Str> {
        let mut at = id;
        while let Expr::Select { operand, test_only: false, .. } = self.ast.expr(at) {
            at = *operand;
        }
        match self.ast.expr(at) {
            Expr::Ident(root) if is_namespace(root.strip_prefix('.').unwrap_or(root)) => {}
            _ => return None,
        }
        let mut parts = Vec::new();
        let mut at = id;
        loop {
            match self.ast.expr(at) {
                Expr::Select { operand, field, .. } => {
                    parts.push(field.as_str());
                    at = *operand;
                }
                Expr::Ident(root) => {
                    parts.push(root.as_str());
                    break;
                }
                _ => return None,
            }
        }
        parts.reverse();
        Some(parts.join(".").into())
    }

    fn select(&mut self, id: ExprId) {
        let Expr::Select { operand, field, test_only } = self.ast.expr(id) else { return };
        let (operand, test_only) = (*operand, *test_only);
        if !test_only
            && let Some(name) = self.qualified(id, |root| self.env.is_namespace(root))
            && let Some((of, reference)) = self.lookup(&name)
        {
            let absolute = name.strip_prefix('.').unwrap_or(&name);
            self.ast.replace(id, Expr::Ident(absolute.into()));
            self.set_type(id, of);
            self.references[id.0 as usize] = reference;
            return;
        }
        let field = field.clone();
        let of = self.field(id, operand, &field, false);
        let of = if test_only { Type::Bool } else { of };
        self.set_type(id, of);
    }

    /// The type of a field. Fields of an optional value are optional.
    fn field(&mut self, id: ExprId, operand: ExprId, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand_type = self.bindings.resolve(self.type_of(operand));
        let (target, was_optional) = match &operand_type {
            Type::Optional(of) => (&**of, true),
            other => (other, false),
        };
        let found = match target {
            Type::Map(kv) => kv.1.clone(),
            Type::Object(_) | Type::Named(_) if !target.is_opaque() => self.object_field(id, target, field),
            Type::Var(_) => {
                // Nothing is known of it: it is dyn from now on.
                self.bindings.fits(&Type::Dyn, target);
                Type::Dyn
            }
            _ if target.is_dynamic() => Type::Dyn,
            _ => {
                self.report(id, format!("type '{}' does not support field selection", Shown(target)));
                Type::Dyn
            }
        };
        let found = self.bindings.resolve(&found);
        if was_optional || optional { Type::optional(found) } else { found }
    }

    fn object_field(&mut self, id: ExprId, target: &Type, field: &str) -> Type {
        match self.env.field_type(target, field) {
            FieldType::Found(of) => return of,
            FieldType::NoField => self.report(id, format!("undefined field '{field}'")),
            FieldType::NoType => self.report(id, format!("unexpected failed resolution of '{target}'")),
        }
        Type::Error
    }

    fn call(&mut self, id: ExprId) {
        let Expr::Call { function, target, args } = self.ast.expr(id) else { return };
        let (function, target, args) = (function.clone(), *target, *args);
        if function == "_?._" {
            return self.optional_select(id);
        }
        for i in 0..args.len {
            let arg = self.ast.list(args)[i as usize];
            self.check(arg);
        }
        let functions = self.env.functions();
        let name = function.strip_prefix('.').unwrap_or(&function);
        let Some(target) = target else {
            let Some((index, found)) = functions.find(name) else {
                return self.undeclared(id, &function);
            };
            if name.len() != function.len() {
                self.ast.replace(id, Expr::Call { function: name.into(), target: None, args });
            }
            return self.resolve(id, index, found, None);
        };
        // `a.b.c()` may be a function of that whole name.
        if let Some(prefix) = self.qualified(target, |root| functions.is_namespace(root)) {
            let qualified = format!("{}.{function}", prefix.strip_prefix('.').unwrap_or(&prefix));
            if let Some((index, found)) = functions.find(&qualified) {
                self.ast.replace(id, Expr::Call { function: found.name.into(), target: None, args });
                return self.resolve(id, index, found, None);
            }
        }
        self.check(target);
        match functions.find(name) {
            Some((index, found)) => self.resolve(id, index, found, Some(target)),
            None => self.undeclared(id, &function),
        }
    }

    fn optional_select(&mut self, id: ExprId) {
        let Expr::Call { args, .. } = self.ast.expr(id) else { return };
        let &[operand, field] = self.ast.list(*args) else { return };
        let Expr::Literal(Literal::String(name)) = self.ast.expr(field) else { return };
        let name = name.clone();
        self.set_type(field, Type::String);
        let of = self.field(id, operand, &name, true);
        self.set_type(id, of);
        if let Some((index, _)) = self.env.functions().find("_?._") {
            self.references[id.0 as usize] = Reference::Function { index, overloads: 1 };
        }
    }

    /// Finds the overloads that fit the arguments.
    fn resolve(&mut self, id: ExprId, index: u32, function: &Function, target: Option<ExprId>) {
        let Expr::Call { args, .. } = self.ast.expr(id) else { return };
        let args = *args;
        if matches!(function.name, "_&&_" | "_||_") {
            return self.logical(id, index);
        }
        let operands = target.iter().chain(self.ast.list(args));
        let types: Vec<Type> = operands.map(|arg| self.type_of(*arg).clone()).collect();
        let types = &types[..];
        let mut result: Option<Type> = None;
        let mut overloads = 0u64;
        for (i, overload) in function.overloads.iter().enumerate() {
            if overload.receiver != target.is_some() {
                continue;
            }
            let Some(of) = self.try_overload(overload, types) else { continue };
            overloads |= 1 << i;
            result = Some(match result {
                None => of,
                Some(known) if matches!(known, Type::Dyn | Type::Any) || same(&of, &known) => known,
                Some(_) => Type::Dyn,
            });
        }
        match result {
            Some(of) => {
                self.set_type(id, of);
                self.references[id.0 as usize] = Reference::Function { index, overloads };
            }
            None => {
                let types: Vec<Type> = types.iter().map(|t| self.bindings.resolve_to_dyn(t)).collect();
                let signature = Signature { types: &types, receiver: target.is_some() };
                let name = function.name;
                self.report(id, format!("found no matching overload for '{name}' applied to '{signature}'"));
                self.set_type(id, Type::Error);
            }
        }
    }

    /// The result's type, if the arguments fit.
    fn try_overload(&mut self, overload: &Overload, types: &[Type]) -> Option<Type> {
        if !overload.generic {
            let fits = self.bindings.fit_all(types, overload.args.iter());
            return fits.then(|| overload.result.clone());
        }
        let first = self.bindings.fresh(overload.params.len());
        let possible = overload.args.len() == types.len()
            && overload.args.iter().zip(types).all(|(param, arg)| could_fit(arg, param));
        if !possible {
            return None;
        }
        let params: Vec<Type> = overload.args.iter().map(|t| instantiate(t, &overload.params, first)).collect();
        if !self.bindings.fit_all(types, params.iter()) {
            return None;
        }
        let result = instantiate(&overload.result, &overload.params, first);
        Some(self.bindings.resolve(&result))
    }

    /// `&&` and `||`: each side is told apart.
    fn logical(&mut self, id: ExprId, index: u32) {
        let Expr::Call { args, .. } = self.ast.expr(id) else { return };
        let args = *args;
        let mut fits = true;
        for i in 0..args.len {
            let arg = self.ast.list(args)[i as usize];
            let of = self.type_of(arg).clone();
            if !self.bindings.fits(&of, &Type::Bool) {
                self.mismatch(arg, &Type::Bool, &of);
                fits = false;
            }
        }
        if fits {
            self.set_type(id, Type::Bool);
            self.references[id.0 as usize] = Reference::Function { index, overloads: 1 };
        } else {
            self.set_type(id, Type::Error);
        }
    }

    fn mismatch(&mut self, id: ExprId, expected: &Type, found: &Type) {
        self.report(id, format!("expected type '{}' but found '{}'", Shown(expected), Shown(found)));
    }

    /// The type of elements so far, joined with one more. What differs is dyn here; literals whose elements differ are
    /// told of when all else is right.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if !self.bindings.fits(&previous, &current) {
            return Type::Dyn;
        }
        if less_specific(&previous, &current) { previous } else { current }
    }

    /// What is inside of an optional element.
    fn unwrap(&mut self, id: ExprId, of: Type) -> Type {
        match of {
            Type::Optional(inner) => (*inner).clone(),
            Type::Dyn | Type::Any => of,
            other => {
                self.mismatch(id, &Type::optional(other.clone()), &other);
                other
            }
        }
    }

    fn list(&mut self, id: ExprId) {
        let Expr::List { elements, optional } = self.ast.expr(id) else { return };
        let (elements, optional) = (*elements, *optional);
        let mut joined = None;
        for i in 0..elements.len {
            let element = self.ast.list(elements)[i as usize];
            self.check(element);
            let mut of = self.type_of(element).clone();
            if self.ast.optional(optional).contains(&i) {
                of = self.unwrap(element, of);
            }
            joined = Some(self.join(joined, of));
        }
        let of = joined.unwrap_or_else(|| Type::Var(self.bindings.fresh(1)));
        self.set_type(id, Type::list(of));
    }

    fn map(&mut self, id: ExprId) {
        let Expr::Map(entries) = self.ast.expr(id) else { return };
        let entries = *entries;
        let (mut keys, mut values) = (None, None);
        for i in 0..entries.len {
            let entry = self.ast.entries(entries)[i as usize];
            self.check(entry.key);
            let key = self.type_of(entry.key).clone();
            keys = Some(self.join(keys, key));
            self.check(entry.value);
            let mut value = self.type_of(entry.value).clone();
            if entry.optional {
                value = self.unwrap(entry.value, value);
            }
            values = Some(self.join(values, value));
        }
        let of = match (keys, values) {
            (Some(key), Some(value)) => Type::map(key, value),
            _ => {
                let first = self.bindings.fresh(2);
                Type::map(Type::Var(first), Type::Var(first + 1))
            }
        };
        self.set_type(id, of);
    }

    /// `Type{field: value}`
    fn message(&mut self, id: ExprId) {
        let Expr::Struct { name, fields } = self.ast.expr(id) else { return };
        let (name, fields) = (name.clone(), *fields);
        let Some((of, _)) = self.lookup(&name) else {
            return self.undeclared(id, &name);
        };
        if let Some(absolute) = name.strip_prefix('.') {
            self.ast.replace(id, Expr::Struct { name: absolute.into(), fields });
        }
        self.references[id.0 as usize] = Reference::Type;
        let result = match of {
            Type::Error => Type::Error,
            Type::Type(Some(made)) if is_message(&made) => (*made).clone(),
            Type::Type(made) => {
                let made = made.map_or_else(|| "type".to_owned(), |m| m.runtime_name().to_owned());
                self.report(id, format!("'{made}' is not a message type"));
                Type::Error
            }
            other => {
                self.report(id, format!("'{}' is not a type", other.declared_name()));
                Type::Error
            }
        };
        self.set_type(id, result.clone());
        for i in 0..fields.len {
            let field = self.ast.fields(fields)[i as usize].clone();
            self.check(field.value);
            let wanted = match self.env.message_field(&result, &name, &field.name) {
                FieldType::Found(of) => of,
                FieldType::NoField => {
                    self.issues.report(field.offset, format!("undefined field '{}'", field.name));
                    Type::Error
                }
                FieldType::NoType => {
                    self.issues.report(field.offset, format!("unexpected failed resolution of '{name}'"));
                    Type::Error
                }
            };
            let mut given = self.type_of(field.value).clone();
            if field.optional {
                given = self.unwrap(field.value, given);
            }
            if !self.bindings.fits(&wanted, &given) {
                let message = format!(
                    "expected type of field '{}' is '{}' but provided type is '{}'",
                    field.name,
                    Shown(&wanted),
                    Shown(&given)
                );
                self.issues.report(field.offset, message);
            }
        }
    }

    fn comprehension(&mut self, id: ExprId) {
        let Expr::Comprehension(comprehension) = self.ast.expr(id) else { return };
        let Comprehension { range, iter_var, iter_var2, accu_var, accu_init, condition, step, result } =
            (**comprehension).clone();
        self.check(range);
        self.check(accu_init);
        let (first, second) = self.loop_types(range, iter_var2.is_some());
        let accu = self.type_of(accu_init).clone();
        let depth = self.scopes.len();
        self.scopes.push((accu_var, accu.clone()));
        self.scopes.push((iter_var, first));
        if let Some(name) = iter_var2 {
            self.scopes.push((name, second));
        }
        self.check(condition);
        self.expect(condition, &Type::Bool);
        self.check(step);
        self.expect(step, &accu);
        // The result sees the accumulator only.
        self.scopes.truncate(depth + 1);
        self.check(result);
        self.scopes.truncate(depth);
        let of = self.bindings.resolve(self.type_of(result));
        self.set_type(id, of);
    }

    /// The types of the variables of a loop.
    fn loop_types(&mut self, range: ExprId, two: bool) -> (Type, Type) {
        let of = self.bindings.resolve(self.type_of(range));
        match &of {
            Type::List(element) if two => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Error),
            Type::Map(kv) => kv.as_ref().clone(),
            Type::Dyn | Type::Error | Type::Var(_) => {
                self.bindings.fits(&Type::Dyn, &of);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let message = format!(
                    "expression of type '{}' cannot be range of a comprehension (must be list, map, or dynamic)",
                    Shown(&of)
                );
                self.report(range, message);
                (Type::Error, Type::Error)
            }
        }
    }

    fn expect(&mut self, id: ExprId, wanted: &Type) {
        let of = self.type_of(id).clone();
        if !self.bindings.fits(wanted, &of) {
            self.mismatch(id, wanted, &of);
        }
    }
}

/// What an environment says of a field.
pub enum FieldType {
    Found(Type),
    NoField,
    /// The type has no declaration.
    NoType,
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// What `Type{...}` can make.
fn is_message(of: &Type) -> bool {
    match of {
        Type::Any | Type::Timestamp | Type::Duration | Type::Dyn | Type::Null | Type::Wrapper(_) => true,
        Type::List(t) => t.is_dyn(),
        Type::Map(kv) => kv.0 == Type::String && kv.1.is_dyn(),
        Type::Object(_) | Type::Named(_) => !of.is_opaque(),
        _ => false,
    }
}

/// A parameter's type with variables in place of type parameters.
fn instantiate(of: &Type, params: &[&'static str], first: u32) -> Type {
    match of {
        Type::Param(name) => {
            let at = params.iter().position(|p| p == name).unwrap_or(0);
            Type::Var(first + at as u32)
        }
        Type::List(t) => Type::list(instantiate(t, params, first)),
        Type::Optional(t) => Type::optional(instantiate(t, params, first)),
        Type::Type(Some(t)) => Type::type_of(instantiate(t, params, first)),
        Type::Map(kv) => Type::map(instantiate(&kv.0, params, first), instantiate(&kv.1, params, first)),
        _ => of.clone(),
    }
}

/// Rules out what can be seen without looking at type parameters.
fn could_fit(arg: &Type, param: &Type) -> bool {
    match arg {
        Type::Dyn | Type::Any | Type::Error | Type::Var(_) | Type::Null | Type::Wrapper(_) | Type::Param(_) => true,
        _ => match param {
            Type::Param(_) | Type::Dyn | Type::Any | Type::Wrapper(_) | Type::Null => true,
            _ => std::mem::discriminant(arg) == std::mem::discriminant(param),
        },
    }
}

/// A type as messages have it.
pub struct Shown<'a>(pub &'a Type);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Type::Null => f.write_str("null"),
            Type::Duration => f.write_str("duration"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::Any => f.write_str("any"),
            Type::Error => f.write_str("!error!"),
            Type::Var(n) => write!(f, "_var{n}"),
            Type::Param(name) => f.write_str(name),
            Type::List(t) => write!(f, "list({})", Shown(t)),
            Type::Map(kv) => write!(f, "map({}, {})", Shown(&kv.0), Shown(&kv.1)),
            Type::Optional(t) => write!(f, "optional_type({})", Shown(t)),
            Type::Type(Some(t)) => write!(f, "type({})", Shown(t)),
            other => write!(f, "{other}"),
        }
    }
}

/// `(int, string)`, or `list(int).(string)`.
struct Signature<'a> {
    types: &'a [Type],
    receiver: bool,
}

impl fmt::Display for Signature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let args = match self.types {
            [target, args @ ..] if self.receiver => {
                write!(f, "{}.", Shown(target))?;
                args
            }
            args => args,
        };
        f.write_char('(')?;
        for (i, arg) in args.iter().enumerate() {
            write!(f, "{}{}", if i == 0 { "" } else { ", " }, Shown(arg))?;
        }
        f.write_char(')')
    }
}
