//! `bench`: puts the same loads on a server that it starts, and on another one if told, and compares them side by side.
//! Processor time per operation is the figure to trust: it hardly depends on what else the machine does.

mod admission;
mod client;
mod controllers;
mod crds;
mod definitions;
mod loads;
mod objects;
mod outcome;
mod process;
mod report;
mod static_files;
mod target;
mod upkeep;
mod watch;
mod webhook;

use loads::{Load, Size};
use objects::Kind;
use report::Row;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use target::Target;
use watch::Crowd;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const HELP: &str = "\
bench [options] [load]...

  Loads: create get list list-proto list-label list-field patch apply watch delete (default: all of these, in this order)
         custom-create custom-get custom-list custom-patch custom-watch: the same on objects of a custom kind
         watch-nodes: each watcher has a field selector of its own, as kubelets have, and each write is for one of them; the
         memory that a watcher takes is told, too. 10000 watchers need as many file descriptors at both ends (ulimit -n)
         admit admit-policy admit-others admit-beside admit-webhook: pods are created as dry runs; with a policy, with many
         policies about other resources, with a webhook that the clients ask and one that the server asks
         crd-ready: a definition is created, established, and has its first object; crds: many definitions, one after
         another; crd-discovery: aggregated discovery
         namespace-delete: a namespace with objects of 20 kinds; collect, collect-foreground: a tree of three levels whose
         first object is deleted. The server that is started runs its controllers for these
         list-few: a list of the 5 objects with a label; watch-start: a watch begins at the present; restart: the server is
         ended and started again over what it has stored, until it is ready; patch-backup: objects are patched as long as a
         backup takes; patch-compact: they are patched while the store lets go of its past
  --binary FILE         the server that is started (default: kubelith beside this program)
  --store NAME          of the server that is started: embedded (default), memory or etcd
  --against URL=PIDS    the same loads on this running server; PIDS (with commas) are its processes, its etcd's too
  --only URL=PIDS       only on this running server
  --static NGINX        get and list also of this program, which serves what the server answers as files,
                        of which it keeps as many open as there are pods (ulimit -n)
  --token T             (admintoken)
  --pods N              how many pods are created (2000)
  --kind NAME           pods (default; 8 KB) or configmaps (1 KB): of what the loads of the usual kind, and those after them, are
  --sizes A,B,...       the loads with so many objects, one size after another (default: get list list-few patch watch-start
                        create delete restart; a few objects are created and deleted again)
  --seconds S           how long get, list, patch and apply run (5)
  --clients N           requests at a time (32)
  --watchers N          (1000)
  --per-connection N    watchers that share a connection (1)
  --settle S            seconds between the last watcher and the first write, after which its memory is measured (0)
  --writes N            that they see (1000)
  --rate N              writes in a second (1000)
  --definitions N       of `crds` (1000)
  --objects N           in the namespace (10000) or tree (30000) that is deleted
  --json                a line of JSON for each load, instead of a table
";

struct Options {
    binary: PathBuf,
    store: String,
    against: Option<String>,
    only: Option<String>,
    files: Option<PathBuf>,
    token: String,
    size: Size,
    json: bool,
    sizes: Vec<usize>,
    loads: Vec<Load>,
}

/// Objects that are created and deleted again at each of `--sizes`.
const TURNED_OVER: usize = 2000;

