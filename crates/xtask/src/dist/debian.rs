//! The Debian package: an `ar` archive of two tar archives, as dpkg reads it. Sums of the files dpkg makes itself.

use super::pack::gzip;
use super::release::{Needs, Release};
use super::tree::Tree;

/// Revision of the packaging, apart from the version of what is packed.
const REVISION: u32 = 1;

/// What is in the package.
pub struct Contents<'a> {
    pub server: &'a [u8],
    pub companion: &'a [u8],
    pub needs: Needs,
    pub unit: &'a str,
    pub default: &'a str,
    /// Scripts by their names: postinst, prerm, postrm.
    pub scripts: &'a [(&'a str, String)],
    pub manual: &'a str,
    /// Completions by shell.
    pub completions: &'a [(&'a str, String)],
    pub licence: &'a str,
    pub changelog: &'a str,
}

pub fn version(release: &Release) -> String {
    format!("{}-{REVISION}", release.version)
}

/// `kubelith_0.2.0-1_amd64.deb`
pub fn name(release: &Release) -> String {
    format!("kubelith_{}_{}.deb", version(release), release.machine.architecture)
}

pub fn file(release: &Release, contents: &Contents<'_>) -> Result<Vec<u8>, String> {
    let data = files(contents)?;
    let mut control = Tree::default();
    control.file("control", 0o644, description(release, contents, &data));
    control.file("conffiles", 0o644, "/etc/default/kubelith\n");
    for (name, text) in contents.scripts {
        control.file(name, 0o755, text.as_str());
    }
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", gzip(&control.tar("./", release.made)?)?),
        ("data.tar.gz", gzip(&data.tar("./", release.made)?)?),
    ];
    let mut out = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        out.extend(
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", release.made, 0, 0, 100_644, bytes.len()).bytes(),
        );
        out.extend_from_slice(&bytes);
        out.resize(out.len().next_multiple_of(2), b'\n');
    }
    Ok(out)
}

fn files(contents: &Contents<'_>) -> Result<Tree, String> {
    const DOCUMENTS: &str = "usr/share/doc/kubelith";
    let mut tree = Tree::default();
    tree.file("usr/bin/kubelith", 0o755, contents.server);
    tree.file("usr/lib/kubelith/etcd", 0o755, contents.companion);
    tree.link("usr/lib/kubelith/kube-apiserver", "../../bin/kubelith");
    tree.file("usr/lib/systemd/system/kubelith.service", 0o644, contents.unit);
    tree.file("etc/default/kubelith", 0o644, contents.default);
    tree.file("usr/share/man/man1/kubelith.1.gz", 0o644, gzip(contents.manual.as_bytes())?);
    for (shell, text) in contents.completions {
        let path = match *shell {
            "zsh" => "usr/share/zsh/vendor-completions/_kubelith",
            "fish" => "usr/share/fish/vendor_completions.d/kubelith.fish",
            _ => "usr/share/bash-completion/completions/kubelith",
        };
        tree.file(path, 0o644, text.as_str());
    }
    let copyright = "\
         Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: kubelith\n\nFiles: *\n\
         Copyright: The Kubelith contributors\nLicense: Apache-2.0\n The full text is in LICENSE.gz beside this file, and in\n \
         /usr/share/common-licenses/Apache-2.0.\n";
    tree.file(&format!("{DOCUMENTS}/copyright"), 0o644, copyright);
    tree.file(&format!("{DOCUMENTS}/LICENSE.gz"), 0o644, gzip(contents.licence.as_bytes())?);
    tree.file(&format!("{DOCUMENTS}/changelog.gz"), 0o644, gzip(contents.changelog.as_bytes())?);
    Ok(tree)
}

fn description(release: &Release, contents: &Contents<'_>, data: &Tree) -> String {
    let kilobytes: usize = data.files().map(|(_, bytes)| bytes.len().div_ceil(1024)).sum();
    let depends = match &contents.needs {
        Needs::Glibc(version) => format!("Depends: passwd, libc6 (>= {version}), libgcc-s1\n"),
        Needs::Nothing | Needs::Unknown => "Depends: passwd\n".to_owned(),
    };
    format!(
        "Package: kubelith\nVersion: {}\nArchitecture: {}\nMaintainer: The Kubelith contributors \
         <contributors@kubelith.invalid>\nInstalled-Size: {kilobytes}\n{depends}Suggests: kubernetes-client\nSection: admin\n\
         Priority: optional\nDescription: Kubernetes API server in one binary\n Kubelith is the Kubernetes API server, written \
         anew: the same API, flags and\n stored data as kube-apiserver, with storage built in. The package has a\n service \
         that serves on port 6443 and keeps its objects in /var/lib/kubelith.\n",
        version(release),
        release.machine.architecture,
    )
}
