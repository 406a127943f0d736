//! What the labels of a namespace ask for.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, ErrorList, Path};
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// The release whose rules are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Latest,
    /// 1 and this.
    Minor(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelVersion {
    pub level: Level,
    pub version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    pub enforce: LevelVersion,
    pub warn: LevelVersion,
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version {
            Version::Latest => write!(f, "{level}:latest"),
            Version::Minor(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

impl Level {
    fn parse(text: &str) -> Option<Level> {
        match text {
            "privileged" => Some(Level::Privileged),
            "baseline" => Some(Level::Baseline),
            "restricted" => Some(Level::Restricted),
            _ => None,
        }
    }
}

impl Version {
    fn parse(text: &str) -> Option<Version> {
        if text == "latest" {
            return Some(Version::Latest);
        }
        let minor = text.strip_prefix("v1.")?;
        let plain = minor.bytes().all(|b| b.is_ascii_digit()) && (minor.len() == 1 || !minor.starts_with('0'));
        if plain { minor.parse().ok().map(Version::Minor) } else { None }
    }
}

const PREFIX: &str = "pod-security.kubernetes.io/";
const BAD_LEVEL: &str = "must be one of privileged, baseline, restricted";
const BAD_VERSION: &str = "must be \"latest\" or \"v1.x\"";

impl Policy {
    /// The namespace's policy and what is wrong with its labels. A level that cannot be read is the strictest where it
    /// is enforced and the laxest where it is not.
    pub fn of(namespace: &Value) -> (Policy, ErrorList) {
        let mut errors = ErrorList::default();
        let labels = Path::of(&["metadata", "labels"]);
        let meta = namespace.meta();
        let mut bad = |name: &str, value: &str, why: &str| {
            let key = format!("{PREFIX}{name}");
            errors.push(Error::invalid(&labels.key(&key), value, why));
        };
        let label = |name: &str| meta.label(&format!("{PREFIX}{name}"));
        let mut mode = |name: &str, fallback: Level| {
            let mut level = None;
            if let Some(text) = label(name) {
                level = Some(Level::parse(text));
                if level == Some(None) {
                    bad(name, text, BAD_LEVEL);
                }
            }
            let mut version = None;
            let version_name = format!("{name}-version");
            if let Some(text) = label(&version_name) {
                let parsed = Version::parse(text);
                if parsed.is_none() {
                    bad(&version_name, text, BAD_VERSION);
                }
                version = Some(parsed.unwrap_or(Version::Latest));
            }
            (level.map(|level| level.ok_or(fallback)), version)
        };
        let (enforce_level, enforce_version) = mode("enforce", Level::Restricted);
        let _audit = mode("audit", Level::Privileged);
        let (warn_level, warn_version) = mode("warn", Level::Privileged);

        let level = |given: Option<Result<Level, Level>>| match given {
            Some(Ok(level) | Err(level)) => level,
            None => Level::Privileged,
        };
        let enforce = LevelVersion { level: level(enforce_level), version: enforce_version.unwrap_or(Version::Latest) };
        let mut warn = LevelVersion { level: level(warn_level), version: warn_version.unwrap_or(Version::Latest) };
        // What is enforced is warned of as well, so that templates show it.
        if let (None, Some(Ok(enforced))) = (warn_level, enforce_level)
            && enforced > warn.level
        {
            warn.level = enforced;
            warn.version = warn_version.unwrap_or(enforce.version);
        }
        (Policy { enforce, warn }, errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(labels: &[(&str, &str)]) -> (String, String, usize) {
        let mut namespace = Value::object();
        for (key, value) in labels {
            namespace.meta_mut().set_label(&format!("{PREFIX}{key}"), value);
        }
        let (policy, errors) = Policy::of(&namespace);
        (policy.enforce.to_string(), policy.warn.to_string(), errors.len())
    }

    #[test]
    fn policies_of_labels() {
        type Case = (&'static [(&'static str, &'static str)], (&'static str, &'static str, usize));
        let cases: [Case; 6] = [
            (&[], ("privileged:latest", "privileged:latest", 0)),
            (&[("enforce", "baseline"), ("enforce-version", "v1.30")], ("baseline:v1.30", "baseline:v1.30", 0)),
            (&[("enforce", "baseline"), ("warn", "restricted")], ("baseline:latest", "restricted:latest", 0)),
            (&[("enforce", "baseline"), ("warn", "privileged")], ("baseline:latest", "privileged:latest", 0)),
            (&[("enforce", "odd")], ("restricted:latest", "privileged:latest", 1)),
            (&[("audit", "odd"), ("audit-version", "1.2")], ("privileged:latest", "privileged:latest", 2)),
        ];
        for (labels, (enforce, warn, errors)) in cases {
            assert_eq!(policy(labels), (enforce.into(), warn.into(), errors), "{labels:?}");
        }
    }
}
