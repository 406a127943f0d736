//! YAML as kube-apiserver reads and writes it: by conversion from and to JSON, with the YAML 1.1 rules of its
//! library.
//!
//! Reading takes the first document of a stream, makes keys strings and expands aliases within limits. Clients
//! often send JSON under YAML's name (server-side apply does); that is read by the JSON parser.

mod cursor;
mod decode;
mod fast;
mod go_syntax;
mod nodes;
mod order;
mod parser;
mod resolve;
mod scalar;
mod scanner;
mod style;
#[cfg(test)]
mod tests;
mod timestamp;
mod write;

pub use write::{to_vec, write};

use crate::error::DecodeError;
use crate::json::StrictError;
use kubelith_meta::Value;

/// A YAML document as JSON.
#[derive(Debug, Default)]
pub struct YamlDocument {
    pub value: Value,
    /// Repeated keys with their lines: `line 8: key "k" already set in map`. The last one counts.
    pub duplicates: Vec<String>,
}

impl YamlDocument {
    /// What strict decoding says of repeated keys.
    pub fn strict_error(&self) -> Option<StrictError> {
        (!self.duplicates.is_empty()).then(|| StrictError::Yaml(self.duplicates.clone()))
    }
}

/// Reads the first document of `data`; null if there is none.
pub fn read(data: &[u8]) -> Result<YamlDocument, DecodeError> {
    if let Some(value) = fast::read_json(data) {
        return Ok(YamlDocument { value, duplicates: Vec::new() });
    }
    let convert = || -> Result<YamlDocument, String> {
        let (nodes, root) = parser::first_document(data).map_err(|e| e.to_string())?;
        match root {
            None => Ok(YamlDocument::default()),
            Some(root) => decode::Decoder::new(&nodes).document(root),
        }
    };
    convert().map_err(DecodeError::Yaml)
}
