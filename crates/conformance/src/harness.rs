//! Starts the server under test, and etcd where it needs one, as processes on free loopback ports; they end with their handles.

use crate::http::{Address, Client, Request};
use crate::pauses::Pauses;
use crate::replay::Tokens;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than any start takes, also of a debug build on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(60);
/// The same over whatever was stored before.
const RESTART_LIMIT: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(10);
/// What the server says, in its folder.
const LOG: &str = "server.log";
/// A key of service accounts, for tests only.
const KEY: &str = include_str!("harness.key");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    Memory,
    Embedded,
    Etcd,
}

impl Store {
    pub fn parse(text: &str) -> Result<Store, String> {
        match text {
            "memory" => Ok(Store::Memory),
            "embedded" => Ok(Store::Embedded),
            "etcd" => Ok(Store::Etcd),
            other => Err(format!("unknown store {other:?}: memory, embedded or etcd")),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Store::Memory => "memory",
            Store::Embedded => "embedded",
            Store::Etcd => "etcd",
        }
    }
}

/// Puts the key of service accounts where a server looks for it in its data folder, unless there is one. To make one takes a
/// fifth of what a start costs, and tests start hundreds of servers.
pub fn put_key(data: &Path) -> io::Result<()> {
    let file = data.join("service-account.key");
    std::fs::create_dir_all(data)?;
    if file.exists() { Ok(()) } else { std::fs::write(file, KEY) }
}

/// A child process that is killed and reaped when the handle goes.
struct Process(Child);

impl Process {
    /// Asks it to end, and waits until it has.
    fn stop(mut self) -> io::Result<ExitStatus> {
        self.end()
    }

    fn end(&mut self) -> io::Result<ExitStatus> {
        let id = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
        kill_process(id, Signal::TERM)?;
        self.0.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What to start.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The server.
    pub binary: PathBuf,
    pub store: Store,
    /// The program `etcd`, for the store of that name.
    pub etcd: PathBuf,
    /// Flags besides those that the transcripts assume.
    pub flags: Vec<String>,
}

pub struct Server {
    process: Process,
    binary: PathBuf,
    /// With which it was started.
    flags: Vec<String>,
    /// One for each server, so that keys begin as kube-apiserver's do by default: they show in some messages.
    etcd: Option<Etcd>,
    pub address: Address,
    pub url: String,
    pub dir: TempDir,
    /// From the start of the process to its first good answer on /readyz.
    pub ready_in: Duration,
}

impl Server {
    /// Starts the binary with the flags that the transcripts assume and waits until it is ready.
    pub fn start(launch: &Launch, tokens: &Tokens) -> Result<Server, String> {
        let dir = TempDir::new().map_err(|error| format!("temporary directory: {error}"))?;
        let token_file = dir.path().join("tokens.csv");
        std::fs::write(&token_file, tokens.auth_file())
            .map_err(|error| format!("{}: {error}", token_file.display()))?;
        let data = dir.path().join("data");
        put_key(&data).map_err(|error| format!("{}: {error}", data.display()))?;
        let port = free_port().map_err(|error| format!("free port: {error}"))?;
        let mut flags = vec![
            format!("--data-dir={}", data.display()),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--token-auth-file={}", token_file.display()),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/16".to_owned(),
            "--enable-aggregator-routing".to_owned(),
            "--allow-privileged".to_owned(),
        ];
        let etcd = match launch.store {
            Store::Memory | Store::Embedded => {
                flags.push(format!("--storage-backend={}", launch.store.name()));
                None
            }
            Store::Etcd => {
                let etcd = Etcd::start(&launch.etcd)?;
                flags.push(format!("--etcd-servers={}", etcd.url));
                Some(etcd)
            }
        };
        // The exchanges were recorded without a kube-controller-manager.
        if !launch.flags.iter().any(|flag| flag.starts_with("--controllers")) {
            flags.push("--controllers=-*".to_owned());
        }
        flags.extend_from_slice(&launch.flags);
        let begin = Instant::now();
        let process = spawn(&launch.binary, &flags, &dir.path().join(LOG))?;
        let url = format!("https://127.0.0.1:{port}");
        let address = Address::parse(&url)?;
        let binary = launch.binary.clone();
        let mut server = Server { process, binary, flags, etcd, address, url, dir, ready_in: Duration::ZERO };
        server.wait_ready(tokens, START_LIMIT)?;
        server.ready_in = begin.elapsed();
        Ok(server)
    }

