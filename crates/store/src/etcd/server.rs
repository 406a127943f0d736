//! A real etcd for tests: one member or several, on loopback, in a temporary folder.
//!
//! The program is the one that `KUBELITH_ETCD` names, or `target/tools/etcd`. Without it a test fails: a
//! test that is skipped proves nothing.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// etcd starts in well under a second; a loaded machine takes longer.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// The etcd program, or a message that says how to get one.
pub fn program() -> PathBuf {
    if let Some(path) = std::env::var_os("KUBELITH_ETCD") {
        return path.into();
    }
    let mut folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    while let Some(parent) = folder.parent() {
        let candidate = folder.join("target/tools/bin/etcd");
        if candidate.exists() {
            return candidate;
        }
        folder = parent;
    }
    panic!("no etcd found: set KUBELITH_ETCD to the program or run `cargo xtask tools`")
}

/// A running cluster. Dropping it kills the members and removes their data.
pub struct Cluster {
    members: Vec<Member>,
    folder: PathBuf,
    extra: Vec<String>,
}

struct Member {
    name: String,
    client_url: String,
    peer_url: String,
    process: Option<Child>,
}

impl Cluster {
    /// Starts `count` members and waits until each answers. `extra` are further flags.
    pub fn start(count: usize, extra: &[&str]) -> Cluster {
        let folder = std::env::temp_dir().join(format!("kubelith-etcd-{}-{}", std::process::id(), free_port()));
        std::fs::create_dir_all(&folder).expect("a folder for etcd");
        let scheme = if extra.iter().any(|flag| flag.starts_with("--cert-file")) { "https" } else { "http" };
        let members = (0..count)
            .map(|i| Member {
                name: format!("m{i}"),
                client_url: format!("{scheme}://127.0.0.1:{}", free_port()),
                peer_url: format!("http://127.0.0.1:{}", free_port()),
                process: None,
            })
            .collect();
        let extra = extra.iter().map(|flag| flag.to_string()).collect();
        let mut cluster = Cluster { members, folder, extra };
        for i in 0..count {
            cluster.spawn(i);
        }
        for i in 0..count {
            cluster.wait(i);
        }
        cluster
    }

    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(|member| member.client_url.clone()).collect()
    }

    /// The process of a member that runs.
    pub fn pid(&self, index: usize) -> Option<u32> {
        self.members[index].process.as_ref().map(Child::id)
    }

    /// Kills a member as a crash would.
    pub fn kill(&mut self, index: usize) {
        if let Some(mut process) = self.members[index].process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Starts a killed member again on its data.
    pub fn restart(&mut self, index: usize) {
        self.kill(index);
        self.spawn(index);
        self.wait(index);
    }

    fn spawn(&mut self, index: usize) {
        let all: Vec<String> =
            self.members.iter().map(|member| format!("{}={}", member.name, member.peer_url)).collect();
        let member = &self.members[index];
        let log = std::fs::File::create(self.folder.join(format!("{}.log", member.name))).expect("a log file");
        let process = Command::new(program())
            .arg(format!("--name={}", member.name))
            .arg(format!("--data-dir={}", self.folder.join(&member.name).display()))
            .arg(format!("--listen-client-urls={}", member.client_url))
            .arg(format!("--advertise-client-urls={}", member.client_url))
            .arg(format!("--listen-peer-urls={}", member.peer_url))
            .arg(format!("--initial-advertise-peer-urls={}", member.peer_url))
            .arg(format!("--initial-cluster={}", all.join(",")))
            .args(["--log-level=warn", "--unsafe-no-fsync", "--heartbeat-interval=50", "--election-timeout=300"])
            .args(&self.extra)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| panic!("starting {:?}: {error}", program()));
        self.members[index].process = Some(process);
    }

    /// A listening port is enough: calls wait for a leader by themselves.
    fn wait(&mut self, index: usize) {
        let started = Instant::now();
        let member = &mut self.members[index];
        let address = member.client_url.split("://").nth(1).expect("a URL").to_string();
        while std::net::TcpStream::connect(&address).is_err() {
            let exited = member.process.as_mut().is_none_or(|process| process.try_wait().ok().flatten().is_some());
            if exited || started.elapsed() > START_PATIENCE {
                let log = std::fs::read_to_string(self.folder.join(format!("{}.log", member.name)));
                panic!("etcd {} did not start:\n{}", member.name, log.unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for index in 0..self.members.len() {
            self.kill(index);
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Below the ports of outgoing connections, so that none of them takes it before etcd does.
fn free_port() -> u16 {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 22_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let own = std::process::id().wrapping_mul(7919);
    let places = (0..COUNT).map(|_| own.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT);
    let mut ports = places.map(|place| (FIRST + place) as u16);
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}
