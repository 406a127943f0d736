//! What it costs to compile the rules of many definitions: `cargo bench -p kubelith-cel --bench compile`.

mod common;

use common::{FIVE_RULES, declared, processor_time, time};
use kubelith_cel::declared::Declared;
use kubelith_cel::{Env, Program, estimate};
use std::hint::black_box;

const RULES: [&str; 5] = [
    "self.minReplicas <= self.replicas && self.replicas <= self.maxReplicas",
    "self.ports.all(p, p.port >= 1 && p.port <= 65535)",
    "self == oldSelf",
    "!has(self.name) || self.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
    "self.ports.exists_one(p, p.name == 'http') && self.ports.map(p, p.port).sum() < 100000",
];
const DEFINITIONS: u32 = 1000;
const RULES_OF_EACH: usize = 20;

fn environment(base: &Env, declared: &Declared) -> Env {
    base.clone().types(vec![declared.clone()]).declare("self", declared.clone()).declare("oldSelf", declared.clone())
}

/// What the process has in memory, in bytes.
fn memory() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

/// As many definitions as a large cluster has, each with a schema of its own.
fn definitions(name: &str, base: &Env, rules: &[&str]) {
    let (before, began) = (memory(), processor_time());
    let kept: Vec<_> = (0..DEFINITIONS)
        .map(|_| {
            let declared = declared();
            let env = environment(base, &declared);
            let programs = rules.iter().cycle().take(RULES_OF_EACH).map(|rule| {
                let checked = env.compile(rule).expect("a rule");
                black_box(estimate::cost(&checked, Some(&declared)));
                Program::new(&env, &checked).expect("it can be planned")
            });
            let programs: Vec<Program> = programs.collect();
            (declared, programs)
        })
        .collect();
    let took = processor_time().saturating_sub(began);
    let bytes = memory().saturating_sub(before) / u64::from(DEFINITIONS);
    println!(
        "{:>9} ms  {DEFINITIONS} definitions with {RULES_OF_EACH} rules ({name}), {bytes} bytes each",
        took.as_millis()
    );
    drop(black_box(kept));
}

fn main() {
    let base = Env::base();
    definitions("simple", &base, &FIVE_RULES);
    definitions("with loops and a pattern", &base, &RULES);
    let declared = declared();
    time("environment of a schema", || drop(black_box(environment(&base, &declared))));
    let env = environment(&base, &declared);
    for rule in RULES {
        time(rule, || drop(black_box(env.compile(black_box(rule)).expect("a rule"))));
        let checked = env.compile(rule).expect("a rule");
        time("  its estimate", || {
            black_box(estimate::cost(&checked, Some(&declared)));
        });
        time("  its program", || drop(black_box(Program::new(&env, &checked))));
    }
    time("a mistake: `1 + + 2`", || {
        black_box(env.compile("1 + + 2").is_err());
    });
}
