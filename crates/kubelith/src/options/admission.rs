//! Which admission plugins run, and how.

use crate::flags::Flags;
use kubelith_admission::{Configuration, Known, Switches, known};

#[derive(Debug, Clone)]
pub struct AdmissionOptions {
    pub switches: Switches,
    pub configuration: Configuration,
    pub allow_privileged: bool,
    pub not_ready_toleration_seconds: i64,
    pub unreachable_toleration_seconds: i64,
}

/// What a flag wants of the plugins that it names.
#[derive(Clone, Copy)]
enum Asks {
    ToRun,
    NotToRun,
}

/// Names the plugins that run, and no others do.
const EXACTLY: &str = "admission-control";

impl AdmissionOptions {
    pub fn from_flags(flags: &Flags, errors: &mut Vec<String>) -> AdmissionOptions {
        let is_given = |flag: &str| flags.is_given(flag);
        let exactly = is_given(EXACTLY);
        if exactly && (is_given("enable-admission-plugins") || is_given("disable-admission-plugins")) {
            errors.push(
                "admission-control and enable-admission-plugins/disable-admission-plugins flags are mutually exclusive"
                    .to_owned(),
            );
        }
        let mut names = |flag: &str, asks: Asks| {
            let names = flags.list(flag);
            errors.extend(names.iter().filter_map(|name| match (known(name), asks) {
                (Known::Unknown, _) => Some(format!("{flag} plugin {name:?} is unknown")),
                (Known::NotBuilt, Asks::ToRun) => {
                    Some(format!("{flag} plugin {name:?} is not built into this release"))
                }
                (Known::NotBuilt, Asks::NotToRun) | (Known::Built, _) => None,
            }));
            names
        };
        let only = names(EXACTLY, Asks::ToRun);
        let enabled = names("enable-admission-plugins", Asks::ToRun);
        let disabled = names("disable-admission-plugins", Asks::NotToRun);
        let mut switches = Switches { enabled, disabled };
        if let Some(both) = switches.enabled.iter().find(|name| switches.disabled.contains(name)) {
            errors.push(format!("[{both}] in enable-admission-plugins and disable-admission-plugins overlapped"));
        }
        let file = Some(flags.text("admission-control-config-file")).filter(|path| !path.is_empty());
        let configuration = file.map(|path| Configuration::read(path.as_ref())).transpose();
        let configuration = configuration.unwrap_or_else(|why| {
            errors.push(format!("failed to apply admission: failed to read plugin config: {why}"));
            None
        });
        if exactly {
            switches = Switches::exactly(only);
        }
        AdmissionOptions {
            switches,
            configuration: configuration.unwrap_or_default(),
            allow_privileged: flags.bool("allow-privileged"),
            not_ready_toleration_seconds: flags.int("default-not-ready-toleration-seconds"),
            unreachable_toleration_seconds: flags.int("default-unreachable-toleration-seconds"),
        }
    }
}
