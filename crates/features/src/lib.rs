//! Feature gates: which parts of the API and the server are on. Read from `--feature-gates` once, then passed
//! around as a value.

mod effect;
mod table;
mod version;

pub use effect::{ELSEWHERE, FIXED};
pub use table::GATES;
pub use version::VersionInfo;

use kubelith_meta::text::parse_bool;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

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

/// The oldest minor release that can be emulated.
pub const OLDEST: u32 = 33;
/// This one.
pub const NEWEST: u32 = 36;

#[derive(Debug, Clone, Copy)]
pub struct Gate {
    pub name: &'static str,
    now: GateState,
    /// In the releases from [`OLDEST`] on.
    past: [Past; (NEWEST - OLDEST) as usize],
    /// Gates that must be on if this one is.
    needs: &'static [&'static str],
}

/// A gate in one release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateState {
    pub stage: Stage,
    pub default: bool,
    /// The default is the only value.
    pub locked: bool,
}

#[derive(Debug, Clone, Copy)]
enum Past {
    /// As in the newest release.
    Same,
    Was(GateState),
    Absent,
}

impl Gate {
    /// In a minor release; `None` if there was no such gate.
    pub fn in_release(&self, minor: u32) -> Option<GateState> {
        let past = minor.checked_sub(OLDEST).and_then(|release| self.past.get(release as usize));
        match past {
            None | Some(Past::Same) => Some(self.now),
            Some(Past::Was(state)) => Some(*state),
            Some(Past::Absent) => None,
        }
    }
}

/// The release whose gates are meant, and the oldest one that others may be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Releases {
    pub emulated_minor: u32,
    pub min_compatibility_minor: u32,
}

impl Default for Releases {
    fn default() -> Releases {
        Releases { emulated_minor: NEWEST, min_compatibility_minor: NEWEST - 1 }
    }
}

/// Displays as the reference's message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct GateError(String);

/// The gates with the values in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeatureGates {
    set: BTreeMap<&'static str, bool>,
    /// What was said of each of [`GROUPS`].
    groups: [bool; GROUPS.len()],
    releases: Releases,
    /// Sentences for the log about gates that are on their way out.
    pub warnings: Vec<String>,
}

/// `AllAlpha` and `AllBeta` stand for all gates of a stage that are not set by themselves.
const GROUPS: [(&str, Stage); 2] = [("AllAlpha", Stage::Alpha), ("AllBeta", Stage::Beta)];

