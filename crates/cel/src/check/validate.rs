//! What can be told of literals before an expression runs: durations, timestamps, regular expressions, format strings,
//! and lists and maps whose elements differ in type.

use super::Shown;
use super::unify::equivalent;
use crate::ast::{Checked, Expr, ExprId, Literal, Range};
use crate::error::Issues;
use crate::types::Type;
use kubelith_schema::go_regexp;

pub fn validate(checked: &Checked, issues: &mut Issues) {
    let mut walk = Walk { checked, issues, seen: vec![false; checked.ast.len()] };
    walk.visit(checked.ast.root(), Inside::Elsewhere);
}

/// Elements of what is formatted may differ.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Format,
    Elsewhere,
}

struct Walk<'a> {
    checked: &'a Checked,
    issues: &'a mut Issues,
    seen: Vec<bool>,
}

impl Walk<'_> {
    fn report(&mut self, id: ExprId, message: impl Into<String>) {
        self.issues.report(self.checked.ast.offset(id), message);
    }

    fn visit(&mut self, id: ExprId, inside: Inside) {
        if std::mem::replace(&mut self.seen[id.0 as usize], true) {
            return;
        }
        let ast = &self.checked.ast;
        match ast.expr(id) {
            Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Select { operand, .. } => self.visit(*operand, inside),
            Expr::Call { function, target, args } => {
                self.call(id, function, *target, *args);
                let inside = if function == "format" { Inside::Format } else { inside };
                for child in target.iter().chain(ast.list(*args)) {
                    self.visit(*child, inside);
                }
            }
            Expr::List { elements, optional } => {
                if inside == Inside::Elsewhere {
                    self.list(*elements, *optional);
                }
                for element in ast.list(*elements) {
                    self.visit(*element, inside);
                }
            }
            Expr::Map(entries) => {
                if inside == Inside::Elsewhere {
                    self.map(*entries);
                }
                for entry in ast.entries(*entries) {
                    self.visit(entry.key, inside);
                    self.visit(entry.value, inside);
                }
            }
            Expr::Struct { fields, .. } => {
                for field in ast.fields(*fields) {
                    self.visit(field.value, inside);
                }
            }
            Expr::Comprehension(c) => {
                for child in [c.range, c.accu_init, c.condition, c.step, c.result] {
                    self.visit(child, inside);
                }
            }
        }
    }

    fn call(&mut self, id: ExprId, function: &str, target: Option<ExprId>, args: Range) {
        let ast = &self.checked.ast;
        let Some(&first) = ast.list(args).first() else { return };
        let Expr::Literal(literal) = ast.expr(first) else {
            if function == "format"
                && let Some(target) = target
            {
                self.format(id, target, first);
            }
            return;
        };
        let valid = match (function, literal) {
            ("duration", literal) => super::literals::is_duration(literal),
            ("timestamp", literal) => super::literals::is_timestamp(literal),
            ("matches", Literal::String(pattern)) => go_regexp::check(pattern).is_ok(),
            _ => true,
        };
        if !valid {
            self.report(first, format!("invalid {function} argument"));
        }
    }

    /// The type of an element; what is inside of it if it is optional.
    fn element(&self, id: ExprId, optional: bool) -> Type {
        match self.checked.type_of(id) {
            Type::Optional(of) if optional => (**of).clone(),
            other => other.clone(),
        }
    }

    fn mismatch(&mut self, id: ExprId, expected: &Type, found: &Type) {
        self.report(id, format!("expected type '{}' but found '{}'", Shown(expected), Shown(found)));
    }

    fn list(&mut self, elements: Range, optional: Range) {
        let ast = &self.checked.ast;
        let mut first: Option<Type> = None;
        for (i, element) in ast.list(elements).iter().enumerate() {
            let of = self.element(*element, ast.optional(optional).contains(&(i as u32)));
            match &first {
                None => first = Some(of),
                Some(known) if !equivalent(known, &of) => return self.mismatch(*element, known, &of),
                Some(_) => {}
            }
        }
    }

    fn map(&mut self, entries: Range) {
        let ast = &self.checked.ast;
        let mut first: Option<(Type, Type)> = None;
        for entry in ast.entries(entries) {
            let key = self.element(entry.key, false);
            let value = self.element(entry.value, entry.optional);
            match &first {
                None => first = Some((key, value)),
                Some((known_key, known_value)) => {
                    if !equivalent(known_key, &key) {
                        self.mismatch(entry.key, known_key, &key);
                    }
                    if !equivalent(known_value, &value) {
                        self.mismatch(entry.value, known_value, &value);
                    }
                }
            }
        }
    }

    /// A format string that is a literal, with a list of arguments that is one.
    fn format(&mut self, id: ExprId, target: ExprId, list: ExprId) {
        let ast = &self.checked.ast;
        let (Expr::Literal(Literal::String(format)), Expr::List { elements, .. }) = (ast.expr(target), ast.expr(list))
        else {
            return;
        };
        let args = ast.list(*elements);
        match super::format::check(self.checked, format, args) {
            Ok(used) if args.len() > used => {
                let given = args.len();
                self.report(id, format!("too many arguments supplied to string.format (expected {used}, got {given})"));
            }
            Ok(_) => {}
            Err((arg, message)) => self.report(arg.unwrap_or(id), message),
        }
    }
}
