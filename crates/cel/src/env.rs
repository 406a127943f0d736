//! What an expression is compiled against: libraries, variables, types.
//!
//! Environments are cheap: the libraries' functions are put together once ([`Functions`]) and shared.

use crate::ast::Checked;
use crate::decl::Functions;
use crate::error::Issues;
use crate::types::Type;
use kubelith_meta::Str;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct Env {
    functions: Arc<Functions>,
    /// In the order of their declaration, which is the order of an activation's slots.
    variables: Vec<Variable>,
}

#[derive(Debug, Clone)]
pub struct Variable {
    pub name: Str,
    pub cel: Type,
}

impl Env {
    pub fn new(functions: Arc<Functions>) -> Env {
        Env { functions, variables: Vec::new() }
    }

    #[must_use]
    pub fn variable(mut self, name: &str, cel: Type) -> Env {
        self.variables.push(Variable { name: name.into(), cel });
        self
    }

    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    pub fn functions(&self) -> &Arc<Functions> {
        &self.functions
    }

    /// Parses and checks an expression.
    pub fn compile(&self, text: &str) -> Result<Checked, Issues> {
        Err(Issues::new(text))
    }
}
