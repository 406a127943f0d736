//! Expressions in CEL about a request: what they see, what they cost, and what is said when they fail.

use crate::attributes::{Seen, name_of, namespace_of, resource_of};
use kubelith_auth::{Answer, Attributes, Authorizer, Selector, Verdict};
use kubelith_cel::admission::{self, Sees};
use kubelith_cel::cost::PER_CALL_LIMIT;
use kubelith_cel::env::Libraries;
use kubelith_cel::libraries::Library;
use kubelith_cel::value::{self, AuthorizerHandle, AuthzRequest, DecisionVal, Opaque, Res, ResourceCheck};
use kubelith_cel::{Activation, Declared, Env, EvalError, Program, Type, Val};
use kubelith_meta::user::User;
use kubelith_meta::{GroupVersionKind, GroupVersionResource, Status, Str, Value, text};
use kubelith_registry::admission::{Operation, Request};
use kubelith_registry::objects::{CachedObject, parse};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

/// What match conditions of one webhook or policy may cost together.
pub const CONDITIONS_BUDGET: u64 = 2_500_000;

pub const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

static BASE: LazyLock<Env> = LazyLock::new(Env::base);
static MUTATION: LazyLock<Env> = LazyLock::new(|| Env::with(Libraries::ALL.iter().chain([Library::JsonPatch])));
static REQUEST: LazyLock<Declared> = LazyLock::new(admission::request);
static NAMESPACE: LazyLock<Declared> = LazyLock::new(admission::namespace);

/// An expression that is ready to run, or why it never will be.
pub struct Compiled {
    source: Str,
    program: Result<Program, String>,
}

/// What a slot of an environment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Object,
    OldObject,
    Namespace,
    Request,
    Params,
    Authorizer,
    RequestResource,
    /// Of the policy, by its number.
    Variable(usize),
    Other,
}

/// What the slots of an environment hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slots(Vec<Slot>);

impl Slots {
    fn of(env: &Env) -> Slots {
        let slot = |name: &str| match name {
            "object" => Slot::Object,
            "oldObject" => Slot::OldObject,
            "namespaceObject" => Slot::Namespace,
            "request" => Slot::Request,
            "params" => Slot::Params,
            "authorizer" => Slot::Authorizer,
            "authorizer.requestResource" => Slot::RequestResource,
            _ => Slot::Other,
        };
        let mut number = 0;
        let slots = env.variables().iter().map(|variable| match variable.name.starts_with(VARIABLES) {
            true => {
                number += 1;
                Slot::Variable(number - 1)
            }
            false => slot(&variable.name),
        });
        Slots(slots.collect())
    }
}

impl Compiled {
    fn new(env: &Env, source: &str) -> Compiled {
        let program = match env.compile(source) {
            Ok(checked) => Program::new(env, &checked).map_err(|why| format!("program instantiation failed: {why}")),
            Err(issues) => Err(format!("compilation failed: {issues}")),
        };
        Compiled { source: source.into(), program }
    }

    /// Runs it and takes its cost from `budget`, with that of variables that nobody asked for before. The outer error ends all
    /// that is run from that budget.
    pub fn run<'a, T>(
        &'a self,
        run: &'a Run<'a>,
        budget: &mut u64,
        take: impl FnOnce(&Val<'a>) -> T,
    ) -> Result<Result<T, String>, String> {
        let program = match &self.program {
            Ok(program) => program,
            Err(why) => return Ok(Err(format!("compilation error: {why}"))),
        };
        let (result, cost) = program.eval(run.names());
        let cost = cost.saturating_add(run.spent.swap(0, Ordering::Relaxed));
        *budget = budget.checked_sub(cost).ok_or(OUT_OF_BUDGET)?;
        Ok(match result {
            Ok(value) => Ok(take(&value)),
            Err(why) => Err(format!("expression '{}' resulted in error: {}", self.source, why.message())),
        })
    }
}

