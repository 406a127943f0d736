//! etcd by the way that `--egress-selector-config-file` names for it.

use crate::options::Options;
use futures::future::BoxFuture;
use kubelith_outbound::egress::Route;
use kubelith_store::etcd::{EtcdCounts, EtcdOptions};
use kubelith_store::{Dial, Io, TlsFiles};
use kubelith_tls::files::unopened;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug)]
struct ByRoute(Route);

impl Dial for ByRoute {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Io>>> {
        Box::pin(async move {
            match self.0.connect(host, port).await {
                Some(tunnel) => Ok(Box::new(tunnel.map_err(io::Error::other)?) as Box<dyn Io>),
                None => Err(io::Error::other("there is no proxy on this route")),
            }
        })
    }
}

/// Whether the files of `--etcd-cafile`, `--etcd-certfile` and `--etcd-keyfile` can be used. Later they may come and go.
pub fn check_files(files: &TlsFiles) -> Result<(), String> {
    let TlsFiles { ca, certificate, key } = files;
    let failed = |why: String| format!("error creating storage factory: {why}");
    if certificate.is_some() != key.is_some() {
        let shown = |file: &Option<PathBuf>| file.as_ref().map(|f| f.display().to_string()).unwrap_or_default();
        let (key, certificate) = (shown(key), shown(certificate));
        return Err(failed(format!("KeyFile and CertFile must both be present[key: {key}, cert: {certificate}]")));
    }
    let given: Vec<&PathBuf> = [certificate, key, ca].into_iter().flatten().collect();
    if given.is_empty() {
        return Ok(());
    }
    for file in given {
        std::fs::File::open(file).map_err(|why| failed(unopened(file, &why)))?;
    }
    files.check().map_err(|why| failed(why.to_string()))
}

/// How the etcd at `servers` is used, and where that is counted.
pub fn etcd_options(options: &Options, servers: &[String], counts: Arc<EtcdCounts>) -> EtcdOptions {
    let storage = &options.storage;
    let dial = match &options.egress.etcd {
        Route::Direct => None,
        route @ Route::Through(_) => Some(Arc::new(ByRoute(route.clone())) as Arc<dyn Dial>),
    };
    EtcdOptions {
        tls: storage.etcd_tls.clone(),
        dial,
        compaction_interval: storage.etcd_compaction_interval,
        lease_reuse: storage.lease_reuse,
        counts,
        ..EtcdOptions::new(servers.iter().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// kube-apiserver's words, as far as it is not about what is in the files.
    #[test]
    fn files_that_cannot_be_used_end_the_start() {
        let dir = tempfile::tempdir().unwrap();
        let there = dir.path().join("there");
        std::fs::write(&there, "").unwrap();
        let gone = || Some(PathBuf::from("/nope"));
        let told = |ca, certificate, key| check_files(&TlsFiles { ca, certificate, key }).unwrap_err();
        let missing = "error creating storage factory: open /nope: no such file or directory";
        assert_eq!(told(gone(), None, None), missing);
        assert_eq!(told(None, gone(), gone()), missing);
        assert_eq!(
            told(None, gone(), None),
            "error creating storage factory: KeyFile and CertFile must both be present[key: , cert: /nope]"
        );
        assert!(told(None, Some(there.clone()), Some(there)).starts_with("error creating storage factory: "));
        assert_eq!(check_files(&TlsFiles::default()), Ok(()));
    }
}
