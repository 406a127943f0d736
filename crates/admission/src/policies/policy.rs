//! One policy or binding, read once; its expressions are compiled when a request first needs them.

use crate::attributes::Seen;
use crate::expression::{Compiled, Composition, Conditions, FailurePolicy, Messages};
use crate::matching::Selectors;
use crate::rules::{MatchPolicy, Rule, Versions};
use kubelith_cel::admission::Sees;
use kubelith_meta::{GroupVersion, GroupVersionKind, Status, Str, Value};
use kubelith_registry::admission::Request;
use kubelith_registry::objects::Collection;
use std::sync::OnceLock;

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).unwrap_or(&[])
}

/// Which requests are meant: `matchConstraints` of a policy, `matchResources` of a binding.
pub struct Match {
    pub rules: Vec<Rule>,
    excluded: Vec<Rule>,
    policy: MatchPolicy,
    selectors: Selectors,
}

impl Match {
    fn read(of: &Value) -> Match {
        Match {
            rules: Rule::list(of, "resourceRules"),
            excluded: Rule::list(of, "excludeResourceRules"),
            policy: MatchPolicy::read(of),
            selectors: Selectors::read(of),
        }
    }

    /// In which version the request is meant, if it is.
    pub async fn matching<'v>(
        &self,
        namespaces: &Collection,
        request: Request<'_>,
        versions: &'v Versions<'_>,
        object: &Value,
    ) -> Result<Option<&'v Seen>, Status> {
        let seen = match self.rules.is_empty() {
            true => Some(versions.sent()),
            false => versions.matching(&self.rules, self.policy),
        };
        let Some(seen) = seen else { return Ok(None) };
        if !self.excluded.is_empty() && versions.matching(&self.excluded, self.policy).is_some() {
            return Ok(None);
        }
        Ok(self.selectors.select(namespaces, request, object).await?.then_some(seen))
    }
}

pub struct Policy {
    pub name: Str,
    pub constraints: Match,
    pub failure_policy: FailurePolicy,
    pub param_kind: Option<GroupVersionKind>,
    /// Whether it is run again after others have changed the object.
    pub is_reinvoked: bool,
    spec: Value,
    compiled: OnceLock<Expressions>,
}

/// What a policy says, ready to run.
pub struct Expressions {
    pub composition: Composition,
    pub messages: Messages,
    pub conditions: Conditions,
    pub validations: Vec<Validation>,
    /// Key, expression and its text.
    pub annotations: Vec<(Str, Compiled, Str)>,
    pub mutations: Vec<Mutation>,
}

/// One way in which a policy changes objects.
pub enum Mutation {
    /// Merged into the object.
    Apply(Compiled),
    JsonPatch(Compiled),
}

pub struct Validation {
    pub expression: Compiled,
    pub message_expression: Option<Compiled>,
    /// What is said without a message of its own.
    pub message: String,
    pub reason: Str,
}

impl Policy {
    pub fn read(object: &Value) -> Policy {
        let spec = object.get("spec").cloned().unwrap_or_default();
        let param_kind = spec.get("paramKind").filter(|k| !k.is_null()).map(|kind| {
            GroupVersion::parse(kind.str_at(&["apiVersion"])).unwrap_or_default().with_kind(kind.str_at(&["kind"]))
        });
        Policy {
            name: object.str_at(&["metadata", "name"]).into(),
            constraints: Match::read(spec.get("matchConstraints").unwrap_or(&Value::Null)),
            failure_policy: FailurePolicy::read(&spec),
            param_kind,
            is_reinvoked: spec.str_at(&["reinvocationPolicy"]) == "IfNeeded",
            spec,
            compiled: OnceLock::new(),
        }
    }

    pub fn expressions(&self) -> &Expressions {
        self.compiled.get_or_init(|| self.compile())
    }

