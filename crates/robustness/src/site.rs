//! Servers and etcd as processes that can be killed, stopped, starved and started again where they were.

use crate::faults::FaultKind;
use crate::plan::{Plan, Store};
use crate::pressure::BUDGET;
use crate::proxy::{Proxy, Way};
use crate::wire::{self, Api, FILLER_TOKEN, LEADER_TOKEN, STORM_TOKEN, TOKEN};
use kubelith_conformance::harness::put_key;
use kubelith_conformance::http::{Address, Client, Request};
use kubelith_conformance::pauses::Pauses;
use kubelith_store::etcd::server::Cluster;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than any start takes, also of a debug build on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);
/// Where nobody but clients of a server that is down may notice anything, an etcd that is slow, as on a busy machine, does not
/// make a server unready. Less than clients wait.
const READY_PATIENCE: [&str; 2] = ["--etcd-readycheck-timeout=12s", "--etcd-healthcheck-timeout=12s"];
/// A write beyond a limit on files shall fail, not end the process: the signal is ignored from the start on.
const IGNORE_LIMIT_SIGNAL: &str = "trap '' XFSZ; exec \"$0\" \"$@\"";

type Outcome<T> = Result<T, String>;

pub struct Server {
    child: Option<Child>,
    pub port: u16,
    /// Keeps the port ours between starts: bound, never listening.
    _reserved: socket2::Socket,
    folder: PathBuf,
    flags: Vec<String>,
    program: PathBuf,
    /// To each member of etcd.
    proxies: Vec<Proxy>,
}

pub struct Site {
    pub servers: Vec<Server>,
    etcd: Option<Cluster>,
    pub dir: TempDir,
    store: Store,
    program: PathBuf,
}

impl Site {
    /// Starts all and waits until all are ready.
    pub fn start(plan: &Plan) -> Outcome<Site> {
        let dir = TempDir::new().map_err(|error| format!("temporary folder: {error}"))?;
        let tokens = dir.path().join("tokens.csv");
        let users = format!(
            "{TOKEN},admin,u,\"system:masters\"\n{STORM_TOKEN},storm,s,storm\n{FILLER_TOKEN},filler,f,storm\n{LEADER_TOKEN},system:kube-controller-manager,l\n"
        );
        std::fs::write(&tokens, users).map_err(|error| error.to_string())?;
        let etcd = (plan.store == Store::Etcd).then(|| Cluster::start(3, &[]));
        let mut servers = Vec::new();
        for index in 0..plan.servers {
            let proxies = proxies(etcd.as_ref()).map_err(|error| format!("a proxy: {error}"))?;
            let (port, reserved) = reserve().map_err(|error| format!("a port: {error}"))?;
            let folder = dir.path().join(format!("server{index}"));
            put_key(&folder.join("data")).map_err(|error| error.to_string())?;
            let mut flags = vec![
                format!("--data-dir={}", folder.join("data").display()),
                format!("--token-auth-file={}", tokens.display()),
                "--bind-address=127.0.0.1".to_owned(),
                "--permit-port-sharing".to_owned(),
                "--controllers=-*".to_owned(),
                format!("--secure-port={port}"),
            ];
            flags.push(match plan.store {
                Store::Memory => "--storage-backend=memory".to_owned(),
                Store::Embedded => "--storage-backend=embedded".to_owned(),
                Store::Etcd => {
                    format!("--etcd-servers={}", proxies.iter().map(Proxy::url).collect::<Vec<_>>().join(","))
                }
            });
            if plan.faults.contains(&FaultKind::ClockJump) {
                flags.extend(["--enable-test-api", "--clock=manual"].map(str::to_owned));
            }
            if plan.is_short_of_memory() {
                flags.push(format!("--memory-budget={BUDGET}"));
            }
            if plan.is_isolated() {
                flags.extend(READY_PATIENCE.map(str::to_owned));
            }
            flags.extend_from_slice(&plan.flags);
            let program = plan.program.clone();
            servers.push(Server { child: None, port, _reserved: reserved, folder, flags, program, proxies });
        }
        let mut site = Site { servers, etcd, dir, store: plan.store, program: plan.program.clone() };
        for server in &mut site.servers {
            server.launch()?;
        }
        for server in &mut site.servers {
            server.wait_ready()?;
        }
        wire::prepare(site.servers[0].port)?;
        if plan.is_short_of_memory() {
            wire::allow_storm(&mut Api::new(site.servers[0].port))?;
        }
        for server in &site.servers {
            // The definition has come to all of them.
            let end = Instant::now() + START_LIMIT;
            while Api::new(server.port).get(wire::path_of(1)).is_none_or(|(code, _)| code != 200) {
                if Instant::now() > end {
                    return Err("a server does not serve the definition".to_owned());
                }
                std::thread::sleep(POLL);
            }
        }
        Ok(site)
    }

