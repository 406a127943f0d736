//! The kubelith program. What it does is in the library beside it, which tests use, too.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    kubelith::command::main()
}
