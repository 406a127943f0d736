//! Tells the linker in which order functions are to lie in the program. A request comes through some two thousand of them, through most
//! only once, and the processor waits for their code: less, where functions that call each other are neighbours.
//!
//! `order.txt` names them (`cargo xtask order`). The name of a function in Rust ends with a hash, which is another one with each
//! compiler and each version of a package. So those that are called exactly so come first, and then what is called so but for the
//! hash, unless that says nothing (`exact`): of the program that the list was made of, functions that are no part of it, of others
//! what there is to order. A name that is there no more does no harm.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const NAMES: &str = "order.txt";
/// How `cargo xtask` says that the compiler has a profile, by which it orders functions itself.
const PROFILE: &str = "KUBELITH_PROFILE";

pub fn tell() {
    println!("cargo::rerun-if-changed={NAMES}");
    println!("cargo::rerun-if-env-changed={PROFILE}");
    if !is_wanted() || !has_own_linker() {
        return;
    }
    let names = Path::new(env!("CARGO_MANIFEST_DIR")).join(NAMES);
    let names = std::fs::read_to_string(&names).unwrap_or_else(|error| panic!("{}: {error}", names.display()));
    let script = PathBuf::from(said("OUT_DIR")).join("order.ld");
    std::fs::write(&script, script_of(&names)).unwrap_or_else(|error| panic!("{}: {error}", script.display()));
    println!("cargo::rustc-link-arg-bin=kubelith=-T");
    println!("cargo::rustc-link-arg-bin=kubelith={}", script.display());
}

fn said(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// Looking for the names takes the linker some ten seconds: too long for a build that is not meant to be fast.
fn is_wanted() -> bool {
    said("PROFILE") == "release" && matches!(said(PROFILE).as_str(), "" | "none")
}

/// Whether this is linked by the linker that comes with the compiler: others need not know such scripts.
fn has_own_linker() -> bool {
    let is_other =
        |flag: &str| flag.contains("linker") || flag.contains("fuse-ld") || flag.contains("link-self-contained");
    said("TARGET") == "x86_64-unknown-linux-gnu"
        && said("RUSTC_LINKER").is_empty()
        && !said("CARGO_ENCODED_RUSTFLAGS").split('\u{1f}').any(is_other)
}

/// A section in front of all other code, and in it those that the compilers put one function each into.
fn script_of(names: &str) -> String {
    let mut script = "SECTIONS {\n.text.ordered : {\n".to_owned();
    let mut roughly = String::new();
    for line in names.lines() {
        let (name, is_exact) = line.strip_suffix(" exact").map_or((line, false), |name| (name, true));
        // The library calls some unlikely that are not.
        writeln!(script, "*(.text.{name} .text.unlikely.{name})").expect("memory");
        if let Some(at) = name.rfind("17h").filter(|_| !is_exact && name.starts_with("_ZN")) {
            writeln!(roughly, "*(.text.{}17h*)", &name[..at]).expect("memory");
        }
    }
    script + &roughly + "}\n}\nINSERT BEFORE .text;\n"
}
