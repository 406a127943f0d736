//! `clients`: runs the real clients against a server that it starts, or against a running one.

use kubelith_conformance::clients::{self, Context, Outcome};
use kubelith_conformance::harness::{Launch, Server, Store};
use kubelith_conformance::http::Address;
use kubelith_conformance::known::{Known, UNEXPLAINED};
use kubelith_conformance::replay::Tokens;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tempfile::TempDir;

const HELP: &str = "\
clients [options] [name-part]...

  --store NAME       memory (default), embedded or etcd
  --server URL       use this running server (on loopback) with --token, instead of starting one
  --token T          (admintoken)
  --jobs N           checks at a time (4)
  --tools DIR        kubectl, helm, the Python client (default: target/tools)
  --binary FILE      the server (default: kubelith beside this program)
  --fixtures DIR     (default: tests/clients)
  --bless            write the failures to the list of known ones, and take out those that are gone
  --ignore-known     as if nothing were listed
  --list             only print the names
  -v                 print also how known failures fail
";

struct Options {
    store: Store,
    server: Option<String>,
    token: String,
    jobs: usize,
    tools: PathBuf,
    binary: PathBuf,
    fixtures: PathBuf,
    bless: bool,
    ignore_known: bool,
    list: bool,
    verbose: bool,
    names: Vec<String>,
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)).and_then(|options| options.map_or(Ok(true), |options| run(&options))) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("clients: {message}");
            ExitCode::from(2)
        }
    }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let mut options = Options {
        store: Store::Memory,
        server: None,
        token: Tokens::default().admin,
        jobs: 4,
        tools: PathBuf::from("target/tools"),
        binary: std::env::current_exe().map_err(|error| error.to_string())?.with_file_name("kubelith"),
        fixtures: PathBuf::from("tests/clients"),
        bless: false,
        ignore_known: false,
        list: false,
        verbose: false,
        names: Vec::new(),
    };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "-h" | "--help" => {
                print!("{HELP}");
                return Ok(None);
            }
            "--store" => options.store = Store::parse(&value()?)?,
            "--server" => options.server = Some(value()?),
            "--token" => options.token = value()?,
            "--jobs" => options.jobs = value()?.parse().map_err(|_| "--jobs needs a number")?,
            "--tools" => options.tools = value()?.into(),
            "--binary" => options.binary = value()?.into(),
            "--fixtures" => options.fixtures = value()?.into(),
            "--bless" => options.bless = true,
            "--ignore-known" => options.ignore_known = true,
            "--list" => options.list = true,
            "-v" | "--verbose" => options.verbose = true,
            flag if flag.starts_with('-') => return Err(format!("unknown option {flag}\n{HELP}")),
            name => options.names.push(name.to_owned()),
        }
    }
    Ok(Some(options))
}

fn run(options: &Options) -> Result<bool, String> {
    let home = TempDir::new().map_err(|error| format!("temporary directory: {error}"))?;
    let (tools, fixtures) = (absolute(&options.tools)?, absolute(&options.fixtures)?);
    let mut context = Context::new(tools, fixtures, home.path().join("kubeconfig"), home.path().to_owned());
    let mut checks = clients::all(&context)?;
    checks.retain(|check| options.names.is_empty() || options.names.iter().any(|part| check.name.contains(part)));
    if options.list {
        checks.iter().for_each(|check| println!("{}", check.name));
        return Ok(true);
    }
    // The server lives as long as its handle; one that is running already needs none.
    let mut started = None;
    match &options.server {
        Some(url) => {
            Address::parse(url)?;
            let text = kubeconfig(url, &options.token);
            std::fs::write(&context.kubeconfig, text)
                .map_err(|error| format!("{}: {error}", context.kubeconfig.display()))?;
        }
        None => {
            let launch = Launch {
                binary: options.binary.clone(),
                store: options.store,
                etcd: context.tools.join("bin/etcd"),
                // A service that stands for loopback has no endpoints.
                flags: vec!["--runtime-config=api/all=true".to_owned(), "--enable-aggregator-routing=false".to_owned()],
            };
            let server = Server::start(&launch, &Tokens::default())?;
            context.kubeconfig = server.kubeconfig();
            started = Some(server);
        }
    }
    let list = options.fixtures.join("known-failures.txt");
    let known = if options.ignore_known { Known::default() } else { Known::<String>::load(&list)? };
    let print =
        |name: &str, outcome: &Outcome| print_outcome(name, outcome, known.contains(&name.to_owned()), options.verbose);
    let outcomes = clients::run(checks, &context, options.jobs.max(1), &print);
    if let Some(server) = &mut started
        && !server.is_alive()
    {
        return Err(format!("the server died; its log:\n{}", server.log()));
    }
    conclude(outcomes, known, options, &list)
}

fn print_outcome(name: &str, outcome: &Outcome, is_known: bool, verbose: bool) {
    match (outcome, is_known) {
        (Ok(()), false) => println!("ok    {name}"),
        (Ok(()), true) => println!("FAIL  {name} passes again: take it off the list"),
        (Err(_), true) if !verbose => println!("known {name}"),
        (Err(message), _) => {
            let word = if is_known { "known" } else { "FAIL " };
            println!("{word} {name}\n      {}", message.trim_end().replace('\n', "\n      "));
        }
    }
}

fn conclude(
    outcomes: Vec<(String, Outcome)>,
    mut known: Known<String>,
    options: &Options,
    list: &Path,
) -> Result<bool, String> {
    let (passed, failed): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(|(_, outcome)| outcome.is_ok());
    let names = |outcomes: Vec<(String, Outcome)>| outcomes.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let (passed, failed) = (names(passed), names(failed));
    if options.bless {
        known.bless(&passed, &failed, |_| UNEXPLAINED);
        known.save(list).map_err(|error| format!("{}: {error}", list.display()))?;
        println!("{}: {} known failures", list.display(), known.len());
        return Ok(true);
    }
    let stale = passed.iter().filter(|name| known.contains(name)).count();
    let listed = failed.iter().filter(|name| known.contains(name)).count();
    let bad = failed.len() - listed + stale;
    println!("{listed} known failures");
    println!("{} passed, {bad} failed", passed.len() - stale);
    Ok(bad == 0)
}

fn kubeconfig(server: &str, token: &str) -> String {
    format!(
        r#"apiVersion: v1
kind: Config
clusters: [{{name: test, cluster: {{server: "{server}", insecure-skip-tls-verify: true}}}}]
users: [{{name: admin, user: {{token: "{token}"}}}}]
contexts: [{{name: test, context: {{cluster: test, user: admin}}}}]
current-context: test
"#
    )
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))
}