impl FeatureGates {
    /// `pairs` of name and value; a name may have the prefix `kube:`, either all or none. A value of `None` was
    /// not given.
    pub fn parse<'a>(
        pairs: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
        releases: Releases,
    ) -> Result<FeatureGates, GateError> {
        let fail = |message: String| Err(GateError(message));
        let mut gates = FeatureGates { releases, ..FeatureGates::default() };
        let minor = releases.emulated_minor;
        let mut groups = Vec::new();
        let is_named = |name: &str| GROUPS.iter().position(|(group, _)| *group == name);
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
            if let Some(place) = is_named(name) {
                groups.push((GROUPS[place].1, on));
                gates.groups[place] = on;
                continue;
            }
            let Some(gate) = find(name) else { return fail(format!("unrecognized feature gate: {name}")) };
            let Some(state) = gate.in_release(minor) else {
                let oldest = releases.min_compatibility_minor;
                return fail(format!(
                    "cannot set feature gate {name} to {on}, feature is PreAlpha at emulated version 1.{minor}, min \
                     compatibility version 1.{oldest}"
                ));
            };
            if state.locked && on != state.default {
                let default = state.default;
                return fail(format!("cannot set feature gate {name} to {on}, feature is locked to {default}"));
            }
            gates.warn(gate.name, state.stage, on);
            gates.warn_of_fixed(gate.name, on);
            gates.set.insert(gate.name, on);
        }
        for (stage, on) in groups {
            let of_stage = |gate: &&Gate| gate.in_release(minor).is_some_and(|s| s.stage == stage && !s.locked);
            for gate in GATES.iter().filter(of_stage) {
                if let Entry::Vacant(unset) = gates.set.entry(gate.name) {
                    unset.insert(on);
                    gates.warn_of_fixed(gate.name, on);
                }
            }
        }
        gates.check_needs()?;
        Ok(gates)
    }

    fn check_needs(&self) -> Result<(), GateError> {
        let errors = GATES.iter().filter(|gate| self.is_on(gate)).filter_map(|gate| {
            let off: Vec<&str> = gate.needs.iter().copied().filter(|need| !self.enabled(need)).collect();
            let (name, off) = (gate.name, (!off.is_empty()).then(|| off.join(" "))?);
            Some(format!("{name} is enabled, but depends on features that are disabled: [{off}]"))
        });
        let errors: Vec<String> = errors.collect();
        match errors.is_empty() {
            true => Ok(()),
            false => Err(GateError(kubelith_meta::text::aggregate(errors))),
        }
    }

    fn warn(&mut self, name: &str, stage: Stage, on: bool) {
        let kind = match stage {
            Stage::Stable => "GA",
            Stage::Deprecated => "deprecated",
            Stage::Alpha | Stage::Beta => return,
        };
        self.warnings.push(format!("feature gate {name}={on} is {kind} and will be removed in a future release"));
    }

    /// Nobody sets a gate in vain without being told.
    fn warn_of_fixed(&mut self, name: &str, on: bool) {
        if effect::fixed(name).is_some_and(|value| value != on) {
            self.warnings
                .push(format!("feature gate {name}={on} has no effect: this server behaves as with {name}={}", !on));
        }
    }

    /// Asking for a gate that does not exist is a mistake in the program.
    pub fn enabled(&self, name: &str) -> bool {
        let gate = find(name).unwrap_or_else(|| panic!("{name} is not a feature gate"));
        self.is_on(gate)
    }

    fn is_on(&self, gate: &Gate) -> bool {
        let default = || gate.in_release(self.releases.emulated_minor).is_some_and(|state| state.default);
        self.set.get(gate.name).copied().unwrap_or_else(default)
    }

    /// The gates that stand for others, as [`FeatureGates::all`] has the rest.
    pub fn groups(&self) -> impl Iterator<Item = (&'static str, Stage, bool)> {
        GROUPS.iter().zip(self.groups).map(|((name, stage), on)| (*name, *stage, on))
    }

    /// Every gate of the release with its name, stage and value.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, Stage, bool)> {
        let minor = self.releases.emulated_minor;
        GATES.iter().filter_map(move |gate| Some((gate.name, gate.in_release(minor)?.stage, self.is_on(gate))))
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
        FeatureGates::parse(pairs, Releases::default()).map_err(|e| e.to_string())
    }

    #[test]
    fn gates_are_those_of_the_emulated_release() {
        let of = |minor: u32, text: &str| {
            let releases = Releases { emulated_minor: minor, min_compatibility_minor: minor - 1 };
            let pairs =
                text.split(',').filter_map(|pair| pair.split_once('=')).map(|(name, value)| (name, Some(value)));
            FeatureGates::parse(pairs, releases).map_err(|e| e.to_string())
        };
        for (minor, on) in [(36, true), (35, false), (34, false)] {
            assert_eq!(of(minor, "").unwrap().enabled("ComponentFlagz"), on, "1.{minor}");
        }
        assert!(of(35, "ComponentFlagz=true").unwrap().enabled("ComponentFlagz"));
        assert!(of(33, "APIServerTracing=false").is_ok(), "locked later");
        assert_eq!(
            of(35, "AtomicFIFO=true").unwrap_err(),
            "cannot set feature gate AtomicFIFO to true, feature is PreAlpha at emulated version 1.35, min compatibility \
             version 1.34"
        );
        assert!(!of(35, "").unwrap().all().any(|(name, _, _)| name == "AtomicFIFO"));
        for minor in OLDEST..=NEWEST {
            assert!(of(minor, "").is_ok(), "the defaults of 1.{minor} fit together");
        }
    }

    #[test]
    fn a_gate_needs_others() {
        assert_eq!(
            parse("APIServerIdentity=false,UnknownVersionInteroperabilityProxy=true").unwrap_err(),
            "UnknownVersionInteroperabilityProxy is enabled, but depends on features that are disabled: [APIServerIdentity]"
        );
    }

    #[test]
    fn the_table_is_sorted() {
        assert!(GATES.is_sorted_by(|a, b| a.name < b.name));
    }

    #[test]
    fn every_gate_has_one_effect() {
        assert!(ELSEWHERE.is_sorted() && FIXED.is_sorted());
        let fixed = FIXED.iter().map(|(name, _)| name);
        for name in ELSEWHERE.iter().chain(fixed) {
            assert!(find(name).is_some(), "{name} is no gate");
        }
        assert!(FIXED.iter().all(|(name, _)| !ELSEWHERE.contains(name)));
    }

    #[test]
    fn what_cannot_be_turned_is_told() {
        let of = |text: &str| parse(text).unwrap().warnings;
        let why = "has no effect: this server behaves as with NativeHistograms=false";
        assert_eq!(of("NativeHistograms=true"), [format!("feature gate NativeHistograms=true {why}")]);
        assert_eq!(of("NativeHistograms=false,WatchList=false,KubeletSeparateDiskGC=false"), [""; 0]);
        assert!(of("AllAlpha=true").iter().any(|warning| warning.contains(why)));
    }

    #[test]
    fn groups_do_not_touch_what_is_set() {
        let gates = parse("AllAlpha=true,PodsAPI=false").unwrap();
        assert!(!gates.enabled("PodsAPI") && gates.enabled("GenericWorkload") && gates.enabled("WatchList"));
        let gates = parse("AllBeta=0").unwrap();
        assert!(!gates.enabled("WatchList") && !gates.enabled("PodsAPI"));
        assert_eq!(gates.groups().map(|(_, _, on)| on).collect::<Vec<_>>(), [false; 2]);
        let told: Vec<_> = parse("AllAlpha=true").unwrap().groups().collect();
        assert_eq!(told, [("AllAlpha", Stage::Alpha, true), ("AllBeta", Stage::Beta, false)]);
    }

    /// Every value but the default is refused, told to have no effect, or for those who ask: here, if the gate is not in
    /// `ELSEWHERE`. That somebody asks is what a test in `xtask` looks for.
    #[test]
    fn no_gate_is_turned_in_vain() {
        /// A gate with all that it needs, and that needs.
        fn with_needs(gate: &Gate) -> Vec<&'static str> {
            let needs = gate.needs.iter().filter_map(|need| find(need)).flat_map(with_needs);
            std::iter::once(gate.name).chain(needs).collect()
        }
        for gate in GATES {
            let to = !gate.now.default;
            let all: Vec<String> = with_needs(gate)[1..].iter().map(|need| format!(",{need}=true")).collect();
            match parse(&format!("{}={to}{}", gate.name, all.concat())) {
                Err(why) => {
                    let others = GATES.iter().any(|other| other.now.default && other.needs.contains(&gate.name));
                    assert!(gate.now.locked || others && !to, "{why}");
                    assert!(why.contains(gate.name), "{why}");
                }
                Ok(gates) => {
                    assert_eq!(gates.enabled(gate.name), to, "{}", gate.name);
                    let told = format!("feature gate {}={to} has no effect", gate.name);
                    let is_told = gates.warnings.iter().any(|warning| warning.starts_with(&told));
                    assert_eq!(is_told, effect::fixed(gate.name) == Some(!to), "{}", gate.name);
                }
            }
        }
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
