//! A server under load: one that is started here, or one that runs already.

use crate::Result;
use crate::client::Endpoint;
use crate::process::{self, Usage};
use kubelith_conformance::harness::{Launch, Server, Store};
use kubelith_conformance::http::Address;
use kubelith_conformance::replay::Tokens;
use std::path::PathBuf;
use std::time::Duration;

pub struct Target {
    pub name: String,
    pub endpoint: Endpoint,
    pids: Vec<u32>,
    /// From the start of the process until it said that it is ready.
    started_in: Option<Duration>,
    process: Option<Server>,
}

impl Target {
    /// `controllers`: with those that run in the process.
    pub fn start(binary: PathBuf, store: &str, controllers: bool) -> Result<Target> {
        let flags = controllers.then(|| "--controllers=*".to_owned()).into_iter().collect();
        let launch = Launch { binary, store: Store::parse(store)?, etcd: "target/tools/bin/etcd".into(), flags };
        let tokens = Tokens::default();
        let server = Server::start(&launch, &tokens)?;
        Ok(Target {
            name: format!("kubelith ({})", launch.store.name()),
            endpoint: Endpoint::new(server.address.clone(), &tokens.admin),
            pids: server.pids(),
            started_in: Some(server.ready_in),
            process: Some(server),
        })
    }

    /// From `https://127.0.0.1:6443=PID,PID`.
    pub fn running(text: &str, token: &str) -> Result<Target> {
        let (url, pids) = text.rsplit_once('=').ok_or_else(|| format!("{text:?} is not URL=PID"))?;
        let pids = pids.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?;
        let endpoint = Endpoint::new(Address::parse(url)?, token);
        Ok(Target { name: url.to_owned(), endpoint, pids, started_in: None, process: None })
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
