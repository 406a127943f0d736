//! Feature gates: which parts of the API and the server are on. Read from `--feature-gates` once, then passed
//! around as a value.

mod table;

pub use table::GATES;

use kubelith_meta::text::parse_bool;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Alpha,
    Beta,
    Stable,
    Deprecated,
}

impl Stage {
    /// As metrics and listings write it; stable gates have no word.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Alpha => "ALPHA",
            Stage::Beta => "BETA",
            Stage::Stable => "",
            Stage::Deprecated => "DEPRECATED",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Gate {
    pub name: &'static str,
    pub stage: Stage,
    pub default: bool,
    /// The default is the only value.
    pub locked: bool,
}

/// Displays as the reference's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GateError(String);

/// The gates with the values in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeatureGates {
    set: BTreeMap<&'static str, bool>,
    /// Sentences for the log about gates that are on their way out.
    pub warnings: Vec<String>,
}

/// `AllAlpha` and `AllBeta` stand for all gates of a stage that are not set by themselves.
const GROUPS: [(&str, Stage); 2] = [("AllAlpha", Stage::Alpha), ("AllBeta", Stage::Beta)];

impl FeatureGates {
    /// `pairs` of name and value; a name may have the prefix `kube:`, either all or none. A value of `None` was
    /// not given.
    pub fn parse<'a>(pairs: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> Result<FeatureGates, GateError> {
        let fail = |message: String| Err(GateError(message));
        let mut gates = FeatureGates::default();
        let mut groups = Vec::new();
        let mut prefixed = None;
        for (name, value) in pairs {
            let (component, name) = name.split_once(':').map_or((None, name), |(c, n)| (Some(c), n));
            if let Some(other) = component.filter(|c| *c != "kube") {
                return fail(format!("component not registered: {other}"));
            }
            if prefixed.is_some_and(|p| p != component.is_some()) {
                let message =
                    "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use";
                return fail(message.into());
            }
            prefixed = Some(component.is_some());
            let Some(text) = value else { return fail(format!("missing bool value for {name}")) };
            let Some(on) = parse_bool(text) else {
                let why = format!("strconv.ParseBool: parsing {}: invalid syntax", kubelith_meta::text::Quoted(text));
                return fail(format!("invalid value of {name}={text}, err: {why}"));
            };
            if let Some((_, stage)) = GROUPS.iter().find(|(group, _)| *group == name) {
                groups.push((*stage, on));
                continue;
            }
            let Some(gate) = find(name) else { return fail(format!("unrecognized feature gate: {name}")) };
            if gate.locked && on != gate.default {
                let message = format!("cannot set feature gate {name} to {on}, feature is locked to {}", gate.default);
                return fail(message);
            }
            gates.warn(gate, on);
            gates.set.insert(gate.name, on);
        }
        for (stage, on) in groups {
            for gate in GATES.iter().filter(|g| g.stage == stage && !g.locked) {
                gates.set.entry(gate.name).or_insert(on);
            }
        }
        Ok(gates)
    }

    fn warn(&mut self, gate: &Gate, on: bool) {
        let kind = match gate.stage {
            Stage::Stable => "GA",
            Stage::Deprecated => "deprecated",
            Stage::Alpha | Stage::Beta => return,
        };
        self.warnings
            .push(format!("feature gate {}={on} is {kind} and will be removed in a future release", gate.name));
    }

    /// Asking for a gate that does not exist is a mistake in the program.
    pub fn enabled(&self, name: &str) -> bool {
        let gate = find(name).unwrap_or_else(|| panic!("{name} is not a feature gate"));
        self.set.get(gate.name).copied().unwrap_or(gate.default)
    }

    /// Every gate with its value.
    pub fn all(&self) -> impl Iterator<Item = (&'static Gate, bool)> {
        GATES.iter().map(|g| (g, self.set.get(g.name).copied().unwrap_or(g.default)))
    }
}

fn find(name: &str) -> Option<&'static Gate> {
    GATES.binary_search_by(|g| g.name.cmp(name)).ok().map(|i| &GATES[i])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<FeatureGates, String> {
        let pairs = text.split(',').filter(|p| !p.is_empty());
        let pairs = pairs.map(|p| p.split_once('=').map_or((p, None), |(k, v)| (k, Some(v))));
        FeatureGates::parse(pairs).map_err(|e| e.to_string())
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(GATES.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn groups_do_not_touch_what_is_set() {
        let gates = parse("AllAlpha=true,PodsAPI=false").unwrap();
        assert!(!gates.enabled("PodsAPI") && gates.enabled("GenericWorkload") && gates.enabled("WatchList"));
        let gates = parse("AllBeta=0").unwrap();
        assert!(!gates.enabled("WatchList") && !gates.enabled("PodsAPI"));
    }

    /// Each was given to kube-apiserver v1.36.
    #[test]
    fn errors() {
        for (text, want) in [
            ("Nope=true", "unrecognized feature gate: Nope"),
            ("AllAlpha", "missing bool value for AllAlpha"),
            ("AllAlpha=x", "invalid value of AllAlpha=x, err: strconv.ParseBool: parsing \"x\": invalid syntax"),
            ("foo:AllAlpha=true", "component not registered: foo"),
            ("APIServerTracing=false", "cannot set feature gate APIServerTracing to false, feature is locked to true"),
            (
                "kube:AllAlpha=true,AllBeta=false",
                "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err(), want);
        }
        assert_eq!(parse("kube:PodsAPI=true,kube:APIServerTracing=true").unwrap().warnings.len(), 1);
    }
}
