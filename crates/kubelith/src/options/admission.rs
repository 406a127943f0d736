//! Which admission plugins run, and how.

use crate::flags::Flags;
use kubelith_admission::{Switches, is_known};

#[derive(Debug, Clone)]
pub struct AdmissionOptions {
    pub switches: Switches,
    pub allow_privileged: bool,
    pub not_ready_toleration_seconds: i64,
    pub unreachable_toleration_seconds: i64,
}

impl AdmissionOptions {
    pub fn from_flags(flags: &Flags, errors: &mut Vec<String>) -> AdmissionOptions {
        let mut names = |flag: &str| {
            let names = flags.list(flag);
            let unknown = names.iter().filter(|name| !is_known(name));
            errors.extend(unknown.map(|name| format!("{flag} plugin {name:?} is unknown")));
            names
        };
        let switches =
            Switches { enabled: names("enable-admission-plugins"), disabled: names("disable-admission-plugins") };
        if let Some(both) = switches.enabled.iter().find(|name| switches.disabled.contains(name)) {
            errors.push(format!("[{both}] in enable-admission-plugins and disable-admission-plugins overlapped"));
        }
        AdmissionOptions {
            switches,
            allow_privileged: flags.bool("allow-privileged"),
            not_ready_toleration_seconds: flags.int("default-not-ready-toleration-seconds"),
            unreachable_toleration_seconds: flags.int("default-unreachable-toleration-seconds"),
        }
    }
}
