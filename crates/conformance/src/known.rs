//! The list of steps that are known to differ, each with its reason. It only shrinks: a step that differs without being
//! listed fails a run, and so does a listed one that is the same again.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// `area/file#step`, ordered as people read it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepId {
    pub file: String,
    pub index: usize,
}

impl StepId {
    fn parse(text: &str) -> Option<StepId> {
        let (file, index) = text.split_once('#')?;
        Some(StepId { file: file.to_owned(), index: index.parse().ok()? })
    }
}

impl std::fmt::Display for StepId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.file, self.index)
    }
}

/// The reason that `--bless` gives to a new line; someone must replace it by a real one.
pub const UNEXPLAINED: &str = "unexplained";

#[derive(Debug, Default)]
pub struct Known {
    header: String,
    reasons: BTreeMap<StepId, String>,
}

impl Known {
    pub fn load(path: &Path) -> Result<Known, String> {
        match std::fs::read_to_string(path) {
            Ok(text) => Known::parse(&text).map_err(|error| format!("{}: {error}", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Known::default()),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    fn parse(text: &str) -> Result<Known, String> {
        let mut known = Known::default();
        for line in text.lines() {
            if line.starts_with('#') {
                known.header.push_str(line);
                known.header.push('\n');
            } else if let Some((step, reason)) = line.trim().split_once(char::is_whitespace) {
                let id = StepId::parse(step).ok_or_else(|| format!("not file#step: {line:?}"))?;
                known.reasons.insert(id, reason.trim().to_owned());
            } else if !line.trim().is_empty() {
                return Err(format!("no reason: {line:?}"));
            }
        }
        Ok(known)
    }

    pub fn contains(&self, id: &StepId) -> bool {
        self.reasons.contains_key(id)
    }

    pub fn len(&self) -> usize {
        self.reasons.len()
    }

    pub fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Takes over the outcome of a run: steps that are the same leave the list, new differences enter it.
    pub fn bless(&mut self, same: &[StepId], different: &[StepId]) {
        for id in same {
            self.reasons.remove(id);
        }
        for id in different {
            self.reasons.entry(id.clone()).or_insert_with(|| UNEXPLAINED.to_owned());
        }
    }

    pub fn save(&self, path: &Path) -> std::io::Result<()> {
        std::fs::write(path, self.to_text())
    }

    fn to_text(&self) -> String {
        let mut text = self.header.clone();
        for (id, reason) in &self.reasons {
            let _ = writeln!(text, "{id}  {reason}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> StepId {
        StepId::parse(text).unwrap()
    }

    #[test]
    fn keeps_reasons_and_shrinks() {
        let mut known = Known::parse("# why\ncrud/a#10  no admission yet\ncrud/a#2  x\n\n").unwrap();
        assert!(known.contains(&id("crud/a#10")) && !known.contains(&id("crud/a#1")));
        known.bless(&[id("crud/a#2")], &[id("crud/a#10"), id("crud/a#9")]);
        assert_eq!(known.to_text(), "# why\ncrud/a#9  unexplained\ncrud/a#10  no admission yet\n");
    }

    #[test]
    fn a_line_needs_a_step_and_a_reason() {
        assert!(Known::parse("crud/a#1").is_err());
        assert!(Known::parse("crud/a#x reason").is_err());
        assert!(Known::parse("crud/a reason").is_err());
    }
}
