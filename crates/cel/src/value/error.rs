//! Why an expression has no value.

use std::borrow::Cow;
use std::fmt;

/// An error while an expression runs. `&&`, `||` and comprehensions go on over most of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvalError(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    message: Cow<'static, str>,
    end: bool,
}

impl EvalError {
    pub fn new(message: impl Into<String>) -> EvalError {
        EvalError(Box::new(Inner { message: Cow::Owned(message.into()), end: false }))
    }

    pub fn fixed(message: &'static str) -> EvalError {
        EvalError(Box::new(Inner { message: Cow::Borrowed(message), end: false }))
    }

    /// An error that ends the evaluation, whatever is around it.
    #[cold]
    pub fn end(message: &'static str) -> EvalError {
        EvalError(Box::new(Inner { message: Cow::Borrowed(message), end: true }))
    }

    #[cold]
    pub fn cost() -> EvalError {
        EvalError::end("operation cancelled: actual cost limit exceeded")
    }

    /// A value grew beyond what an expression may make. The reference would go on until memory is out.
    #[cold]
    pub fn size() -> EvalError {
        EvalError::end("operation cancelled: value too large")
    }

    /// Go panics over keys that cannot be hashed; the evaluation ends there.
    pub fn unhashable(go_type: &str) -> EvalError {
        let message = format!("internal error: runtime error: hash of unhashable type {go_type}");
        EvalError(Box::new(Inner { message: Cow::Owned(message), end: true }))
    }

    /// Go panics over values that are not what they are taken for; the evaluation ends there.
    #[cold]
    pub fn conversion(problem: &str) -> EvalError {
        let message = format!("internal error: interface conversion: {problem}");
        EvalError(Box::new(Inner { message: Cow::Owned(message), end: true }))
    }

    #[cold]
    pub fn no_overload() -> EvalError {
        EvalError::fixed("no such overload")
    }

    /// Whether the evaluation is over with it.
    #[inline]
    pub fn is_end(&self) -> bool {
        self.0.end
    }

    /// Whether it is over because the limit of the cost was reached.
    pub fn is_cost(&self) -> bool {
        self.0.end && self.0.message == "operation cancelled: actual cost limit exceeded"
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for EvalError {}