/// What expressions can see. What takes work to tell is told when it is asked for.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    pub object: Option<&'a Value>,
    pub old: Option<&'a Value>,
    pub namespace: Option<&'a Namespace>,
    pub request: &'a Described<'a>,
    pub params: Option<&'a Value>,
    /// Who is asked, if expressions may ask.
    pub authorizer: Option<&'a Arc<dyn Authorizer>>,
}

/// A namespace, read when an expression is about it.
pub struct Namespace {
    object: Arc<CachedObject>,
    read: OnceLock<Value>,
}

impl Namespace {
    pub fn new(object: Arc<CachedObject>) -> Namespace {
        Namespace { object, read: OnceLock::new() }
    }

    fn value(&self) -> &Value {
        self.read.get_or_init(|| parse(&self.object).unwrap_or_default())
    }
}

/// What `request` is, written down when an expression is about it.
pub struct Described<'a> {
    request: Request<'a>,
    /// As what it is seen.
    kind: &'a GroupVersionKind,
    /// Group and version of the resource, where they are not those of the request.
    resource: Option<&'a GroupVersionResource>,
    value: OnceLock<Value>,
}

impl<'a> Described<'a> {
    pub fn new(request: Request<'a>, kind: &'a GroupVersionKind) -> Described<'a> {
        Described { request, kind, resource: None, value: OnceLock::new() }
    }

    /// Seen as one for another resource, too.
    pub fn matched(request: Request<'a>, seen: &'a Seen) -> Described<'a> {
        Described { resource: Some(&seen.resource), ..Described::new(request, &seen.kind) }
    }

    fn value(&self) -> &Value {
        self.value.get_or_init(|| {
            let mut value = describe(self.request, self.kind);
            if let Some(resource) = self.resource {
                value.set_at(&["resource", "group"], Value::String(resource.group.clone()));
                value.set_at(&["resource", "version"], Value::String(resource.version.clone()));
            }
            value
        })
    }
}

/// Expressions of one kind about one request: they share variables, each of which is evaluated when it is first used.
pub struct Run<'a> {
    composition: &'a Composition,
    /// Of the expressions' environment. Variables have that of the composition, whose slots begin theirs.
    slots: &'a Slots,
    inputs: &'a Inputs<'a>,
    variables: Vec<OnceLock<Res<'a>>>,
    /// What variables cost since somebody asked.
    spent: AtomicU64,
    names: OnceLock<Names<'a>>,
    names_of_variables: OnceLock<Names<'a>>,
}

impl<'a> Run<'a> {
    fn new(composition: &'a Composition, slots: &'a Slots, inputs: &'a Inputs<'a>) -> Run<'a> {
        let mut variables = Vec::new();
        variables.resize_with(composition.variables.len(), OnceLock::new);
        let (names, names_of_variables) = (OnceLock::new(), OnceLock::new());
        Run { composition, slots, inputs, variables, spent: AtomicU64::new(0), names, names_of_variables }
    }

    fn names(&'a self) -> &'a Names<'a> {
        self.names.get_or_init(|| Names { slots: self.slots, run: self })
    }

    /// A variable that fails says so where it is used.
    fn variable(&'a self, number: usize) -> Option<Res<'a>> {
        let (name, compiled) = self.composition.variables.get(number)?;
        let named = |what: &str, why: &str| {
            EvalError::new(format!("composited variable {} fails to {what}: {why}", text::quote(name)))
        };
        let value = self.variables.get(number)?.get_or_init(|| match &compiled.program {
            Ok(program) => {
                let slots = &self.composition.slots;
                let names = self.names_of_variables.get_or_init(|| Names { slots, run: self });
                let (value, cost) = program.eval(names);
                self.spent.fetch_add(cost, Ordering::Relaxed);
                value.map_err(|why| named("evaluate", why.message()))
            }
            Err(why) => Err(named("compile", why)),
        });
        Some(value.clone())
    }
}

/// The names that an expression can use.
struct Names<'a> {
    slots: &'a Slots,
    run: &'a Run<'a>,
}

