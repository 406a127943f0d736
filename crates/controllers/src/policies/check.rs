//! Expressions of a policy, compiled with the types of the objects that they look at.

use super::VersionedKind;
use kubelith_cel::declared::{Declared, Field, Object};
use kubelith_cel::libraries::AUTHORIZER;
use kubelith_cel::{Env, Type, admission};
use kubelith_meta::{Str, Value};
use std::sync::{Arc, LazyLock};

/// The functions that stored expressions may use.
static BASE: LazyLock<Env> = LazyLock::new(Env::base);

/// What is known of the objects; what is not known of one is `None`.
pub struct Types {
    pub objects: Vec<(VersionedKind, Option<Declared>)>,
    /// Outside: whether there are parameters.
    pub params: Option<Option<Declared>>,
}

pub struct Policy<'a> {
    variables: Vec<(&'a str, &'a str)>,
    validations: &'a [Value],
}

impl<'a> Policy<'a> {
    pub fn new(policy: &'a Value) -> Policy<'a> {
        let list = |field: &str| policy.at(&["spec", field]).and_then(Value::as_array).unwrap_or_default();
        let variables = list("variables").iter().map(|v| (v.str_at(&["name"]), v.str_at(&["expression"])));
        Policy { variables: variables.collect(), validations: list("validations") }
    }

    /// The paths of fields with what is wrong there.
    pub fn check(&self, types: &Types) -> Vec<(String, String)> {
        let envs: Vec<(&VersionedKind, Env)> = types
            .objects
            .iter()
            .map(|(kind, object)| (kind, self.env(object.as_ref(), types.params.as_ref())))
            .collect();
        let mut warnings = Vec::new();
        for (i, validation) in self.validations.iter().enumerate() {
            for (field, optional) in [("expression", false), ("messageExpression", true)] {
                let expression = validation.str_at(&[field]);
                if optional && expression.is_empty() {
                    continue;
                }
                let wrong = envs.iter().filter_map(|(kind, env)| {
                    let issues = env.compile(expression).err()?;
                    Some(format!("{kind}: {issues}\n"))
                });
                let wrong: Vec<String> = wrong.collect();
                if !wrong.is_empty() {
                    warnings.push((format!("spec.validations[{i}].{field}"), wrong.join("\n")));
                }
            }
        }
        warnings
    }

    /// As expressions see it when they run, but for the types; and `authorizer.requestResource` is left out.
    fn env(&self, object: Option<&Declared>, params: Option<&Option<Declared>>) -> Env {
        let (request, namespace) = (admission::request(), admission::namespace());
        let mut types = vec![namespace.clone(), request.clone()];
        types.extend(object.cloned());
        types.extend(params.cloned().flatten());
        let typed = |env: Env, name: &str, declared: Option<&Declared>| match declared {
            Some(declared) => env.declare(name, declared.clone()),
            None => env.variable(name, Type::Dyn),
        };
        let env = BASE.clone().declare("namespaceObject", namespace).declare("request", request);
        let mut env = typed(typed(env, "object", object), "oldObject", object);
        if let Some(params) = params {
            env = typed(env, "params", params.as_ref());
        }
        let env = env.variable("authorizer", Type::Named(AUTHORIZER)).types(types);
        // Each variable sees those before it; one that cannot be compiled is anything.
        let mut fields: Vec<Field> = Vec::with_capacity(self.variables.len());
        for (name, expression) in &self.variables {
            let checked = with_variables(env.clone(), &fields).compile(expression);
            let cel = checked.map_or(Type::Dyn, |checked| checked.result_type().clone());
            let declared = Declared { cel, ..Declared::dynamic() };
            let name = Str::from(*name);
            fields.retain(|field| field.name != name);
            let at = fields.partition_point(|field| field.name < name);
            fields.insert(at, Field { property: name.clone(), name, declared, required: true });
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
    use super::super::schema;
    use super::*;
    use kubelith_codec::json;

    const DOCUMENT: &[u8] = br##"{"components":{"schemas":{
        "meta":{"type":"object","properties":{"name":{"type":"string"},"generateName":{"type":"string"},
            "labels":{"type":"object","additionalProperties":{"type":"string"}},
            "creationTimestamp":{"allOf":[{"$ref":"#/components/schemas/time"}]}}},
        "time":{"type":"string","format":"date-time"},
        "quantity":{"oneOf":[{"type":"string"},{"type":"number"}]},
        "port":{"format":"int-or-string","oneOf":[{"type":"integer"},{"type":"string"}]},
        "tree":{"type":"object","properties":{"left":{"$ref":"#/components/schemas/tree"},"depth":{"type":"integer"}}},
        "deployment":{"type":"object","x-kubernetes-group-version-kind":[{"group":"apps","version":"v1","kind":"Deployment"}],
            "properties":{"kind":{"type":"string"},"apiVersion":{"type":"string"},
                "metadata":{"default":{},"allOf":[{"$ref":"#/components/schemas/meta"}]},
                "spec":{"type":"object","properties":{"replicas":{"type":"integer"},"paused":{"type":"boolean"},
                    "cpu":{"$ref":"#/components/schemas/quantity"},"port":{"$ref":"#/components/schemas/port"},
                    "tree":{"$ref":"#/components/schemas/tree"},"args":{"type":"array","items":{"type":"string"}}}}}},
        "bare":{"type":"object","x-kubernetes-group-version-kind":[{"group":"g","version":"v1","kind":"Bare"}],
            "properties":{"spec":{"type":"object","properties":{"a-b":{"type":"string"}}}}}
    }}}"##;

