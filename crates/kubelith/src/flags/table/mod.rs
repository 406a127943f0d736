//! All flags, in the sections of the help. One file per section or group of small ones.

mod access;
mod admission;
mod audit;
mod deprecated;
mod etcd;
mod generic;
mod misc;
mod observe;
mod own;
mod serving;

use super::{Effect, Flag, FlagKind};
use std::collections::HashMap;
use std::sync::LazyLock;

/// A part of the help.
pub struct Section {
    /// Empty: the section is not in the help.
    pub title: &'static str,
    pub flags: &'static [Flag],
}

/// Those that kube-apiserver does not have.
pub const OWN: &[Flag] = own::FLAGS;

/// In the order of the help; ours first.
pub const SECTIONS: &[Section] = &[
    Section { title: "Kubelith flags", flags: own::FLAGS },
    Section { title: "Generic flags", flags: generic::FLAGS },
    Section { title: "Etcd flags", flags: etcd::FLAGS },
    Section { title: "Secure serving flags", flags: serving::FLAGS },
    Section { title: "Auditing flags", flags: audit::FLAGS },
    Section { title: "Features flags", flags: observe::FEATURES },
    Section { title: "Authentication flags", flags: access::AUTHENTICATION },
    Section { title: "Authorization flags", flags: access::AUTHORIZATION },
    Section { title: "API enablement flags", flags: admission::API_ENABLEMENT },
    Section { title: "Egress selector flags", flags: admission::EGRESS },
    Section { title: "Admission flags", flags: admission::ADMISSION },
    Section { title: "Metrics flags", flags: observe::METRICS },
    Section { title: "Logs flags", flags: observe::LOGS },
    Section { title: "Traces flags", flags: observe::TRACES },
    Section { title: "Misc flags", flags: misc::FLAGS },
    Section { title: "", flags: deprecated::FLAGS },
    Section { title: "Global flags", flags: own::GLOBAL },
];

/// The flag of a name, in which `_` counts as `-`.
pub fn find(name: &str) -> Option<&'static Flag> {
    static BY_NAME: LazyLock<HashMap<&str, &Flag>> =
        LazyLock::new(|| SECTIONS.iter().flat_map(|section| section.flags).map(|flag| (flag.name, flag)).collect());
    if let Some(flag) = BY_NAME.get(name) {
        return Some(flag);
    }
    let same = |known: &str| {
        known.len() == name.len()
            && known.bytes().zip(name.bytes()).all(|(k, n)| k == n || (k == b'-' && matches!(n, b'_' | b'.')))
    };
    SECTIONS.iter().flat_map(|s| s.flags).find(|f| same(f.name))
}

/// A flag that does what its help says.
const fn flag(name: &'static str, kind: FlagKind, default: &'static str, help: &'static str) -> Flag {
    Flag { name, kind, default, effect: Effect::Applies, help, deprecated: None }
}

/// A flag on its way out.
const fn deprecated(flag: Flag, message: &'static str) -> Flag {
    Flag { deprecated: Some(message), ..flag }
}

/// A flag for something that this program does another way.
const fn no_use(name: &'static str, kind: FlagKind, default: &'static str, help: &'static str) -> Flag {
    Flag { name, kind, default, effect: Effect::NoUse, help, deprecated: None }
}
