//! Expressions in configuration files: the seam that the rest of this crate sees, and CEL behind it.

mod cel;

pub use cel::{Cel, Selectors};

use kubelith_meta::Value;
use kubelith_meta::field::{Error, Path};
use std::sync::Arc;

/// What an expression is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// `claims`: the claims of a token.
    Claims,
    /// `user`: username, uid, groups and extra that the claims were mapped to.
    User,
    /// `request`: the spec of a SubjectAccessReview.
    AccessReview,
}

/// What an expression must result in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultKind {
    Bool,
    /// Something that is known when it is evaluated: claims have no types before.
    Any,
}

pub trait ExpressionCompiler: Send + Sync {
    fn compile(&self, text: &str, subject: Subject, result: ResultKind) -> Result<Arc<dyn Expression>, CompileError>;
}

pub trait Expression: Send + Sync {
    /// Evaluates with the subject's value; the error is the evaluation's message. Booleans, strings, lists and null come
    /// out as what they are; whatever else comes out is an object.
    fn evaluate(&self, subject: &Value) -> Result<Value, String>;

    /// Whether it reads a field of the subject, such as `email` of `claims`.
    fn reads(&self, field: &str) -> bool;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompileError {
    Invalid(String),
    Internal(String),
}

impl CompileError {
    pub fn at(self, path: &Path<'_>, text: &str) -> Error {
        match self {
            CompileError::Invalid(detail) => Error::invalid(path, text, detail),
            CompileError::Internal(detail) => Error::internal(path, detail),
        }
    }
}
