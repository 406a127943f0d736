//! Who should hold a lease: one step of an election, from the lease and its candidates as they are.
//!
//! Candidates are asked whether they are still there (`pingTime`), and answer (`renewTime`). Of those that answered in
//! time, the one with the oldest version is chosen, so that a leader never does what others do not understand yet.

use kubelith_meta::Value;
use kubelith_meta::time::{Duration as Span, Time};
use std::cmp::Ordering;
use std::time::Duration;

/// Time to answer; answers are good for as long.
const ELECTION: Span = Span::from_secs(5);
/// A candidate that has not renewed for this long is gone.
const CANDIDATE_LIFE: Span = Span::from_secs(30 * 60);
/// Until a lease is looked at again to see that it is renewed.
pub const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Of leases that are given to somebody.
pub const LEASE_SECONDS: i64 = 5;
/// The one strategy that is ours; others elect by theirs.
pub const OLDEST: &str = "OldestEmulationVersion";

/// What to do next.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Nothing until something changes.
    Nothing,
    Wait,
    /// Ask these candidates, by their place, whether they are there.
    Ask(Vec<usize>),
    /// Give the lease to the candidate of this name, or make it for others to give.
    Elect {
        strategy: String,
        holder: Option<String>,
    },
    Failed(String),
}

pub fn step(now: Time, lease: Option<&Value>, candidates: &[Value]) -> Step {
    if candidates.is_empty() {
        return Step::Nothing;
    }
    match is_needed(now, lease, candidates) {
        Ok(true) => {}
        Ok(false) => return Step::Wait,
        Err(why) => return Step::Failed(why),
    }
    let (mut ask, mut waiting) = (Vec::new(), false);
    for (i, candidate) in candidates.iter().enumerate() {
        let (ping, renewed) = (time(candidate, "pingTime"), time(candidate, "renewTime"));
        let within = |at: Option<Time>| at.is_some_and(|at| now < at + ELECTION);
        if within(ping) && renewed.is_some() && renewed < ping {
            waiting = true;
        } else if !within(renewed) && ping.is_none_or(|ping| ping + ELECTION < now && renewed >= Some(ping)) {
            ask.push(i);
        }
    }
    if !ask.is_empty() {
        return Step::Ask(ask);
    }
    if waiting {
        return Step::Wait;
    }
    let there: Vec<&Value> = candidates.iter().filter(|c| answered(c, now)).collect();
    if there.is_empty() {
        return Step::Failed("no available candidates".to_owned());
    }
    let strategy = match strategy(&there) {
        Ok(strategy) => strategy,
        Err(why) => return Step::Failed(why),
    };
    let holder = match strategy.as_str() {
        OLDEST => best(&there).map(|c| c.meta().name().to_owned()),
        _ => None,
    };
    if strategy == OLDEST && holder.is_none() {
        return Step::Failed("should not happen, could not find suitable electee".to_owned());
    }
    Step::Elect { strategy, holder }
}

/// Whether the candidate still counts.
pub fn is_alive(candidate: &Value, now: Time) -> bool {
    time(candidate, "renewTime").is_some_and(|renewed| now <= renewed + CANDIDATE_LIFE)
}

/// A candidate that was asked and has not answered changes nothing.
pub fn is_asked(candidate: &Value) -> bool {
    let (ping, renewed) = (time(candidate, "pingTime"), time(candidate, "renewTime"));
    ping.is_some() && renewed < ping
}

pub fn is_expired(lease: &Value, now: Time) -> bool {
    let seconds = lease.at(&["spec", "leaseDurationSeconds"]).and_then(Value::as_i64);
    match (time(lease, "renewTime"), seconds) {
        (Some(renewed), Some(seconds)) => renewed + Span::from_secs(seconds) < now,
        _ => true,
    }
}

fn is_needed(now: Time, lease: Option<&Value>, candidates: &[Value]) -> Result<bool, String> {
    let Some(lease) = lease else { return Ok(true) };
    let holder = lease.str_at(&["spec", "holderIdentity"]);
    if is_expired(lease, now) || holder.is_empty() {
        return Ok(true);
    }
    // From time to time all candidates show that they are there.
    let half = Span::from_nanos(CANDIDATE_LIFE.as_nanos() / 2);
    if candidates.iter().any(|c| time(c, "renewTime").is_some_and(|renewed| renewed + half < now)) {
        return Ok(true);
    }
    let all: Vec<&Value> = candidates.iter().collect();
    if strategy(&all)? != OLDEST {
        return Ok(false);
    }
    Ok(best(&all).is_some_and(|best| best.meta().name() != holder))
}

fn answered(candidate: &Value, now: Time) -> bool {
    time(candidate, "renewTime").is_some_and(|renewed| now < renewed + ELECTION)
}

