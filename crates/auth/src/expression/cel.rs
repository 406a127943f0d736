//! Expressions of configuration files in CEL. They are compiled with all there is: whoever writes such a file knows the
//! server that reads it.

use super::{CompileError, Expression, ExpressionCompiler, ResultKind, Subject};
use kubelith_cel::ast::{Ast, Expr, ExprId, Literal};
use kubelith_cel::declared::{Declared, Field, ListKind, MemberKind, Object};
use kubelith_cel::{Checked, Env, Program, Type, Val};
use kubelith_meta::{Str, Value};
use std::sync::{Arc, LazyLock};

/// Compiles expressions. What they may use is made when there is one.
#[derive(Debug, Clone)]
pub struct Cel(Selectors);

static TOLD: LazyLock<Envs> = LazyLock::new(|| Envs::new(Selectors::Told));
static UNTOLD: LazyLock<Envs> = LazyLock::new(|| Envs::new(Selectors::Untold));

#[derive(Debug)]
struct Envs {
    claims: Env,
    user: Env,
    review: Env,
}

/// Whether reviews tell the selectors of a request (`AuthorizeWithSelectors`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selectors {
    Told,
    Untold,
}

impl Default for Cel {
    fn default() -> Cel {
        Cel::new(Selectors::Told)
    }
}

impl Cel {
    pub fn new(selectors: Selectors) -> Cel {
        Cel(selectors)
    }

    fn env(&self, subject: Subject) -> &'static Env {
        let envs = match self.0 {
            Selectors::Told => &TOLD,
            Selectors::Untold => &UNTOLD,
        };
        match subject {
            Subject::Claims => &envs.claims,
            Subject::User => &envs.user,
            Subject::AccessReview => &envs.review,
        }
    }
}

impl Envs {
    fn new(selectors: Selectors) -> Envs {
        let base = Env::base();
        let (user, review) = (user(), review(selectors));
        Envs {
            claims: base.clone().declare("claims", Declared::escaped(Type::map(Type::String, Type::Any))),
            user: base.clone().declare("user", user.clone()).types(vec![user]),
            review: base.declare("request", review.clone()).types(vec![review]),
        }
    }
}

impl ExpressionCompiler for Cel {
    fn compile(&self, text: &str, subject: Subject, result: ResultKind) -> Result<Arc<dyn Expression>, CompileError> {
        let env = self.env(subject);
        let checked =
            env.compile(text).map_err(|issues| CompileError::Invalid(format!("compilation failed: {issues}")))?;
        let got = checked.result_type();
        if result == ResultKind::Bool && *got != Type::Bool {
            return Err(CompileError::Invalid(match subject {
                Subject::AccessReview => format!("must evaluate to bool but got {got}"),
                _ => "must evaluate to bool".to_owned(),
            }));
        }
        let program = Program::new(env, &checked)
            .map_err(|why| CompileError::Internal(format!("program instantiation failed: {why}")))?;
        let declared = env.variables().first().and_then(|variable| variable.declared.clone());
        Ok(Arc::new(Compiled { program, subject, declared, reads: fields_read(&checked) }))
    }
}

#[derive(Debug)]
struct Compiled {
    program: Program,
    subject: Subject,
    declared: Option<Declared>,
    /// The fields of the variable that it names.
    reads: Vec<Str>,
}

impl Expression for Compiled {
    fn evaluate(&self, subject: &Value) -> Result<Value, String> {
        let value = match (self.subject, &self.declared) {
            (Subject::Claims | Subject::User, Some(declared)) => Val::typed(subject, declared),
            _ => Ok(Val::json(subject)),
        };
        let variables = [value.map_err(|e| e.to_string())?];
        let (result, _) = self.program.eval(&variables);
        result.map(|val| outcome(&val)).map_err(|e| e.to_string())
    }

    fn reads(&self, field: &str) -> bool {
        self.reads.iter().any(|read| read == field)
    }
}

