//! What it costs to run the rules that people write, and to make them ready: `cargo bench -p kubelith-cel --bench rules`.

mod common;

use common::{FIVE_RULES, declared, object, time};
use kubelith_cel::{Env, Program, Type, Val, estimate};
use kubelith_meta::Value;
use std::hint::black_box;

fn instance() -> Value {
    let port = |i: i64| object([("port", Value::Int(8000 + i)), ("name", format!("p{i}").into())]);
    object([
        ("minReplicas", Value::Int(1)),
        ("replicas", Value::Int(3)),
        ("maxReplicas", Value::Int(5)),
        ("name", "example-name".into()),
        ("ports", Value::Array((0..12).map(port).collect())),
    ])
}

fn pod() -> Value {
    let container = |i: i64| {
        let context = object([("runAsNonRoot", Value::Bool(true))]);
        object([
            ("name", format!("c{i}").into()),
            ("image", "registry.example/x:1".into()),
            ("securityContext", context),
        ])
    };
    object([("spec", object([("containers", Value::Array((0..3).map(container).collect()))]))])
}

fn program(env: &Env, text: &str) -> Program {
    let checked = env.compile(text).expect("it compiles");
    black_box(estimate::cost(&checked, env.variables()[0].declared.as_ref()));
    Program::new(env, &checked).expect("it can be planned")
}

fn main() {
    let declared = declared();
    let (new, old) = (instance(), instance());
    let rules = Env::base()
        .types(vec![declared.clone()])
        .declare("self", declared.clone())
        .declare("oldSelf", declared.clone());
    let values = [Val::typed(&new, &declared).expect("an object"), Val::typed(&old, &declared).expect("an object")];
    let (pod, policies) = (pod(), Env::base().variable("object", Type::Dyn));
    let objects = [Val::json(&pod)];
    let cases = [
        (&rules, &values[..], "self.minReplicas <= self.replicas && self.replicas <= self.maxReplicas"),
        (&rules, &values[..], "self.ports.all(p, p.port >= 1 && p.port <= 65535)"),
        (&rules, &values[..], "self == oldSelf"),
        (&rules, &values[..], "self.name.matches('^[a-z]+(-[a-z]+)*$') && self.name in ['example-name', 'x']"),
        (&rules, &values[..], "self.ports.map(p, p.name).join(',').size() > 3"),
        (
            &policies,
            &objects[..],
            "object.spec.containers.all(c, has(c.securityContext) && c.securityContext.runAsNonRoot)",
        ),
        (&policies, &objects[..], "object.spec.containers.all(c, c.image.startsWith('registry.example/'))"),
    ];
    for (env, values, text) in cases {
        let variables: Vec<Option<Val<'_>>> = values.iter().cloned().map(Some).collect();
        let ready = program(env, text);
        let (result, cost) = ready.eval(&variables);
        assert!(matches!(result, Ok(Val::Bool(true))), "{text}: {result:?}");
        time(&format!("run, cost {cost}: {text}"), || drop(black_box(ready.eval(&variables))));
        time(&format!("compile: {text}"), || drop(black_box(program(env, text))));
    }
    let programs = FIVE_RULES.map(|text| program(&rules, text));
    time("five simple rules of one object", || {
        let values = [&new, &old].map(|value| Val::typed(black_box(value), &declared).expect("an object"));
        for program in &programs {
            assert!(matches!(program.eval(&values), (Ok(Val::Bool(true)), _)));
        }
    });
}
