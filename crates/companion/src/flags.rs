//! The command line of an etcd: every flag that one has is taken, with one dash or two, and most mean nothing here.

use crate::Fsync;
use std::fmt::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

const DEFAULT_URL: &str = "http://localhost:2379";
const USAGE: &str = "\
The companion of Kubelith's kube-apiserver. It stands where tools expect an etcd: it answers /health and
/version, and a kube-apiserver of Kubelith's that is given its address keeps its objects in the data
folder. It keeps nothing itself and is no etcd for anybody else.

Usage:

  etcd [flags]

Flags that have an effect:

  --name 'default'
        Name of the data folder, if no other is given.
  --data-dir '${name}.etcd'
        Where kube-apiserver keeps its objects.
  --listen-client-urls 'http://localhost:2379'
        Where to listen; without TLS.
  --unsafe-no-fsync 'false'
        Objects need not be on disk when a write is answered.

Flags of etcd that are taken and mean nothing here:

";

/// Flags that take a value.
const VALUED: &[&str] = &[
    "advertise-client-urls",
    "auth-token",
    "auth-token-ttl",
    "auto-compaction-mode",
    "auto-compaction-retention",
    "backend-batch-interval",
    "backend-batch-limit",
    "backend-bbolt-freelist-type",
    "bcrypt-cost",
    "bootstrap-defrag-threshold-megabytes",
    "cert-file",
    "cipher-suites",
    "client-cert-allowed-hostname",
    "client-cert-file",
    "client-crl-file",
    "client-key-file",
    "compact-hash-check-time",
    "compaction-batch-limit",
    "compaction-sleep-interval",
    "config-file",
    "corrupt-check-time",
    "cors",
    "data-dir",
    "discovery",
    "discovery-cacert",
    "discovery-cert",
    "discovery-dial-timeout",
    "discovery-endpoints",
    "discovery-fallback",
    "discovery-keepalive-time",
    "discovery-keepalive-timeout",
    "discovery-key",
    "discovery-password",
    "discovery-proxy",
    "discovery-request-timeout",
    "discovery-srv",
    "discovery-srv-name",
    "discovery-token",
    "discovery-user",
    "distributed-tracing-address",
    "distributed-tracing-instance-id",
    "distributed-tracing-sampling-rate",
    "distributed-tracing-service-name",
    "downgrade-check-time",
    "election-timeout",
    "experimental-bootstrap-defrag-threshold-megabytes",
    "experimental-compact-hash-check-time",
    "experimental-compaction-batch-limit",
    "experimental-compaction-sleep-interval",
    "experimental-corrupt-check-time",
    "experimental-distributed-tracing-address",
    "experimental-distributed-tracing-instance-id",
    "experimental-distributed-tracing-sampling-rate",
    "experimental-distributed-tracing-service-name",
    "experimental-downgrade-check-time",
    "experimental-enable-v2v3",
    "experimental-max-learners",
    "experimental-snapshot-catchup-entries",
    "experimental-warning-apply-duration",
    "experimental-warning-unary-request-duration",
    "experimental-watch-progress-notify-interval",
    "feature-gates",
    "grpc-keepalive-interval",
    "grpc-keepalive-min-time",
    "grpc-keepalive-timeout",
    "heartbeat-interval",
    "host-whitelist",
    "initial-advertise-peer-urls",
    "initial-cluster",
    "initial-cluster-state",
    "initial-cluster-token",
    "key-file",
    "listen-client-http-urls",
    "listen-client-urls",
    "listen-metrics-urls",
    "listen-peer-urls",
    "log-format",
    "log-level",
    "log-outputs",
    "log-package-levels",
    "log-rotation-config-json",
    "logger",
    "max-concurrent-streams",
    "max-learners",
    "max-request-bytes",
    "max-snapshots",
    "max-txn-ops",
    "max-wals",
    "metrics",
    "name",
    "peer-cert-allowed-cn",
    "peer-cert-allowed-hostname",
    "peer-cert-file",
    "peer-client-cert-file",
    "peer-client-key-file",
    "peer-crl-file",
    "peer-key-file",
    "peer-trusted-ca-file",
    "proxy",
    "proxy-dial-timeout",
    "proxy-failure-wait",
    "proxy-read-timeout",
    "proxy-refresh-interval",
    "proxy-write-timeout",
    "quota-backend-bytes",
    "self-signed-cert-validity",
    "snapshot-catchup-entries",
    "snapshot-count",
    "tls-max-version",
    "tls-min-version",
    "trusted-ca-file",
    "v2-deprecation",
    "wal-dir",
    "warning-apply-duration",
    "warning-unary-request-duration",
    "watch-progress-notify-interval",
];

