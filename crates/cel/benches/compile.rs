//! What it costs to compile a rule, and to make the environment of a schema: `cargo bench -p kubelith-cel`.

use kubelith_cel::declared::{Declared, Root};
use kubelith_cel::{Env, estimate};
use kubelith_meta::Value;
use kubelith_schema::structural::Structural;
use std::hint::black_box;
use std::time::{Duration, Instant};

const RULES: [&str; 5] = [
    "self.minReplicas <= self.replicas && self.replicas <= self.maxReplicas",
    "self.ports.all(p, p.port >= 1 && p.port <= 65535)",
    "self == oldSelf",
    "!has(self.name) || self.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
    "self.ports.exists_one(p, p.name == 'http') && self.ports.map(p, p.port).sum() < 100000",
];

fn schema() -> Structural {
    let int = || Value::from([("type", Value::from("integer"))]);
    let text = || Value::from([("type", Value::from("string")), ("maxLength", Value::Int(63))]);
    let port = Value::from([
        ("type", Value::from("object")),
        ("properties", Value::from([("name", text()), ("port", int())])),
    ]);
    let ports = Value::from([("type", Value::from("array")), ("maxItems", Value::Int(100)), ("items", port)]);
    let properties = Value::from([
        ("minReplicas", int()),
        ("maxReplicas", int()),
        ("replicas", int()),
        ("name", text()),
        ("ports", ports),
    ]);
    Structural::parse(&Value::from([("type", Value::from("object")), ("properties", properties)]))
}

/// The time of one turn, from as many as fit into a part of a second.
fn time(name: &str, mut turn: impl FnMut()) {
    const SPAN: Duration = Duration::from_millis(300);
    let (start, mut turns) = (Instant::now(), 0u32);
    while start.elapsed() < SPAN {
        for _ in 0..100 {
            turn();
        }
        turns += 100;
    }
    println!("{:>9.2} µs  {name}", start.elapsed().as_secs_f64() * 1e6 / f64::from(turns));
}

fn main() {
    let base = Env::base();
    let schema = schema();
    let env = || {
        let declared = Declared::of_schema(&schema, Root::Value, "selfType").expect("an object");
        base.clone().types(vec![declared.clone()]).declare("self", declared.clone()).declare("oldSelf", declared)
    };
    time("environment of a schema", || {
        black_box(env());
    });
    let env = env();
    let declared = env.variables()[0].declared.clone();
    for rule in RULES {
        time(rule, || {
            black_box(env.compile(black_box(rule)).expect("a rule"));
        });
        let checked = env.compile(rule).expect("a rule");
        time("  its estimate", || {
            black_box(estimate::cost(&checked, declared.as_ref()));
        });
    }
    time("a mistake: `1 + + 2`", || {
        black_box(env.compile("1 + + 2").is_err());
    });
}
