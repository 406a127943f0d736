//! The catalogue's text form: `parse` reads one file, `link` makes one model of all. `api/README.md` describes
//! the language. Runs in the build script; the library has it for tests only.

mod ast;
mod fields;
mod link;
mod parse;
mod resources;
mod scan;
mod shapes;
#[cfg(test)]
mod tests;

pub use link::link;
pub use parse::parse;