/// Flags that are true where they stand alone.
const SWITCHES: &[&str] = &[
    "auto-tls",
    "client-cert-auth",
    "discovery-insecure-skip-tls-verify",
    "discovery-insecure-transport",
    "enable-distributed-tracing",
    "enable-grpc-gateway",
    "enable-log-rotation",
    "enable-pprof",
    "enable-v2",
    "experimental-compact-hash-check-enabled",
    "experimental-enable-distributed-tracing",
    "experimental-enable-lease-checkpoint",
    "experimental-enable-lease-checkpoint-persist",
    "experimental-initial-corrupt-check",
    "experimental-memory-mlock",
    "experimental-peer-skip-client-san-verification",
    "experimental-stop-grpc-service-on-defrag",
    "experimental-txn-mode-write-with-shared-buffer",
    "force-new-cluster",
    "initial-election-tick-advance",
    "memory-mlock",
    "peer-auto-tls",
    "peer-client-cert-auth",
    "peer-skip-client-san-verification",
    "pre-vote",
    "socket-reuse-address",
    "socket-reuse-port",
    "strict-reconfig-check",
    "unsafe-no-fsync",
];

/// What is done about a command line.
#[derive(Debug, PartialEq, Eq)]
pub enum Command {
    Help,
    Version,
    Run(Options),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Options {
    pub data_dir: PathBuf,
    pub listen: Vec<SocketAddr>,
    pub sync: Fsync,
}

/// Reads a command line; what is wrong with it in the words of Go's flags, as etcd has them.
pub fn parse(words: &[String]) -> Result<Command, String> {
    let (mut name, mut data_dir) = ("default".to_owned(), None);
    let (mut urls, mut sync) = (DEFAULT_URL.to_owned(), Fsync::Always);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).filter(|f| !f.is_empty()) else {
            return Err(format!("{word:?} is not a valid flag"));
        };
        let (flag, value) = flag.split_once('=').map_or((flag, None), |(flag, value)| (flag, Some(value)));
        match flag {
            "h" | "help" => return Ok(Command::Help),
            "version" => return Ok(Command::Version),
            _ => {}
        }
        if SWITCHES.contains(&flag) {
            let on = read_bool(flag, value.unwrap_or("true"))?;
            if flag == "unsafe-no-fsync" {
                sync = if on { Fsync::Never } else { Fsync::Always };
            }
            continue;
        }
        if !VALUED.contains(&flag) {
            return Err(format!("flag provided but not defined: -{flag}"));
        }
        let value = value.map(str::to_owned).or_else(|| words.next().cloned());
        let value = value.ok_or_else(|| format!("flag needs an argument: -{flag}"))?;
        match flag {
            "name" => name = value,
            "data-dir" => data_dir = Some(PathBuf::from(value)),
            "listen-client-urls" => urls = value,
            "cert-file" | "key-file" if !value.is_empty() => {
                return Err(format!(
                    "-{flag}: the companion of kube-apiserver serves no TLS; start a real etcd for that"
                ));
            }
            _ => {}
        }
    }
    let data_dir = data_dir.filter(|dir| !dir.as_os_str().is_empty()).unwrap_or_else(|| format!("{name}.etcd").into());
    Ok(Command::Run(Options { data_dir, listen: addresses(&urls)?, sync }))
}

/// The values that Go takes for a switch.
fn read_bool(flag: &str, value: &str) -> Result<bool, String> {
    match value {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("invalid boolean value {value:?} for -{flag}: parse error")),
    }
}