/// What those who asked can use.
fn outcome(val: &Val<'_>) -> Value {
    match val {
        Val::Null => Value::Null,
        Val::Bool(b) => Value::Bool(*b),
        _ => {
            if let Some(text) = val.as_str() {
                return Value::String(text.into());
            }
            match val.as_list() {
                Some(list) => {
                    Value::Array(list.iter().map(|item| item.map_or(Value::object(), |i| outcome(&i))).collect())
                }
                None => Value::object(),
            }
        }
    }
}

/// `x.a` and `x.?a` for the variable `x`, in macros or not.
fn fields_read(checked: &Checked) -> Vec<Str> {
    let ast = &checked.ast;
    let is_variable = |id: ExprId| matches!(ast.expr(id), Expr::Ident(_));
    let read = |i: usize| -> Option<Str> {
        match ast.expr(ExprId(u32::try_from(i).ok()?)) {
            Expr::Select { operand, field, .. } if is_variable(*operand) => Some(field.clone()),
            Expr::Call { function, target: None, args } if function == "_?._" => optional_field(ast, ast.list(*args)),
            _ => None,
        }
    };
    (0..ast.len()).filter_map(read).collect()
}

fn optional_field(ast: &Ast, args: &[ExprId]) -> Option<Str> {
    match args {
        [operand, field] => match (ast.expr(*operand), ast.expr(*field)) {
            (Expr::Ident(_), Expr::Literal(Literal::String(name))) => Some(name.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn string() -> Declared {
    Declared { cel: Type::String, kind: MemberKind::String, ..Declared::dynamic() }
}

fn strings() -> Declared {
    Declared::list(string(), ListKind::Atomic, u64::MAX)
}

/// Extras of a user: names with dots and slashes may be written escaped.
fn extra() -> Declared {
    Declared::escaped(Type::map(Type::String, Type::list(Type::String)))
}

fn object(name: &str, mut fields: Vec<(&str, Declared)>) -> Declared {
    fields.sort_by(|a, b| a.0.cmp(b.0));
    let field = |(name, declared): (&str, Declared)| Field {
        name: name.into(),
        property: name.into(),
        declared,
        required: false,
    };
    let fields = fields.into_iter().map(field).collect();
    Declared::object(
        Arc::new(Object { name: name.into(), fields, open: false, preserve_unknown: false, hidden: Vec::new() }),
        2,
    )
}

fn user() -> Declared {
    let fields = vec![("username", string()), ("uid", string()), ("groups", strings()), ("extra", extra())];
    object("kubernetes.UserInfo", fields)
}

/// The spec of a SubjectAccessReview.
fn review(selectors: Selectors) -> Declared {
    let requirement = || {
        let fields = vec![("key", string()), ("operator", string()), ("values", strings())];
        object("kubernetes.SelectorRequirement", fields)
    };
    let selector = |name: &str| {
        let requirements = Declared::list(requirement(), ListKind::Atomic, u64::MAX);
        object(name, vec![("rawSelector", string()), ("requirements", requirements)])
    };
    let words = ["namespace", "verb", "group", "version", "resource", "subresource", "name"];
    let mut attributes: Vec<(&str, Declared)> = words.into_iter().map(|word| (word, string())).collect();
    if selectors == Selectors::Told {
        attributes.push(("fieldSelector", selector("kubernetes.FieldSelectorAttributes")));
        attributes.push(("labelSelector", selector("kubernetes.LabelSelectorAttributes")));
    }
    let paths = vec![("path", string()), ("verb", string())];
    object(
        "kubernetes.SubjectAccessReviewSpec",
        vec![
            ("resourceAttributes", object("kubernetes.ResourceAttributes", attributes)),
            ("nonResourceAttributes", object("kubernetes.NonResourceAttributes", paths)),
            ("user", string()),
            ("groups", strings()),
            ("extra", Declared::map(strings(), u64::MAX)),
            ("uid", string()),
        ],
    )
}

#[cfg(test)]
#[path = "cel_tests.rs"]
mod tests;
