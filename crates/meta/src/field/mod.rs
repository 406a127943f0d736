//! Where in an object something is wrong, and what: field paths, field errors and lists of them.

mod error;
mod list;
mod path;

pub use error::{BadValue, Error, ErrorKind};
pub use list::ErrorList;
pub use path::Path;

#[cfg(test)]
mod tests;
