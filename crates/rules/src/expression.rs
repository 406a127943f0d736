//! Expressions in CEL within objects: the one place where rules have them compiled. What must hold of the text before (that it
//! is there, how long it may be) is checked by the rules themselves.

use kubelith_cel::admission::{self, Sees};
use kubelith_cel::declared::{Declared, Field, Object};
use kubelith_cel::device::{self, Gates, SelectorError, Selectors};
use kubelith_cel::env::Libraries;
use kubelith_cel::libraries::Library;
use kubelith_cel::{Env, Program, Type};
use kubelith_meta::field::{Error, ErrorList, Path};
use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

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
    /// Of the server that compiles it.
    pub expressions: &'a Expressions,
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

/// What new expressions may use: what all servers have that share the storage, by the operator's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialect {
    pub libraries: Libraries,
    pub devices: Gates,
}

impl Default for Dialect {
    /// Of this release, which is compatible with the one before it.
    fn default() -> Dialect {
        Dialect {
            libraries: Libraries { since: 35, authz_selectors: true },
            devices: Gates { consumable_capacity: true, list_attributes: false },
        }
    }
}

/// What the expressions of one server are compiled with. It is put together when the first of them is.
pub struct Expressions {
    dialect: Dialect,
    new: OnceLock<Bases>,
    selectors: OnceLock<Selectors>,
}

impl Expressions {
    /// Servers that let people write the same have them in common where it is what this release lets them: that is nearly all.
    pub fn of(dialect: Dialect) -> Arc<Expressions> {
        static OF_THIS_RELEASE: LazyLock<Arc<Expressions>> =
            LazyLock::new(|| Arc::new(Expressions::new(Dialect::default())));
        if dialect == Dialect::default() { OF_THIS_RELEASE.clone() } else { Arc::new(Expressions::new(dialect)) }
    }

    fn new(dialect: Dialect) -> Expressions {
        Expressions { dialect, new: OnceLock::new(), selectors: OnceLock::new() }
    }

    fn bases(&self, is_stored: bool) -> &Bases {
        if is_stored { &STORED } else { self.new.get_or_init(|| Bases::new(self.dialect.libraries)) }
    }

    /// The functions that new expressions may use.
    pub fn functions(&self) -> &Env {
        &self.bases(false).plain
    }

    /// What selectors of devices are compiled with.
    pub fn selectors(&self) -> &Selectors {
        self.selectors.get_or_init(|| Selectors::new(self.dialect.libraries, self.dialect.devices))
    }
}

impl fmt::Debug for Expressions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expressions").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}

/// All functions there are: expressions that are stored may use them.
pub fn all_functions() -> &'static Env {
    &STORED.plain
}

static STORED: LazyLock<Bases> = LazyLock::new(|| Bases::new(Libraries::ALL));

/// The functions of expressions, put together once.
struct Bases {
    plain: Env,
    /// With the library of mutations.
    mutation: Env,
}

impl Bases {
    fn new(libraries: Libraries) -> Bases {
        Bases { plain: Env::with(libraries.iter()), mutation: Env::with(libraries.iter().chain([Library::JsonPatch])) }
    }
}

/// Compiles an expression and says what is wrong with it.
pub fn check(expression: Expression<'_>, environment: Environment<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    if environment.purpose == Purpose::DeviceSelector {
        return check_selector(expression, environment, path, errors);
    }
    let env = environment.env();
    let checked = match env.compile(expression.source) {
        Ok(checked) => checked,
        Err(issues) => {
            return errors.push(Error::invalid(path, expression.shown, format!("compilation failed: {issues}")));
        }
    };
    let (got, wanted) = (checked.result_type().to_string(), environment.purpose.results());
    if !wanted.is_empty() && !wanted.contains(&got.as_str()) {
        let why = match wanted {
            [one] => format!("must evaluate to {one} but got {got}"),
            several => format!("must evaluate to one of [{}] but got {got}", several.join(" ")),
        };
        return errors.push(Error::invalid(path, expression.shown, why));
    }
    if let Err(why) = Program::new(&env, &checked) {
        errors.push(Error::internal(path, format!("program instantiation failed: {why}")));
    }
}

fn check_selector(expression: Expression<'_>, environment: Environment<'_>, path: &Path<'_>, errors: &mut ErrorList) {
    match environment.expressions.selectors().compile(expression.source, environment.is_stored) {
        Ok(selector) if selector.max_cost > device::COST_LIMIT => {
            errors.push(Error::forbidden(path, "too complex, exceeds cost limit"));
        }
        Ok(_) => {}
        Err(SelectorError::Invalid(why)) => errors.push(Error::invalid(path, expression.shown, why)),
        Err(SelectorError::Internal(why)) => errors.push(Error::internal(path, why)),
    }
}

impl Purpose {
    /// The types that it may have; none where all will do.
    pub const fn results(self) -> &'static [&'static str] {
        match self {
            Purpose::MatchCondition | Purpose::Validation | Purpose::DeviceSelector => &["bool"],
            Purpose::Variable => &[],
            Purpose::Message => &["string"],
            Purpose::AuditAnnotation => &["string", "null_type"],
            Purpose::ApplyConfiguration => &["Object"],
            Purpose::JsonPatch => &["list(JSONPatch)"],
        }
    }
}

