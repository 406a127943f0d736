//! A server under load: one that is started here, or one that runs already.

use crate::Result;
use crate::client::Endpoint;
use crate::process::{self, Usage};
use kubelith_conformance::harness::{Launch, Server, Store};
use kubelith_conformance::http::Address;
use kubelith_conformance::replay::Tokens;
use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

/// A process that is killed when this goes.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub struct Target {
    pub name: String,
    pub endpoint: Endpoint,
    pids: Vec<u32>,
    /// From the start of the process until it said that it is ready.
    started_in: Option<Duration>,
    process: Option<Server>,
    /// In the place of a server.
    files: Option<Killed>,
    tokens: Tokens,
}

impl Target {
    /// `flags` besides those that all have.
    pub fn start(binary: PathBuf, store: &str, flags: Vec<String>) -> Result<Target> {
        let launch = Launch { binary, store: Store::parse(store)?, etcd: "target/tools/bin/etcd".into(), flags };
        let tokens = Tokens::default();
        let server = Server::start(&launch, &tokens)?;
        Ok(Target {
            name: format!("kubelith ({})", launch.store.name()),
            endpoint: Endpoint::new(server.address.clone(), &tokens.admin),
            pids: server.pids(),
            started_in: Some(server.ready_in),
            process: Some(server),
            files: None,
            tokens,
        })
    }

    /// A program that serves files.
    pub fn of_files(name: &str, endpoint: Endpoint, program: Killed) -> Target {
        Target {
            name: name.to_owned(),
            endpoint,
            pids: vec![program.0.id()],
            started_in: None,
            process: None,
            files: Some(program),
            tokens: Tokens::default(),
        }
    }

    pub fn is_of_files(&self) -> bool {
        self.files.is_some()
    }

    /// The server, if it was started here.
    pub fn started(&self) -> Result<&Server> {
        Ok(self.process.as_ref().ok_or("this needs a server that is started here")?)
    }

    /// Ends it and starts it again over what it has stored. Answers how long it took to be ready.
    pub fn restart(&mut self) -> Result<Duration> {
        let server = self.process.as_mut().ok_or("only a server that is started here can be restarted")?;
        server.restart(&self.tokens)?;
        self.pids = server.pids();
        Ok(server.ready_in)
    }

    /// The most memory that the server had since it was started.
    pub fn peak(&self) -> Result<u64> {
        process::peak(*self.pids.first().ok_or("there is no process")?)
    }

    /// From `https://127.0.0.1:6443=PID,PID`.
    pub fn running(text: &str, token: &str) -> Result<Target> {
        let (url, pids) = text.rsplit_once('=').ok_or_else(|| format!("{text:?} is not URL=PID"))?;
        let pids = pids.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?;
        let endpoint = Endpoint::new(Address::parse(url)?, token);
        let (name, tokens) = (url.to_owned(), Tokens::default());
        Ok(Target { name, endpoint, pids, started_in: None, process: None, files: None, tokens })
    }

    /// Ends what was started here.
    pub fn stop(self) -> Result<()> {
        Ok(self.process.map_or(Ok(()), Server::stop)?)
    }

    pub fn usage(&self) -> Result<Usage> {
        process::usage(&self.pids)
    }

    pub fn describe(&self) -> Result<String> {
        let idle = self.usage()?.resident >> 20;
        Ok(match self.started_in {
            Some(time) => format!("ready in {} ms, {idle} MB resident when idle", time.as_millis()),
            None => format!("{idle} MB resident"),
        })
    }
}
