//! `cargo xtask …`: everything that a contributor runs. Depends on next to nothing, so that it builds in seconds.

mod bench;
mod browser;
mod cel_facts;
mod conformance;
#[cfg(test)]
mod deny;
mod dist;
mod envtest;
#[cfg(test)]
mod flags;
#[cfg(test)]
mod gates;
#[cfg(test)]
mod knots;
#[cfg(test)]
mod layers;
#[cfg(test)]
mod monitoring;
mod order;
mod profile;
mod robustness;
mod run;
#[cfg(test)]
mod targets;
mod test;
mod tools;
mod zones;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <command>

  test [stage|filter]...                 all that CI runs; stages: fmt clippy tools build unit conformance clients console
  conformance [options] [area|file]...   replay the recorded exchanges; --help shows the options
  cel-facts [folder]                     replay what kube-apiserver makes of expressions in CEL (default: tests/cel)
  clients [options] [name-part]...       drive kubectl, Helm, the Python client and kube-rs; --help shows the options
  console [name-part]...                 the console in a headless Chromium; screenshots go to target/console
  tools                                  get kubectl, Helm, etcd, the Python client, Node and Chromium into target/tools
  bench [arguments]                      measure the server under load (release build)
  robustness [options]                   clients under faults, with every answer checked; --help shows the options
  dist [options]                         build and pack all that is handed out; dist --help shows the options
  ports                                  whether the server compiles for Windows and macOS (gets zig into target/tools)
  envtest [--binaries F] [--url URL]     pack what controller-runtime's envtest starts, and the index for setup-envtest
  profile [FILE]                         make that profile: what the server does under load
  order                                  write crates/kubelith/order.txt anew: how functions lie in the program (needs valgrind)
  zones [tzdata.zi]                      pack the tz database for expressions in CEL (needs zic, which comes with libc)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Cargo starts the compiler through this program when it builds for shipping, and for counting.
    if let Some(code) = profile::compile(&arguments).or_else(|| robustness::compile(&arguments)) {
        return code;
    }
    let outcome = match arguments.split_first() {
        Some((command, rest)) => dispatch(command, rest),
        None => Err(HELP.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: &str, rest: &[String]) -> Result<(), String> {
    match command {
        "test" => test::test(rest),
        "bench" => bench::run_with(rest),
        "cel-facts" => cel_facts::replay(rest),
        "conformance" => conformance::run_with(rest),
        "clients" => conformance::clients(rest),
        "console" => browser::run_with(rest),
        "robustness" => robustness::run_with(rest),
        "tools" => tools::install().and_then(|()| browser::install()),
        "dist" => dist::dist(rest),
        "ports" => dist::zig::ports(),
        "envtest" => envtest::pack_with(rest),
        "profile" => profile::make(rest),
        "order" => order::make(rest),
        "zones" => zones::make(rest),
        "help" | "-h" | "--help" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("unknown command {other:?}\n\n{HELP}")),
    }
}
