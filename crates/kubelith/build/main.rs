//! What the program is told of its sources, and the linker of the program.

mod commit;
mod order;

fn main() {
    println!("cargo::rerun-if-changed=build");
    commit::tell();
    order::tell();
}
