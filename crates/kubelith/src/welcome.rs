//! What a start says on a terminal: what runs, where its data is, how to reach it, and what to try next.

use crate::certificates::quoted;
use crate::options::{Options, StorageBackend};
use crate::version;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Whether this data folder was ever served from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    First,
    Later,
}

/// A few lines for people. `kubeconfig` is the administrator's, where there is one of ours; `console` a link that signs in to the
/// console, where it is served.
pub fn text(options: &Options, url: &str, kubeconfig: Option<&Path>, console: Option<&str>, start: Start) -> String {
    let release = version::info().binary_version();
    let mut out = format!("\nKubelith {} serves Kubernetes v{release} on {url}\n\n", version::KUBELITH);
    let _ = writeln!(out, "  objects     {}", objects(options));
    let Some(kubeconfig) = kubeconfig else { return out };
    let _ = writeln!(out, "  kubeconfig  {}", kubeconfig.display());
    if let Some(link) = console {
        let _ = writeln!(
            out,
            "  console     {link}\n              (good once, for 15 minutes; the browser does not know the certificate)"
        );
    }
    let export = format!("export KUBECONFIG={}", quoted(kubeconfig));
    if start == Start::Later {
        let _ = writeln!(out, "\n  {export}");
        return out;
    }
    let folder = match options.data_dir_given {
        true => format!(" --data-dir {}", quoted(&absolute(&options.data_dir))),
        false => String::new(),
    };
    let _ = writeln!(
        out,
        "\nTry it in another terminal:\n\n  {export}\n  kubectl get namespaces\n  kubectl create configmap hello \
         --from-literal=text=world\n\n`kubelith kubeconfig --merge{folder}` adds it to your own kubeconfig, `kubelith --help` \
         shows what else there is.\nCtrl-C stops it.\n"
    );
    out
}

fn objects(options: &Options) -> String {
    let folder = |folder: &Path| crate::storage::folder(&absolute(folder)).display().to_string();
    match (options.storage.backend, &options.storage.companion) {
        (StorageBackend::Memory, _) => "in memory, gone at the end".to_owned(),
        (StorageBackend::Etcd3, _) => format!("in etcd, {}", options.storage.etcd_servers.join(", ")),
        (_, Some(companion)) => folder(&companion.folder),
        (_, None) => folder(&options.data_dir),
    }
}

pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags;

    #[test]
    fn it_says_where_and_how() {
        let options = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            Options::from_flags(&flags::parse(&words).unwrap()).unwrap()
        };
        let (url, kubeconfig) = ("https://127.0.0.1:6443", Path::new("/d/admin.kubeconfig"));
        let link = "https://127.0.0.1:6443/console/#code=x";
        let first = text(&options("--data-dir=/d"), url, Some(kubeconfig), Some(link), Start::First);
        for words in [
            "serves Kubernetes v1.36.4 on https://127.0.0.1:6443\n",
            "  objects     /d/store\n",
            "  console     https://127.0.0.1:6443/console/#code=x\n",
            "  export KUBECONFIG=/d/admin.kubeconfig\n  kubectl get namespaces\n",
            "`kubelith kubeconfig --merge --data-dir /d`",
        ] {
            assert!(first.contains(words), "{words}: {first}");
        }
        let later = text(&options("--data-dir=/d"), url, Some(kubeconfig), None, Start::Later);
        assert!(later.contains("export KUBECONFIG=") && !later.contains("Try it"), "{later}");
        let memory = text(&options("--storage-backend=memory"), url, None, None, Start::First);
        assert!(memory.ends_with("  objects     in memory, gone at the end\n"), "{memory}");
        let etcd = text(&options("--etcd-servers=http://127.0.0.1:2379"), url, None, None, Start::First);
        assert!(etcd.ends_with("  objects     in etcd, http://127.0.0.1:2379\n"), "{etcd}");
    }
}
