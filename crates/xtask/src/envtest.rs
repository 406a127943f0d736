//! Packs what controller-runtime's envtest needs: `setup-envtest` takes the archive as it is (`sideload`), or by the index that
//! is written beside it (`--index`).

use crate::profile::SHIPPED;
use crate::run::{capture, command, run, target};
use crate::tools;
use std::path::Path;

const USAGE: &str = "usage: cargo xtask envtest [--binaries FOLDER] [--url URL]";
const INDEX: &str = "envtest-releases.yaml";
/// Where the archive says its files are, as those of Kubernetes do.
const INSIDE: &str = "controller-tools/envtest";
/// Where `python3 -m http.server` would serve the folder.
pub const URL: &str = "http://localhost:8000";

/// `cargo xtask envtest [--binaries FOLDER] [--url URL]`
pub fn pack_with(arguments: &[String]) -> Result<(), String> {
    let (mut binaries, mut url) = (target().join("ship").join(SHIPPED), URL.to_owned());
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let value = words.next().ok_or(USAGE)?;
        match word.as_str() {
            "--binaries" => binaries = std::path::absolute(value).map_err(|error| format!("{value}: {error}"))?,
            "--url" => url.clone_from(value),
            _ => return Err(USAGE.to_owned()),
        }
    }
    pack(&binaries, &url)
}

/// Packs the programs in `binaries`; the archive is to be found below `url`.
pub fn pack(binaries: &Path, url: &str) -> Result<(), String> {
    let kubectl = target().join("tools/bin/kubectl");
    if !kubectl.exists() {
        tools::install()?;
    }
    let (server, companion) = (binaries.join("kubelith"), binaries.join("kubelith-etcd"));
    let release = release(&capture(command(&server).arg("--version"))?)?;
    let folder = target().join("dist/envtest");
    let stage = folder.join(INSIDE);
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(failed)?;
    }
    std::fs::create_dir_all(&stage).map_err(failed)?;
    // Real files: a link would lead out of the archive.
    for (from, name) in [(&server, "kube-apiserver"), (&companion, "etcd"), (&kubectl, "kubectl")] {
        std::fs::copy(from, stage.join(name)).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    let name = archive(&release, std::env::consts::OS, std::env::consts::ARCH);
    let path = folder.join(&name);
    let top = INSIDE.split('/').next().unwrap_or(INSIDE);
    let tar = ["--create", "--gzip", "--owner=0", "--group=0", "--file"];
    run(command("tar").args(tar).arg(&path).arg("-C").arg(&folder).arg(top))?;
    let index = index(&release, &name, &sum(&path)?, url);
    std::fs::write(folder.join(INDEX), index).map_err(failed)?;
    println!("{}", path.display());
    println!("setup-envtest sideload {} < {}", release.trim_start_matches('v'), path.display());
    println!("KUBEBUILDER_ASSETS={}", stage.display());
    Ok(())
}

/// The release out of what `--version` says: `Kubernetes v1.36.4+kubelith`.
fn release(text: &str) -> Result<String, String> {
    let word = text.split_whitespace().find(|word| word.starts_with('v'));
    let word = word.and_then(|word| word.split(['+', '-']).next());
    word.map(str::to_owned).ok_or_else(|| format!("no version in {text:?}"))
}

/// As setup-envtest expects it.
fn archive(release: &str, system: &str, machine: &str) -> String {
    let system = if system == "macos" { "darwin" } else { system };
    let machine = match machine {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    };
    format!("envtest-{release}-{system}-{machine}.tar.gz")
}

fn index(release: &str, name: &str, sum: &str, url: &str) -> String {
    let url = url.trim_end_matches('/');
    format!("releases:\n  {release}:\n    {name}:\n      hash: {sum}\n      selfLink: {url}/{name}\n")
}

/// SHA-512 in hexadecimal digits.
fn sum(path: &Path) -> Result<String, String> {
    let linux = capture(command("sha512sum").arg(path));
    let text = linux.or_else(|_| capture(command("shasum").args(["-a", "512"]).arg(path)))?;
    text.split_whitespace().next().map(str::to_owned).ok_or_else(|| "no checksum".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_setup_envtest_reads() {
        assert_eq!(release("Kubernetes v1.36.4+kubelith\n"), Ok("v1.36.4".to_owned()));
        assert!(release("nothing").is_err());
        assert_eq!(archive("v1.36.4", "linux", "x86_64"), "envtest-v1.36.4-linux-amd64.tar.gz");
        assert_eq!(archive("v1.36.4", "macos", "aarch64"), "envtest-v1.36.4-darwin-arm64.tar.gz");
        assert_eq!(
            index("v1.36.4", "a.tar.gz", "00ff", "https://example.com/x/"),
            "releases:\n  v1.36.4:\n    a.tar.gz:\n      hash: 00ff\n      selfLink: https://example.com/x/a.tar.gz\n"
        );
    }
}
