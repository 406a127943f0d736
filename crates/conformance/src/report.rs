//! Sorts the outcome of a run into same, known and new differences, and prints it for developers.

use crate::compare::Difference;
use crate::corpus::FileOutcome;
use crate::known::{Known, StepId};
use crate::replay::StepOutcome;
use serde_json::Value;
use std::fmt::Write as _;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// A line per file that has something to say.
    Quiet,
    /// The first few differences of each step.
    Short,
    /// Every difference, in full.
    Full,
}

/// How many differences of a step are shown unless all are wanted, and how much of a value.
const SHOWN: usize = 3;
const WIDTH: usize = 300;

/// What the list of known differences makes of a run.
#[derive(Debug, Default)]
pub struct Verdict {
    pub same: Vec<StepId>,
    pub known: Vec<StepId>,
    pub new: Vec<StepId>,
    /// Listed as different, but the same: the line must go.
    pub stale: Vec<StepId>,
}

impl Verdict {
    pub fn of(outcomes: &[FileOutcome], known: &Known<StepId>) -> Verdict {
        let mut verdict = Verdict::default();
        for outcome in outcomes {
            for step in &outcome.steps {
                let id = StepId { file: outcome.name.clone(), index: step.index };
                let list = match (step.differences.is_empty(), known.contains(&id)) {
                    (true, false) => &mut verdict.same,
                    (true, true) if known.is_at_times(&id) => &mut verdict.same,
                    (true, true) => &mut verdict.stale,
                    (false, true) => &mut verdict.known,
                    (false, false) => &mut verdict.new,
                };
                list.push(id);
            }
        }
        verdict
    }

    pub fn failed(&self) -> usize {
        self.new.len() + self.stale.len()
    }
}

/// Which of the differences of a file are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Show {
    NewOnly,
    KnownToo,
}

pub fn file(outcome: &FileOutcome, known: &Known<StepId>, detail: Detail, show: Show) -> String {
    let mut text = String::new();
    let (mut new, mut listed) = (0, 0);
    for step in &outcome.steps {
        let id = StepId { file: outcome.name.clone(), index: step.index };
        let is_known = known.contains(&id);
        match (step.differences.is_empty(), is_known) {
            (true, true) if known.is_at_times(&id) => {}
            (true, true) => {
                let _ = writeln!(text, "  {}#{} is the same again: take it off the list", outcome.name, step.index);
            }
            (true, false) => {}
            (false, _) => {
                *(if is_known { &mut listed } else { &mut new }) += 1;
                if !is_known || show == Show::KnownToo {
                    text.push_str(&step_text(&outcome.name, step, is_known, detail));
                }
            }
        }
    }
    let same = outcome.steps.len() - new - listed;
    let word = if new == 0 { "ok  " } else { "DIFF" };
    let known_part = if listed > 0 { format!(", {listed} known") } else { String::new() };
    let body = if detail == Detail::Quiet { "" } else { &text };
    format!("{word} {}: {same} same, {new} different{known_part}\n{body}", outcome.name)
}

fn step_text(name: &str, step: &StepOutcome, is_known: bool, detail: Detail) -> String {
    let mark = if is_known { " (known)" } else { "" };
    let mut text = format!("  {name}#{} {}{mark}\n", step.index, step.request);
    let shown = if detail == Detail::Full { step.differences.len() } else { SHOWN };
    for Difference { path, want, got } in step.differences.iter().take(shown) {
        let _ = writeln!(text, "    {path}\n      want {}\n      got  {}", value(want, detail), value(got, detail));
    }
    if step.differences.len() > shown {
        let _ = writeln!(text, "    (+{} more)", step.differences.len() - shown);
    }
    text
}

fn value(value: &Option<Value>, detail: Detail) -> String {
    let text = value.as_ref().map_or_else(|| "<absent>".to_owned(), Value::to_string);
    match detail {
        Detail::Full => text,
        Detail::Quiet | Detail::Short => text.chars().take(WIDTH).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_new_and_a_stale_difference_fail() {
        let different = || vec![Difference { path: "a".into(), want: Some(json!(1)), got: None }];
        let step = |index, differences| StepOutcome { index, request: "GET /".into(), differences };
        let steps = vec![step(0, vec![]), step(1, different()), step(2, different()), step(3, vec![])];
        let outcomes = [FileOutcome { name: "crud/a".into(), steps }];
        let mut known = Known::<StepId>::default();
        let id = |index| StepId { file: "crud/a".into(), index };
        known.bless(&[], &[id(1), id(3)], |_| "x");
        let verdict = Verdict::of(&outcomes, &known);
        assert_eq!(
            (verdict.same, verdict.known, verdict.new, verdict.stale),
            (vec![id(0)], vec![id(1)], vec![id(2)], vec![id(3)])
        );
        let text = file(&outcomes[0], &known, Detail::Short, Show::NewOnly);
        assert!(text.starts_with("DIFF crud/a: 2 same, 1 different, 1 known\n"), "{text}");
        assert!(text.contains("crud/a#2 GET /\n    a\n      want 1\n      got  <absent>"), "{text}");
        assert!(text.contains("crud/a#3 is the same again"), "{text}");
    }
}
