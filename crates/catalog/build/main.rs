//! Compiles `api/*.api` into the bytes that the library loads at start. A mistake in a text fails the build
//! with its file and line.

#[path = "../src/api.rs"]
mod api;
#[path = "../src/encode.rs"]
mod encode;
#[path = "../src/model.rs"]
mod model;
#[path = "../src/text/mod.rs"]
mod text;
#[path = "../src/wire.rs"]
mod wire;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs};

fn main() -> ExitCode {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    for input in ["api", "build", "src/api.rs", "src/encode.rs", "src/model.rs", "src/text", "src/wire.rs"] {
        println!("cargo::rerun-if-changed={input}");
    }
    match compile(&root.join("api")) {
        Ok(bytes) => {
            fs::write(out.join("catalog.bin"), bytes).expect("OUT_DIR can be written");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("cargo::error={error}");
            ExitCode::FAILURE
        }
    }
}

fn compile(folder: &Path) -> Result<Vec<u8>, String> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .and_then(|entries| entries.map(|e| e.map(|e| e.path())).collect())
        .map_err(|e| format!("{}: {e}", folder.display()))?;
    paths.retain(|p| p.extension().is_some_and(|e| e == "api"));
    paths.sort();
    let mut files = Vec::new();
    for path in &paths {
        let source = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let stem = path.file_stem().and_then(|s| s.to_str()).ok_or("a file name is not UTF-8")?;
        files.push(text::parse(stem, &source).map_err(|e| e.to_string())?);
    }
    let model = text::link(files).map_err(|e| e.to_string())?;
    Ok(encode::encode(&model))
}