    fn compile(&self) -> Expressions {
        let has_params = self.param_kind.is_some();
        let mut composition = Composition::new(Sees { params: has_params, authorizer: true });
        for variable in used_variables(&self.spec) {
            composition.declare(variable.str_at(&["name"]), variable.str_at(&["expression"]));
        }
        let of = |value: &Value, key: &str| composition.compile(value.str_at(&[key]));
        let conditions = list(&self.spec, "matchConditions").iter().map(|c| of(c, "expression")).collect();
        let messages = composition.of_messages(has_params);
        let validation = |validation: &Value| {
            let message = validation.str_at(&["messageExpression"]);
            let text = validation.str_at(&["message"]).trim();
            Validation {
                expression: of(validation, "expression"),
                message_expression: (!message.is_empty()).then(|| messages.compile(message)),
                message: match text {
                    "" => format!("failed expression: {}", validation.str_at(&["expression"]).trim()),
                    text => text.to_owned(),
                },
                reason: match validation.str_at(&["reason"]) {
                    "" => "Invalid".into(),
                    reason => reason.into(),
                },
            }
        };
        let annotation = |annotation: &Value| {
            let source = annotation.str_at(&["valueExpression"]);
            (Str::from(annotation.str_at(&["key"])), composition.compile(source), Str::from(source))
        };
        let mutation = |mutation: &Value| match mutation.str_at(&["patchType"]) {
            "JSONPatch" => {
                Mutation::JsonPatch(composition.compile_mutation(mutation.str_at(&["jsonPatch", "expression"])))
            }
            _ => {
                let source = mutation.str_at(&["applyConfiguration", "expression"]);
                Mutation::Apply(composition.compile_mutation(source))
            }
        };
        Expressions {
            mutations: list(&self.spec, "mutations").iter().map(mutation).collect(),
            conditions: Conditions::of(conditions),
            validations: list(&self.spec, "validations").iter().map(validation).collect(),
            annotations: list(&self.spec, "auditAnnotations").iter().map(annotation).collect(),
            messages,
            composition,
        }
    }
}

/// Variables that something uses: what nobody asks for costs nothing.
fn used_variables(spec: &Value) -> Vec<&Value> {
    let mut texts: Vec<&str> = Vec::new();
    for (key, members) in [
        ("matchConditions", &["expression"][..]),
        ("validations", &["expression", "messageExpression"]),
        ("auditAnnotations", &["valueExpression"]),
    ] {
        texts.extend(list(spec, key).iter().flat_map(|entry| members.iter().map(|m| entry.str_at(&[m]))));
    }
    for mutation in list(spec, "mutations") {
        texts.push(mutation.str_at(&["applyConfiguration", "expression"]));
        texts.push(mutation.str_at(&["jsonPatch", "expression"]));
    }
    let mut used: Vec<&Value> = Vec::new();
    // A variable sees those before it, so the last ones say first what they use.
    for variable in list(spec, "variables").iter().rev() {
        let name = variable.str_at(&["name"]);
        if texts.iter().any(|text| mentions(text, name)) {
            texts.push(variable.str_at(&["expression"]));
            used.push(variable);
        }
    }
    used.reverse();
    used
}

/// Whether `variables.name` may be in a text.
fn mentions(text: &str, name: &str) -> bool {
    text.contains("variables") && text.contains(name)
}

pub struct Binding {
    pub name: Str,
    pub policy: Str,
    pub resources: Option<Match>,
    pub actions: Vec<Str>,
    pub param_ref: Option<Value>,
}

impl Binding {
    pub fn read(object: &Value) -> Binding {
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let present = |key: &str| spec.get(key).filter(|v| !v.is_null());
        Binding {
            name: object.str_at(&["metadata", "name"]).into(),
            policy: spec.str_at(&["policyName"]).into(),
            resources: present("matchResources").map(Match::read),
            actions: list(spec, "validationActions").iter().filter_map(Value::as_str).map(Str::from).collect(),
            param_ref: present("paramRef").cloned(),
        }
    }
}