impl<'a> Activation<'a> for Names<'a> {
    fn variable(&self, slot: usize) -> Option<Res<'a>> {
        let run: &'a Run<'a> = self.run;
        let inputs: &'a Inputs<'a> = run.inputs;
        let json = |value: Option<&'a Value>| Some(Ok(value.map_or(Val::Null, Val::json)));
        let asker = || inputs.authorizer.map(|authorizer| Asker::new(authorizer, inputs.request.request));
        match self.slots.0.get(slot)? {
            Slot::Object => json(inputs.object),
            Slot::OldObject => json(inputs.old),
            Slot::Params => json(inputs.params),
            Slot::Request => Some(Val::typed(inputs.request.value(), &REQUEST)),
            Slot::Namespace => Some(match inputs.namespace {
                Some(namespace) => Val::typed(namespace.value(), &NAMESPACE),
                None => Ok(Val::Null),
            }),
            Slot::Authorizer => asker().map(|asker| Ok(asker.authorizer())),
            Slot::RequestResource => asker().map(|asker| Ok(asker.request_resource())),
            Slot::Variable(number) => run.variable(*number),
            Slot::Other => None,
        }
    }
}

/// How variables of policies are called.
const VARIABLES: &str = "variables.";

/// The names that expressions of one policy can use, and what its variables are.
pub struct Composition {
    env: Env,
    slots: Slots,
    variables: Vec<(Str, Compiled)>,
}

impl Composition {
    pub fn new(sees: Sees) -> Composition {
        let env = admission::env(&BASE, sees);
        Composition { slots: Slots::of(&env), env, variables: Vec::new() }
    }

    /// Adds a variable, which sees those before it. What cannot be compiled is anything to those behind it.
    pub fn declare(&mut self, name: &str, source: &str) {
        let source = source.trim();
        let cel = self.env.compile(source).map_or(Type::Dyn, |checked| checked.result_type().clone());
        let compiled = Compiled::new(&self.env, source);
        self.env = self.env.clone().variable(&format!("{VARIABLES}{name}"), cel);
        self.slots = Slots::of(&self.env);
        self.variables.push((name.into(), compiled));
    }

    pub fn compile(&self, source: &str) -> Compiled {
        Compiled::new(&self.env, source)
    }

    /// The same names, but for the authorizer: messages cannot ask it.
    pub fn of_messages(&self, params: bool) -> Messages {
        let env = admission::env(&BASE, Sees { params, authorizer: false });
        let own = self.env.variables().iter().filter(|v| v.name.starts_with(VARIABLES));
        let env = own.fold(env, |env, variable| env.variable(&variable.name, variable.cel.clone()));
        Messages { slots: Slots::of(&env), env }
    }

    /// With the types and functions of mutations.
    pub fn compile_mutation(&self, source: &str) -> Compiled {
        Compiled::new(&self.env.clone().functions_of(&MUTATION).mutation(), source)
    }

    /// For expressions that are compiled here.
    pub fn open<'a>(&'a self, inputs: &'a Inputs<'a>) -> Run<'a> {
        Run::new(self, &self.slots, inputs)
    }

    /// For messages.
    pub fn open_messages<'a>(&'a self, messages: &'a Messages, inputs: &'a Inputs<'a>) -> Run<'a> {
        Run::new(self, &messages.slots, inputs)
    }

    /// More than one expression may ever cost, with all variables.
    pub fn highest_cost(&self) -> u64 {
        // The limit is looked at between steps, which have their own cost.
        2 * PER_CALL_LIMIT * (1 + self.variables.len() as u64)
    }
}

/// The environment of expressions that make messages.
pub struct Messages {
    env: Env,
    slots: Slots,
}

impl Messages {
    pub fn compile(&self, source: &str) -> Compiled {
        Compiled::new(&self.env, source)
    }
}

