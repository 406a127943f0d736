//! `robustness`: runs clients and faults against servers that it starts, and says whether all that is promised held.

use kubelith_robustness::faults::Kind;
use kubelith_robustness::plan::{Plan, Store};
use kubelith_robustness::run::run;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const HELP: &str = "\
robustness [options]

  --program FILE     the server (default: kubelith beside this program)
  --stores LIST      memory, embedded, etcd (default: all, one after another)
  --servers N        on one etcd (2)
  --duration S       seconds for each store (60)
  --kills N          ends before that time, after so many kills of servers and members
  --faults LIST      kill, restart-loop, restart, pause, disk-full, descriptors, compact, compact-while-down, kill-member,
                     kill-leader, pause-member, cut, silence, delay, or none (default: those that fit the store)
  --quiet MS         between two faults, at most (1200)
  --writers N        (6)
  --seed N           repeats the plan of a run: its operations and its faults
";

struct Options {
    plan: Plan,
    stores: Vec<Store>,
    servers: usize,
    faults: Option<Vec<Kind>>,
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)).and_then(|options| options.map_or(Ok(true), |options| all(&options))) {
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
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let mut plan = Plan::new(beside, Store::Embedded, now % 1_000_000_000);
    plan.duration = Duration::from_secs(60);
    let mut options =
        Options { plan, stores: vec![Store::Memory, Store::Embedded, Store::Etcd], servers: 2, faults: None };
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
                let named = names.split(',').filter(|name| *name != "none").map(Kind::parse);
                options.faults = Some(named.collect::<Result<_, _>>()?);
            }
            "--quiet" => {
                let most = Duration::from_millis(number(value()?)?);
                options.plan.quiet = (options.plan.quiet.0.min(most), most);
            }
            "--writers" => options.plan.writers = number(value()?)? as usize,
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
        let faults = options.faults.clone().unwrap_or_else(|| Kind::of(*store));
        let plan = Plan { store: *store, servers, faults, ..options.plan.clone() };
        println!("== {store:?}, {servers} servers, seed {}", plan.seed);
        let verdict = run(&plan)?;
        print!("{}", verdict.text());
        good &= verdict.is_good();
    }
    Ok(good)
}
