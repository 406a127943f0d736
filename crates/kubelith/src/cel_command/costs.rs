//! Where the cost of an expression comes from.

use super::expressions::Compiled;
use kubelith_cel::ast::{Ast, Expr, ExprId};
use kubelith_cel::print;
use std::fmt::Write;

/// How many parts of an expression are shown, and how much of each, in characters.
const MAX_PARTS: usize = 60;
const MAX_TEXT: usize = 100;

/// Costs from here on come from sizes that nothing bounds.
const NO_BOUND: u64 = 1_000_000_000_000_000_000;

/// A cost as people read it.
pub fn number(cost: u64) -> String {
    bounded(cost).map_or_else(|| "no bound".to_owned(), |cost| cost.to_string())
}

/// `None` where nothing bounds it.
pub fn bounded(cost: u64) -> Option<u64> {
    (cost < NO_BOUND).then_some(cost)
}

/// Every part with what it and all below it cost when it is evaluated once; what is in a loop is evaluated more often.
pub fn show(compiled: &Compiled, out: &mut String) {
    let _ = writeln!(out, "      {:>14} {:>14}", "least", "greatest");
    let mut left = MAX_PARTS;
    part(compiled, compiled.checked.ast.root(), 0, &mut left, out);
    if left == 0 {
        let _ = writeln!(out, "      {:>29}  …", "");
    }
}

fn part(compiled: &Compiled, id: ExprId, depth: usize, left: &mut usize, out: &mut String) {
    let ast = &compiled.checked.ast;
    let cost = compiled.costs.get(id.0 as usize).copied().unwrap_or_default();
    // Literals cost nothing, and names alone one each.
    if *left == 0 || cost.max == 0 || matches!(ast.expr(id), Expr::Ident(_)) {
        return;
    }
    *left -= 1;
    let text = print::print_from(ast, id);
    let shown: String = text.chars().take(MAX_TEXT).collect();
    let dots = if shown.len() < text.len() { "…" } else { "" };
    let greatest = number(cost.max);
    let _ = writeln!(out, "      {:>14} {greatest:>14}  {:indent$}{shown}{dots}", cost.min, "", indent = depth * 2);
    for child in children(ast, id) {
        part(compiled, child, depth + 1, left, out);
    }
}

/// The parts of an expression as it is written: those of a macro, not of what it became.
fn children(ast: &Ast, id: ExprId) -> Vec<ExprId> {
    if let Some(call) = ast.macro_call(id) {
        return call.target.into_iter().chain(ast.list(call.args).iter().copied()).collect();
    }
    match ast.expr(id) {
        Expr::Literal(_) | Expr::Ident(_) | Expr::Comprehension(_) => Vec::new(),
        Expr::Select { operand, .. } => vec![*operand],
        Expr::Call { target, args, .. } => target.iter().chain(ast.list(*args)).copied().collect(),
        Expr::List { elements, .. } => ast.list(*elements).to_vec(),
        Expr::Map(entries) => ast.entries(*entries).iter().flat_map(|entry| [entry.key, entry.value]).collect(),
        Expr::Struct { fields, .. } => ast.fields(*fields).iter().map(|field| field.value).collect(),
    }
}
