//! Builds for machines that this is not: static programs of Linux, and those of Windows and macOS, linked by zig, which carries a
//! C library for each of them. zig and cargo-zigbuild come as Python packages, as all our tools do.

use crate::run::{capture, cargo, command, run, target};
use std::path::{Path, PathBuf};

const PACKAGES: [&str; 2] = ["ziglang==0.17.0", "cargo-zigbuild==0.24.0"];

fn folder() -> PathBuf {
    target().join("tools/zig")
}

/// Systems that no test runs on: what is built for them is checked by the compiler alone.
const PORTS: [&str; 2] = ["x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

/// `cargo xtask ports`: whether the server compiles for systems that this is not.
pub fn ports() -> Result<(), String> {
    PORTS.into_iter().try_for_each(|triple| {
        println!("{triple}");
        run(cargo_for(triple, "check")?.args(["--locked", "--package", "kubelith"]))
    })
}

/// A cargo that does this with zig, for a target of the compiler; both are fetched where they are missing.
pub fn cargo_for(triple: &str, what: &str) -> Result<std::process::Command, String> {
    install()?;
    let have = capture(command("rustup").args(["target", "list", "--installed"])).unwrap_or_default();
    if !have.lines().any(|line| line == triple) {
        run(command("rustup").args(["target", "add", triple]))?;
    }
    let program = folder().join("bin/cargo-zigbuild");
    let mut build = command(program);
    build.arg(what).args(["--target", triple]).env("CARGO", cargo().get_program());
    build.env("PYTHONPATH", folder()).env("CARGO_ZIGBUILD_ZIG_PATH", wrapper(&folder())?);
    Ok(build)
}

fn install() -> Result<(), String> {
    let stamp = folder().join("versions.txt");
    let wanted = PACKAGES.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(());
    }
    println!("getting zig into {}", folder().display());
    let mut pip = command("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--no-input",
        "--quiet",
        "--no-deps",
        "--upgrade",
        "--target",
    ]);
    run(pip.arg(folder()).args(PACKAGES).env("PIP_ROOT_USER_ACTION", "ignore"))?;
    std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

/// The program inside of the Python package.
fn wrapper(folder: &Path) -> Result<PathBuf, String> {
    let zig = folder.join("ziglang/zig");
    if zig.exists() { Ok(zig) } else { Err(format!("{} is missing", zig.display())) }
}
