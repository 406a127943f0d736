//! `robustness`: runs clients and faults against servers that it starts, and says whether all that is promised held.

use kubelith_conformance::http::Address;
use kubelith_robustness::faults::FaultKind;
use kubelith_robustness::plan::{Plan, Store};
use kubelith_robustness::run::run;
use kubelith_robustness::{fuzz, overload, soak};
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

/// As the server has it, which may run within this process.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HELP: &str = "\
robustness [options]
robustness fuzz [options]
robustness overload [options]
robustness soak [options]

  Without a word: clients and faults, and every answer is checked.
  --program FILE     the server (default: kubelith beside this program)
  --stores LIST      memory, embedded, etcd (default: all, one after another)
  --servers N        on one etcd (2)
  --duration S       seconds for each store (60)
  --kills N          ends before that time, after so many kills of servers and members
  --faults LIST      kill, restart-loop, restart, pause, disk-full, descriptors, compact, compact-while-down, kill-member,
                     kill-leader, pause-member, cut, silence, delay, clock, memory, or none (default: those that fit the
                     store, without clock and memory)
  --quiet MS         between two faults, at most (1200)
  --every S          seconds from one fault to the next, in place of that. With no faults but kill, restart-loop and
                     restart, nobody but clients of the server that is down may have an error
  --writers N        (6)
  --seed N           repeats the plan of a run: its operations and its faults

  fuzz: requests grown from the recorded exchanges; no panics, no hangs, no growth without bound.
  --program, --duration, --seed as above
  --requests N       ends before that time
  --clients N        (4)
  --in-process       servers within this program, one for each processor; --clients is of each (48)
  --coverage         the same in a build that is instrumented for it (cargo xtask makes it): requests that pass edges of the
                     code which no other one passed are grown from, too, and the last line tells how many were passed
  --feedback WHAT    on: grows from requests that led to answers of a new kind, or to new edges; answers, edges: only from
                     those; off: only from recorded requests
  --against URL      sends all of them to this server, too, as the user of the token robust-token, and tells which answers
                     have another code, or say something else, there; with --clients 1 both servers see the requests in the same order

  overload: a storm, and what others notice of it, with priority and fairness and without.
  --program, --duration as above
  --clients N        (400)
  --storm WHAT       lists, watches, events, slow-readers (lists)
  --apart            the server has the first processor for itself, and all clients the second
  --objects N        that a list has (300)
  --bytes N          of each (4000)
  --flag FLAG        of the server, as --flag=--memory-budget=256Mi

  soak: everything that can come and go does; what the server takes for it must not grow.
  --program, --duration, --seed, --flag as above
";

struct Options {
    plan: Plan,
    stores: Vec<Store>,
    servers: usize,
    faults: Option<Vec<FaultKind>>,
    requests: usize,
    feedback: fuzz::Feedback,
    edges: Option<fuzz::Count>,
    against: Option<Address>,
    clients: Option<usize>,
    objects: usize,
    bytes: usize,
    storm: overload::Storm,
    processors: overload::Processors,
    /// Where the servers of `fuzz` run.
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Process,
    Here,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).peekable();
    let what = arguments.next_if(|word| !word.starts_with('-')).unwrap_or_default();
    let outcome = match what.as_str() {
        "storm" => storm(arguments),
        _ => parse(arguments).and_then(|options| match (what.as_str(), options) {
            (_, None) => Ok(true),
            ("", Some(options)) => all(&options),
            ("fuzz", Some(options)) => throw(&options),
            ("overload", Some(options)) => overloaded(&options),
            ("soak", Some(options)) => soaked(&options),
            (other, _) => Err(format!("unknown word {other:?}\n\n{HELP}")),
        }),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("robustness: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let beside = std::env::current_exe().map_err(|error| error.to_string())?.with_file_name("kubelith");
    let now = UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos() as u64);
    let mut plan = Plan::new(beside, Store::Embedded, now % 1_000_000_000);
    plan.duration = Duration::from_secs(60);
    let mut options = Options {
        plan,
        stores: vec![Store::Memory, Store::Embedded, Store::Etcd],
        servers: 2,
        faults: None,
        requests: usize::MAX,
        feedback: fuzz::Feedback::Followed,
        edges: None,
        against: None,
        clients: None,
        objects: 300,
        bytes: 4000,
        storm: overload::Storm::Lists,
        processors: overload::Processors::Shared,
        place: Place::Process,
    };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("{text:?} is no number"));
        match argument.as_str() {
            "-h" | "--help" => {
                print!("{HELP}");
                return Ok(None);
            }
            "--program" => options.plan.program = value()?.into(),
            "--stores" => options.stores = value()?.split(',').map(Store::parse).collect::<Result<_, _>>()?,
            "--servers" => options.servers = number(value()?)?.max(1) as usize,
            "--duration" => options.plan.duration = Duration::from_secs(number(value()?)?),
            "--kills" => options.plan.kills = Some(number(value()?)? as usize),
            "--faults" => {
                let names = value()?;
                let named = names.split(',').filter(|name| *name != "none").map(FaultKind::parse);
                options.faults = Some(named.collect::<Result<_, _>>()?);
            }
            "--quiet" => {
                let most = Duration::from_millis(number(value()?)?);
                options.plan.quiet = (options.plan.quiet.0.min(most), most);
            }
            "--every" => options.plan.every = Some(Duration::from_secs(number(value()?)?)),
            "--writers" => options.plan.writers = number(value()?)? as usize,
            "--requests" => options.requests = number(value()?)? as usize,
            "--feedback" => options.feedback = fuzz::Feedback::parse(&value()?)?,
            "--in-process" => options.place = Place::Here,
            "--coverage" => (options.place, options.edges) = (Place::Here, Some(counted()?)),
            "--against" => options.against = Some(Address::parse(&value()?)?),
            "--clients" => options.clients = Some(number(value()?)? as usize),
            "--storm" => options.storm = overload::Storm::parse(&value()?)?,
            "--apart" => options.processors = overload::Processors::Apart,
            "--objects" => options.objects = number(value()?)? as usize,
            "--bytes" => options.bytes = number(value()?)? as usize,
            "--flag" => options.plan.flags.push(value()?),
            flag if flag.starts_with("--flag=") => options.plan.flags.push(flag["--flag=".len()..].to_owned()),
            "--seed" => options.plan.seed = number(value()?)?,
            other => return Err(format!("unknown option {other:?}\n\n{HELP}")),
        }
    }
    Ok(Some(options))
}