    /// Ends it, starts it again over what it has stored, and waits until it is ready.
    pub fn restart(&mut self, tokens: &Tokens) -> Result<(), String> {
        self.process.end().map_err(|error| format!("stopping the server: {error}"))?;
        let begin = Instant::now();
        self.process = spawn(&self.binary, &self.flags, &self.dir.path().join(LOG))?;
        self.wait_ready(tokens, RESTART_LIMIT)?;
        self.ready_in = begin.elapsed();
        Ok(())
    }

    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Its data folder.
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Where the server writes the credentials of its administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.data().join("admin.kubeconfig")
    }

    /// The server's process, and that of its etcd.
    pub fn pids(&self) -> Vec<u32> {
        let etcd = self.etcd.as_ref().map(|etcd| etcd.process.0.id());
        std::iter::once(self.process.0.id()).chain(etcd).collect()
    }

    /// Ends it as an operator would, which takes it through all that it does at the end.
    pub fn stop(self) -> Result<(), String> {
        let status = self.process.stop().map_err(|error| format!("stopping the server: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}")) }
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join(LOG)).unwrap_or_default()
    }

    /// Whether the process still runs; a test run that ends with a dead server has found a crash.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.process.0.try_wait(), Ok(None))
    }

    fn wait_ready(&mut self, tokens: &Tokens, limit: Duration) -> Result<(), String> {
        let request = Request {
            method: "GET".to_owned(),
            path: "/readyz".to_owned(),
            headers: vec![("Authorization".to_owned(), format!("Bearer {}", tokens.admin))],
            body: None,
        };
        let end = Instant::now() + limit;
        let (mut client, mut pauses) = (Client::new(self.address.clone()), Pauses::default());
        loop {
            let answer = client.send(&request);
            if answer.is_ok_and(|response| response.status == 200) {
                return Ok(());
            }
            if !self.is_alive() {
                return Err(format!("the server ended before it was ready; its log ends with:\n{}", tail(&self.log())));
            }
            if Instant::now() > end {
                return Err(format!(
                    "the server was not ready in {limit:?}; its log ends with:\n{}",
                    tail(&self.log())
                ));
            }
            pauses.pause();
        }
    }
}

/// One etcd member without fsync: the data is gone with the handle anyway.
pub struct Etcd {
    process: Process,
    _dir: TempDir,
    pub url: String,
}

impl Etcd {
    pub fn start(binary: &Path) -> Result<Etcd, String> {
        let dir = TempDir::new().map_err(|error| format!("temporary directory: {error}"))?;
        let client = free_port().map_err(|error| format!("free port: {error}"))?;
        let peer = free_port().map_err(|error| format!("free port: {error}"))?;
        let (url, peer_url) = (format!("http://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
        let flags = [
            format!("--data-dir={}", dir.path().join("etcd").display()),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            format!("--listen-peer-urls={peer_url}"),
            format!("--initial-advertise-peer-urls={peer_url}"),
            format!("--initial-cluster=default={peer_url}"),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=error".to_owned(),
        ];
        let log = dir.path().join("etcd.log");
        let process = spawn(binary, &flags, &log)?;
        let etcd = Etcd { process, _dir: dir, url };
        let request = Request { method: "GET".to_owned(), path: "/health".to_owned(), ..Request::default() };
        let address = Address::parse(&etcd.url)?;
        let end = Instant::now() + START_LIMIT;
        while !Client::new(address.clone()).send(&request).is_ok_and(|response| response.status == 200) {
            if Instant::now() > end {
                return Err(format!(
                    "etcd was not ready in {START_LIMIT:?}: {}",
                    std::fs::read_to_string(&log).unwrap_or_default()
                ));
            }
            std::thread::sleep(POLL);
        }
        Ok(etcd)
    }
}

fn spawn(binary: &Path, flags: &[String], log: &Path) -> Result<Process, String> {
    let open = || std::fs::File::options().create(true).append(true).open(log);
    let outputs = open().and_then(|out| Ok((out, open()?)));
    let (out, err) = outputs.map_err(|error| format!("{}: {error}", log.display()))?;
    let child = Command::new(binary).args(flags).stdin(Stdio::null()).stdout(out).stderr(err).spawn();
    child.map(Process).map_err(|error| format!("{}: {error}", binary.display()))
}

/// A port that was free a moment ago. It lies below those that the system gives to outgoing connections, so that none of
/// them takes it before the server does; each process starts to look at a place of its own.
pub fn free_port() -> io::Result<u16> {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 22_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let own = std::process::id().wrapping_mul(7919);
    let mut error = None;
    for _ in 0..COUNT {
        let place = own.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let port = (FIRST + place) as u16;
        match TcpListener::bind(("127.0.0.1", port)) {
            Ok(_) => return Ok(port),
            Err(why) => error = Some(why),
        }
    }
    Err(error.unwrap_or_else(|| io::ErrorKind::AddrInUse.into()))
}

fn tail(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
