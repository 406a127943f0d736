//! Expressions in configuration files: what compiles and runs them is injected, since they are CEL.

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
    String,
    /// A string or a list of strings.
    Strings,
}

pub trait ExpressionCompiler: Send + Sync {
    fn compile(&self, text: &str, subject: Subject, result: ResultKind) -> Result<Arc<dyn Expression>, CompileError>;
}

pub trait Expression: Send + Sync {
    /// Evaluates with the subject's value; the error is the evaluation's message.
    fn evaluate(&self, subject: &Value) -> Result<Value, String>;

    /// Whether it reads a field of the subject, such as `email` of `claims`.
    fn reads(&self, field: &str) -> bool;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompileError {
    /// Something is missing.
    Required(String),
    Invalid(String),
    Internal(String),
}

impl CompileError {
    pub fn at(self, path: &Path<'_>, text: &str) -> Error {
        match self {
            CompileError::Required(detail) => Error::required(path, detail),
            CompileError::Invalid(detail) => Error::invalid(path, text, detail),
            CompileError::Internal(detail) => Error::internal(path, detail),
        }
    }
}

/// For servers without CEL: every expression is an error.
pub struct NoExpressions;

impl ExpressionCompiler for NoExpressions {
    fn compile(&self, _: &str, _: Subject, _: ResultKind) -> Result<Arc<dyn Expression>, CompileError> {
        Err(CompileError::Internal("expressions are not available".into()))
    }
}

#[cfg(test)]
pub mod testing {
    use super::*;

    /// Knows `claims.x`, `user.x` and `claims.x == "y"`: enough to test what is around expressions.
    pub struct Simple;

    struct Path {
        field: String,
        equals: Option<String>,
    }

    impl ExpressionCompiler for Simple {
        fn compile(&self, text: &str, subject: Subject, _: ResultKind) -> Result<Arc<dyn Expression>, CompileError> {
            let root = match subject {
                Subject::Claims => "claims.",
                Subject::User => "user.",
                Subject::AccessReview => "request.",
            };
            let Some(rest) = text.strip_prefix(root) else {
                return Err(CompileError::Invalid(format!("compilation failed: undeclared reference in {text}")));
            };
            let (field, equals) = match rest.split_once(" == ") {
                Some((field, value)) => (field, Some(value.trim_matches('"').to_string())),
                None => (rest, None),
            };
            Ok(Arc::new(Path { field: field.into(), equals }))
        }
    }

    impl Expression for Path {
        fn evaluate(&self, subject: &Value) -> Result<Value, String> {
            let value = subject.get(&self.field).ok_or_else(|| format!("no such key: {}", self.field))?;
            Ok(match &self.equals {
                Some(wanted) => (value.as_str() == Some(wanted)).into(),
                None => value.clone(),
            })
        }

        fn reads(&self, field: &str) -> bool {
            self.field == field
        }
    }
}
