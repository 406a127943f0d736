//! Trees to text: the shortest that is parsed to the same tree, macros as they were written.

use crate::ast::{Ast, Expr, ExprId, Literal, MacroCall, Range};
use std::fmt::Write;

/// How tight operators bind, from loose to tight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Conditional,
    Or,
    And,
    Relation,
    Sum,
    Product,
    Unary,
    Member,
}

/// The text of an expression.
pub fn print(ast: &Ast) -> String {
    print_from(ast, ast.root())
}

/// The text of a part of one.
pub fn print_from(ast: &Ast, id: ExprId) -> String {
    let mut printer = Printer { ast, out: String::new() };
    printer.expr(id, Level::Conditional);
    printer.out
}

struct Printer<'a> {
    ast: &'a Ast,
    out: String,
}

/// The sign of an operator with two sides, and how tight it binds.
fn binary(function: &str) -> Option<(&'static str, Level)> {
    Some(match function {
        "_||_" => ("||", Level::Or),
        "_&&_" => ("&&", Level::And),
        "_<_" => ("<", Level::Relation),
        "_<=_" => ("<=", Level::Relation),
        "_>=_" => (">=", Level::Relation),
        "_>_" => (">", Level::Relation),
        "_==_" => ("==", Level::Relation),
        "_!=_" => ("!=", Level::Relation),
        "@in" => ("in", Level::Relation),
        "_+_" => ("+", Level::Sum),
        "_-_" => ("-", Level::Sum),
        "_*_" => ("*", Level::Product),
        "_/_" => ("/", Level::Product),
        "_%_" => ("%", Level::Product),
        _ => return None,
    })
}

