//! A server under load: one that is started here, or one that runs already.

use crate::Result;
use crate::client::Endpoint;
use crate::process::{self, Usage};
use kubelith_conformance::harness::{Etcd, Server, Store};
use kubelith_conformance::http::Address;
use kubelith_conformance::replay::Tokens;
use std::path::Path;
use std::time::{Duration, Instant};

pub struct Target {
    pub name: String,
    pub endpoint: Endpoint,
    pids: Vec<u32>,
    /// From the start of the process until it said that it is ready.
    started_in: Option<Duration>,
    /// Ends with this value.
    _processes: Option<(Server, Option<Etcd>)>,
}

impl Target {
    pub fn start(store: &str) -> Result<Target> {
        let binary = std::env::current_exe()?.with_file_name("kubelith");
        let store = Store::parse(store)?;
        let etcd = match store {
            Store::Etcd => Some(Etcd::start(Path::new("target/tools/bin/etcd"))?),
            Store::Memory | Store::Embedded => None,
        };
        let begin = Instant::now();
        let tokens = Tokens::default();
        let server = Server::start(&binary, store, etcd.as_ref(), &tokens, &[])?;
        Ok(Target {
            name: format!("kubelith ({})", store.name()),
            endpoint: Endpoint::new(server.address.clone(), &tokens.admin),
            pids: vec![server.pid()],
            started_in: Some(begin.elapsed()),
            _processes: Some((server, etcd)),
        })
    }

    /// From `https://127.0.0.1:6443=PID,PID`.
    pub fn running(text: &str, token: &str) -> Result<Target> {
        let (url, pids) = text.rsplit_once('=').ok_or_else(|| format!("{text:?} is not URL=PID"))?;
        let pids = pids.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?;
        let endpoint = Endpoint::new(Address::parse(url)?, token);
        Ok(Target { name: url.to_owned(), endpoint, pids, started_in: None, _processes: None })
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
