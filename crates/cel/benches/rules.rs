//! What it costs to compile and to run the rules that people write: `cargo bench -p kubelith-cel`.

use kubelith_cel::declared::{Declared, Root};
use kubelith_cel::{Env, Program, Type, Val};
use kubelith_meta::Value;
use kubelith_schema::structural::Structural;
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: u32 = 20_000;

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::from(members)
}

fn schema() -> Value {
    let integer = || object([("type", "integer".into())]);
    let string = || object([("type", "string".into()), ("maxLength", Value::Int(100))]);
    let port = object([("type", "object".into()), ("properties", object([("port", integer()), ("name", string())]))]);
    let ports = object([("type", "array".into()), ("maxItems", Value::Int(100)), ("items", port)]);
    let properties = object([
        ("minReplicas", integer()),
        ("replicas", integer()),
        ("maxReplicas", integer()),
        ("name", string()),
        ("ports", ports),
    ]);
    object([("type", "object".into()), ("properties", properties)])
}

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

fn measure(name: &str, mut run: impl FnMut()) {
    run();
    let start = Instant::now();
    for _ in 0..ROUNDS {
        run();
    }
    println!("{name:<90} {:>9.0} ns", start.elapsed().as_nanos() as f64 / f64::from(ROUNDS));
}

fn main() {
    let declared = Declared::of_schema(&Structural::parse(&schema()), Root::Value, "selfType").expect("a schema");
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
        let checked = env.compile(text).expect("it compiles");
        let program = Program::new(env, &checked).expect("it can be planned");
        let (result, cost) = program.eval(&variables);
        assert!(matches!(result, Ok(Val::Bool(true))), "{text}: {result:?}");
        measure(&format!("run, cost {cost}: {text}"), || drop(black_box(program.eval(&variables))));
        measure(&format!("compile: {text}"), || {
            let checked = env.compile(text).expect("it compiles");
            drop(black_box(Program::new(env, &checked)));
        });
    }
}