fn addresses(urls: &str) -> Result<Vec<SocketAddr>, String> {
    let mut all = Vec::new();
    for url in urls.split(',').map(str::trim).filter(|url| !url.is_empty()) {
        let wrong = |why: &str| format!("invalid value {urls:?} for flag -listen-client-urls: {why}: {url}");
        if url.starts_with("https://") {
            return Err(wrong("the companion of kube-apiserver serves no TLS"));
        }
        let place = url.strip_prefix("http://").ok_or_else(|| wrong("URL scheme must be http"))?;
        let place = place.trim_end_matches('/');
        let found = place.to_socket_addrs().map_err(|why| wrong(&why.to_string()))?;
        all.extend(found);
    }
    match all.is_empty() {
        true => Err(format!("invalid value {urls:?} for flag -listen-client-urls: no address")),
        false => Ok(all),
    }
}

/// What `--help` prints: tools look here for the flags that they may use.
pub fn help() -> String {
    let with_effect = ["name", "data-dir", "listen-client-urls", "unsafe-no-fsync"];
    let mut text = USAGE.to_owned();
    for flag in VALUED.iter().chain(SWITCHES).filter(|flag| !with_effect.contains(flag)) {
        let _ = writeln!(text, "  --{flag}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Result<Command, String> {
        parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    fn options(data_dir: &str, listen: &str, sync: Fsync) -> Result<Command, String> {
        Ok(Command::Run(Options { data_dir: data_dir.into(), listen: vec![listen.parse().unwrap()], sync }))
    }

    /// As the tools call it.
    #[test]
    fn command_lines_of_tools_are_taken() {
        for (tool, line, wanted) in [
            (
                "controller-runtime",
                "--advertise-client-urls=http://127.0.0.1:33 --data-dir=/tmp/k8s_test_framework_1 \
                 --listen-client-urls=http://127.0.0.1:33 --listen-peer-urls=http://127.0.0.1:34 --unsafe-no-fsync=true",
                options("/tmp/k8s_test_framework_1", "127.0.0.1:33", Fsync::Never),
            ),
            (
                "kube-api-test",
                "-data-dir /tmp/etcddata1 -listen-peer-urls http://0.0.0.0:35 -advertise-client-urls http://127.0.0.1:36 \
                 -listen-client-urls http://127.0.0.1:36",
                options("/tmp/etcddata1", "127.0.0.1:36", Fsync::Always),
            ),
            (
                "kwokctl",
                "--name=node0 --auto-compaction-retention=1 --quota-backend-bytes=8589934592 --data-dir=/w/etcd \
                 --initial-advertise-peer-urls=http://0.0.0.0:2380 --listen-peer-urls=http://0.0.0.0:2380 \
                 --advertise-client-urls=http://0.0.0.0:2379 --listen-client-urls=http://0.0.0.0:2379 \
                 --initial-cluster=node0=http://0.0.0.0:2380 --log-level=info",
                options("/w/etcd", "0.0.0.0:2379", Fsync::Always),
            ),
            (
                "a shell",
                "--force-new-cluster --name n -listen-client-urls=http://127.0.0.1:1/ --unsafe-no-fsync",
                options("n.etcd", "127.0.0.1:1", Fsync::Never),
            ),
            ("help", "--data-dir=x --help", Ok(Command::Help)),
            ("version", "--version", Ok(Command::Version)),
        ] {
            assert_eq!(run(line), wanted, "{tool}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        for (line, wanted) in [
            ("--data-dirs=x", "flag provided but not defined: -data-dirs"),
            ("--data-dir", "flag needs an argument: -data-dir"),
            ("--pre-vote=perhaps", "invalid boolean value \"perhaps\" for -pre-vote: parse error"),
            ("start", "\"start\" is not a valid flag"),
            (
                "--listen-client-urls=https://127.0.0.1:1",
                "invalid value \"https://127.0.0.1:1\" for flag -listen-client-urls: the companion of kube-apiserver serves \
                 no TLS: https://127.0.0.1:1",
            ),
        ] {
            assert_eq!(run(line), Err(wanted.to_owned()));
        }
    }

    /// envtest looks for the flag at the beginning of a line.
    #[test]
    fn help_lists_flags_one_a_line() {
        assert!(help().lines().any(|line| line.trim_start().starts_with("--unsafe-no-fsync ")));
        assert!(help().lines().any(|line| line.trim() == "--listen-peer-urls"));
    }
}
