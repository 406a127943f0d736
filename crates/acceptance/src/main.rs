//! The kubelith program once more: cargo hands tests the programs of their own package only.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    kubelith::command::main()
}
