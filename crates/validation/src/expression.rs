//! Expressions in CEL within objects: the one place where rules have them compiled. What must hold of the text before (that it
//! is there, how long it may be) is checked by the rules themselves.

use kubelith_meta::field::{ErrorList, Path};

/// What an expression is for. It decides which names the expression may use and what it must yield.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Whether a webhook or policy looks at a request: a bool.
    MatchCondition,
    /// A name for later expressions: anything.
    Variable,
    /// Whether a request is fine: a bool.
    Validation,
    /// What to say otherwise: a string.
    Message,
    /// A string, or null for no annotation.
    AuditAnnotation,
    /// An object of the type that is changed.
    ApplyConfiguration,
    /// A list of JSON patch operations.
    JsonPatch,
    /// Whether a device will do: a bool.
    DeviceSelector,
}

impl Purpose {
    /// Whether `authorizer` may be asked.
    pub const fn has_authorizer(self) -> bool {
        !matches!(self, Purpose::Message | Purpose::DeviceSelector)
    }

    /// Whether `Object{}` and `JSONPatch{}` are known.
    pub const fn has_patch_types(self) -> bool {
        matches!(self, Purpose::ApplyConfiguration | Purpose::JsonPatch)
    }
}

/// A variable of a policy.
#[derive(Debug, Clone, Copy)]
pub struct Variable<'a> {
    pub name: &'a str,
    pub expression: &'a str,
}

/// What an expression is compiled in.
#[derive(Debug, Clone, Copy)]
pub struct Environment<'a> {
    pub purpose: Purpose,
    /// Whether `params` is there.
    pub has_params: bool,
    /// What `variables` has; nothing where there can be none.
    pub variables: &'a [Variable<'a>],
    /// The stored object has the expression already: it may use what only newer servers let others use.
    pub is_stored: bool,
}

/// The text that is compiled, and the text that errors show for it: some rules trim the one and not the other.
#[derive(Debug, Clone, Copy)]
pub struct Expression<'a> {
    pub source: &'a str,
    pub shown: &'a str,
}

impl<'a> Expression<'a> {
    pub const fn plain(source: &'a str) -> Expression<'a> {
        Expression { source, shown: source }
    }

    /// Without the spaces around it, also in errors.
    pub fn trimmed(source: &'a str) -> Expression<'a> {
        Expression::plain(source.trim())
    }
}

/// Compiles an expression and says what is wrong with it. Nothing is, as long as there is no compiler.
pub fn check(_expression: Expression<'_>, _environment: Environment<'_>, _path: &Path<'_>, _errors: &mut ErrorList) {}