/// What `request` is, for a request that is seen as one for `kind`.
fn describe(request: Request<'_>, kind: &GroupVersionKind) -> Value {
    let call = request.call;
    let of_kind = |kind: &GroupVersionKind| {
        Value::from([
            ("group", Value::String(kind.group.clone())),
            ("version", Value::String(kind.version.clone())),
            ("kind", Value::String(kind.kind.clone())),
        ])
    };
    let resource = resource_of(request);
    let resource = Value::from([
        ("group", Value::String(resource.group)),
        ("version", Value::String(resource.version)),
        ("resource", Value::String(resource.resource)),
    ]);
    let mut described = Value::from([
        ("kind", of_kind(kind)),
        ("resource", resource.clone()),
        ("requestKind", of_kind(&call.kind)),
        ("requestResource", resource),
        ("operation", name_of(request.operation).into()),
        ("userInfo", user_info(&call.user)),
        ("dryRun", Value::Bool(call.dry_run())),
        ("options", options_of(request)),
    ]);
    let texts = [
        ("subResource", call.subresource.as_str()),
        ("requestSubResource", &call.subresource),
        ("name", &call.name),
        ("namespace", namespace_of(request)),
    ];
    for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        described.set_at(&[key], text.into());
    }
    described
}

/// Who asks, as reviews say it.
pub fn user_info(user: &User) -> Value {
    let texts = |list: &[Str]| Value::Array(list.iter().cloned().map(Value::String).collect());
    let mut info = Value::object();
    if !user.name.is_empty() {
        info.set_at(&["username"], Value::String(user.name.clone()));
    }
    if !user.uid.is_empty() {
        info.set_at(&["uid"], Value::String(user.uid.clone()));
    }
    if !user.groups.is_empty() {
        info.set_at(&["groups"], texts(&user.groups));
    }
    for (key, values) in &user.extra {
        info.set_at(&["extra", key], texts(values));
    }
    info
}

/// The options of a request, as the operation has them: a patch is an update, or a create.
pub fn options_of(request: Request<'_>) -> Value {
    let kind = match request.operation {
        Operation::Connect => return Value::Null,
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    };
    let mut options = request.options.cloned().unwrap_or_else(Value::object);
    options.remove_at(&["force"]);
    options.set_at(&["kind"], kind.into());
    options.set_at(&["apiVersion"], "meta.k8s.io/v1".into());
    options
}

/// The server's authorizer, asked on behalf of who asks the server.
pub struct Asker {
    handle: AuthorizerHandle,
    check: [String; 5],
}

impl Asker {
    pub fn new(authorizer: &Arc<dyn Authorizer>, request: Request<'_>) -> Asker {
        let call = request.call;
        let authorizer = Arc::new(Seam(authorizer.clone()));
        Asker {
            handle: AuthorizerHandle { authorizer, user: call.user.clone() },
            check: [
                call.resource.group.to_string(),
                call.resource.resource.to_string(),
                call.subresource.to_string(),
                namespace_of(request).to_owned(),
                call.name.to_string(),
            ],
        }
    }

    fn authorizer<'a>(&self) -> Val<'a> {
        Val::opaque(Opaque::Authorizer(self.handle.clone()))
    }

    fn request_resource<'a>(&self) -> Val<'a> {
        let [group, resource, subresource, namespace, name] = &self.check;
        let check = ResourceCheck {
            subresource: subresource.clone(),
            namespace: namespace.clone(),
            name: name.clone(),
            ..ResourceCheck::new(self.handle.clone(), group, resource)
        };
        Val::opaque(Opaque::ResourceCheck(check))
    }
}

struct Seam(Arc<dyn Authorizer>);

impl fmt::Debug for Seam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seam")
    }
}

