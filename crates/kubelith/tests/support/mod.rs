//! The real program as a child process, and clients for it. For tests of several packages, which name it as `PROGRAM`.

#![allow(dead_code, reason = "each test takes what it needs")]

pub mod client;

use kubelith_conformance::harness::put_key;
use kubelith_conformance::http::{Address, Client, Request, Response};
use kubelith_conformance::pauses::Pauses;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const TOKEN: &str = "admintoken";
/// Longer than anything here takes on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(5);

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    pub port: u16,
    pub dir: TempDir,
    /// Connections that no request is on: a handshake takes several times as long as a request, most of all to those who wait for something.
    idle: Mutex<Vec<Client>>,
    /// Keeps the port ours between starts: bound, never listening.
    _reserved: socket2::Socket,
}

impl Server {
    /// Starts the program with a store in memory and waits until it is ready.
    pub fn start(flags: &[&str]) -> Server {
        let server = Server::launch(flags, &[]);
        server.wait_until_ready();
        server
    }

    /// Starts the program and does not wait.
    pub fn launch(flags: &[&str], environment: &[(&str, &str)]) -> Server {
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join("tokens.csv"), format!("{TOKEN},admin,u,\"system:masters\"\n")).unwrap();
        let (port, reserved) = reserve();
        let child = spawn(dir.path(), port, flags, environment);
        Server { child, port, dir, idle: Mutex::default(), _reserved: reserved }
    }

    /// Starts the program in an empty folder, with a port, tokens and these flags alone.
    pub fn launch_bare(flags: &[&str]) -> Server {
        let dir = TempDir::new().unwrap();
        let (empty, tokens) = (dir.path().join("empty"), dir.path().join("tokens.csv"));
        std::fs::create_dir(&empty).unwrap();
        std::fs::write(&tokens, format!("{TOKEN},admin,u,\"system:masters\"\n")).unwrap();
        let (port, reserved) = reserve();
        let mut command = Command::new(program());
        command.current_dir(empty).args(["--bind-address=127.0.0.1", "--permit-port-sharing"]);
        command.arg(format!("--secure-port={port}")).arg(format!("--token-auth-file={}", tokens.display()));
        let log = std::fs::File::create(dir.path().join("log")).unwrap();
        command.args(flags).stdout(Stdio::null()).stderr(log).stdin(Stdio::null());
        let child = command.spawn().unwrap();
        Server { child, port, dir, idle: Mutex::default(), _reserved: reserved }
    }

    pub fn wait_until_ready(&self) {
        self.wait_for("ready", || self.get("/readyz").is_ok_and(|r| r.status == 200));
    }

    /// Starts the program again where it was, once it has ended, and waits until it is ready.
    pub fn restart(&mut self, flags: &[&str]) {
        self.ended();
        self.idle.lock().unwrap().clear();
        self.child = spawn(self.dir.path(), self.port, flags, &[]);
        self.wait_until_ready();
    }

    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// GET as the administrator.
    pub fn get(&self, path: &str) -> std::io::Result<Response> {
        self.send("GET", path, None)
    }

    /// POST of JSON as the administrator.
    pub fn post(&self, path: &str, body: &str) -> std::io::Result<Response> {
        self.send("POST", path, Some(body))
    }

    /// PUT of JSON as the administrator.
    pub fn put(&self, path: &str, body: &str) -> std::io::Result<Response> {
        self.send("PUT", path, Some(body))
    }

    /// DELETE as the administrator.
    pub fn delete(&self, path: &str) -> std::io::Result<Response> {
        self.send("DELETE", path, None)
    }

    fn send(&self, method: &str, path: &str, body: Option<&str>) -> std::io::Result<Response> {
        self.send_with(method, path, &[("Content-Type", "application/json")], body.map(str::as_bytes))
    }

    /// Anything, as the administrator.
    pub fn send_with(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
    ) -> std::io::Result<Response> {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let idle = self.idle.lock().unwrap().pop();
        let mut client =
            idle.unwrap_or_else(|| Client::new(Address::parse(&format!("https://127.0.0.1:{}", self.port)).unwrap()));
        let answer = client.send(&Request {
            method: method.into(),
            path: path.into(),
            headers: std::iter::once(header("Authorization", &format!("Bearer {TOKEN}")))
                .chain(headers.iter().map(|(name, value)| header(name, value)))
                .collect(),
            body: body.map(Into::into),
        });
        self.idle.lock().unwrap().push(client);
        answer
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the process to end.
    pub fn ended(&mut self) -> ExitStatus {
        let end = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "still running; its log:\n{}", self.log());
            std::thread::sleep(POLL);
        }
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub fn wait_for(&self, what: &str, mut condition: impl FnMut() -> bool) {
        let (end, mut pauses) = (Instant::now() + LIMIT, Pauses::default());
        while !condition() {
            assert!(Instant::now() < end, "not {what}; its log:\n{}", self.log());
            pauses.pause();
        }
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(dir: &Path, port: u16, flags: &[&str], environment: &[(&str, &str)]) -> Child {
    put_key(&dir.join("data")).unwrap();
    let mut command = Command::new(program());
    command
        .arg(format!("--data-dir={}", dir.join("data").display()))
        .arg(format!("--token-auth-file={}", dir.join("tokens.csv").display()))
        .args(["--bind-address=127.0.0.1", "--permit-port-sharing"])
        .arg(format!("--secure-port={port}"));
    if !flags.iter().any(|f| f.starts_with("--etcd-servers") || f.starts_with("--storage-backend")) {
        command.arg("--storage-backend=memory");
    }
    // Tests of the server alone; those of controllers ask for them.
    if !flags.iter().any(|f| f.starts_with("--controllers")) {
        command.arg("--controllers=-*");
    }
    if !flags.iter().any(|f| f.starts_with("--authorization-")) {
        command.arg("--authorization-mode=Node,RBAC");
    }
    let log = std::fs::File::create(dir.join("log")).unwrap();
    command.args(flags).envs(environment.iter().copied());
    command.stdout(Stdio::null()).stderr(log).stdin(Stdio::null());
    command.spawn().unwrap()
}

/// The one that was just built, or another build that `KUBELITH_PROGRAM` names: an optimised one, for what is measured.
fn program() -> PathBuf {
    std::env::var_os("KUBELITH_PROGRAM").map_or_else(|| crate::PROGRAM.into(), PathBuf::from)
}

/// A port that nobody else gets while the socket lives, and that a server may share.
fn reserve() -> (u16, socket2::Socket) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_reuse_port(true).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    (socket.local_addr().unwrap().as_socket().unwrap().port(), socket)
}

/// The program that `KUBELITH_ETCD` names, or the one that `cargo xtask tools` installs.
pub fn etcd() -> kubelith_conformance::harness::Etcd {
    let installed = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tools/bin/etcd"));
    let program = std::env::var_os("KUBELITH_ETCD").map_or_else(installed, PathBuf::from);
    kubelith_conformance::harness::Etcd::start(&program).unwrap()
}