impl Environment<'_> {
    /// What the expression is compiled in; not for selectors of devices.
    pub fn env(&self) -> Env {
        let sees = Sees { params: self.has_params, authorizer: self.purpose.has_authorizer() };
        let bases = self.expressions.bases(self.is_stored);
        let env = match self.purpose.has_patch_types() {
            true => admission::env(&bases.mutation, sees).mutation(),
            false => admission::env(&bases.plain, sees),
        };
        // A variable stands among others, even if none comes before it.
        if self.variables.is_empty() && self.purpose != Purpose::Variable {
            return env;
        }
        // Each variable sees those before it; what cannot be compiled is anything to those behind it.
        let mut fields: Vec<Field> = Vec::with_capacity(self.variables.len());
        for variable in self.variables {
            let known = with_variables(admission::env(&bases.plain, Sees { authorizer: true, ..sees }), &fields);
            let checked = known.compile(variable.expression.trim());
            let cel = checked.map_or(Type::Dyn, |checked| checked.result_type().clone());
            let declared = Declared { cel, ..Declared::dynamic() };
            let name = variable.name;
            let at = fields.binary_search_by(|field| field.name.as_str().cmp(name)).unwrap_or_else(|at| at);
            fields.insert(at, Field { name: name.into(), property: name.into(), declared, required: false });
        }
        with_variables(env, &fields)
    }
}

fn with_variables(env: Env, fields: &[Field]) -> Env {
    let name = "kubernetes.variables".into();
    let object = Object { name, fields: fields.to_vec(), open: false, preserve_unknown: false, hidden: Vec::new() };
    env.declare("variables", Declared::object(Arc::new(object), 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_compiled_for_their_purpose() {
        let variables =
            [Variable { name: "n", expression: "1" }, Variable { name: "m", expression: "variables.n + 1" }];
        let undeclared = |name: &str, line: &str| {
            format!(
                "compilation failed: ERROR: <input>:1:1: undeclared reference to '{name}' (in container '')\n | {line}\n | ^"
            )
        };
        let cases = [
            (Purpose::Validation, "object.spec.replicas < 5", String::new()),
            (Purpose::Validation, "variables.m > 1", String::new()),
            (Purpose::Validation, "\"x\"", "must evaluate to bool but got string".to_owned()),
            (Purpose::Validation, "params.x == 1", undeclared("params", "params.x == 1")),
            (Purpose::Message, "authorizer.path('/x')", undeclared("authorizer", "authorizer.path('/x')")),
            (Purpose::AuditAnnotation, "1", "must evaluate to one of [string null_type] but got int".to_owned()),
            (Purpose::AuditAnnotation, "null", String::new()),
            (Purpose::ApplyConfiguration, "Object{spec: Object.spec{replicas: 1}}", String::new()),
            (Purpose::ApplyConfiguration, "1", "must evaluate to Object but got int".to_owned()),
            (Purpose::JsonPatch, "[JSONPatch{op: 'remove', path: '/a'}]", String::new()),
            (Purpose::JsonPatch, "Object{}", "must evaluate to list(JSONPatch) but got Object".to_owned()),
            (Purpose::DeviceSelector, "cel.bind(a, device.attributes['x'], a.b)", String::new()),
            (
                Purpose::DeviceSelector,
                "device.driver",
                "must evaluate to bool or the unknown type, not string".to_owned(),
            ),
            (
                Purpose::DeviceSelector,
                "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, a + b == c)))",
                String::new(),
            ),
            (
                Purpose::DeviceSelector,
                "lists.range(1000).all(x, lists.range(1000).all(y, x == y))",
                "too complex, exceeds cost limit".to_owned(),
            ),
        ];
        for (purpose, source, expected) in cases {
            let environment = Environment {
                expressions: &Expressions::of(Dialect::default()),
                purpose,
                has_params: false,
                variables: &variables,
                is_stored: false,
            };
            let mut errors = ErrorList::new();
            check(Expression::plain(source), environment, &Path::new("e"), &mut errors);
            let found: Vec<&str> = errors.iter().map(|error| error.detail.as_str()).collect();
            assert_eq!(found.concat(), expected, "{source}");
        }
    }

    #[test]
    fn servers_have_dialects_of_their_own() {
        let libraries = |since| Libraries { since, authz_selectors: true };
        let of = |since| Expressions::of(Dialect { libraries: libraries(since), ..Dialect::default() });
        // Brought by 1.34.
        let text = "lists.range(3).size() == 3";
        for (expressions, is_stored, knows) in [(of(33), false, false), (of(35), false, true), (of(33), true, true)] {
            let purpose = Purpose::Validation;
            let environment =
                Environment { expressions: &expressions, purpose, has_params: false, variables: &[], is_stored };
            let mut errors = ErrorList::new();
            check(Expression::plain(text), environment, &Path::new("e"), &mut errors);
            assert_eq!(errors.is_empty(), knows, "{expressions:?} {is_stored}: {errors:?}");
        }
    }
}
