//! The command line: one table of flags (`table/`), pflag's way of reading them, and the help made from it.
//!
//! A flag that the table has and the program does not use yet says so once, by name, when it is given.

mod config_file;
mod csv;
mod go_number;
mod help;
pub mod kind;
mod parse;
mod table;
#[cfg(test)]
mod tests;

pub use config_file::with_config_file;
pub use help::help;
pub use kind::FlagKind;
pub use parse::{Flags, UsageError, parse};
pub use table::{OWN, SECTIONS, find};

/// One flag.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    pub name: &'static str,
    pub kind: FlagKind,
    /// As one would write it; empty for none.
    pub default: &'static str,
    pub effect: Effect,
    pub help: &'static str,
    /// On its way out: this is said when it is given.
    pub deprecated: Option<&'static str>,
}

/// What giving the flag does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// What its help says.
    Applies,
    /// Nothing, for good: it tunes what this program does not have. Accepted with a warning.
    NoUse,
}