/// Whether all of them were good.
fn all(options: &Options) -> Result<bool, String> {
    let mut good = true;
    for store in &options.stores {
        let servers = if *store == Store::Etcd { options.servers } else { 1 };
        let faults = options.faults.clone().unwrap_or_else(|| FaultKind::of(*store));
        let plan = Plan { store: *store, servers, faults, ..options.plan.clone() };
        println!("== {store:?}, {servers} servers, seed {}", plan.seed);
        let verdict = run(&plan)?;
        print!("{}", verdict.text());
        good &= verdict.is_good();
    }
    Ok(good)
}

fn throw(options: &Options) -> Result<bool, String> {
    let plan = &options.plan;
    println!("seed {}", plan.seed);
    let throws = fuzz::Options {
        program: plan.program.clone(),
        corpus: fuzz::default_corpus(),
        seed: plan.seed,
        clients: options.clients.unwrap_or(4),
        duration: plan.duration,
        requests: options.requests,
        feedback: options.feedback,
        edges: options.edges,
        against: options.against.clone(),
    };
    let found = match options.place {
        Place::Process => fuzz::run(&throws)?,
        Place::Here => throw_here(fuzz::Options { clients: options.clients.unwrap_or(48), ..throws })?,
    };
    print!("{}", found.text());
    Ok(found.problems.is_empty() && found.errors.is_empty())
}

/// What counts the edges of the code that were passed, if somebody put flags there.
fn counted() -> Result<fuzz::Count, String> {
    const HOW: &str =
        "--coverage needs a build that is instrumented: `cargo xtask robustness fuzz --coverage` makes it";
    (kubelith_coverage::all() > 0).then_some(kubelith_coverage::seen as fuzz::Count).ok_or_else(|| HOW.to_owned())
}

fn throw_here(options: fuzz::Options) -> Result<fuzz::Found, String> {
    if options.against.is_some() {
        return Err("--against needs a server in a process of its own".to_owned());
    }
    fuzz::within::run(&options, std::thread::available_parallelism().map_or(1, usize::from))
}

fn overloaded(options: &Options) -> Result<bool, String> {
    let mut is_good = true;
    for fairness in ["true", "false"] {
        let mut flags = options.plan.flags.clone();
        flags.push(format!("--enable-priority-and-fairness={fairness}"));
        let (idle, stormy) = overload::run(&overload::Options {
            program: options.plan.program.clone(),
            clients: options.clients.unwrap_or(400),
            duration: options.plan.duration,
            objects: options.objects,
            bytes: options.bytes,
            storm: options.storm,
            processors: options.processors,
            flags,
        })?;
        println!("== priority and fairness: {fairness}\nidle\n{}storm\n{}", idle.text(), stormy.text());
        for problem in overload::problems(&idle, &stormy) {
            println!("PROBLEM {problem}");
            is_good = false;
        }
    }
    Ok(is_good)
}

fn soaked(options: &Options) -> Result<bool, String> {
    let plan = &options.plan;
    println!("seed {}", plan.seed);
    let soaked = soak::run(&soak::Options {
        program: plan.program.clone(),
        seed: plan.seed,
        duration: plan.duration,
        flags: plan.flags.clone(),
    })?;
    print!("{}", soaked.text());
    Ok(soaked.problems.is_empty() && soaked.grown().is_empty())
}

/// `storm PORT CLIENTS SECONDS WHAT`: started by `overload`.
fn storm(arguments: impl Iterator<Item = String>) -> Result<bool, String> {
    let arguments: Vec<String> = arguments.collect();
    let [port, clients, seconds, what] = &arguments[..] else {
        return Err("storm PORT CLIENTS SECONDS WHAT".to_owned());
    };
    let number = |text: &String| text.parse::<u64>().map_err(|error| error.to_string());
    let port = port.parse().map_err(|_| format!("{port:?} is no port"))?;
    let (clients, time) = (number(clients)? as usize, Duration::from_secs(number(seconds)?));
    println!("{}", overload::storm(port, clients, time, overload::Storm::parse(what)?));
    Ok(true)
}
