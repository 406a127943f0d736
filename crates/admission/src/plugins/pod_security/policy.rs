//! What the labels of a namespace ask for.

use kubelith_meta::field::{Error, ErrorList, Path};
use kubelith_meta::object::ObjectMeta;
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
    Minor(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelVersion {
    pub level: Level,
    pub version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    pub enforce: LevelVersion,
    pub audit: LevelVersion,
    pub warn: LevelVersion,
}

impl fmt::Display for LevelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = self.level.name();
        match self.version {
            Version::Latest => write!(f, "{level}:latest"),
            Version::Minor(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

impl Level {
    pub fn name(self) -> &'static str {
        match self {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        }
    }

    pub fn parse(text: &str) -> Option<Level> {
        match text {
            "privileged" => Some(Level::Privileged),
            "baseline" => Some(Level::Baseline),
            "restricted" => Some(Level::Restricted),
            _ => None,
        }
    }
}

impl Version {
    pub fn parse(text: &str) -> Option<Version> {
        if text == "latest" {
            return Some(Version::Latest);
        }
        let minor = text.strip_prefix("v1.")?;
        let plain = minor.bytes().all(|b| b.is_ascii_digit()) && (minor.len() == 1 || !minor.starts_with('0'));
        // The reference reads it as a signed number.
        if plain { minor.parse::<i64>().ok().map(|minor| Version::Minor(minor.unsigned_abs())) } else { None }
    }
}

const PREFIX: &str = "pod-security.kubernetes.io/";
const ENFORCE: [&str; 2] = ["pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io/enforce-version"];
const AUDIT: [&str; 2] = ["pod-security.kubernetes.io/audit", "pod-security.kubernetes.io/audit-version"];
const WARN: [&str; 2] = ["pod-security.kubernetes.io/warn", "pod-security.kubernetes.io/warn-version"];
pub const BAD_LEVEL: &str = "must be one of privileged, baseline, restricted";
pub const BAD_VERSION: &str = "must be \"latest\" or \"v1.x\"";

impl Policy {
    pub const PRIVILEGED: Policy = {
        let all = LevelVersion { level: Level::Privileged, version: Version::Latest };
        Policy { enforce: all, audit: all, warn: all }
    };

    /// Whether nothing is looked at.
    pub fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|mode| mode.level == Level::Privileged)
    }

    /// Whether both let the same pods in.
    pub fn is_equivalent(&self, other: &Policy) -> bool {
        let modes = [(self.enforce, other.enforce), (self.audit, other.audit), (self.warn, other.warn)];
        modes.iter().all(|(a, b)| a == b || (a.level == Level::Privileged && b.level == Level::Privileged))
    }

    /// The policy by the labels of a namespace and what is wrong with its labels; `defaults` hold where there are none. A level that
    /// cannot be read is the strictest where it is enforced and the laxest where it is not.
    pub fn of<'l>(label: impl Fn(&str) -> Option<&'l str>, defaults: &Policy) -> (Policy, ErrorList) {
        let mut errors = ErrorList::default();
        let mut bad = |key: &str, value: &str, why: &str| {
            errors.push(Error::invalid(&Path::of(&["metadata", "labels"]).key(key), value, why));
        };
        let mut mode = |[level_key, version_key]: [&str; 2], fallback: Level| {
            let mut level = None;
            if let Some(text) = label(level_key) {
                level = Some(Level::parse(text));
                if level == Some(None) {
                    bad(level_key, text, BAD_LEVEL);
                }
            }
            let mut version = None;
            if let Some(text) = label(version_key) {
                let parsed = Version::parse(text);
                if parsed.is_none() {
                    bad(version_key, text, BAD_VERSION);
                }
                version = Some(parsed.unwrap_or(Version::Latest));
            }
            (level.map(|level| level.ok_or(fallback)), version)
        };
        let (enforce_level, enforce_version) = mode(ENFORCE, Level::Restricted);
        let (audit_level, audit_version) = mode(AUDIT, Level::Privileged);
        let (warn_level, warn_version) = mode(WARN, Level::Privileged);

        let asked = |given: Option<Result<Level, Level>>, version: Option<Version>, default: LevelVersion| {
            let level = match given {
                Some(Ok(level) | Err(level)) => level,
                None => default.level,
            };
            LevelVersion { level, version: version.unwrap_or(default.version) }
        };
        let enforce = asked(enforce_level, enforce_version, defaults.enforce);
        let audit = asked(audit_level, audit_version, defaults.audit);
        let mut warn = asked(warn_level, warn_version, defaults.warn);
        // What is enforced is warned of as well, so that templates show it.
        if let (None, Some(Ok(enforced))) = (warn_level, enforce_level)
            && enforced > warn.level
        {
            warn.level = enforced;
            warn.version = warn_version.unwrap_or(enforce.version);
        }
        (Policy { enforce, audit, warn }, errors)
    }
}

/// Whether a label says something of this mode.
pub fn has_label(meta: ObjectMeta<'_>, mode: &str) -> bool {
    meta.label(&format!("{PREFIX}{mode}")).is_some() || meta.label(&format!("{PREFIX}{mode}-version")).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubelith_meta::Value;

    fn policy(labels: &[(&str, &str)]) -> (String, String, usize) {
        let mut namespace = Value::object();
        for (key, value) in labels {
            namespace.meta_mut().set_label(&format!("{PREFIX}{key}"), value);
        }
        let (policy, errors) = Policy::of(|key| namespace.meta().label(key), &Policy::PRIVILEGED);
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
        let strict = LevelVersion { level: Level::Baseline, version: Version::Minor(30) };
        let defaults = Policy { enforce: strict, ..Policy::PRIVILEGED };
        let (policy, _) = Policy::of(|_| None, &defaults);
        assert_eq!(policy, defaults, "what is enforced by default is not warned of");
    }
}
