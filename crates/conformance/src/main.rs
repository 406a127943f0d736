//! `conformance`: replays the recorded exchanges and exits with 1 if an answer differs in a way that the list does not name.

use kubelith_conformance::corpus::{self, FileOutcome, Target};
use kubelith_conformance::harness::{Etcd, Store};
use kubelith_conformance::http::Address;
use kubelith_conformance::known::{Known, StepId, UNEXPLAINED};
use kubelith_conformance::replay::Tokens;
use kubelith_conformance::report::{self, Detail, Show, Verdict};
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
conformance [options] [area | file | area/file]...

  Replays recorded kube-apiserver exchanges against a server that it starts, and prints where answers differ.
  --stores LIST      memory (default), embedded, etcd; with commas
  --server URL       use this running server instead (on loopback)
  --jobs N           files at a time, each on a server of its own (8; 1 with --server)
  --bless            write the differences found to the list of known ones, and take out those that are gone
  --ignore-known     as if nothing were listed
  --binary FILE      the server (default: kubelith beside this program)
  --etcd FILE        etcd (default: target/tools/bin/etcd)
  --root DIR         the recorded files (default: tests/conformance)
  --admin-token T, --user-token T
  -v                 every difference in full; -q  only a line per file
";

/// Few enough for two cores, enough to wait on several watches at once.
const WORKERS: usize = 8;

struct Options {
    stores: Vec<Store>,
    server: Option<String>,
    jobs: Option<usize>,
    bless: bool,
    ignore_known: bool,
    binary: PathBuf,
    etcd: PathBuf,
    root: PathBuf,
    tokens: Tokens,
    detail: Detail,
    selected: Vec<String>,
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)).and_then(|options| options.map_or(Ok(true), |options| run(&options))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("conformance: {message}");
            ExitCode::from(2)
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let beside = std::env::current_exe().map_err(|error| error.to_string())?.with_file_name("kubelith");
    let mut options = Options {
        stores: vec![Store::Memory],
        server: None,
        jobs: None,
        bless: false,
        ignore_known: false,
        binary: beside,
        etcd: PathBuf::from("target/tools/bin/etcd"),
        root: PathBuf::from("tests/conformance"),
        tokens: Tokens::default(),
        detail: Detail::Short,
        selected: Vec::new(),
    };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "-h" | "--help" => {
                print!("{HELP}");
                return Ok(None);
            }
            "--stores" => options.stores = value()?.split(',').map(Store::parse).collect::<Result<_, _>>()?,
            "--server" => options.server = Some(value()?),
            "--jobs" => options.jobs = Some(value()?.parse().map_err(|_| "--jobs needs a number")?),
            "--bless" => options.bless = true,
            "--ignore-known" => options.ignore_known = true,
            "--binary" => options.binary = value()?.into(),
            "--etcd" => options.etcd = value()?.into(),
            "--root" => options.root = value()?.into(),
            "--admin-token" => options.tokens.admin = value()?,
            "--user-token" => options.tokens.user = value()?,
            "-v" | "--verbose" => options.detail = Detail::Full,
            "-q" | "--quiet" => options.detail = Detail::Quiet,
            flag if flag.starts_with('-') => return Err(format!("unknown option {flag}\n{HELP}")),
            selected => options.selected.push(selected.to_owned()),
        }
    }
    Ok(Some(options))
}

/// Whether everything is as listed, over all stores.
fn run(options: &Options) -> Result<bool, String> {
    let list = options.root.join("known-differences.txt");
    let mut known: Known<StepId> = if options.ignore_known { Known::default() } else { Known::load(&list)? };
    let (mut passed, mut failed, mut listed) = (0, 0, 0);
    for (name, target, jobs) in targets(options)? {
        let verdict = on_target(options, &known, &name, &target, jobs)?;
        if options.bless {
            known.bless(&verdict.stale, &verdict.new, likely_reason);
        }
        passed += verdict.same.len();
        listed += verdict.known.len();
        failed += verdict.failed();
    }
    if options.bless {
        known.save(&list).map_err(|error| format!("{}: {error}", list.display()))?;
        println!("{}: {} known differences", list.display(), known.len());
        return Ok(true);
    }
    println!("{listed} known differences");
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}

/// What an area is about tells most often why a step of it differs.
fn likely_reason(id: &StepId) -> &'static str {
    match id.file.split('/').next().unwrap_or_default() {
        "admission" => "admission",
        "aggregation" => "aggregation",
        "auth" => "access control",
        "crds" => "custom resources",
        "discovery-openapi" => "discovery and OpenAPI",
        "kinds" => "behaviour of the kind",
        "validation" => "validation",
        _ => UNEXPLAINED,
    }
}

fn targets(options: &Options) -> Result<Vec<(String, Target, usize)>, String> {
    if let Some(url) = &options.server {
        return Ok(vec![(url.clone(), Target::Running(Address::parse(url)?), options.jobs.unwrap_or(1))]);
    }
    let started = options.stores.iter().map(|store| {
        let etcd = if *store == Store::Etcd { Some(Etcd::start(&options.etcd)?) } else { None };
        let target = Target::Started { binary: options.binary.clone(), store: *store, etcd };
        Ok((format!("the {} store", store.name()), target, options.jobs.unwrap_or(WORKERS)))
    });
    started.collect()
}

fn on_target(
    options: &Options,
    known: &Known<StepId>,
    name: &str,
    target: &Target,
    jobs: usize,
) -> Result<Verdict, String> {
    let files = corpus::load(&options.root, &options.selected)?;
    println!("replaying {} files on {name}", files.len());
    let show = if options.selected.is_empty() { Show::NewOnly } else { Show::KnownToo };
    let print = |outcome: &FileOutcome| print!("{}", report::file(outcome, known, options.detail, show));
    let jobs = jobs.clamp(1, files.len().max(1));
    let outcomes = corpus::run(files, target, jobs, &options.tokens, known, &print)?;
    Ok(Verdict::of(&outcomes, known))
}