    pub fn etcd(&mut self) -> Option<&mut Cluster> {
        self.etcd.as_mut()
    }

    /// The member that leads, as the members say.
    pub fn leader(&self) -> Option<usize> {
        let cluster = self.etcd.as_ref()?;
        (0..cluster.endpoints().len()).find(|index| {
            let status = gateway(cluster, *index, "/v3/maintenance/status", &json!({}));
            status.is_some_and(|s| !s["leader"].is_null() && s["leader"] == s["header"]["member_id"])
        })
    }

    /// Throws away etcd's history, all but the last revisions.
    pub fn compact(&self, keep: i64) -> bool {
        let Some(cluster) = self.etcd.as_ref() else { return false };
        (0..cluster.endpoints().len()).any(|index| {
            let status = gateway(cluster, index, "/v3/maintenance/status", &json!({})).unwrap_or_default();
            let Some(current) = status["header"]["revision"].as_str().and_then(|r| r.parse::<i64>().ok()) else {
                return false;
            };
            let request = json!({"revision": (current - keep).max(1).to_string()});
            gateway(cluster, index, "/v3/kv/compaction", &request).is_some()
        })
    }

    /// What `kubelith store check` says about folders that are in use no more.
    pub fn check_store(&self) -> Outcome<()> {
        if self.store != Store::Embedded {
            return Ok(());
        }
        for server in &self.servers {
            let data = format!("--data-dir={}", server.folder.join("data").display());
            let output = Command::new(&self.program).args(["store", "check", &data]).output();
            let output = output.map_err(|error| error.to_string())?;
            if !output.status.success() {
                let said = [output.stdout, output.stderr].concat();
                return Err(format!("store check: {}", String::from_utf8_lossy(&said)));
            }
        }
        Ok(())
    }
}

/// etcd's own way to be asked in JSON.
fn gateway(cluster: &Cluster, index: usize, path: &str, body: &Value) -> Option<Value> {
    let address = Address::parse(&cluster.endpoints()[index]).ok()?;
    let request = Request {
        method: "POST".to_owned(),
        path: path.to_owned(),
        headers: Vec::new(),
        body: Some(body.to_string().into_bytes()),
    };
    let response = Client::new(address).with_timeout(Duration::from_secs(2)).send(&request).ok()?;
    (response.status == 200).then(|| serde_json::from_slice(&response.body).ok()).flatten()
}

fn proxies(etcd: Option<&Cluster>) -> std::io::Result<Vec<Proxy>> {
    let endpoints = etcd.map(Cluster::endpoints).unwrap_or_default();
    let target = |url: &String| url.trim_start_matches("http://").parse::<SocketAddr>().map_err(std::io::Error::other);
    endpoints.iter().map(|url| Proxy::start(target(url)?)).collect()
}

