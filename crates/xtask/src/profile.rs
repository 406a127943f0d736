//! Makes the profile that release builds are optimised with: a server that counts what it runs, under the loads of `bench`.

use crate::run::{capture, cargo, command, root, run, target};
use std::path::{Path, PathBuf};

/// Writes weigh more than their share of the requests: a read that takes a tenth of their time is fast as it is.
#[rustfmt::skip]
const LOADS: &[&str] = &[
    "--pods", "6000", "--seconds", "1", "--watchers", "200", "--writes", "1000",
    "create", "get", "list", "list-proto", "patch", "apply", "watch", "delete",
    "custom-create", "custom-get", "custom-list", "custom-patch", "custom-watch",
];

pub fn make() -> Result<(), String> {
    let merge = profdata()?;
    let folder = target().join("profile");
    let counts = folder.join("counts");
    let failed = |error| format!("{}: {error}", counts.display());
    if counts.exists() {
        std::fs::remove_dir_all(&counts).map_err(failed)?;
    }
    std::fs::create_dir_all(&counts).map_err(failed)?;

    let server = ["build", "--release", "--package", "kubelith", "--target-dir"];
    run(cargo().args(server).arg(&folder).env("KUBELITH_PROFILE", "make"))?;
    let bench = ["run", "--release", "--package", "kubelith-bench", "--", "--binary"];
    let counter = folder.join("release/kubelith");
    run(cargo().args(bench).arg(counter).args(LOADS).env("LLVM_PROFILE_FILE", counts.join("%p.profraw")))?;

    let profile = root().join("profile/kubelith.profdata");
    run(command(merge).args(["merge", "--sparse", "-o"]).arg(&profile).args(files(&counts).map_err(failed)?))?;
    println!("{} is new; the next release build takes it", profile.display());
    Ok(())
}

/// The program that adds the counts up must be of the compiler's version.
fn profdata() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("LLVM_PROFDATA") {
        return Ok(path.into());
    }
    let libraries = capture(command("rustc").args(["--print", "target-libdir"]))?;
    let path = Path::new(libraries.trim()).with_file_name("bin").join("llvm-profdata");
    if path.exists() {
        Ok(path)
    } else {
        Err(format!("{} is missing: rustup component add llvm-tools", path.display()))
    }
}

fn files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn wrapper(words: &[&str], mode: Option<&str>) -> String {
        let mut wrapper = Command::new(root().join("profile/rustc"));
        wrapper.args(words).env_remove("KUBELITH_PROFILE").envs(mode.map(|mode| ("KUBELITH_PROFILE", mode)));
        capture(&mut wrapper).unwrap().trim().to_owned()
    }

    #[test]
    fn release_builds_are_told_of_the_profile() {
        let release = ["echo", "--edition", "2024", "-C", "codegen-units=1"];
        let told = wrapper(&release, None);
        let profile = root().join("profile/kubelith.profdata");
        let expected = format!("--edition 2024 -C codegen-units=1 -Cprofile-use={} -C", profile.display());
        assert!(told.starts_with(&expected), "{told}");
        let told = wrapper(&release, Some("make"));
        assert!(told.starts_with("--edition 2024 -C codegen-units=1 -Cprofile-generate -C"), "{told}");
        assert_eq!(wrapper(&["echo", "a  b", "-Copt-level=2"], None), "a  b -Copt-level=2");
    }

    #[test]
    fn the_compiler_reads_the_profile() {
        let folder = target().join("profile-test");
        std::fs::create_dir_all(&folder).unwrap();
        let source = folder.join("lib.rs");
        std::fs::write(&source, "pub fn f() {}").unwrap();
        let flags = ["--crate-type=lib", "--emit=obj", "-Ccodegen-units=1", "-Copt-level=2"];
        let profile = format!("-Cprofile-use={}", root().join("profile/kubelith.profdata").display());
        capture(command("rustc").args(flags).arg(profile).arg("--out-dir").arg(&folder).arg(&source)).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
