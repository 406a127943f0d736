//! What the reference makes of thousands of expressions. The facts are in `tests/cel` of the repository, or in the folder
//! that `CEL_FACTS` names; beside them stand texts with mistakes of all kinds, made by chance, and cases of our own: bad input,
//! limits, and what the reference does where it crashes.

mod replay;

use std::path::{Path, PathBuf};

#[test]
fn expressions_are_what_they_are_to_the_reference() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::var_os("CEL_FACTS").map_or(own.join("../../tests/cel"), PathBuf::from);
    let mut files = replay::files(&folder).unwrap();
    files.extend(["tests/mistakes.jsonl", "tests/own.jsonl"].map(|file| own.join(file)));
    let tally = replay::replay(&files).unwrap();
    println!("{} passed, {} failed", tally.passed, tally.failed);
    assert_eq!(tally.failed, 0);
}