impl Server {
    pub fn launch(&mut self) -> Outcome<()> {
        let open = || std::fs::File::options().create(true).append(true).open(self.folder.join("log"));
        let log = open().and_then(|log| Ok((log.try_clone()?, log))).map_err(|error| error.to_string())?;
        let child = Command::new("sh")
            .args(["-c", IGNORE_LIMIT_SIGNAL])
            .arg(&self.program)
            .args(&self.flags)
            .stdin(Stdio::null())
            .stdout(log.0)
            .stderr(log.1)
            .spawn();
        self.child = Some(child.map_err(|error| format!("{}: {error}", self.program.display()))?);
        Ok(())
    }

    pub fn wait_ready(&mut self) -> Outcome<()> {
        let end = Instant::now() + START_LIMIT;
        let (mut api, mut pauses) = (Api::new(self.port), Pauses::default());
        while api.get("/readyz").is_none_or(|(code, _)| code != 200) {
            if self.has_ended() {
                return Err(format!("a server ended: {}", self.tail()));
            }
            if Instant::now() > end {
                return Err(format!("a server was not ready in time: {}", self.tail()));
            }
            pauses.pause();
        }
        Ok(())
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| child.try_wait().ok().flatten().is_some())
    }

    /// The end of what it logged.
    pub fn tail(&self) -> String {
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// Lines of the log that tell of a panic: there must be none.
    pub fn panics(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        log.lines().filter(|line| line.contains("panicked at") || line.contains("panic'd")).map(str::to_owned).collect()
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// As a crash does: without any warning.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Asks it to end, waits, and says how it ended.
    pub fn stop(&mut self) -> Outcome<()> {
        signal(self.pid(), Signal::TERM);
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let end = Instant::now() + START_LIMIT;
        loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("a server ended with {status}: {}", self.tail())),
                None if Instant::now() > end => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("a server does not end: {}", self.tail()));
                }
                None => std::thread::sleep(POLL),
            }
        }
    }

    pub fn ways(&self, mut to: impl FnMut(usize) -> Way) {
        for (index, proxy) in self.proxies.iter().enumerate() {
            proxy.set(to(index));
        }
    }

    /// Limits what the process may have of something, or lifts the limit.
    pub fn limit(&self, what: Resource, to: Option<u64>) {
        let Some(pid) = self.pid().and_then(|pid| Pid::from_raw(pid as i32)) else { return };
        // A process that is gone needs no limit.
        let Ok(current) = prlimit(Some(pid), what, Rlimit { current: to, maximum: None }) else { return };
        if current.maximum.is_some() {
            let most = match (to, current.maximum) {
                (Some(to), Some(most)) => Some(to.min(most)),
                (None, most) => most,
                (to, None) => to,
            };
            let _ = prlimit(Some(pid), what, Rlimit { current: most, maximum: current.maximum });
        }
    }

    pub fn open_files(&self) -> Option<u64> {
        let entries = std::fs::read_dir(format!("/proc/{}/fd", self.pid()?)).ok()?;
        Some(entries.count() as u64)
    }

    /// The size of the largest file of its data: the store's.
    pub fn data_size(&self) -> u64 {
        fn largest(folder: &std::path::Path) -> u64 {
            let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
            let sizes = entries.filter_map(Result::ok).map(|entry| match entry.metadata() {
                Ok(data) if data.is_dir() => largest(&entry.path()),
                Ok(data) => data.len(),
                Err(_) => 0,
            });
            sizes.max().unwrap_or(0)
        }
        largest(&self.folder.join("data"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        signal(self.pid(), Signal::CONT);
        self.kill();
    }
}

pub fn signal(pid: Option<u32>, signal: Signal) {
    if let Some(pid) = pid.and_then(|pid| Pid::from_raw(pid as i32)) {
        let _ = kill_process(pid, signal);
    }
}

/// A port that nobody else gets while the socket lives, and that a server may share.
fn reserve() -> std::io::Result<(u16, socket2::Socket)> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    socket.set_reuse_port(true)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    let port = socket.local_addr()?.as_socket().map(|address| address.port());
    port.map(|port| (port, socket)).ok_or_else(|| std::io::ErrorKind::AddrNotAvailable.into())
}