/// The strategy of the newest program; those of one release must agree.
fn strategy(candidates: &[&Value]) -> Result<String, String> {
    let binary = |c: &Value| version(c, "binaryVersion").unwrap_or_default();
    let mut newest = candidates[0];
    for candidate in &candidates[1..] {
        let (ours, theirs) = (newest.str_at(&["spec", "strategy"]), candidate.str_at(&["spec", "strategy"]));
        match binary(newest).cmp(&binary(candidate)) {
            Ordering::Less => newest = candidate,
            Ordering::Equal if ours != theirs => {
                let names = (newest.meta().name(), candidate.meta().name());
                return Err(format!(
                    "candidates \"{}\", \"{}\" at same binary version but received differing strategies {ours}, {theirs}",
                    names.0, names.1
                ));
            }
            _ => {}
        }
    }
    Ok(newest.str_at(&["spec", "strategy"]).to_owned())
}

/// The oldest version that is emulated, then the oldest program, then whoever was there first.
fn best<'a>(candidates: &[&'a Value]) -> Option<&'a Value> {
    let versions = |c: &Value| Some((version(c, "emulationVersion")?, version(c, "binaryVersion")?));
    let fit = candidates.iter().filter_map(|c| Some((versions(c)?, c.str_at(&["metadata", "creationTimestamp"]), *c)));
    fit.min_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1))).map(|(_, _, candidate)| candidate)
}

/// `1.36`, `v1.36.2`.
fn version(candidate: &Value, field: &str) -> Option<[u64; 3]> {
    let text = candidate.str_at(&["spec", field]).trim().trim_start_matches('v');
    let core = text.split(['-', '+']).next().unwrap_or_default();
    let mut numbers = [0; 3];
    for (i, part) in core.split('.').enumerate() {
        *numbers.get_mut(i)? = part.parse().ok()?;
    }
    (!core.is_empty()).then_some(numbers)
}

fn time(object: &Value, field: &str) -> Option<Time> {
    Time::parse_micro(object.str_at(&["spec", field])).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> String {
        Time::from_unix(1_000_000 + seconds).rfc3339_micro()
    }

    fn candidate(name: &str, version: &str, renewed: Option<i64>, pinged: Option<i64>) -> Value {
        let mut candidate = Value::object();
        candidate.meta_mut().set_name(name);
        for (field, value) in [("binaryVersion", "1.36.0"), ("emulationVersion", version), ("strategy", OLDEST)] {
            candidate.set_at(&["spec", field], value.into());
        }
        for (field, time) in [("renewTime", renewed), ("pingTime", pinged)] {
            if let Some(seconds) = time {
                candidate.set_at(&["spec", field], at(seconds).into());
            }
        }
        candidate
    }

    fn lease(holder: &str, renewed: i64) -> Value {
        let mut lease = Value::object();
        lease.set_at(&["spec", "holderIdentity"], holder.into());
        lease.set_at(&["spec", "renewTime"], at(renewed).into());
        lease.set_at(&["spec", "leaseDurationSeconds"], 5.into());
        lease
    }

    fn elect(holder: &str) -> Step {
        Step::Elect { strategy: OLDEST.to_owned(), holder: Some(holder.to_owned()) }
    }

    #[test]
    fn steps() {
        let now = Time::from_unix(1_000_100);
        let (fresh, stale) = (Some(98), Some(50));
        for (lease, candidates, want, why) in [
            (None, vec![], Step::Nothing, "nobody wants it"),
            (None, vec![candidate("a", "1.36", stale, None)], Step::Ask(vec![0]), "is it still there?"),
            (None, vec![candidate("a", "1.36", stale, Some(99))], Step::Wait, "it was just asked"),
            (None, vec![candidate("a", "1.36", fresh, Some(97))], elect("a"), "it has answered"),
            (
                None,
                vec![candidate("a", "1.36", fresh, Some(97)), candidate("b", "v1.35.0", fresh, Some(97))],
                elect("b"),
                "the older version",
            ),
            (
                None,
                vec![candidate("a", "1.36", fresh, Some(97)), candidate("b", "1.35", stale, Some(90))],
                elect("a"),
                "the other has not answered in time",
            ),
            (Some(lease("a", 99)), vec![candidate("a", "1.36", stale, None)], Step::Wait, "it has the lease"),
            (
                Some(lease("a", 99)),
                vec![candidate("a", "1.36", stale, None), candidate("b", "1.35", fresh, None)],
                Step::Ask(vec![0]),
                "there is a better one",
            ),
            (Some(lease("a", 80)), vec![candidate("a", "1.36", fresh, Some(97))], elect("a"), "it has expired"),
            (
                None,
                vec![candidate("a", "1.36", stale, Some(90))],
                Step::Failed("no available candidates".into()),
                "it does not answer",
            ),
        ] {
            assert_eq!(step(now, lease.as_ref(), &candidates), want, "{why}");
        }
        let mut other = candidate("b", "1.36", fresh, None);
        other.set_at(&["spec", "strategy"], "example.com/Mine".into());
        let both = [candidate("a", "1.36", fresh, None), other.clone()];
        assert!(matches!(step(now, None, &both), Step::Failed(why) if why.contains("differing strategies")));
        let theirs = Step::Elect { strategy: "example.com/Mine".into(), holder: None };
        assert_eq!(step(now, None, &[other]), theirs, "somebody else chooses");
        assert!(is_alive(&both[0], now) && !is_alive(&candidate("a", "1", None, None), now));
    }
}