impl Printer<'_> {
    fn level(&self, id: ExprId) -> Level {
        match self.ast.expr(id) {
            Expr::Call { function, target: None, .. } if self.ast.macro_call(id).is_none() => match function.as_str() {
                "_?_:_" => Level::Conditional,
                "!_" | "-_" => Level::Unary,
                other => binary(other).map_or(Level::Member, |(_, level)| level),
            },
            _ => Level::Member,
        }
    }

    /// An expression where at least this level is needed.
    fn expr(&mut self, id: ExprId, level: Level) {
        if self.level(id) < level {
            self.out.push('(');
            self.bare(id);
            self.out.push(')');
        } else {
            self.bare(id);
        }
    }

    fn bare(&mut self, id: ExprId) {
        let ast = self.ast;
        if let Some(call) = ast.macro_call(id) {
            return self.macro_call(call);
        }
        match ast.expr(id) {
            Expr::Literal(literal) => self.literal(literal),
            Expr::Ident(name) => self.out.push_str(name),
            Expr::Select { operand, field, test_only: true } => {
                self.out.push_str("has(");
                self.expr(*operand, Level::Member);
                let _ = write!(self.out, ".{field})");
            }
            Expr::Select { operand, field, .. } => {
                self.expr(*operand, Level::Member);
                let _ = write!(self.out, ".{field}");
            }
            Expr::Call { function, target, args } => self.call(id, function, *target, *args),
            Expr::List { elements, optional } => {
                self.out.push('[');
                for (i, element) in ast.list(*elements).iter().enumerate() {
                    self.comma(i);
                    self.optional(ast.optional(*optional).contains(&(i as u32)));
                    self.expr(*element, Level::Conditional);
                }
                self.out.push(']');
            }
            Expr::Map(entries) => {
                self.out.push('{');
                for (i, entry) in ast.entries(*entries).iter().enumerate() {
                    self.comma(i);
                    self.optional(entry.optional);
                    self.expr(entry.key, Level::Conditional);
                    self.out.push_str(": ");
                    self.expr(entry.value, Level::Conditional);
                }
                self.out.push('}');
            }
            Expr::Struct { name, fields } => {
                let _ = write!(self.out, "{name}{{");
                for (i, field) in ast.fields(*fields).iter().enumerate() {
                    self.comma(i);
                    self.optional(field.optional);
                    let _ = write!(self.out, "{}: ", field.name);
                    self.expr(field.value, Level::Conditional);
                }
                self.out.push('}');
            }
            // Comprehensions come from macros only, which were printed above.
            Expr::Comprehension(of) => self.expr(of.result, Level::Conditional),
        }
    }

    fn comma(&mut self, i: usize) {
        if i > 0 {
            self.out.push_str(", ");
        }
    }

    fn optional(&mut self, optional: bool) {
        if optional {
            self.out.push('?');
        }
    }

    fn args(&mut self, args: Range) {
        self.out.push('(');
        for (i, arg) in self.ast.list(args).iter().enumerate() {
            self.comma(i);
            self.expr(*arg, Level::Conditional);
        }
        self.out.push(')');
    }

    fn macro_call(&mut self, call: &MacroCall) {
        if let Some(target) = call.target {
            self.expr(target, Level::Member);
            self.out.push('.');
        }
        self.out.push_str(&call.function);
        self.args(call.args);
    }

    fn call(&mut self, id: ExprId, function: &str, target: Option<ExprId>, args: Range) {
        if let Some(target) = target {
            self.expr(target, Level::Member);
            let _ = write!(self.out, ".{function}");
            return self.args(args);
        }
        match (function, self.ast.list(args)) {
            ("_?_:_", &[condition, yes, no]) => {
                self.expr(condition, Level::Or);
                self.out.push_str(" ? ");
                self.expr(yes, Level::Or);
                self.out.push_str(" : ");
                self.expr(no, Level::Conditional);
            }
            ("!_", &[operand]) => {
                self.out.push('!');
                self.expr(operand, Level::Member);
            }
            ("-_", &[operand]) => {
                // Before a number, the minus would become part of it.
                self.out.push('-');
                let start = self.out.len();
                self.expr(operand, Level::Member);
                if self.out[start..].starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
                    self.out.insert(start, '(');
                    self.out.push(')');
                }
            }
            ("_[_]" | "_[?_]", &[container, index]) => {
                self.expr(container, Level::Member);
                self.out.push_str(if function == "_[_]" { "[" } else { "[?" });
                self.expr(index, Level::Conditional);
                self.out.push(']');
            }
            ("_?._", &[operand, field]) => {
                self.expr(operand, Level::Member);
                if let Expr::Literal(Literal::String(name)) = self.ast.expr(field) {
                    let _ = write!(self.out, ".?{name}");
                }
            }
            ("_&&_" | "_||_", _) => self.logical(id, function),
            (_, &[left, right]) if let Some((sign, level)) = binary(function) => {
                self.expr(left, level);
                let _ = write!(self.out, " {sign} ");
                self.expr(right, tighter(level));
            }
            _ => {
                self.out.push_str(function);
                self.args(args);
            }
        }
    }

    /// Chains are parsed to balanced trees; what is not balanced so needs its parentheses.
    fn logical(&mut self, id: ExprId, function: &str) {
        let Some((sign, level)) = binary(function) else { return };
        let mut terms = Vec::new();
        self.terms(id, function, &mut terms);
        let flat = self.is_balanced(id, function, terms.len());
        if !flat && let Expr::Call { args, .. } = self.ast.expr(id) {
            terms = self.ast.list(*args).to_vec();
        }
        for (i, term) in terms.into_iter().enumerate() {
            if i > 0 {
                let _ = write!(self.out, " {sign} ");
            }
            self.expr(term, tighter(level));
        }
    }

    fn sides(&self, id: ExprId, function: &str) -> Option<(ExprId, ExprId)> {
        match self.ast.expr(id) {
            Expr::Call { function: f, target: None, args } if f == function && self.ast.macro_call(id).is_none() => {
                match self.ast.list(*args) {
                    &[left, right] => Some((left, right)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn terms(&self, id: ExprId, function: &str, found: &mut Vec<ExprId>) {
        match self.sides(id, function) {
            Some((left, right)) => {
                self.terms(left, function, found);
                self.terms(right, function, found);
            }
            None => found.push(id),
        }
    }

    /// Whether a chain of this many terms is parsed to this tree.
    fn is_balanced(&self, id: ExprId, function: &str, terms: usize) -> bool {
        match self.sides(id, function) {
            None => terms == 1,
            Some(_) if terms < 2 => false,
            Some((left, right)) => {
                let first = (terms - 1) / 2 + 1;
                self.is_balanced(left, function, first) && self.is_balanced(right, function, terms - first)
            }
        }
    }

    fn literal(&mut self, literal: &Literal) {
        let _ = match literal {
            Literal::Null => write!(self.out, "null"),
            Literal::Bool(b) => write!(self.out, "{b}"),
            Literal::Int(i) => write!(self.out, "{i}"),
            Literal::Uint(u) => write!(self.out, "{u}u"),
            // Always with a point or an exponent.
            Literal::Double(d) => write!(self.out, "{d:?}"),
            Literal::String(text) => {
                self.out.push('"');
                for c in text.chars() {
                    match c {
                        '"' => self.out.push_str("\\\""),
                        '\\' => self.out.push_str("\\\\"),
                        '\n' => self.out.push_str("\\n"),
                        '\r' => self.out.push_str("\\r"),
                        '\t' => self.out.push_str("\\t"),
                        other => self.out.push(other),
                    }
                }
                write!(self.out, "\"")
            }
            Literal::Bytes(bytes) => {
                self.out.push_str("b\"");
                for b in bytes.iter() {
                    match b {
                        b' '..=b'~' if !matches!(b, b'"' | b'\\') => self.out.push(char::from(*b)),
                        other => {
                            let _ = write!(self.out, "\\x{other:02x}");
                        }
                    }
                }
                write!(self.out, "\"")
            }
        };
    }
}

fn tighter(level: Level) -> Level {
    match level {
        Level::Conditional => Level::Or,
        Level::Or => Level::And,
        Level::And => Level::Relation,
        Level::Relation => Level::Sum,
        Level::Sum => Level::Product,
        Level::Product => Level::Unary,
        Level::Unary | Level::Member => Level::Member,
    }
}