    fn types() -> Types {
        let document = json::parse(DOCUMENT).unwrap();
        let kind =
            |group: &str, kind: &str| VersionedKind { group: group.into(), version: "v1".into(), kind: kind.into() };
        let (deployment, bare) = (kind("apps", "Deployment"), kind("g", "Bare"));
        let declared = |kind: &VersionedKind| schema::declared(&document, kind, &format!("{}7", kind.kind)).unwrap();
        let (first, params) = (declared(&deployment), declared(&bare));
        assert!(schema::declared(&document, &kind("apps", "Absent"), "x").is_none());
        Types { objects: vec![(deployment, first)], params: Some(params) }
    }

    #[test]
    fn expressions_are_compiled_with_types() {
        let types = types();
        let pointed = |message: &str, line: &str, column: usize| {
            let dots = ".".repeat(column - 1);
            format!("apps/v1, Kind=Deployment: ERROR: <input>:1:{column}: {message}\n | {line}\n | {dots}^\n")
        };
        for (expression, want) in [
            ("object.spec.replicas > 1 && object.metadata.labels['a'] == 'b'", String::new()),
            (
                "object.spec.tree.left.depth > 1",
                pointed("undefined field 'depth'", "object.spec.tree.left.depth > 1", 22),
            ),
            ("object.spec.port == 1 || object.spec.port == 'x'", String::new()),
            ("object.metadata.creationTimestamp < timestamp('2026-01-01T00:00:00Z')", String::new()),
            ("object.spec.absent", pointed("undefined field 'absent'", "object.spec.absent", 12)),
            ("object.spec.cpu == '1'", pointed("undefined field 'cpu'", "object.spec.cpu == '1'", 12)),
            (
                "object.spec.replicas == 'x'",
                pointed(
                    "found no matching overload for '_==_' applied to '(int, string)'",
                    "object.spec.replicas == 'x'",
                    22,
                ),
            ),
            (
                "object.spec == 1",
                pointed(
                    "found no matching overload for '_==_' applied to '(Deployment7.spec, int)'",
                    "object.spec == 1",
                    13,
                ),
            ),
            ("params.spec.a__dash__b == '' && params.metadata.name == '' && params.kind == ''", String::new()),
            ("params.spec.x", pointed("undefined field 'x'", "params.spec.x", 12)),
            ("variables.n + 1 > 2 && variables.broken.anything", String::new()),
            ("variables.s", String::new()),
            ("variables.none", pointed("undefined field 'none'", "variables.none", 10)),
            ("namespaceObject.metadata.name == request.namespace", String::new()),
            ("authorizer.path('/x').check('get').allowed()", String::new()),
        ] {
            let policy = format!(
                r#"{{"spec":{{"variables":[{{"name":"s","expression":"object.spec.args[0]"}},
                    {{"name":"n","expression":"size(variables.s)"}},{{"name":"broken","expression":"object.nothing"}}],
                    "validations":[{{"expression":"true"}},{{"expression":"{expression}"}}]}}}}"#
            );
            let policy = json::parse(policy.as_bytes()).unwrap();
            let found = Policy::new(&policy).check(&types);
            let want = if want.is_empty() { vec![] } else { vec![("spec.validations[1].expression".to_owned(), want)] };
            assert_eq!(found, want, "{expression}");
        }
    }

    #[test]
    fn messages_are_checked_too() {
        let policy = br#"{"spec":{"validations":[{"expression":"object.a","messageExpression":"object.b"}]}}"#;
        let policy = json::parse(policy).unwrap();
        let fields: Vec<String> = Policy::new(&policy).check(&types()).into_iter().map(|(field, _)| field).collect();
        assert_eq!(fields, ["spec.validations[0].expression", "spec.validations[0].messageExpression"]);
    }
}
