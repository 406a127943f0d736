//! `cargo xtask dist`: everything that is handed out, from one build: archive, Debian package, container images, what
//! controller-runtime's envtest takes, a list of what is inside, release notes and checksums. The same commit gives the same
//! bytes: times are the commit's, owners are root, orders are fixed, paths of this machine are left out of the programs.

mod debian;
mod image;
mod notes;
mod pack;
mod release;
mod sbom;
mod tree;
#[cfg(test)]
mod trial;
pub mod zig;
mod zip;

use crate::run::{capture, command, root, target};
use crate::{envtest, profile};
use release::{Machine, Needs, Release, needs, read};
use std::path::{Path, PathBuf};
use tree::Tree;

const USAGE: &str = "\
usage: cargo xtask dist [--target TRIPLE] [--profile FILE|none] [--binaries FOLDER] [--program FILE] [--shell FILE]

  --target TRIPLE     the machine to build for, linked by zig: x86_64-unknown-linux-musl, aarch64-unknown-linux-musl,
                      x86_64-pc-windows-gnu, aarch64-apple-darwin
                      (default: this machine)
  --profile FILE      optimise with this profile; none: without (default: the one made last, or a new one)
  --binaries FOLDER   pack the programs in this folder, build none
  --program FILE      the kubelith that writes manual and completions, where the one that is packed does not run here
  --shell FILE        a static busybox, for the image with a shell
";

#[derive(Debug, Default, PartialEq, Eq)]
struct Order {
    target: Option<String>,
    profile: Option<String>,
    binaries: Option<PathBuf>,
    program: Option<PathBuf>,
    shell: Option<PathBuf>,
}

/// `cargo xtask dist …`
pub fn dist(arguments: &[String]) -> Result<(), String> {
    let order = parse(arguments)?;
    let machine = order.target.as_deref().map_or_else(Machine::own, Machine::of)?;
    let release = Release::new(machine)?;
    let binaries = match &order.binaries {
        Some(folder) => folder.clone(),
        None => build(&order, &release)?,
    };
    let texts =
        Texts::of(&order.program.clone().unwrap_or_else(|| binaries.join(release.machine.program("kubelith"))))?;
    let folder = target().join("dist/packages");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(failed)?;
    }
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let mut packages = pack(&release, &binaries, &texts, order.shell.as_deref())?;
    packages.push((format!("{}.cdx.json", release.name()), sbom::document(&release)?.into_bytes()));
    packages.push((
        format!("kubelith-{}-notes.md", release.version),
        notes::of(&text("CHANGELOG.md")?, &release.version)?.into(),
    ));
    let mut sums = String::new();
    packages.sort();
    for (name, bytes) in &packages {
        std::fs::write(folder.join(name), bytes).map_err(failed)?;
        sums.push_str(&format!("{}  {name}\n", pack::sha256(bytes)));
        println!("{}", folder.join(name).display());
    }
    std::fs::write(folder.join("SHA256SUMS"), sums).map_err(failed)?;
    // Its index is for setup-envtest, which starts programs of the machine that it is on.
    if order.target.is_none() { envtest::pack(&binaries, envtest::URL) } else { Ok(()) }
}

fn parse(arguments: &[String]) -> Result<Order, String> {
    let mut order = Order::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let value = words.next().ok_or(USAGE)?;
        let path = || std::path::absolute(value).map_err(|error| format!("{value}: {error}"));
        match word.as_str() {
            "--target" => order.target = Some(value.clone()),
            "--profile" => order.profile = Some(value.clone()),
            "--binaries" => order.binaries = Some(path()?),
            "--program" => order.program = Some(path()?),
            "--shell" => order.shell = Some(path()?),
            _ => return Err(USAGE.to_owned()),
        }
    }
    Ok(order)
}

/// Builds the programs; says in which folder they are.
fn build(order: &Order, release: &Release) -> Result<PathBuf, String> {
    let folder = target().join("ship");
    let profile = match order.profile.as_deref() {
        Some("none") => None,
        given => Some(profile::find(given)?),
    };
    let cargo = order.target.as_deref().map(|triple| zig::cargo_for(triple, "zigbuild")).transpose()?;
    profile::build_for_shipping(cargo, &folder, profile.as_deref(), release.made)?;
    Ok(order.target.iter().fold(folder, |folder, triple| folder.join(triple)).join(profile::SHIPPED))
}