fn main() -> ExitCode {
    let outcome = parse(std::env::args().skip(1)).and_then(|options| match options {
        Some(options) => tokio::runtime::Runtime::new()?.block_on(run(options)),
        None => Ok(()),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>> {
    let mut options = Options {
        binary: std::env::current_exe()?.with_file_name("kubelith"),
        store: "embedded".to_owned(),
        against: None,
        only: None,
        files: None,
        token: "admintoken".to_owned(),
        size: Size {
            kind: Kind::Pods,
            pods: 2000,
            first: 0,
            once: 2000,
            duration: Duration::from_secs(5),
            clients: 32,
            crowd: Crowd { watchers: 1000, per_connection: 1, writes: 1000, rate: 1000.0, settle: Duration::ZERO },
            definitions: 1000,
            objects: 0,
        },
        json: false,
        sizes: Vec::new(),
        loads: Vec::new(),
    };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "-h" | "--help" => {
                print!("{HELP}");
                return Ok(None);
            }
            "--binary" => options.binary = value()?.into(),
            "--store" => options.store = value()?,
            "--against" => options.against = Some(value()?),
            "--only" => options.only = Some(value()?),
            "--static" => options.files = Some(value()?.into()),
            "--token" => options.token = value()?,
            "--pods" => options.size.pods = value()?.parse()?,
            "--kind" => {
                let name = value()?;
                options.size.kind = Kind::parse(&name).ok_or_else(|| format!("unknown kind {name:?}"))?;
            }
            "--sizes" => {
                options.sizes = value()?.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?;
                options.sizes.sort_unstable();
            }
            "--seconds" => options.size.duration = Duration::from_secs_f64(value()?.parse()?),
            "--clients" => options.size.clients = value()?.parse()?,
            "--watchers" => options.size.crowd.watchers = value()?.parse()?,
            "--per-connection" => options.size.crowd.per_connection = value()?.parse()?,
            "--writes" => options.size.crowd.writes = value()?.parse()?,
            "--settle" => options.size.crowd.settle = Duration::from_secs_f64(value()?.parse()?),
            "--rate" => options.size.crowd.rate = value()?.parse()?,
            "--definitions" => options.size.definitions = value()?.parse()?,
            "--objects" => options.size.objects = value()?.parse()?,
            "--json" => options.json = true,
            load => options.loads.push(Load::parse(load).ok_or_else(|| format!("unknown load {load:?}\n{HELP}"))?),
        }
    }
    options.size.once = options.size.pods;
    if options.loads.is_empty() {
        options.loads = if options.sizes.is_empty() { Load::USUAL.to_vec() } else { Load::AT_SIZES.to_vec() };
    }
    Ok(Some(options))
}

async fn run(mut options: Options) -> Result<()> {
    let mut targets = targets(&options)?;
    for target in &targets {
        println!("{}: {}", target.name, target.describe()?);
        loads::prepare(target).await?;
    }
    let mut rows = Rows { rows: Vec::new(), json: options.json };
    if options.sizes.is_empty() {
        for load in &options.loads {
            if let Some(program) = options.files.take_if(|_| static_files::serve(*load)) {
                targets.push(static_files::start(&program, &targets[0], &options.size).await?);
            }
            rows.measure(*load, &mut targets, &options.size).await?;
        }
    }
    let mut there = 0;
    for objects in options.sizes {
        let filled = Size { pods: objects, first: there, once: objects.saturating_sub(there), ..options.size };
        rows.measure(Load::Create, &mut targets, &filled).await?;
        there = objects;
        let size = Size { first: objects, once: TURNED_OVER, ..filled };
        for load in &options.loads {
            rows.measure(*load, &mut targets, &size).await?;
        }
    }
    if !rows.json {
        print!("{}", report::table(&rows.rows));
    }
    targets.into_iter().try_for_each(Target::stop)
}

fn targets(options: &Options) -> Result<Vec<Target>> {
    if let Some(server) = &options.only {
        return Ok(vec![Target::running(server, &options.token)?]);
    }
    let mut flags = Vec::new();
    if options.loads.iter().any(|load| load.needs_controllers()) {
        flags.push("--controllers=*".to_owned());
    }
    if options.loads.contains(&Load::PatchCompact) {
        flags.push(upkeep::COMPACTING.to_owned());
    }
    let mut targets = vec![Target::start(options.binary.clone(), &options.store, flags)?];
    if let Some(server) = &options.against {
        targets.push(Target::running(server, &options.token)?);
    }
    Ok(targets)
}

/// What was measured by now.
struct Rows {
    rows: Vec<Row>,
    json: bool,
}

impl Rows {
    /// On one target after the other, so that each has the machine to itself.
    async fn measure(&mut self, load: Load, targets: &mut [Target], size: &Size) -> Result<()> {
        for target in targets.iter_mut().filter(|target| !target.is_of_files() || static_files::serve(load)) {
            let before = target.usage()?;
            let outcome = match load {
                Load::Restart => upkeep::restart(target)?,
                load => loads::run(load, target, size).await?,
            };
            let usage = outcome.usage.unwrap_or((before, target.usage()?));
            let row = Row::new(load, &target.name, size.pods, outcome, usage);
            if self.json {
                println!("{}", row.json());
            }
            self.rows.push(row);
        }
        Ok(())
    }
}
