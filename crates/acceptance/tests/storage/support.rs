//! A server process on a data folder that outlives it, and requests to it.

use kubelith_conformance::harness::{free_port, put_key};
use kubelith_conformance::http::{Address, Client, Request};
use kubelith_conformance::pauses::Pauses;
use serde_json::{Value, json};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any start takes, also of a debug build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const TOKEN: &str = "Bearer admin-token";

/// The program under test.
pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_server-to-test"))
}

/// A data folder and the flags of the servers on it.
pub struct Site {
    pub folder: tempfile::TempDir,
    pub flags: Vec<String>,
}

impl Site {
    pub fn new(flags: &[&str]) -> Site {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tokens.csv"), "admin-token,admin,1,system:masters\n").unwrap();
        Site { folder, flags: flags.iter().map(|flag| (*flag).to_owned()).collect() }
    }

    /// The same data, without a flag.
    pub fn without(mut self, flag: &str) -> Site {
        self.flags.retain(|known| known != flag);
        self
    }

    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Starts a server and waits until it is ready.
    pub fn start(&self) -> Server {
        loop {
            let mut server = self.spawn();
            if server.is_ready() {
                return server;
            }
        }
    }

    /// Starts a server that may fail.
    pub fn spawn(&self) -> Server {
        put_key(&self.data()).unwrap();
        let port = free_port().unwrap();
        let log = self.folder.path().join(format!("server-{port}.log"));
        let out = File::create(&log).unwrap();
        let process = Command::new(program())
            .args(["--bind-address=127.0.0.1", "--authorization-mode=RBAC", "--controllers=-*"])
            .arg(format!("--secure-port={port}"))
            .arg(format!("--data-dir={}", self.data().display()))
            .arg(format!("--token-auth-file={}", self.folder.path().join("tokens.csv").display()))
            .args(&self.flags)
            .stdin(Stdio::null())
            .stdout(out.try_clone().unwrap())
            .stderr(out)
            .spawn()
            .unwrap();
        Server { process, port, log }
    }

    /// Runs `kubelith store …`: whether it succeeded, and what it said.
    pub fn store(&self, words: &[&str]) -> (bool, String) {
        let data = format!("--data-dir={}", self.data().display());
        let output = Command::new(program()).arg("store").args(words).arg(data).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    }
}

pub struct Server {
    process: Child,
    port: u16,
    log: PathBuf,
}

impl Server {
    pub fn client(&self) -> Api {
        Api { client: Client::new(self.address()), address: self.address() }
    }

    fn address(&self) -> Address {
        Address::parse(&format!("https://127.0.0.1:{}", self.port)).unwrap()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until it is ready; `false` if another process took its port in the moment between.
    pub fn is_ready(&mut self) -> bool {
        let end = Instant::now() + PATIENCE;
        let (mut api, mut pauses) = (self.client(), Pauses::default());
        while !api.try_send("GET", "/readyz", None).is_ok_and(|(code, _)| code == 200) {
            let ended = self.process.try_wait().unwrap();
            if ended.is_some() && self.log().contains("failed to listen on") {
                return false;
            }
            assert!(ended.is_none(), "the server ended: {}", self.log());
            assert!(Instant::now() < end, "the server was not ready in time: {}", self.log());
            pauses.pause();
        }
        true
    }

    /// As a crash does: without any warning.
    pub fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Asks it to end, and waits for it.
    pub fn stop(mut self) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert!(self.process.wait().unwrap().success(), "{}", self.log());
    }

    /// Waits for a server that cannot run to say why.
    pub fn failure(mut self) -> String {
        assert!(!self.process.wait().unwrap().success());
        self.log()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Requests as an administrator.
pub struct Api {
    client: Client,
    address: Address,
}

impl Api {
    pub fn try_send(&mut self, method: &str, path: &str, body: Option<&Value>) -> std::io::Result<(u16, Value)> {
        let response = self.client.send(&request(method, path, body))?;
        let text = || Value::String(String::from_utf8_lossy(&response.body).into_owned());
        Ok((response.status, serde_json::from_slice(&response.body).unwrap_or_else(|_| text())))
    }

    pub fn send(&mut self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        self.try_send(method, path, body).unwrap()
    }

    pub fn get(&mut self, path: &str) -> (u16, Value) {
        self.send("GET", path, None)
    }

    /// Creates what must not exist yet.
    pub fn create(&mut self, path: &str, body: &Value) -> Value {
        let (code, object) = self.send("POST", path, Some(body));
        assert_eq!(code, 201, "{object}");
        object
    }

    /// Metrics, or another text.
    pub fn text(&mut self, path: &str) -> String {
        let response = self.client.send(&request("GET", path, None)).unwrap();
        String::from_utf8(response.body).unwrap()
    }

    /// The next events of a watch.
    pub fn watch(&self, path: &str, count: usize) -> Vec<Value> {
        let (response, lines) =
            Client::new(self.address.clone()).lines(&request("GET", path, None), count, PATIENCE).unwrap();
        assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
        assert_eq!(lines.len(), count, "events are missing");
        lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    /// The events of a watch up to one.
    pub fn watch_until(&self, path: &str, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let read = |line: &Vec<u8>| serde_json::from_slice::<Value>(line).unwrap();
        let enough = |lines: &[Vec<u8>]| lines.last().is_some_and(|line| is_last(&read(line)));
        let (response, lines) =
            Client::new(self.address.clone()).lines_until(&request("GET", path, None), enough, PATIENCE).unwrap();
        assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
        let events: Vec<Value> = lines.iter().map(read).collect();
        assert!(enough(&lines), "the last event is missing: {events:?}");
        events
    }

    /// All events until the server ends the watch, or itself. An error if the server was gone before it answered.
    pub fn watch_to_end(&self, path: &str) -> std::io::Result<Vec<Value>> {
        let (response, lines) =
            Client::new(self.address.clone()).lines(&request("GET", path, None), usize::MAX, PATIENCE)?;
        assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
        Ok(lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect())
    }
}

fn request(method: &str, path: &str, body: Option<&Value>) -> Request {
    let mut headers = vec![
        ("Authorization".to_owned(), TOKEN.to_owned()),
        // The field manager of writes is named after it.
        ("User-Agent".to_owned(), "cmp/1".to_owned()),
    ];
    if body.is_some() {
        let patch = "application/merge-patch+json";
        headers
            .push(("Content-Type".to_owned(), if method == "PATCH" { patch } else { "application/json" }.to_owned()));
    }
    let body = body.map(|body| serde_json::to_vec(body).unwrap());
    Request { method: method.to_owned(), path: path.to_owned(), headers, body }
}

pub fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value}})
}

pub fn revision(object: &Value) -> i64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

/// Waits until something is so.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let (end, mut pauses) = (Instant::now() + PATIENCE, Pauses::default());
    while !holds() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        pauses.pause();
    }
}