impl value::Authorizer for Seam {
    fn authorize(&self, user: &User, request: AuthzRequest<'_>) -> DecisionVal {
        let user = Arc::new(user.clone());
        let attributes = match request {
            AuthzRequest::Path { path, verb } => {
                Attributes { user, verb: verb.into(), path: path.into(), ..Attributes::default() }
            }
            AuthzRequest::Resource { check, verb } => Attributes {
                user,
                verb: verb.into(),
                namespace: check.namespace.as_str().into(),
                group: check.group.as_str().into(),
                version: "*".into(),
                resource: check.resource.as_str().into(),
                subresource: check.subresource.as_str().into(),
                name: check.name.as_str().into(),
                resource_request: true,
                field_selector: Selector::parse_fields(&check.field_selector),
                label_selector: Selector::parse_labels(&check.label_selector),
                ..Attributes::default()
            },
        };
        let decision = match self.0.authorize(&attributes) {
            Answer::Ready(decision) => decision,
            Answer::Pending(decision) => match wait(decision) {
                Ok(decision) => decision,
                Err(why) => {
                    let decision = value::Decision::NoOpinion;
                    return DecisionVal { decision, reason: String::new(), error: Some(why) };
                }
            },
        };
        DecisionVal {
            decision: match decision.verdict {
                Verdict::Allow => value::Decision::Allow,
                Verdict::Deny => value::Decision::Deny,
                Verdict::NoOpinion => value::Decision::NoOpinion,
            },
            reason: decision.reason.into_owned(),
            error: decision.error.map(|e| e.to_string()),
        }
    }
}

/// Waits for another server's decision where an expression asks for it: evaluation knows no waiting.
fn wait<T>(future: impl Future<Output = T>) -> Result<T, String> {
    use tokio::runtime::{Handle, RuntimeFlavor};
    let handle = Handle::try_current().map_err(|e| e.to_string())?;
    if handle.runtime_flavor() == RuntimeFlavor::CurrentThread {
        return Err("an authorizer cannot be waited for on the only thread".to_owned());
    }
    Ok(tokio::task::block_in_place(|| handle.block_on(future)))
}

/// What becomes of a request if an expression about it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    Fail,
    Ignore,
}

impl FailurePolicy {
    pub fn read(object: &Value) -> FailurePolicy {
        match object.str_at(&["failurePolicy"]) {
            "Ignore" => FailurePolicy::Ignore,
            _ => FailurePolicy::Fail,
        }
    }
}

/// Conditions that must all hold.
pub struct Conditions(Vec<Compiled>);

/// What conditions came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matched {
    Yes,
    No,
    /// Some could not be told, and none is false.
    Failed(String),
}

/// How many conditions failed, beside what they came to.
pub struct Outcome {
    pub matched: Matched,
    pub failures: usize,
}

impl Conditions {
    pub fn of(compiled: Vec<Compiled>) -> Conditions {
        Conditions(compiled)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn check<'a>(&'a self, run: &'a Run<'a>, policy: FailurePolicy) -> Outcome {
        let mut budget = CONDITIONS_BUDGET;
        let mut failed = Vec::new();
        let mut first_false = None;
        for (place, condition) in self.0.iter().enumerate() {
            match condition.run(run, &mut budget, |value| matches!(value, Val::Bool(false))) {
                Ok(Ok(true)) => drop(first_false.get_or_insert(place)),
                Ok(Ok(false)) => {}
                Ok(Err(why)) => failed.push((place, why)),
                Err(why) => {
                    let matched = if policy == FailurePolicy::Fail { Matched::Failed(why) } else { Matched::No };
                    return Outcome { matched, failures: 0 };
                }
            }
        }
        // Behind one that is false nobody looks.
        let failures = failed.iter().filter(|(place, _)| first_false.is_none_or(|first| *place < first)).count();
        let matched = match (first_false, failed.is_empty(), policy) {
            (Some(_), ..) | (None, false, FailurePolicy::Ignore) => Matched::No,
            (None, true, _) => Matched::Yes,
            (None, false, FailurePolicy::Fail) => {
                Matched::Failed(text::aggregate(failed.into_iter().map(|(_, why)| why)))
            }
        };
        Outcome { matched, failures }
    }
}

/// The refusal of a request because conditions about it failed.
pub fn undecided(request: Request<'_>, why: &str) -> Status {
    Status::forbidden(&request.call.resource, &request.call.name, why)
}
