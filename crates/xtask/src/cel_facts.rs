//! Replays facts about expressions in CEL, with an example of the crate that has the language.

use crate::run::{cargo, root, run};
use std::path::PathBuf;

/// Replays a folder of facts; without arguments the repository's own.
pub fn replay(arguments: &[String]) -> Result<(), String> {
    let folder = match arguments {
        [] => root().join("tests/cel"),
        // Programs are run in the root of the repository; the folder is meant from here.
        [folder] => std::path::absolute(folder).unwrap_or_else(|_| PathBuf::from(folder)),
        _ => return Err("cargo xtask cel-facts [folder]".to_owned()),
    };
    run(cargo().args(["run", "--quiet", "--package", "kubelith-cel", "--example", "facts", "--"]).arg(folder))
}
