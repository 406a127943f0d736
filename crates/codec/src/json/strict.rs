//! What strict decoding complains about: unknown and duplicate fields, with their paths.

use kubelith_meta::text::Quoted;
use std::fmt;

/// Complaints beyond this number are dropped, as the reference does.
pub const MAX_STRICT_ERRORS: usize = 100;

/// Whether unknown and duplicate fields are looked for. Finding them costs; `fieldValidation=Ignore` does without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    Lenient,
    Report,
}

/// A field that decoding dropped or overwrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StrictError {
    /// `unknown field "spec.foo"`
    UnknownField(String),
    /// `duplicate field "spec.ports[0].name"`
    DuplicateField(String),
    /// Duplicate keys of a YAML document, each with its line, as the YAML reader words them.
    Yaml(Vec<String>),
}

impl fmt::Display for StrictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StrictError::UnknownField(path) => write!(f, "unknown field {}", Quoted(path)),
            StrictError::DuplicateField(path) => write!(f, "duplicate field {}", Quoted(path)),
            StrictError::Yaml(lines) => write!(f, "yaml: unmarshal errors:\n  {}", lines.join("\n  ")),
        }
    }
}

impl StrictError {
    /// The texts of the warnings that a client gets for it: one per line of a YAML error.
    pub fn warnings(&self) -> Vec<String> {
        match self {
            StrictError::Yaml(lines) => lines.clone(),
            other => vec![other.to_string()],
        }
    }
}

/// Collects complaints in document order, each once, up to the limit.
#[derive(Debug, Default)]
pub(crate) struct StrictErrors {
    list: Vec<StrictError>,
}

impl StrictErrors {
    /// True while another complaint would be kept; saves building paths that nobody reads.
    pub fn has_room(&self) -> bool {
        self.list.len() < MAX_STRICT_ERRORS
    }

    pub fn add(&mut self, error: StrictError) {
        if self.has_room() && !self.list.contains(&error) {
            self.list.push(error);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn into_vec(self) -> Vec<StrictError> {
        self.list
    }
}
