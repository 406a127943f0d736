//! The libraries: what each declares for the checker, and what its functions do.
//!
//! A library is a file. `functions` is its table of declarations; what an overload does is found by its id when a program
//! is planned.

pub mod authz;
pub mod devices;
pub mod jsonpatch;
pub mod lists;
pub mod named_format;
pub mod net;
pub mod optional;
pub mod quantity;
pub mod regex;
pub mod semver;
pub mod sets;
pub mod standard;
pub mod strings;
pub mod two_variables;
pub mod url;

pub mod arithmetic;
pub mod conversion;
mod format_string;
mod times;
mod zones;

use crate::decl::{Function, Overload};
use crate::types::Type;
use crate::value::{EvalError, Res, Val};

/// What an overload does. A function of two arguments gets both even if one of them is an error somewhere else; one of
/// many stops at the first, which shows in costs.
#[derive(Debug, Clone, Copy)]
pub enum Run {
    Unary(for<'a> fn(&Val<'a>) -> Res<'a>),
    Binary(for<'a> fn(&Val<'a>, &Val<'a>) -> Res<'a>),
    Many(for<'a> fn(&[Val<'a>]) -> Res<'a>),
}

/// The longest text a function may make, in bytes. Costs are counted after a call, so this bounds what one call can take.
pub const MAX_TEXT: usize = 32 << 20;
/// The most elements a function may put into a list.
pub const MAX_ITEMS: usize = 4 << 20;

/// What the overload `id` does. Operators and a few other functions are the evaluator's own.
pub fn run(id: &str) -> Option<Run> {
    conversion::run(id)
        .or_else(|| standard::run(id))
        .or_else(|| strings::run(id))
        .or_else(|| lists::run(id))
        .or_else(|| optional::run(id))
        .or_else(|| quantity::run(id))
        .or_else(|| net::run(id))
        .or_else(|| url::run(id))
        .or_else(|| regex::run(id))
        .or_else(|| semver::run(id))
        .or_else(|| named_format::run(id))
        .or_else(|| sets::run(id))
        .or_else(|| authz::run(id))
        .or_else(|| times::run(id))
        .or_else(|| two_variables::run(id))
        .or_else(|| jsonpatch::run(id))
        .or_else(|| devices::run(id))
}

/// The text of an argument that the declaration says is a string.
fn text<'v>(val: &'v Val<'_>) -> Result<&'v str, EvalError> {
    val.as_str().ok_or_else(EvalError::no_overload)
}

fn int(val: &Val<'_>) -> Result<i64, EvalError> {
    val.as_int().ok_or_else(EvalError::no_overload)
}

/// A library, by the name that environments choose it with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Library {
    Standard,
    Urls,
    Regex,
    /// Kubernetes' own functions of lists: `sum`, `isSorted`, `min`, ….
    Lists,
    Authz,
    Optional,
    Quantity,
    /// cel-go's strings, version 0.
    StringsV0,
    /// Version 2.
    Strings,
    Sets,
    Ip,
    Cidr,
    Format,
    AuthzSelectors,
    TwoVariables,
    Semver,
    /// cel-go's lists, version 3.
    ListsExt,
    /// `jsonpatch.escapeKey`, for mutations.
    JsonPatch,
    /// `cel.bind`, for selectors of devices.
    Bindings,
    /// `includes`, for attributes of devices.
    Devices,
}

impl Library {
    pub fn functions(self) -> Vec<Function> {
        match self {
            Library::Standard => standard::functions(),
            Library::Urls => url::functions(),
            Library::Regex => regex::functions(),
            Library::Lists => lists::functions(),
            Library::Authz => authz::functions(),
            Library::Optional => optional::functions(),
            Library::Quantity => quantity::functions(),
            Library::StringsV0 => strings::functions(strings::Version::V0),
            Library::Strings => strings::functions(strings::Version::V2),
            Library::Sets => sets::functions(),
            Library::Ip => net::ip_functions(),
            Library::Cidr => net::cidr_functions(),
            Library::Format => named_format::functions(),
            Library::AuthzSelectors => authz::selector_functions(),
            Library::TwoVariables => two_variables::functions(),
            Library::Semver => semver::functions(),
            Library::ListsExt => lists::ext_functions(),
            Library::JsonPatch => jsonpatch::functions(),
            // It has a macro alone.
            Library::Bindings => Vec::new(),
            Library::Devices => devices::functions(),
        }
    }
}

pub const URL: &str = "kubernetes.URL";
pub const QUANTITY: &str = "kubernetes.Quantity";
pub const SEMVER: &str = "kubernetes.Semver";
pub const NAMED_FORMAT: &str = "kubernetes.NamedFormat";
pub const IP: &str = "net.IP";
pub const CIDR: &str = "net.CIDR";
pub const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
pub const PATH_CHECK: &str = "kubernetes.authorization.PathCheck";
pub const GROUP_CHECK: &str = "kubernetes.authorization.GroupCheck";
pub const RESOURCE_CHECK: &str = "kubernetes.authorization.ResourceCheck";
pub const DECISION: &str = "kubernetes.authorization.Decision";

fn of(name: &'static str, overloads: impl IntoIterator<Item = Overload>) -> Function {
    Function::new(name, overloads.into_iter().collect())
}

fn global(id: &'static str, args: impl Into<Vec<Type>>, result: Type) -> Overload {
    Overload::global(id, args, result)
}

fn member(id: &'static str, args: impl Into<Vec<Type>>, result: Type) -> Overload {
    Overload::member(id, args, result)
}

fn list(of: Type) -> Type {
    Type::list(of)
}

fn map(key: Type, value: Type) -> Type {
    Type::map(key, value)
}

const fn param(name: &'static str) -> Type {
    Type::Param(name)
}