/// What the program says of itself.
struct Texts {
    manual: String,
    completions: Vec<(&'static str, String)>,
}

impl Texts {
    fn of(program: &Path) -> Result<Texts, String> {
        let say = |words: &[&str]| {
            let said = capture(command(program).args(words));
            said.map_err(|error| format!("{error}\n--program FILE names a kubelith that runs on this machine"))
        };
        let shells = ["bash", "zsh", "fish"].map(|shell| say(&["completion", shell]).map(|text| (shell, text)));
        Ok(Texts { manual: say(&["man"])?, completions: shells.into_iter().collect::<Result<_, _>>()? })
    }
}

fn text(path: &str) -> Result<String, String> {
    std::fs::read_to_string(root().join(path)).map_err(|error| format!("{path}: {error}"))
}

/// The files to hand out, by their names.
fn pack(
    release: &Release,
    binaries: &Path,
    texts: &Texts,
    shell: Option<&Path>,
) -> Result<Vec<(String, Vec<u8>)>, String> {
    let server = read(&binaries.join(release.machine.program("kubelith")))?;
    let companion = read(&binaries.join(release.machine.program("kubelith-etcd")))?;
    let needed = needs(&server);
    let mut packages = vec![archive(release, &server, &companion, texts)?];
    if release.machine.system != "linux" {
        return Ok(packages);
    }
    let scripts =
        ["postinst", "prerm", "postrm"].map(|name| text(&format!("packaging/debian/{name}")).map(|text| (name, text)));
    let contents = debian::Contents {
        server: &server,
        companion: &companion,
        needs: needed.clone(),
        unit: &text("packaging/systemd/kubelith.service")?,
        default: &text("packaging/debian/default")?,
        scripts: &scripts.into_iter().collect::<Result<Vec<_>, String>>()?,
        manual: &texts.manual,
        completions: &texts.completions,
        licence: &text("LICENSE")?,
        changelog: &text("CHANGELOG.md")?,
    };
    packages.push((debian::name(release), debian::file(release, &contents)?));
    if needed != Needs::Nothing {
        println!(
            "no image: the program needs a C library, and the image has none. --target {}-unknown-linux-musl builds one that \
                  does not",
            release.machine.triple.split('-').next().unwrap_or_default()
        );
        return Ok(packages);
    }
    let shell = shell.map(read).transpose()?;
    let licence = text("LICENSE")?;
    for shell in [None, shell.as_deref()].into_iter().take(1 + usize::from(shell.is_some())) {
        let contents = image::Contents { server: &server, companion: &companion, licence: &licence, shell };
        let variant = if shell.is_some() { "-shell" } else { "" };
        packages.push((format!("{}{variant}.image.tar", release.name()), image::file(release, &contents)?));
    }
    Ok(packages)
}

/// What is unpacked and started, on any machine, and its name.
fn archive(release: &Release, server: &[u8], companion: &[u8], texts: &Texts) -> Result<(String, Vec<u8>), String> {
    let mut tree = Tree::default();
    let top = release.name();
    let mut put = |path: &str, mode: u32, bytes: &[u8]| tree.file(&format!("{top}/{path}"), mode, bytes);
    put(&release.machine.program("kubelith"), 0o755, server);
    put(&release.machine.program("kubelith-etcd"), 0o755, companion);
    for document in ["LICENSE", "README.md", "CHANGELOG.md"] {
        put(document, 0o644, text(document)?.as_bytes());
    }
    put("share/man/man1/kubelith.1", 0o644, texts.manual.as_bytes());
    for (shell, script) in &texts.completions {
        put(&format!("share/completions/kubelith.{shell}"), 0o644, script.as_bytes());
    }
    if release.machine.system == "linux" {
        let unit = text("packaging/systemd/kubelith.service")?;
        put("share/systemd/kubelith.service", 0o644, unit.as_bytes());
    }
    for (from, to) in [
        ("packaging/monitoring/alerts.yaml", "share/monitoring/alerts.yaml"),
        ("packaging/monitoring/dashboard.json", "share/monitoring/dashboard.json"),
    ] {
        put(to, 0o644, text(from)?.as_bytes());
    }
    if release.machine.system == "windows" {
        return Ok((format!("{top}.zip"), zip::zip(&tree, release.made)?));
    }
    tree.link(&format!("{top}/kube-apiserver"), "kubelith");
    Ok((format!("{top}.tar.gz"), pack::gzip(&tree.tar("", release.made)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What names an image names the one of this version.
    #[test]
    fn recipes_are_of_this_version() {
        let version = Release::new(Machine::of("x86_64-unknown-linux-musl").unwrap()).unwrap().version;
        for (file, name) in [
            ("packaging/kubeadm/kube-apiserver+strategic.yaml", format!("image: kubelith:{version}\n")),
            ("packaging/kind/Dockerfile", format!("kubelith:{version} ")),
            ("packaging/kind/Dockerfile", format!("kubelith-{version}-linux-amd64.image.tar")),
            ("README.md", format!("kubelith-{version}-linux-amd64.tar.gz")),
        ] {
            assert!(text(file).unwrap().contains(&name), "{file} does not name {name}");
        }
    }

    #[test]
    fn command_lines() {
        let parse = |line: &str| parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(parse(""), Ok(Order::default()));
        let order =
            parse("--target aarch64-unknown-linux-musl --profile none --binaries /b --program /p --shell /s").unwrap();
        assert_eq!(
            (order.target.as_deref(), order.profile.as_deref()),
            (Some("aarch64-unknown-linux-musl"), Some("none"))
        );
        assert_eq!(
            (order.binaries, order.program, order.shell),
            (Some("/b".into()), Some("/p".into()), Some("/s".into()))
        );
        assert_eq!(parse("--target"), Err(USAGE.to_owned()));
        assert_eq!(parse("--other x"), Err(USAGE.to_owned()));
    }
}
