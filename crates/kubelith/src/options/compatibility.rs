//! Which release this server says it behaves as (`--emulated-version`), and how far back others may be
//! (`--min-compatibility-version`).

use crate::flags::Flags;
use kubelith_features::{NEWEST, OLDEST, Releases};
use kubelith_meta::text::Quoted;

/// A release `major.minor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release {
    pub major: u32,
    pub minor: u32,
}

const BINARY: Release = Release { major: 1, minor: NEWEST };
/// The oldest one that can be emulated or be compatible with: three releases back, as in the reference.
const FLOOR: Release = Release { major: 1, minor: OLDEST };
const COMPONENT: &str = "kube";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompatibilityOptions {
    pub emulation: Release,
    pub min_compatibility: Release,
    /// Newer versions of APIs that are served are served as well.
    pub forward: bool,
    /// So are newer ones that `--runtime-config` names.
    pub runtime_config_forward: bool,
}

impl CompatibilityOptions {
    pub fn releases(&self) -> Releases {
        Releases { emulated_minor: self.emulation.minor, min_compatibility_minor: self.min_compatibility.minor }
    }

    /// Values that cannot be read are an error of their own; rules that are broken go to the others.
    pub fn from_flags(flags: &Flags, errors: &mut Vec<String>) -> Result<CompatibilityOptions, String> {
        let emulation = read(&flags.list("emulated-version"))?.unwrap_or(BINARY);
        let before = Release { minor: emulation.minor.saturating_sub(1), ..emulation };
        let min_compatibility = read(&flags.list("min-compatibility-version"))?.unwrap_or(before.max(FLOOR));
        if !(FLOOR..=BINARY).contains(&emulation) {
            errors.push(format!("emulation version {emulation} is not between [{FLOOR}, {BINARY}.0]"));
        }
        if min_compatibility > emulation || min_compatibility < FLOOR {
            errors.push(format!(
                "minCompatibilityVersion version {min_compatibility} is not between [{FLOOR}, {emulation}]"
            ));
        }
        for (flag, name) in [
            ("emulation-forward-compatible", "EmulationForwardCompatible"),
            ("runtime-config-emulation-forward-compatible", "RuntimeConfigEmulationForwardCompatible"),
        ] {
            if flags.bool(flag) && emulation == BINARY {
                errors.push(format!(
                    "ServerRunOptions.{name} cannot be set to true if the emulation version is the same as the binary \
                     version"
                ));
            }
        }
        Ok(CompatibilityOptions {
            emulation,
            min_compatibility,
            forward: flags.bool("emulation-forward-compatible"),
            runtime_config_forward: flags.bool("runtime-config-emulation-forward-compatible"),
        })
    }
}

/// `kube=1.35`, or `1.35` for the only component there is.
fn read(values: &[String]) -> Result<Option<Release>, String> {
    let mut found: Option<Release> = None;
    for value in values {
        let (component, version) = value.split_once('=').unwrap_or((COMPONENT, value));
        if component != COMPONENT {
            return Err(format!("component not registered: {component}"));
        }
        let release = Release::parse(version).map_err(|why| match why {
            BadRelease::Patch => format!("patch version not allowed, got: {value}"),
            BadRelease::Unreadable => format!("could not parse {} as version", Quoted(version)),
        })?;
        if let Some(first) = found {
            return Err(format!("duplicate version flag, {COMPONENT}={first} and {COMPONENT}={release}"));
        }
        found = Some(release);
    }
    Ok(found)
}

enum BadRelease {
    Patch,
    Unreadable,
}

impl Release {
    fn parse(text: &str) -> Result<Release, BadRelease> {
        let parts: Result<Vec<u32>, _> = text.trim_start_matches('v').split('.').map(str::parse).collect();
        match parts.as_deref() {
            Ok([major, minor]) => Ok(Release { major: *major, minor: *minor }),
            Ok([_, _, _]) => Err(BadRelease::Patch),
            _ => Err(BadRelease::Unreadable),
        }
    }
}

impl std::fmt::Display for Release {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}
