//! A test: dpkg takes the package, keeps data and changed settings over an upgrade and a removal, and leaves nothing behind
//! after a purge. It works in a folder of its own; scripts of the package are told of it (`DPKG_ROOT`).

use super::release::{Machine, Needs, Release};
use super::{Texts, debian, text};
use crate::run::{capture, command};
use std::path::{Path, PathBuf};
use std::process::Command;

struct System {
    root: PathBuf,
}

impl System {
    fn new() -> System {
        let root = std::env::temp_dir().join(format!("kubelith-dpkg-{}", std::process::id()));
        for folder in ["etc", "var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers", "tmp"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        for (file, content) in [
            ("var/lib/dpkg/status", ""),
            ("var/lib/dpkg/available", ""),
            ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
            ("etc/shadow", "root:*:19000:0:99999:7:::\n"),
            ("etc/group", "root:x:0:\n"),
            ("etc/gshadow", "root:*::\n"),
        ] {
            std::fs::write(root.join(file), content).unwrap();
        }
        System { root }
    }

    /// As root, or as somebody who is root in a world of their own.
    fn dpkg(&self, words: &[&str]) -> String {
        let is_root = capture(command("id").arg("-u")).unwrap().trim() == "0";
        let mut dpkg = match is_root {
            true => command("dpkg"),
            false => {
                let mut command = Command::new("unshare");
                command.args(["--user", "--map-root-user", "dpkg"]);
                command
            }
        };
        dpkg.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").env("LC_ALL", "C");
        dpkg.arg(format!("--root={}", self.root.display()));
        // Other packages are not there, and neither is a shell.
        dpkg.args(["--force-script-chrootless", "--force-depends", "--force-confold", "--force-not-root"]);
        capture(dpkg.args(words)).unwrap()
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(path)).ok()
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn install(&self, version: &str) {
        let package = self.root.join("tmp/kubelith.deb");
        std::fs::write(&package, package_of(version)).unwrap();
        self.dpkg(&["--install", package.to_str().unwrap()]);
    }
}

impl Drop for System {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

fn package_of(version: &str) -> Vec<u8> {
    let machine = Machine::own().unwrap();
    let release = Release { version: version.into(), commit: "c".into(), made: 1_700_000_000, machine };
    let program = format!("#!/bin/sh\necho kubelith {version} \"$@\"\n");
    let texts = Texts { manual: ".TH KUBELITH 1\n".into(), completions: vec![("bash", "complete kubelith\n".into())] };
    let scripts =
        ["postinst", "prerm", "postrm"].map(|name| (name, text(&format!("packaging/debian/{name}")).unwrap()));
    let contents = debian::Contents {
        server: program.as_bytes(),
        companion: b"#!/bin/sh\n",
        needs: Needs::Glibc("2.36".into()),
        unit: &text("packaging/systemd/kubelith.service").unwrap(),
        default: &text("packaging/debian/default").unwrap(),
        scripts: &scripts,
        manual: &texts.manual,
        completions: &texts.completions,
        licence: "licence\n",
        changelog: "changes\n",
    };
    let package = debian::file(&release, &contents).unwrap();
    assert_eq!(package, debian::file(&release, &contents).unwrap(), "the same twice");
    package
}

/// What the service starts, in this root, with the flags of the default file.
fn start(system: &System) -> String {
    let unit = system.read("usr/lib/systemd/system/kubelith.service").unwrap();
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let line = line.replacen("/usr", &system.root.join("usr").display().to_string(), 1);
    let script = format!(". {}/etc/default/kubelith; {line}", system.root.display());
    capture(command("sh").args(["-c", &script])).unwrap()
}

#[test]
fn dpkg_installs_upgrades_removes_and_purges() {
    if !Path::new("/usr/bin/dpkg").exists() {
        println!("there is no dpkg on this machine");
        return;
    }
    let system = System::new();
    system.install("0.2.0");
    assert_eq!(start(&system), "kubelith 0.2.0 --data-dir=/var/lib/kubelith\n");
    assert!(system.read("etc/passwd").unwrap().contains("kubelith:"));
    assert!(system.dpkg(&["--status", "kubelith"]).contains("Depends: passwd, libc6 (>= 2.36), libgcc-s1\n"));
    for file in ["usr/share/bash-completion/completions/kubelith", "usr/share/doc/kubelith/copyright"] {
        assert!(system.read(file).is_some(), "{file}");
    }

    system.write("var/lib/kubelith/store/data", "objects");
    system.write("etc/default/kubelith", "KUBELITH_FLAGS=--secure-port=443\n");
    system.install("0.3.0");
    assert_eq!(start(&system), "kubelith 0.3.0 --data-dir=/var/lib/kubelith --secure-port=443\n");
    assert_eq!(system.read("var/lib/kubelith/store/data").as_deref(), Some("objects"));
    assert_eq!(system.read("etc/passwd").unwrap().matches("\nkubelith:").count(), 1);

    system.dpkg(&["--remove", "kubelith"]);
    assert_eq!(system.read("usr/bin/kubelith"), None);
    assert_eq!(system.read("var/lib/kubelith/store/data").as_deref(), Some("objects"));
    assert!(system.read("etc/default/kubelith").is_some());

    system.dpkg(&["--purge", "kubelith"]);
    for path in
        ["var/lib/kubelith", "etc/default/kubelith", "usr/bin/kubelith", "usr/lib/kubelith", "usr/share/doc/kubelith"]
    {
        assert!(!system.root.join(path).exists(), "{path}");
    }
    assert!(!system.read("etc/passwd").unwrap().contains("kubelith:"));
}
