//! The list of what is known to fail, each line with its reason. It only shrinks: a failure that is not listed fails a run,
//! and so does a listed one that passes again.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::path::Path;
use std::str::FromStr;

/// `area/file#step`, ordered as people read it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepId {
    pub file: String,
    pub index: usize,
}

impl FromStr for StepId {
    type Err = String;

    fn from_str(text: &str) -> Result<StepId, String> {
        let parts = text.split_once('#').and_then(|(file, index)| Some((file.to_owned(), index.parse().ok()?)));
        parts.map(|(file, index)| StepId { file, index }).ok_or_else(|| format!("not file#step: {text:?}"))
    }
}

impl Display for StepId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.file, self.index)
    }
}

/// The reason of a new line where nothing better is known; someone must replace it by a real one.
pub const UNEXPLAINED: &str = "unexplained";

/// How the reason of a difference begins that is not always there.
pub const AT_TIMES: &str = "at times:";

#[derive(Debug)]
pub struct Known<Id> {
    /// The comment lines at the top of the file.
    header: String,
    reasons: BTreeMap<Id, String>,
}

impl<Id> Default for Known<Id> {
    fn default() -> Known<Id> {
        Known { header: String::new(), reasons: BTreeMap::new() }
    }
}

impl<Id: Ord + Clone + Display + FromStr> Known<Id>
where
    Id::Err: Display,
{
    pub fn load(path: &Path) -> Result<Known<Id>, String> {
        match std::fs::read_to_string(path) {
            Ok(text) => Known::parse(&text).map_err(|error| format!("{}: {error}", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Known::default()),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }

    fn parse(text: &str) -> Result<Known<Id>, String> {
        let mut known = Known::default();
        for line in text.lines() {
            if line.starts_with('#') {
                known.header.push_str(line);
                known.header.push('\n');
            } else if let Some((step, reason)) = line.trim().split_once(char::is_whitespace) {
                let id = step.parse().map_err(|error: Id::Err| error.to_string())?;
                known.reasons.insert(id, reason.trim().to_owned());
            } else if !line.trim().is_empty() {
                return Err(format!("no reason: {line:?}"));
            }
        }
        Ok(known)
    }

    pub fn contains(&self, id: &Id) -> bool {
        self.reasons.contains_key(id)
    }

    /// Whether the reason says that it comes and goes: the answer depends on how fast a controller was, here as there.
    pub fn is_at_times(&self, id: &Id) -> bool {
        self.reasons.get(id).is_some_and(|reason| reason.starts_with(AT_TIMES))
    }

    pub fn len(&self) -> usize {
        self.reasons.len()
    }

    pub fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Takes over the outcome of a run: what passed leaves the list, new failures enter it with the reason that is given for them.
    pub fn bless(&mut self, passed: &[Id], failed: &[Id], reason: impl Fn(&Id) -> &'static str) {
        for id in passed {
            self.reasons.remove(id);
        }
        for id in failed {
            self.reasons.entry(id.clone()).or_insert_with(|| reason(id).to_owned());
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
        text.parse().unwrap()
    }

    #[test]
    fn keeps_reasons_and_shrinks() {
        let mut known = Known::<StepId>::parse("# why\ncrud/a#10  no admission yet\ncrud/a#2  x\n\n").unwrap();
        assert!(known.contains(&id("crud/a#10")) && !known.contains(&id("crud/a#1")));
        assert!(!known.is_at_times(&id("crud/a#10")));
        let timed = Known::<StepId>::parse("crud/a#1  at times: a controller is slow").unwrap();
        assert!(timed.is_at_times(&id("crud/a#1")) && !timed.is_at_times(&id("crud/a#2")));
        known.bless(&[id("crud/a#2")], &[id("crud/a#10"), id("crud/a#9")], |_| UNEXPLAINED);
        assert_eq!(known.to_text(), "# why\ncrud/a#9  unexplained\ncrud/a#10  no admission yet\n");
    }

    #[test]
    fn a_line_needs_a_step_and_a_reason() {
        assert!(Known::<StepId>::parse("crud/a#1").is_err());
        assert!(Known::<StepId>::parse("crud/a#x reason").is_err());
        assert!(Known::<StepId>::parse("crud/a reason").is_err());
    }
}
